// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * violation.c - a thread has made a system call that its role does not have.
 *
 * That is a bug of ours, or somebody else's code runs in us. The call has not been made
 * (SECCOMP_RET_TRAP). One line says what it was, and the process ends: to go on would be to
 * guess. A process has one handler and one name: hence file scope.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sandbox.h"

/* How long a reader of stderr may keep the end waiting. */
#define PATIENCE_MS 1000

#define NR_NAMES 512 /* x86-64 of Linux 6.18 ends at 469 */

static struct {
	const char *program;
	int exit_code;
	void (*last_words)(void);
	/* libseccomp's lookup takes memory, which a signal handler must not. */
	char *names[NR_NAMES];
} self;

static _Thread_local const char *thread_role = "a thread";

struct line {
	char text[512];
	size_t len;
};

static void put(struct line *line, const char *text)
{
	while (*text && line->len < sizeof(line->text))
		line->text[line->len++] = *text++;
}

static void put_number(struct line *line, uint64_t value, unsigned int base)
{
	char digits[24];
	size_t at = sizeof(digits);

	digits[--at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	put(line, base == 16 ? "0x" : "");
	put(line, digits + at);
}

static const char *name_of(int nr)
{
	return nr >= 0 && nr < NR_NAMES && self.names[nr] ? self.names[nr] : "unknown";
}

/* Only what signal-safety(7) allows, and what every role has. */
static void on_violation(int signal, siginfo_t *info, void *context)
{
	const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	static const int args[] = {REG_RDI, REG_RSI, REG_RDX};
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct line line = {};

	(void)signal;
	if (self.last_words)
		self.last_words();
	put(&line, self.program);
	put(&line, ": sandbox: ");
	put(&line, thread_role);
	put(&line, " made system call ");
	put_number(&line, (uint64_t)info->si_syscall, 10);
	put(&line, ", ");
	put(&line, name_of(info->si_syscall));
	put(&line, "(");
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
		put(&line, i ? ", " : "");
		put_number(&line, (uint64_t)regs[args[i]], 16);
	}
	put(&line, ", ...), which it is not allowed to. It was not carried out, and this is the "
		   "end. Please report it; --no-sandbox runs without the check.\n");
	if (poll(&ready, 1, PATIENCE_MS) > 0 && write(STDERR_FILENO, line.text, line.len) < 0)
		_exit(self.exit_code); /* nobody left to tell */
	_exit(self.exit_code);
}

void sandbox_init(const char *program, int exit_code, void (*last_words)(void))
{
	self.program = program;
	self.exit_code = exit_code;
	self.last_words = last_words;
	/*
	 * What would open a file later: malloc, which with an arena for each thread looks for the
	 * number of CPUs and for the kernel's overcommit mode; the time zone of gmtime().
	 */
	mallopt(M_ARENA_MAX, 1);
	tzset();
	for (int nr = 0; nr < NR_NAMES; nr++)
		if (!self.names[nr])
			self.names[nr] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
}

int sandbox_catch_violations(void)
{
	struct sigaction action = {.sa_sigaction = on_violation, .sa_flags = SA_SIGINFO};
	sigset_t set;

	/* A thread that has it blocked would be killed without a word. */
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	if (sigaction(SIGSYS, &action, NULL) || pthread_sigmask(SIG_UNBLOCK, &set, NULL))
		return -errno;
	return 0;
}

void sandbox_name_thread(const char *role)
{
	thread_role = role;
}
