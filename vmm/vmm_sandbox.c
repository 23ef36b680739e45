// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vmm_sandbox.c - what hvpoke-vmm's threads may ask of the kernel.
 *
 * But for the log's, nobody opens files. A reboot makes the machine again, on the main thread,
 * from what has been kept open (struct machine_files). A filter is inherited by the threads that are started under
 * it, so the main thread's has all that a vCPU's needs as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json_build.h"
#include "terminal.h"
#include "vm.h"
#include "vmm_sandbox.h"

#define ALLOW_IOCTL(request) SANDBOX_IF(ioctl, 1, request)

/* What a vCPU asks of KVM while it runs (vcpu.c, emulate.c, registers.c, doorbell.c). */
static const struct sandbox_rule running[] = {
	ALLOW_IOCTL(KVM_RUN),
	ALLOW_IOCTL(KVM_KVMCLOCK_CTRL),
	ALLOW_IOCTL(KVM_IRQ_LINE),
	ALLOW_IOCTL(KVM_GET_REGS),
	ALLOW_IOCTL(KVM_SET_REGS),
	ALLOW_IOCTL(KVM_GET_SREGS),
	ALLOW_IOCTL(KVM_GET_VCPU_EVENTS),
	ALLOW_IOCTL(KVM_SET_VCPU_EVENTS),
	ALLOW_IOCTL(KVM_TRANSLATE),
	/* Give the terminal back, whatever ends us (terminal.c). */
	ALLOW_IOCTL(TCSETS),
};
static const struct sandbox_table running_table = SANDBOX_TABLE(running);

/* To make the machine again (machine.c and all that it calls). */
static const struct sandbox_rule making[] = {
	ALLOW_IOCTL(KVM_GET_API_VERSION),
	ALLOW_IOCTL(KVM_CHECK_EXTENSION),
	ALLOW_IOCTL(KVM_CREATE_VM),
	ALLOW_IOCTL(KVM_ENABLE_CAP),
	ALLOW_IOCTL(KVM_SET_USER_MEMORY_REGION),
	ALLOW_IOCTL(KVM_SET_IDENTITY_MAP_ADDR),
	ALLOW_IOCTL(KVM_SET_TSS_ADDR),
	ALLOW_IOCTL(KVM_CREATE_IRQCHIP),
	ALLOW_IOCTL(KVM_CREATE_PIT2),
	ALLOW_IOCTL(KVM_GET_SUPPORTED_CPUID),
	ALLOW_IOCTL(KVM_CREATE_VCPU),
	ALLOW_IOCTL(KVM_GET_VCPU_MMAP_SIZE),
	ALLOW_IOCTL(KVM_SET_CPUID2),
	ALLOW_IOCTL(KVM_SET_SREGS),
	ALLOW_IOCTL(KVM_SET_MP_STATE),
	ALLOW_IOCTL(KVM_SET_GUEST_DEBUG),
	/* The guest's memory, with its size sealed. */
	SANDBOX_IF(fcntl, 1, F_ADD_SEALS),
	SANDBOX_ALLOW(memfd_create),
	SANDBOX_ALLOW(ftruncate),
	SANDBOX_ALLOW(eventfd2),
	/* The kernel and the initrd, from one descriptor to another. */
	SANDBOX_ALLOW(pread64),
	SANDBOX_ALLOW(pwrite64),
	SANDBOX_ALLOW(fstat),
	SANDBOX_ALLOW(newfstatat), /* how glibc calls it; control.c's lstat() */
	SANDBOX_ALLOW(sched_getaffinity),
};
static const struct sandbox_table making_table = SANDBOX_TABLE(making);

/* The event loop: the control socket's clients, the serial port, signals. */
static const struct sandbox_rule looping[] = {
	SANDBOX_ALLOW(epoll_wait), SANDBOX_ALLOW(epoll_pwait), /* the C library of a later day */
	SANDBOX_ALLOW(epoll_ctl),  SANDBOX_ALLOW(read),
	SANDBOX_ALLOW(close),	   SANDBOX_ALLOW(timerfd_settime),
	SANDBOX_ALLOW(accept4),	   SANDBOX_ALLOW(getsockopt), /* SO_PEERCRED */
	SANDBOX_ALLOW(sendto),	   SANDBOX_ALLOW(recvfrom),
	SANDBOX_ALLOW(geteuid),	   SANDBOX_ALLOW(lstat),
	SANDBOX_ALLOW(unlink), /* the control socket; Landlock says where */
};
static const struct sandbox_table looping_table = SANDBOX_TABLE(looping);

#define LOG_READER 5 /* its place in the role's tables: the last one, without which it can do */

static const struct sandbox_role main_role = {
	.name = "the main thread",
	.tables = {&running_table, &making_table, &looping_table, &sandbox_common,
		   &sandbox_threads, [LOG_READER] = &sandbox_log_reader},
	.hot = SCMP_SYS(ioctl),
};

static const struct sandbox_role log_role = {
	.name = "the log's thread",
	.tables = {&sandbox_log_writer, &sandbox_common},
};

static const struct sandbox_role vcpu_role = {
	.name = "a vCPU's thread",
	.tables = {&running_table, &sandbox_common},
	.hot = SCMP_SYS(ioctl),
};

int vmm_sandbox_prepare(struct vmm_sandbox *sandbox, struct message *message)
{
	int err;

	*sandbox = (struct vmm_sandbox){.main = main_role, .vcpu = vcpu_role, .log = log_role};
	sandbox_init("hvpoke-vmm", VM_EXIT_SANDBOX, terminal_restore);
	err = sandbox_role_prepare(&sandbox->log, message);
	if (!err)
		err = sandbox_role_prepare(&sandbox->vcpu, message);
	if (err)
		vmm_sandbox_release(sandbox);
	sandbox->prepared = !err;
	return err;
}

/* Rights, and the file system. Landlock's version, 0 if there is none, or -errno. */
static int confine(const struct vmm_sandbox *sandbox, const char *socket_dir,
		   struct message *message)
{
	const struct sandbox_path paths[] = {
		{.directory = socket_dir},
		{.directory = *sandbox->log_dir ? sandbox->log_dir : NULL, .files = true},
	};
	/* An open /dev/kvm is all that took rights. */
	int err = sandbox_forgo(NULL, 0, message);

	if (err)
		return err;
	err = sandbox_landlock(paths, sizeof(paths) / sizeof(paths[0]));
	if (err < 0)
		message_set(message, err, "Landlock does not take us: %s", strerror(-err));
	return err;
}

static int enter_role(const struct sandbox_role *role, struct message *message)
{
	int err = sandbox_role_enter(role);

	if (!err)
		return 0;
	return message_set(message, err, "the kernel does not take a seccomp filter for %s: %s",
			   role->name, strerror(-err));
}

void vmm_sandbox_confine_log(void *arg)
{
	const struct vmm_sandbox *sandbox = arg;
	struct message message;
	int err = confine(sandbox, NULL, &message);

	if (err >= 0)
		err = enter_role(&sandbox->log, &message);
	if (!err)
		return;
	/* No guest runs yet. */
	fprintf(stderr, "hvpoke-vmm: %s; --no-sandbox runs without\n", message.text);
	_exit(VM_EXIT_HOST);
}

int vmm_sandbox_enter(struct vmm_sandbox *sandbox, const char *control_socket,
		      struct message *message)
{
	char directory[PATH_MAX];
	int err;

	/* Files are opened for the log only: the last of its tables. */
	if (!*sandbox->log_dir)
		sandbox->main.tables[LOG_READER] = NULL;
	err = sandbox_role_prepare(&sandbox->main, message);
	if (err)
		return err;
	snprintf(directory, sizeof(directory), "%s", control_socket);
	err = confine(sandbox, dirname(directory), message);
	if (err < 0)
		return err;
	sandbox->landlock = err;
	err = enter_role(&sandbox->main, message);
	sandbox->on = !err;
	return err;
}

void vmm_sandbox_release(struct vmm_sandbox *sandbox)
{
	sandbox_role_release(&sandbox->main);
	sandbox_role_release(&sandbox->vcpu);
	sandbox_role_release(&sandbox->log);
}

struct json_object *vmm_sandbox_info(const struct vmm_sandbox *sandbox)
{
	struct json_object *object = json_object_new_object();

	hvp_json_add(object, "seccomp", json_object_new_boolean(sandbox->on));
	hvp_json_add(object, "landlock", json_object_new_boolean(sandbox->landlock > 0));
	hvp_json_add(object, "capabilities_dropped", json_object_new_boolean(sandbox->on));
	return object;
}
