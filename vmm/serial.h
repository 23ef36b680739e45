/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_SERIAL_H
#define VMM_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "console.h"
#include "loop.h"
#include "ns8250.h"

#define SERIAL_CHUNK 4096

/*
 * The main loop's end of the serial line: carries bytes between the UART and
 * the console. When nobody reads the console, output waits; after
 * SERIAL_PATIENCE_MS of that the reader is taken as gone, and output is thrown
 * away until it reads again, so that a guest does not crawl because of it.
 */
#define SERIAL_PATIENCE_MS 1000

struct serial {
	struct ns8250 *uart; /* NULL while there is no VM */
	struct console *console;
	struct loop *loop;
	void (*on_quit)(void *ctx); /* Ctrl-A x */
	void *ctx;
	int event;	 /* eventfd, the UART's */
	int patience;	 /* timerfd */
	bool in_watched; /* input is in the loop, and armed */
	bool in_always;	 /* a regular file: epoll does not take it, read when there is room */
	bool blocked;	 /* output waits for the console */
	bool gone;	 /* nobody reads: output is thrown away */
	struct loop_watch on_event, on_patience, on_in, on_out;
	size_t pending_from, pending_len; /* taken from the UART, not written yet */
	uint8_t pending[SERIAL_CHUNK];
	uint64_t discarded; /* bytes thrown away */
};

/* @console and @loop are borrowed. 0 or a negative errno. */
int serial_init(struct serial *serial, struct console *console, struct loop *loop,
		void (*on_quit)(void *ctx), void *ctx);
void serial_release(struct serial *serial);
/* The VM starts, and ends; the last output is written out, as far as that does not take long. */
void serial_attach(struct serial *serial, struct ns8250 *uart);
void serial_detach(struct serial *serial);

#endif /* VMM_SERIAL_H */
