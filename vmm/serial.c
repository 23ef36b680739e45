// SPDX-License-Identifier: GPL-2.0-or-later
/* serial.c - between the UART, which vCPUs use, and the console, on the main thread. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "serial.h"

static void set_patience(struct serial *serial, unsigned int ms)
{
	struct itimerspec timer = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l},
	};

	timerfd_settime(serial->patience, 0, &timer, NULL);
}

static void set_blocked(struct serial *serial, bool blocked)
{
	if (blocked == serial->blocked)
		return;
	serial->blocked = blocked;
	/* Not left there with no events: epoll would go on telling of a hang-up. */
	if (blocked)
		loop_add(serial->loop, &serial->on_out, EPOLLOUT);
	else
		loop_remove(serial->loop, &serial->on_out);
	set_patience(serial, blocked ? SERIAL_PATIENCE_MS : 0);
}

/* Move output until there is no more, or the console does not take it. */
static void move_output(struct serial *serial)
{
	while (serial->uart) {
		ssize_t put;

		if (!serial->pending_len) {
			serial->pending_from = 0;
			serial->pending_len =
				ns8250_take(serial->uart, serial->pending, sizeof(serial->pending));
			if (!serial->pending_len)
				break;
		}
		if (serial->gone) {
			serial->discarded += serial->pending_len;
			serial->pending_len = 0;
			continue;
		}
		put = console_write(serial->console, serial->pending + serial->pending_from,
				    serial->pending_len);
		if (put == -EINTR)
			continue;
		if (put == -EAGAIN) {
			set_blocked(serial, true);
			return;
		}
		if (put < 0) {
			/* A closed pipe, a full disk: as if nobody read. */
			serial->discarded += serial->pending_len;
			put = (ssize_t)serial->pending_len;
		}
		serial->pending_from += (size_t)put;
		serial->pending_len -= (size_t)put;
	}
	if (!serial->gone)
		set_blocked(serial, false);
}

static void out_ready(void *ctx, uint32_t events)
{
	struct serial *serial = ctx;

	(void)events;
	/* Reads again, or is gone for good and write() will say so. */
	serial->gone = false;
	set_blocked(serial, false);
	move_output(serial);
}

static void patience_over(void *ctx, uint32_t events)
{
	struct serial *serial = ctx;
	uint64_t count;

	(void)events;
	if (read(serial->patience, &count, sizeof(count)) < 0 || !serial->blocked)
		return;
	/* EPOLLOUT stays armed: out_ready() ends this. */
	serial->gone = true;
	move_output(serial);
}

static void watch_input(struct serial *serial, bool on)
{
	if (serial->in_always || serial->console->in < 0 || on == serial->in_watched)
		return;
	serial->in_watched = on;
	if (on)
		serial->in_always = loop_add(serial->loop, &serial->on_in, EPOLLIN) == -EPERM;
	else
		loop_remove(serial->loop, &serial->on_in);
}

static void end_input(struct serial *serial)
{
	watch_input(serial, false);
	close(serial->console->in);
	serial->console->in = -1;
}

/* Read no more than the UART has room for: what is not read waits where it is. */
static void move_input(struct serial *serial)
{
	uint8_t buf[NS8250_RX_SIZE];
	bool quit = false;
	size_t room;
	ssize_t got;

	while (serial->uart && serial->console->in >= 0) {
		room = ns8250_room(serial->uart);
		if (room == 0) {
			watch_input(serial, false); /* until the UART's event */
			return;
		}
		got = console_read(serial->console, buf, room < sizeof(buf) ? room : sizeof(buf));
		if (got == -EAGAIN || got == -EINTR)
			break;
		if (got <= 0) {
			end_input(serial);
			return;
		}
		if (serial->console->keys)
			got = (ssize_t)console_keys(serial->console, buf, (size_t)got, &quit);
		ns8250_give(serial->uart, buf, (size_t)got);
		if (quit) {
			serial->on_quit(serial->ctx);
			return;
		}
	}
	watch_input(serial, true);
}

static void in_ready(void *ctx, uint32_t events)
{
	(void)events;
	move_input(ctx);
}

static void uart_event(void *ctx, uint32_t events)
{
	struct serial *serial = ctx;
	eventfd_t count;

	(void)events;
	eventfd_read(serial->event, &count);
	move_output(serial);
	if (serial->in_always || !serial->in_watched)
		move_input(serial); /* there may be room again */
}

int serial_init(struct serial *serial, struct console *console, struct loop *loop,
		void (*on_quit)(void *ctx), void *ctx)
{
	int err = 0;

	memset(serial, 0, sizeof(*serial));
	serial->console = console;
	serial->loop = loop;
	serial->on_quit = on_quit;
	serial->ctx = ctx;
	serial->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	serial->patience = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (serial->event < 0 || serial->patience < 0)
		err = -errno;
	serial->on_event = (struct loop_watch){serial->event, uart_event, serial};
	serial->on_patience = (struct loop_watch){serial->patience, patience_over, serial};
	serial->on_in = (struct loop_watch){console->in, in_ready, serial};
	serial->on_out = (struct loop_watch){console->out, out_ready, serial};
	if (!err)
		err = loop_add(loop, &serial->on_event, EPOLLIN);
	if (!err)
		err = loop_add(loop, &serial->on_patience, EPOLLIN);
	if (err)
		serial_release(serial);
	return err;
}

void serial_release(struct serial *serial)
{
	/* Closing takes them out of the loop; the console's go with the console. */
	if (serial->event >= 0)
		close(serial->event);
	if (serial->patience >= 0)
		close(serial->patience);
}

void serial_attach(struct serial *serial, struct ns8250 *uart)
{
	serial->uart = uart;
	move_input(serial);
}

void serial_detach(struct serial *serial)
{
	struct pollfd ready = {.fd = serial->console->out, .events = POLLOUT};

	move_output(serial);
	while (serial->blocked && !serial->gone && poll(&ready, 1, SERIAL_PATIENCE_MS) > 0)
		move_output(serial);
	set_blocked(serial, false);
	serial->gone = false;
	serial->uart = NULL;
	serial->pending_len = 0;
	watch_input(serial, false);
}
