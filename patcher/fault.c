// SPDX-License-Identifier: GPL-2.0-or-later
#include "fault.h"

#ifdef HVPOKE_FAULTS
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	char point[32];
	unsigned int nth;
	int err;
} wanted;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_wanted(void)
{
	const char *text = getenv("HVPOKE_FAULT");

	if (!text || !*text)
		return;
	/* A test that asks for nothing that exists must not pass. */
	if (sscanf(text, "%31s %u %d", wanted.point, &wanted.nth, &wanted.err) != 3) {
		fprintf(stderr, "HVPOKE_FAULT is not \"POINT NTH ERRNO\": %s\n", text);
		abort();
	}
}

int fault(const char *point)
{
	static atomic_uint passed;
	unsigned int nth;

	pthread_once(&once, read_wanted);
	if (strcmp(point, wanted.point) != 0)
		return 0;
	nth = atomic_fetch_add(&passed, 1) + 1;
	if (wanted.err > 0)
		return nth >= wanted.nth ? -wanted.err : 0;
	if (wanted.err)
		return nth == wanted.nth ? wanted.err : 0;
	/* The same call that wakes threads: a seccomp filter lets it pass. */
	if (nth == wanted.nth)
		syscall(SYS_tgkill, getpid(), gettid(), SIGKILL);
	return 0;
}
#endif /* HVPOKE_FAULTS */
