/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_SANDBOX_H
#define HVPOKED_SANDBOX_H

#include <stdbool.h>
#include <json-c/json.h>

#include "sandbox.h"

/*
 * What hvpoked gives up before it serves anybody: all capabilities but five, new
 * privileges, and the system calls that it has no use for.
 *
 * It goes on opening files: QEMU's in /proc, its own state, sockets. Landlock cannot bound that,
 * since who is under it may not look into processes that are not, which is what hvpoked is for;
 * and a mount namespace would not, since /proc/PID/root leads out of it.
 */
struct hvpoked_sandbox {
	bool on;
	struct sandbox_role main, guest, log;
};

#define HVPOKED_EXIT_SANDBOX 3

/* Before there are other threads. 0, or -errno with @message. */
int hvpoked_sandbox_enter(struct hvpoked_sandbox *sandbox, struct message *message);
void hvpoked_sandbox_release(struct hvpoked_sandbox *sandbox);
/* On a new thread: its role. Ends the program on failure. @role: struct sandbox_role *. */
void hvpoked_sandbox_confine(void *role);
/* For "info": what holds. @sandbox may be NULL. */
struct json_object *hvpoked_sandbox_info(const struct hvpoked_sandbox *sandbox);

#endif /* HVPOKED_SANDBOX_H */
