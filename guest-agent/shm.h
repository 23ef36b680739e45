/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HVPOKE_AGENT_SHM_H
#define HVPOKE_AGENT_SHM_H

#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "../proto/hvpoke_shm.h"

/* The device, of which a guest has one. */
struct hvp_shm {
	struct mutex lock; /* over all of it: it may be unplugged */
	void *bar;	   /* NULL: not there */
	u64 size;	   /* of it, in use */
	void __iomem *registers;
	unsigned int irq;
	u64 greeted;  /* the host's session that took our HELLO, or 0 */
	u64 answered; /* its count of requests, at the last one that was none */
	u64 silent;   /* the session that did not answer, or 0: it is not asked for a while */
	ktime_t until;
};

extern struct hvp_shm hvp_shm;

/* host_shm.c. Under hvp_shm.lock, but the last, which is for the interrupt handler. */
void hvp_shm_begin(void);
void hvp_shm_end(void);
bool hvp_shm_wants(const struct hvpoke_shm_host *host);

/* shm_device.c */

/* 0, -ENODEV: there is no such device; or an errno, having said why. */
int hvp_shm_find(void);
void hvp_shm_close(void);
/* When it returns, no interrupt that came before is being handled. */
void hvp_shm_deafen(void);

#endif /* HVPOKE_AGENT_SHM_H */
