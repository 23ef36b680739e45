// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * filter.c - a role's rules as a program for seccomp(2).
 *
 * libseccomp compiles them once, at start. A thread that enters its role only hands the
 * program to the kernel, which takes one system call and no memory.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox.h"

static int add_rule(scmp_filter_ctx ctx, const struct sandbox_rule *rule)
{
	const struct scmp_arg_cmp own = {
		.arg = 0,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = 0xffffffff, /* a pid_t: the register's upper half does not count */
		.datum_b = (scmp_datum_t)getpid(),
	};
	uint32_t action = rule->error ? SCMP_ACT_ERRNO(rule->error) : SCMP_ACT_ALLOW;

	if (rule->own_pid)
		return seccomp_rule_add_exact_array(ctx, action, rule->syscall, 1, &own);
	return seccomp_rule_add_exact_array(ctx, action, rule->syscall, rule->nr_args, rule->arg);
}

static int add_rules(scmp_filter_ctx ctx, const struct sandbox_role *role)
{
	/* Another ABI than x86-64 (int 0x80, x32): nothing here makes such calls. */
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	for (size_t i = 0; i < SANDBOX_MAX_TABLES && role->tables[i] && !err; i++)
		for (size_t j = 0; j < role->tables[i]->nr && !err; j++)
			err = add_rule(ctx, &role->tables[i]->rules[j]);
	if (!err && role->hot)
		err = seccomp_syscall_priority(ctx, role->hot, 255);
	return err;
}

/* libseccomp 2.5 exports to descriptors only. */
static int compile(scmp_filter_ctx ctx, struct sock_fprog *program)
{
	int fd = memfd_create("filter", MFD_CLOEXEC), err;
	off_t len;

	if (fd < 0)
		return -errno;
	err = seccomp_export_bpf(ctx, fd);
	len = err ? 0 : lseek(fd, 0, SEEK_CUR);
	if (!err && (len <= 0 || len / sizeof(struct sock_filter) > BPF_MAXINSNS))
		err = -E2BIG;
	if (!err) {
		program->filter = malloc((size_t)len);
		program->len = (unsigned short)(len / sizeof(struct sock_filter));
		if (!program->filter || pread(fd, program->filter, (size_t)len, 0) != len)
			err = -ENOMEM;
	}
	close(fd);
	return err;
}

int sandbox_role_prepare(struct sandbox_role *role, struct message *message)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_TRAP);
	int err = ctx ? add_rules(ctx, role) : -ENOMEM;

	if (!err)
		err = compile(ctx, &role->program);
	if (ctx)
		seccomp_release(ctx);
	if (!err)
		return 0;
	sandbox_role_release(role);
	return message_set(message, err, "cannot make the seccomp filter of %s: %s", role->name,
			   strerror(-err));
}

void sandbox_role_release(struct sandbox_role *role)
{
	free(role->program.filter);
	role->program = (struct sock_fprog){};
}

int sandbox_role_enter(const struct sandbox_role *role)
{
	int err;

	err = sandbox_catch_violations();
	if (err)
		return err;
	sandbox_name_thread(role->name);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &role->program) ? -errno : 0;
}
