/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_CONSOLE_H
#define VMM_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "message.h"

/* What the serial line leads to on the host: stdio, a file, a pty or nothing. */
struct console {
	int in;		/* -1: no input */
	int out;	/* -1: output is thrown away */
	bool socket;	/* out is one: not opened anew, so told each time not to block */
	bool keys;	/* input is the user's terminal: Ctrl-A is ours */
	bool after_key; /* Ctrl-A was the last byte */
	int pty;	/* our own hold on the pty's other end; -1 if it is none */
	char pty_path[64];
};

/*
 * Open what @config->serial and serial_input say. Descriptors do not block.
 * With a terminal on stdin it goes into raw mode until console_close(), the
 * process's end, or a crash. 0 or a negative errno with @message set.
 */
int console_open(struct console *console, const struct config *config, struct message *message);
void console_close(struct console *console);

/* As read() and write(); -EAGAIN if nothing can be done now. */
ssize_t console_read(struct console *console, uint8_t *buf, size_t len);
ssize_t console_write(struct console *console, const uint8_t *buf, size_t len);

/*
 * Ctrl-A is the user's way to the VMM: Ctrl-A x ends the VM, Ctrl-A Ctrl-A is
 * one Ctrl-A for the guest. Takes those out of @buf; returns what is left.
 */
size_t console_keys(struct console *console, uint8_t *buf, size_t len, bool *quit);

#endif /* VMM_CONSOLE_H */
