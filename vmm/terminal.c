// SPDX-License-Identifier: GPL-2.0-or-later
/* terminal.c - the user's terminal in raw mode. A process has one: hence file scope. */
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"

static struct termios saved;
static volatile sig_atomic_t raw_fd = -1;

void terminal_restore(void)
{
	int fd = raw_fd;

	if (fd < 0)
		return;
	raw_fd = -1;
	tcsetattr(fd, TCSANOW, &saved);
}

/* A crash: give the terminal back, then die of it as if we had not been here. */
static void on_crash(int sig)
{
	terminal_restore(); /* tcsetattr() is async-signal-safe */
	raise(sig);	    /* SA_RESETHAND: now the default, once we return */
}

bool terminal_raw(int fd)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
	static bool at_exit;
	struct termios raw;

	/* In the background, changing the terminal would stop us (SIGTTOU). */
	if (tcgetattr(fd, &saved) < 0 || tcgetpgrp(fd) != getpgrp())
		return false;
	raw = saved;
	cfmakeraw(&raw);
	/* Our own messages still need their carriage returns. */
	raw.c_oflag = saved.c_oflag;
	if (!at_exit)
		atexit(terminal_restore);
	at_exit = true;
	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		sigaction(crashes[i], &action, NULL);
	raw_fd = fd;
	tcsetattr(fd, TCSANOW, &raw);
	return true;
}
