// SPDX-License-Identifier: GPL-2.0-or-later
/* common.c - what threads of both programs need: that of the C library, and of the log. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sandbox.h"

/* What glibc's pthread_create() passes to clone(2): a thread, never a process or a namespace. */
#define THREAD_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static const struct sandbox_rule common[] = {
	/* Memory, and none of it to be executed. */
	SANDBOX_IF_BITS(mmap, 2, PROT_EXEC, 0),
	SANDBOX_IF_BITS(mprotect, 2, PROT_EXEC, 0),
	SANDBOX_ALLOW(munmap),
	SANDBOX_ALLOW(mremap),
	SANDBOX_ALLOW(madvise),
	SANDBOX_ALLOW(brk),
	SANDBOX_ALLOW(getrandom), /* malloc's and json-c's seeds */
	SANDBOX_ALLOW(
		sysinfo), /* glibc's qsort(), for more than a kilobyte: may it use malloc()? */
	/* Locks. */
	SANDBOX_ALLOW(futex),
	SANDBOX_ALLOW(sched_yield),
	/* Where the vDSO has no answer, and waiting. */
	SANDBOX_ALLOW(clock_gettime),
	SANDBOX_ALLOW(gettimeofday),
	SANDBOX_ALLOW(clock_nanosleep),
	SANDBOX_ALLOW(restart_syscall),
	SANDBOX_ALLOW(poll),
	/* Messages, events. */
	SANDBOX_ALLOW(write),
	SANDBOX_ALLOW(writev),
	/* Signals: our own threads' only, abort() and the end among them. */
	SANDBOX_IF_OWN(tgkill),
	SANDBOX_ALLOW(getpid),
	SANDBOX_ALLOW(gettid),
	SANDBOX_ALLOW(rt_sigaction),
	SANDBOX_ALLOW(rt_sigprocmask),
	SANDBOX_ALLOW(rt_sigreturn),
	SANDBOX_ALLOW(exit),
	SANDBOX_ALLOW(exit_group),
};
const struct sandbox_table sandbox_common = SANDBOX_TABLE(common);

static const struct sandbox_rule threads[] = {
	/*
	 * Its flags are in memory, where a filter does not see them. glibc then takes clone().
	 */
	SANDBOX_REFUSE(clone3, ENOSYS),
	SANDBOX_IF(clone, 0, THREAD_FLAGS),
	SANDBOX_ALLOW(set_robust_list),
	SANDBOX_ALLOW(rseq),
	SANDBOX_IF(prctl, 0, PR_SET_NAME),
	/* A filter more: it can only take away. */
	{
		.syscall = SCMP_SYS(seccomp),
		.nr_args = 2,
		.arg = {{0, SCMP_CMP_EQ, SECCOMP_SET_MODE_FILTER, 0}, {1, SCMP_CMP_EQ, 0, 0}},
	},
};
const struct sandbox_table sandbox_threads = SANDBOX_TABLE(threads);

static const struct sandbox_rule log_writer[] = {
	SANDBOX_ALLOW(openat),	   SANDBOX_ALLOW(close),   SANDBOX_ALLOW(fstat),
	SANDBOX_ALLOW(newfstatat), SANDBOX_ALLOW(geteuid), SANDBOX_ALLOW(ftruncate),
	SANDBOX_ALLOW(rename),	   SANDBOX_ALLOW(unlink),
};
const struct sandbox_table sandbox_log_writer = SANDBOX_TABLE(log_writer);

/* Nothing is made or changed by what it opens. */
#define CHANGES (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | __O_TMPFILE)

static const struct sandbox_rule log_reader[] = {
	SANDBOX_IF_BITS(openat, 2, CHANGES, O_RDONLY),
	SANDBOX_ALLOW(close),
	SANDBOX_ALLOW(fstat),
	SANDBOX_ALLOW(newfstatat),
	SANDBOX_ALLOW(geteuid),
	SANDBOX_ALLOW(pread64),
};
const struct sandbox_table sandbox_log_reader = SANDBOX_TABLE(log_reader);
