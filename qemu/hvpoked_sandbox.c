// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked_sandbox.c - what hvpoked's threads may ask of the kernel.
 *
 * A filter is inherited by the threads that are started under it. Guests come and go: the
 * main thread starts theirs, and each of those starts the one that writes its log. So each
 * has all that the next one needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hvpoked_sandbox.h"
#include "json_build.h"
#include "log.h"

/* As in configs/hvpoked.service, which says what each is for. */
static const unsigned int capabilities[] = {
	CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, CAP_CHOWN,
};

static const struct sandbox_rule guest[] = {
	/* The event loop. */
	SANDBOX_ALLOW(epoll_create1),
	SANDBOX_ALLOW(epoll_ctl),
	SANDBOX_ALLOW(epoll_wait),
	SANDBOX_ALLOW(epoll_pwait),
	SANDBOX_ALLOW(eventfd2),
	SANDBOX_ALLOW(timerfd_create),
	SANDBOX_ALLOW(timerfd_settime),
	SANDBOX_ALLOW(read),
	SANDBOX_ALLOW(close),
	/* QEMU's monitor and gdbstub, the control socket: UNIX sockets of our own making. */
	SANDBOX_IF(socket, 0, AF_UNIX),
	SANDBOX_ALLOW(bind),
	SANDBOX_ALLOW(listen),
	SANDBOX_ALLOW(connect), /* is the old one dead? */
	SANDBOX_ALLOW(accept4),
	SANDBOX_ALLOW(getsockopt),
	SANDBOX_ALLOW(shutdown),
	SANDBOX_ALLOW(sendto),
	SANDBOX_ALLOW(recvfrom),
	SANDBOX_ALLOW(fchmod),
	SANDBOX_ALLOW(chmod),
	SANDBOX_ALLOW(chown),
	SANDBOX_ALLOW(flock),
	SANDBOX_ALLOW(unlink),
	/* QEMU's memory and what /proc says of it; the journal. */
	SANDBOX_ALLOW(openat),
	SANDBOX_ALLOW(pread64),
	SANDBOX_ALLOW(pwrite64),
	SANDBOX_ALLOW(lseek), /* stdio, at the end of a file that was not read to its end */
	SANDBOX_ALLOW(ftruncate),
	SANDBOX_ALLOW(fallocate),
	SANDBOX_ALLOW(fstat),
	SANDBOX_ALLOW(lstat),
	SANDBOX_ALLOW(stat),
	SANDBOX_ALLOW(newfstatat),
	SANDBOX_IF(fcntl, 1, F_GET_SEALS),
	SANDBOX_IF(fcntl, 1, F_GETFL),
	SANDBOX_ALLOW(geteuid),
	SANDBOX_IF(prlimit64, 2, 0), /* asked only: how many clients there may be */
	/* The log's directory. */
	SANDBOX_ALLOW(mkdir),
};
static const struct sandbox_table guest_table = SANDBOX_TABLE(guest);

/* A new guest, and one that a former hvpoked has left (server.c, vm.c, record.c). */
static const struct sandbox_rule admitting[] = {
	SANDBOX_IF(fcntl, 1, F_ADD_SEALS),
	SANDBOX_ALLOW(memfd_create),
	SANDBOX_ALLOW(pipe2),
	SANDBOX_ALLOW(sendmsg), /* with descriptors */
	SANDBOX_ALLOW(pidfd_open),
	SANDBOX_ALLOW(pidfd_getfd),
	SANDBOX_ALLOW(getdents64),
	SANDBOX_ALLOW(readlink),
	SANDBOX_ALLOW(access),
	SANDBOX_ALLOW(unlinkat),
};
static const struct sandbox_table admitting_table = SANDBOX_TABLE(admitting);

static const struct sandbox_role main_role = {
	.name = "the main thread",
	.tables = {&guest_table, &admitting_table, &sandbox_log_writer, &sandbox_common,
		   &sandbox_threads},
};

static const struct sandbox_role guest_role = {
	.name = "a guest's thread",
	.tables = {&guest_table, &sandbox_log_writer, &sandbox_common, &sandbox_threads},
};

static const struct sandbox_role log_role = {
	.name = "a log's thread",
	.tables = {&sandbox_log_writer, &sandbox_common},
};

int hvpoked_sandbox_enter(struct hvpoked_sandbox *sandbox, struct message *message)
{
	int err;

	*sandbox = (struct hvpoked_sandbox){
		.main = main_role,
		.guest = guest_role,
		.log = log_role,
	};
	sandbox_init("hvpoked", HVPOKED_EXIT_SANDBOX, NULL);
	err = sandbox_role_prepare(&sandbox->main, message);
	if (!err)
		err = sandbox_role_prepare(&sandbox->guest, message);
	if (!err)
		err = sandbox_role_prepare(&sandbox->log, message);
	if (!err)
		err = sandbox_forgo(capabilities, sizeof(capabilities) / sizeof(capabilities[0]),
				    message);
	if (!err) {
		err = sandbox_role_enter(&sandbox->main);
		if (err)
			message_set(message, err, "the kernel does not take a seccomp filter: %s",
				    strerrordesc_np(-err));
	}
	sandbox->on = !err;
	if (err)
		hvpoked_sandbox_release(sandbox);
	return err;
}

void hvpoked_sandbox_release(struct hvpoked_sandbox *sandbox)
{
	sandbox_role_release(&sandbox->main);
	sandbox_role_release(&sandbox->guest);
	sandbox_role_release(&sandbox->log);
}

void hvpoked_sandbox_confine(void *role)
{
	int err = sandbox_role_enter(role);

	if (!err)
		return;
	say(LOG_ERR, "the kernel does not take a seccomp filter any more: %s",
	    strerrordesc_np(-err));
	_exit(HVPOKED_EXIT_SANDBOX);
}

struct json_object *hvpoked_sandbox_info(const struct hvpoked_sandbox *sandbox)
{
	struct json_object *object = json_object_new_object();
	bool on = sandbox && sandbox->on;

	hvp_json_add(object, "seccomp", json_object_new_boolean(on));
	/* See hvpoked_sandbox.h. */
	hvp_json_add(object, "landlock", json_object_new_boolean(false));
	hvp_json_add(object, "capabilities_dropped", json_object_new_boolean(on));
	return object;
}
