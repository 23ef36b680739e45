/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_SANDBOX_H
#define HVP_SANDBOX_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>

#include "message.h"

/*
 * What a program gives up once it has all that it needs: capabilities, new privileges, the
 * file system (Landlock), and system calls, the last by what each thread is for.
 */

/*
 * Sanitizers and coverage counters make system calls of their own, with files and other
 * threads' memory: their builds have no sandbox.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HVP_INSTRUMENTED)
#define SANDBOX_POSSIBLE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_POSSIBLE 0
#endif
#endif
#ifndef SANDBOX_POSSIBLE
#define SANDBOX_POSSIBLE 1
#endif

#define SANDBOX_MAX_ARGS 2

/*
 * A system call that is allowed: with any arguments, or if all of @arg hold. Several rules of
 * one call are alternatives. A call without a rule ends the program (violation.c).
 */
struct sandbox_rule {
	int syscall;  /* SCMP_SYS(name) */
	int error;    /* not allowed, but answered with this errno */
	bool own_pid; /* the first argument must be this process */
	unsigned int nr_args;
	struct scmp_arg_cmp arg[SANDBOX_MAX_ARGS];
};

#define SANDBOX_ALLOW(name)               \
	{                                 \
		.syscall = SCMP_SYS(name) \
	}
#define SANDBOX_REFUSE(name, errno_)                         \
	{                                                    \
		.syscall = SCMP_SYS(name), .error = (errno_) \
	}
/* Argument @index, from 0, is @value; or has of the bits of @mask just those of @value. */
#define SANDBOX_IF(name, index, value)                       \
	{                                                    \
		.syscall = SCMP_SYS(name), .nr_args = 1,     \
		.arg = {{(index), SCMP_CMP_EQ, (value), 0}}, \
	}
#define SANDBOX_IF_BITS(name, index, mask, value)                        \
	{                                                                \
		.syscall = SCMP_SYS(name), .nr_args = 1,                 \
		.arg = {{(index), SCMP_CMP_MASKED_EQ, (mask), (value)}}, \
	}
#define SANDBOX_IF_OWN(name)                               \
	{                                                  \
		.syscall = SCMP_SYS(name), .own_pid = true \
	}

struct sandbox_table {
	const struct sandbox_rule *rules;
	size_t nr;
};
#define SANDBOX_TABLE(array)                                \
	{                                                   \
		(array), sizeof(array) / sizeof((array)[0]) \
	}

/* What every thread may do: memory that is not code, locks, clocks, ending. */
extern const struct sandbox_table sandbox_common;
/* What a thread needs besides that, to start another one that enters a role of its own. */
extern const struct sandbox_table sandbox_threads;

/* To write a log and turn it over (patcher/audit_file.c); to read it. */
extern const struct sandbox_table sandbox_log_writer;
extern const struct sandbox_table sandbox_log_reader;

#define SANDBOX_MAX_TABLES 6

/* What a kind of threads may do. */
struct sandbox_role {
	const char *name; /* "the main thread": for the message */
	const struct sandbox_table *tables[SANDBOX_MAX_TABLES];
	int hot; /* the call that is to be found first; 0: none */
	struct sock_fprog program;
};

/* Once, before any role is entered. @program is its name; @last_words may be NULL. */
void sandbox_init(const char *program, int exit_code, void (*last_words)(void));
/* Make the role's filter. Opens files, takes memory: before the first role is entered. */
int sandbox_role_prepare(struct sandbox_role *role, struct message *message);
void sandbox_role_release(struct sandbox_role *role);
/*
 * From now on this thread, and the threads that it starts, have the role's calls only; those
 * of a role that it is in already stay forbidden. sandbox_forgo() comes first. 0 or -errno.
 */
int sandbox_role_enter(const struct sandbox_role *role);

/*
 * Keep @nr of the capabilities (CAP_*) that we have and lose all others for good, and never
 * get new ones by executing a file. Of this thread and those that it starts. 0, or -errno with
 * @message.
 */
int sandbox_forgo(const unsigned int *keep, size_t nr, struct message *message);

/* What stays possible below a directory. */
struct sandbox_path {
	const char *directory; /* NULL: there is none */
	bool files;	       /* make, read and write files; else only remove them (sockets) */
};

/*
 * Landlock: of the file system only what @paths say is left; no TCP, no signals to others.
 * Descriptors that are open stay as they are. Of this thread and those that it starts. The
 * version of Landlock's ABI; 0 if this kernel has none, or it is switched off; or -errno.
 */
int sandbox_landlock(const struct sandbox_path *paths, size_t nr);

/* violation.c, for filter.c. */
int sandbox_catch_violations(void);
void sandbox_name_thread(const char *role);

#endif /* HVP_SANDBOX_H */
