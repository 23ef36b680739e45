// SPDX-License-Identifier: GPL-2.0-or-later
#include "each_call.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HANG_S 120 /* of one run: whatever it waits for will not come */
#define MOST   20000

unsigned int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* A server's thread may still be about to notice that the last client is gone. */
static void settle(void)
{
	unsigned int before = open_descriptors(), now;

	for (int same = 0; same < 20; same = now == before ? same + 1 : 0, before = now) {
		usleep(10000);
		now = open_descriptors();
	}
}

static unsigned int run(const char *name, failing_scenario scenario, enum failing_how how,
			unsigned int nth)
{
	static const char *const words[] = {"error", "interrupt", "flaky"};
	unsigned int before = open_descriptors(), failed, after;

	if (getenv("FAILING_SHOW"))
		fprintf(stderr, "%s: %s %u\n", name, words[how], nth);
	alarm(HANG_S);
	failed = scenario(how, nth);
	alarm(0);
	/* The same here. */
	for (int i = 0; (after = open_descriptors()) != before && i < HANG_S * 100; i++)
		usleep(10000);
	if (after != before)
		fail_msg("%s, %s %u (%s): %u descriptors before, %u after", name, words[how], nth,
			 failing_call(), before, after);
	return failed;
}

static unsigned int run_each(const char *name, failing_scenario scenario, enum failing_how how)
{
	unsigned int nth = 1;

	while (run(name, scenario, how, nth))
		assert_true(++nth < MOST);
	return nth - 1;
}

void each_call(const char *name, failing_scenario scenario)
{
	unsigned int errors, interrupts, flaky;

	assert_int_equal(scenario(FAILING_ERROR, 0), 0); /* what stays open for good is open now */
	settle();
	errors = run_each(name, scenario, FAILING_ERROR);
	interrupts = run_each(name, scenario, FAILING_INTERRUPT);
	flaky = run(name, scenario, FAILING_FLAKY, 0);
	printf("# %s: %u calls failed, %u interrupted, %u in one run of interruptions\n", name,
	       errors, interrupts, flaky);
	fflush(stdout);
	assert_true(errors);
}
