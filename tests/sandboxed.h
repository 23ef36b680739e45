/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SANDBOXED_H
#define TESTS_SANDBOXED_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * What a thread may do in a sandbox and what not, each tried in a child that is in it. Include
 * behind cmocka.h.
 */
enum { DONE = 40, WRONG }; /* exit codes of children that the sandbox did not end */

/* What is done in a role; returns DONE or WRONG, if it returns. */
typedef int deed_fn(const void *arg);
/* Enter the role in a fresh process, do the deed there, and end with what it returns. */
typedef void enter_fn(int role, deed_fn *deed, const void *arg);

/* The child's wait status, and what it said. */
static inline int in_role(enter_fn *enter, int role, deed_fn *deed, const void *arg, char *said,
			  size_t size)
{
	size_t len = 0;
	ssize_t got;
	int out[2], status;
	pid_t child;

	assert_int_equal(pipe(out), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		/* cmocka's handler would go on with the other tests, in the child. */
		signal(SIGSEGV, SIG_DFL);
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		enter(role, deed, arg);
		_exit(WRONG);
	}
	close(out[1]);
	while (len < size - 1 && (got = read(out[0], said + len, size - 1 - len)) > 0)
		len += (size_t)got;
	said[len] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static inline void assert_done(enter_fn *enter, int role, deed_fn *deed, const void *arg)
{
	char said[2048];
	int status = in_role(enter, role, deed, arg, said, sizeof(said));

	if (!WIFEXITED(status) || WEXITSTATUS(status) != DONE)
		fail_msg("in role %d: status %#x, said \"%s\"", role, (unsigned int)status, said);
}

#define TRY(condition)                                                               \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "line %d: %s\n", __LINE__, strerror(errno)); \
			return WRONG;                                                \
		}                                                                    \
	} while (0)

struct call {
	const char *name;
	long nr;
	unsigned long arg[6];
};

#define PTR(x) ((unsigned long)(x))
#define CALL(name, ...)             \
	{                           \
#name, SYS_##name,  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
#define IOCTL(request)                \
	{                             \
		"ioctl", SYS_ioctl,   \
		{                     \
			0, request, 0 \
		}                     \
	}

static inline int make_call(const void *arg)
{
	const struct call *call = arg;

	syscall(call->nr, call->arg[0], call->arg[1], call->arg[2], call->arg[3], call->arg[4],
		call->arg[5]);
	return DONE;
}

/* It ends the program, which says in one line who did what. */
static inline void assert_forbidden(enter_fn *enter, int role, const struct call *call,
				    const char *program, const char *thread, int exit_code)
{
	char said[2048], what[128];
	int status = in_role(enter, role, make_call, call, said, sizeof(said));

	if (!WIFEXITED(status) || WEXITSTATUS(status) != exit_code)
		fail_msg("%s in %s: status %#x, said \"%s\"", call->name, thread,
			 (unsigned int)status, said);
	snprintf(what, sizeof(what), "%s: sandbox: %s made system call %ld, %s(", program, thread,
		 call->nr, call->name);
	if (!strstr(said, what) || !strstr(said, "--no-sandbox") || strchr(said, '\n')[1])
		fail_msg("expected one line with \"%s\", not \"%s\"", what, said);
}

/* First in a test of a program that must have one. */
#define NEED_SANDBOX()                                                     \
	do {                                                               \
		if (!SANDBOX_POSSIBLE) {                                   \
			print_message("an instrumented build has none\n"); \
			skip();                                            \
		}                                                          \
	} while (0)

/* The value of a line of /proc/PID/task/TID/status; ~0 if there is none. */
static inline unsigned long long status_of(pid_t pid, const char *task, const char *key, int base)
{
	unsigned long long value = ~0ull;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", (int)pid, task);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, base);
	fclose(file);
	return value;
}

/* A task of the process that never runs in user mode: since 6.13 KVM has one for each VM. */
static inline bool is_kernels_own(pid_t pid, const char *task)
{
	const unsigned int user_worker = 0x4000; /* PF_USER_WORKER, include/linux/sched.h */
	unsigned int flags;
	char path[96], line[512], *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", (int)pid, task);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	name_end = strrchr(line, ')');
	assert_non_null(name_end);
	/* state, ppid, pgrp, session, tty_nr, tpgid: proc_pid_stat(5) */
	assert_int_equal(sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags), 1);
	return flags & user_worker;
}

/* All threads of a process. Their number; *@deeper: those with more than one filter. */
static inline unsigned int assert_tasks_are_sandboxed(pid_t pid, unsigned long long capabilities,
						      unsigned int *deeper)
{
	static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
	unsigned int nr = 0;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	*deeper = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		if (entry->d_name[0] == '.' || is_kernels_own(pid, entry->d_name))
			continue;
		assert_int_equal(status_of(pid, entry->d_name, "Seccomp:", 10), 2);
		assert_int_equal(status_of(pid, entry->d_name, "NoNewPrivs:", 10), 1);
		for (int i = 0; i < 4; i++)
			assert_int_equal(status_of(pid, entry->d_name, sets[i], 16) & ~capabilities,
					 0);
		*deeper += status_of(pid, entry->d_name, "Seccomp_filters:", 10) > 1;
		nr++;
	}
	closedir(tasks);
	return nr;
}

static inline int sandboxed_ascending(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Once in a process, glibc's qsort() asks for the size of memory; stats.c sorts so much. */
static inline int sandboxed_sort(const void *arg)
{
	int number[4096];

	(void)arg;
	for (int i = 0; i < 4096; i++)
		number[i] = i * 1237 % 4096;
	qsort(number, 4096, sizeof(*number), sandboxed_ascending);
	for (int i = 0; i < 4096; i++)
		TRY(number[i] == i);
	return DONE;
}

#endif /* TESTS_SANDBOXED_H */
