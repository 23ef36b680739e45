/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_QEMU_REAL_QEMU_H
#define TESTS_QEMU_REAL_QEMU_H

#include "qemu_test.h"
#include "qmp.h"

#define SITES 2048 /* of tests/qemu/guest */

/* A real qemu-system-x86_64 with the guest of tests/qemu/guest, 2 vCPUs, under TCG or KVM. */
struct real_qemu {
	const struct host *host;
	pid_t pid;
	struct qmp qmp;	  /* a monitor of the test's own: the operator's */
	char console[96]; /* what the guest printed */
};

/*
 * @accel: "tcg" or "kvm"; @more: further arguments, NULL at the end, or NULL. Waits until the agent has
 * registered.
 */
void real_qemu_start(struct real_qemu *vm, const struct host *host, const char *accel,
		     const char *const *more);
void real_qemu_stop(struct real_qemu *vm);
/* How often the guest has printed @line. */
unsigned int real_qemu_printed(const struct real_qemu *vm, const char *line);
bool real_qemu_running(struct real_qemu *vm);
bool real_qemu_has_agent(const struct real_qemu *vm);
void real_qemu_command(struct real_qemu *vm, const char *command);

/* Toggle with @query; what the guest's sites did after it, and the rest in *@result if not NULL. */
uint64_t real_qemu_toggle(struct real_qemu *vm, const char *query, struct json_object **result);
/* What its sites do now. */
uint64_t real_qemu_sites(struct real_qemu *vm);

/* Does QEMU run with @accel here? If not, the reason is in @why. */
bool real_qemu_has(const char *accel, char *why, size_t size);

/* First in each test. */
#define NEED_QEMU(accel)                                                               \
	do {                                                                           \
		const char *accel_ = (accel);                                          \
		char why_[256];                                                        \
		if (!real_qemu_has(accel_, why_, sizeof(why_))) {                      \
			print_message("skipped: no QEMU with %s: %s\n", accel_, why_); \
			skip();                                                        \
		}                                                                      \
	} while (0)

#endif /* TESTS_QEMU_REAL_QEMU_H */
