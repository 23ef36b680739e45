// SPDX-License-Identifier: GPL-2.0-or-later
#include "vitals.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define SETTLE_MS 10000

void vitals_read(pid_t pid, struct vitals *vitals)
{
	char path[64], line[256];
	struct dirent *entry;
	FILE *status;
	DIR *fds;

	*vitals = (struct vitals){};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		sscanf(line, "VmRSS: %" SCNu64, &vitals->rss_kib);
		sscanf(line, "RssAnon: %" SCNu64, &vitals->anon_kib);
		sscanf(line, "Threads: %u", &vitals->threads);
	}
	fclose(status);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	assert_non_null(fds);
	while ((entry = readdir(fds)))
		vitals->descriptors += entry->d_name[0] != '.';
	closedir(fds);
}

void vitals_take(struct vitals_log *log, pid_t pid, const char *who, const char *at)
{
	struct vitals *vitals = &log->sample[log->nr];

	assert_true(log->nr < VITALS_SAMPLES);
	for (unsigned int ms = 0; ms < SETTLE_MS; ms += 10) {
		vitals_read(pid, vitals);
		if (!log->nr || vitals->descriptors <= log->sample[0].descriptors)
			break;
		usleep(10000);
	}
	log->nr++;
	print_message("# %s, %s: %" PRIu64 " KiB resident (%" PRIu64
		      " its own), %u descriptors, %u threads\n",
		      who, at, vitals->rss_kib, vitals->anon_kib, vitals->descriptors,
		      vitals->threads);
}

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

void vitals_assert_flat(const char *what, const struct vitals_log *log)
{
	const struct vitals *now = &log->sample[log->nr - 1];
	struct vitals first = {};

	for (unsigned int i = 0; i < 3 && i < log->nr; i++) {
		const struct vitals *one = &log->sample[i];

		first.descriptors = LARGER(first.descriptors, one->descriptors);
		first.threads = LARGER(first.threads, one->threads);
		first.anon_kib = LARGER(first.anon_kib, one->anon_kib);
	}
	if (now->descriptors <= first.descriptors && now->threads <= first.threads &&
	    now->anon_kib <= first.anon_kib + VITALS_SLACK_KIB)
		return;
	fail_msg("%s: expected no growth, found descriptors %u -> %u, threads %u -> %u, "
		 "own memory %" PRIu64 " -> %" PRIu64 " KiB",
		 what, first.descriptors, now->descriptors, first.threads, now->threads,
		 first.anon_kib, now->anon_kib);
}
