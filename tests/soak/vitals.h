/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SOAK_VITALS_H
#define TESTS_SOAK_VITALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a process holds, from /proc. What grows in a soak would grow for ever. */
struct vitals {
	uint64_t rss_kib;  /* resident, all of it */
	uint64_t anon_kib; /* of that, its own: heap and stacks. A guest's memory is not */
	unsigned int descriptors;
	unsigned int threads;
};

/* Ends the test if @pid is not there. */
void vitals_read(pid_t pid, struct vitals *vitals);

/* Some of them, over the time of a soak. */
#define VITALS_SAMPLES 11
struct vitals_log {
	unsigned int nr;
	struct vitals sample[VITALS_SAMPLES];
};

/*
 * Take one more, and print it as a TAP comment with @at, what it was taken at. What is being
 * closed at the moment has some seconds to be closed.
 */
void vitals_take(struct vitals_log *log, pid_t pid, const char *who, const char *at);
/*
 * Fails the test, having said what has grown, unless the last sample has no more descriptors
 * and threads than the first three, and no more memory than what an allocator may keep:
 * VITALS_SLACK_KIB.
 */
#define VITALS_SLACK_KIB 512
void vitals_assert_flat(const char *what, const struct vitals_log *log);

#endif /* TESTS_SOAK_VITALS_H */
