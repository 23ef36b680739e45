// SPDX-License-Identifier: GPL-2.0-or-later
/* console.c - where the serial line leads on the host. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "console.h"
#include "terminal.h"

#define KEY_ESCAPE 0x01 /* Ctrl-A */

/*
 * A descriptor of our own for @fd that does not block. The flag belongs to the
 * open file, which other processes share: so open it anew, where that gives
 * the same thing (terminals and pipes). Others are used as they are, behind
 * poll().
 */
static int own_descriptor(int fd, int mode)
{
	char path[32];
	struct stat st;
	int own = -1;

	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		own = open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* A FIFO is opened for both ways, so that it neither waits for the other end nor ends with it. */
static int open_file(const char *path, int mode, struct message *message)
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
		mode = O_RDWR;
	fd = open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
	if (fd < 0)
		return message_set(message, -errno, "cannot open %s for the serial port: %s", path,
				   strerror(errno));
	return fd;
}

static int open_pty(struct console *console, struct message *message)
{
	struct termios termios;
	int master;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
	    ptsname_r(master, console->pty_path, sizeof(console->pty_path)) != 0)
		goto fail;
	/* Held open, so that the line does not hang up with each reader that leaves. */
	console->pty = open(console->pty_path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (console->pty < 0 || tcgetattr(console->pty, &termios) < 0)
		goto fail;
	cfmakeraw(&termios);
	tcsetattr(console->pty, TCSANOW, &termios);
	console->in = master;
	console->out = fcntl(master, F_DUPFD_CLOEXEC, 3); /* epoll takes a descriptor once */
	if (console->out < 0)
		return message_set(message, -errno, "cannot make a pty: %s", strerror(errno));
	return 0;
fail:
	message_set(message, 0, "cannot make a pty: %s", strerror(errno));
	if (master >= 0)
		close(master);
	return -EIO;
}

static void open_stdio(struct console *console)
{
	struct stat st;

	console->out = own_descriptor(STDOUT_FILENO, O_WRONLY);
	console->socket = fstat(STDOUT_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
	if (isatty(STDIN_FILENO)) {
		console->keys = terminal_raw(STDIN_FILENO);
		if (!console->keys)
			return; /* somebody else reads there */
	}
	console->in = own_descriptor(STDIN_FILENO, O_RDONLY);
}

static int open_input(struct console *console, const char *input, struct message *message)
{
	if (!strcmp(input, "same"))
		return 0;
	if (console->in >= 0)
		close(console->in);
	console->in = -1;
	console->keys = false;
	terminal_restore();
	if (!strcmp(input, "none"))
		return 0;
	console->in = open_file(input + strlen("file:"), O_RDONLY, message);
	return console->in < 0 ? console->in : 0;
}

int console_open(struct console *console, const struct config *config, struct message *message)
{
	int err = 0;

	*console = (struct console){.in = -1, .out = -1, .pty = -1};
	if (!strcmp(config->serial, "stdio")) {
		open_stdio(console);
	} else if (!strcmp(config->serial, "pty")) {
		err = open_pty(console, message);
	} else if (strcmp(config->serial, "null") != 0) {
		console->out = open_file(config->serial + strlen("file:"),
					 O_WRONLY | O_CREAT | O_TRUNC, message);
		err = console->out < 0 ? console->out : 0;
	}
	if (!err)
		err = open_input(console, config->serial_input, message);
	if (err)
		console_close(console);
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void console_close(struct console *console)
{
	terminal_restore();
	close_fd(&console->in);
	close_fd(&console->out);
	close_fd(&console->pty);
}

ssize_t console_read(struct console *console, uint8_t *buf, size_t len)
{
	struct pollfd ready = {.fd = console->in, .events = POLLIN};
	ssize_t got;

	/* Inherited descriptors may block. */
	if (poll(&ready, 1, 0) <= 0)
		return -EAGAIN;
	got = read(console->in, buf, len);
	return got < 0 ? -errno : got;
}

ssize_t console_write(struct console *console, const uint8_t *buf, size_t len)
{
	struct pollfd ready = {.fd = console->out, .events = POLLOUT};
	ssize_t put;

	if (console->out < 0)
		return (ssize_t)len;
	if (poll(&ready, 1, 0) <= 0)
		return -EAGAIN;
	if (console->socket)
		put = send(console->out, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		put = write(console->out, buf, len);
	return put < 0 ? -errno : put;
}

size_t console_keys(struct console *console, uint8_t *buf, size_t len, bool *quit)
{
	size_t kept = 0;

	*quit = false;
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = buf[i];

		if (console->after_key) {
			console->after_key = false;
			if (byte == 'x' || byte == 'X')
				*quit = true;
			else if (byte == KEY_ESCAPE)
				buf[kept++] = byte;
			/* Other keys mean nothing after Ctrl-A. */
		} else if (byte == KEY_ESCAPE) {
			console->after_key = true;
		} else {
			buf[kept++] = byte;
		}
	}
	return kept;
}
