/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_QEMU_QEMU_TEST_H
#define TESTS_QEMU_QEMU_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "deadline.h"

/*
 * A running hvpoked with directories of its own, and what talks to it. Helpers fail
 * the test when something does not happen in time.
 */
struct host {
	char dir[64];	      /* hvpoked's sockets: DIR/ivshmem, DIR/qmp */
	char control_dir[80]; /* the VMs' control sockets */
	char log[80];
	pid_t pid;	/* 0: not running */
	char fault[64]; /* patcher/fault.h: for the next host_start(), and forgotten then */
};

void host_init(struct host *host);
void host_start(struct host *host);
/* @signal: SIGTERM must be answered with exit code 0, SIGKILL is just that. */
void host_stop(struct host *host, int signal);
/* It kills itself at the point that @fault says. */
void host_wait_killed(struct host *host);
/* Has it logged @text? */
bool host_logged(const struct host *host, const char *text);
/* Also removes the directories. */
void host_free(struct host *host);
/* The hvpoked that host_start() started has neither crashed nor ended. */
void host_assert_alive(struct host *host);
/* Has it mapped @file? Guest RAM that is shared and sealed it has, and no other. */
bool host_maps(const struct host *host, const char *file);

/* A connected socket to DIR/@name, or -1 if nobody listens there. */
int host_try_connect(const struct host *host, const char *name);
/* The same, and fails the test. */
int host_connect(const struct host *host, const char *name);
/* A control request; NULL with *@error set if it failed. The caller puts either. */
struct json_object *host_call(const struct host *host, const char *vm, const char *method,
			      struct json_object *params, struct json_object **error);
uint64_t member(struct json_object *object, const char *key);

/* Try @ready every few ms. Fails the test after @ms. */
#define WAIT_FOR(ready, ms)                                          \
	do {                                                         \
		int64_t until_ = deadline_in(ms);                    \
		bool ready_;                                         \
		while (!(ready_ = (ready)) && deadline_left(until_)) \
			usleep(5000);                                \
		assert_true(ready_);                                 \
	} while (0)

/* A program of the build that this test belongs to: "hvpoked", "tests/qemu/guest.elf". */
const char *built(const char *name);

#endif /* TESTS_QEMU_QEMU_TEST_H */
