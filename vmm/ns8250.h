/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_NS8250_H
#define VMM_NS8250_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bus.h"

/*
 * A 16550A UART (National Semiconductor PC16550D data sheet). Output goes into
 * a buffer that the main loop empties. While the buffer is full, the
 * transmitter reads as busy (LSR.THRE clear) and the guest waits as it would
 * for a slow line; a byte that it writes all the same is lost and counted. No
 * vCPU ever sleeps here.
 */
#define NS8250_PORT	0x3f8
#define NS8250_NR_PORTS 8
#define NS8250_TX_SIZE	16384u /* powers of two */
#define NS8250_RX_SIZE	256u

struct ns8250 {
	pthread_mutex_t lock;
	/* The interrupt output; called with the lock held, on changes only. */
	void (*set_irq)(void *ctx, bool level);
	void *irq_ctx;
	int event; /* eventfd: there is output to take, or room for input again */

	bool irq_level;
	bool thre_pending; /* "transmitter empty" has not been seen yet */
	bool tx_busy;	   /* the buffer was full and has not been emptied far enough */
	bool rx_refused;   /* input waits outside */
	uint8_t ier, fcr, lcr, mcr, scr, dll, dlm;
	uint8_t tx[NS8250_TX_SIZE];
	uint8_t rx[NS8250_RX_SIZE];
	uint32_t tx_head, tx_tail, rx_head, rx_tail; /* free running */
	uint64_t tx_lost;
};

extern const struct port_ops ns8250_ops;

/* @event is borrowed. The state after power on. */
void ns8250_init(struct ns8250 *uart, int event, void (*set_irq)(void *ctx, bool level),
		 void *irq_ctx);
void ns8250_release(struct ns8250 *uart);

/* The other end of the line; any thread. Take up to @len bytes of output. */
size_t ns8250_take(struct ns8250 *uart, uint8_t *buf, size_t len);
/* Give input; returns how much fits. If not all did, the event tells when to try again. */
size_t ns8250_give(struct ns8250 *uart, const uint8_t *buf, size_t len);
size_t ns8250_room(struct ns8250 *uart);
uint64_t ns8250_lost(struct ns8250 *uart);

#endif /* VMM_NS8250_H */
