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
/*
 * Fails the test, having said what has grown, unless @now is no more than @before and what
 * an allocator may keep: as many descriptors and threads, VITALS_SLACK_KIB of memory.
 */
#define VITALS_SLACK_KIB 256
void vitals_assert_flat(const char *what, const struct vitals *before, const struct vitals *now);

/* Two or more of them as members of a JSON array, for a soak's figures. */
#define VITALS_SAMPLES 11
struct vitals_log {
	unsigned int nr;
	struct vitals sample[VITALS_SAMPLES];
};

/* Take one more, and print it as a TAP comment with @at, what it was taken at. */
void vitals_take(struct vitals_log *log, pid_t pid, const char *who, const char *at);

#endif /* TESTS_SOAK_VITALS_H */
