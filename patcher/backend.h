/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_BACKEND_H
#define HVP_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "gpa.h"

struct hvpoke_entry;

/* Where the time of one pause went, CLOCK_MONOTONIC nanoseconds. */
struct hvp_pause_times {
	uint64_t kick_ns; /* first kick until the last vCPU stood still, or until it was given up */
	uint64_t wake_ns; /* resume called until every vCPU was let go */
};

/*
 * The sites, where they are not written through pointers: guest memory that
 * belongs to another process. Each call gets the @ctx of hvp_guest_init(). Entries
 * are the host's copy, checked: good bytes, in order, in registered text.
 */
struct hvp_text_ops {
	/*
	 * Whether all of [@addr, @addr + @len) is RAM of the guest, in one piece
	 * in its process. Outside of the pause; may block.
	 */
	bool (*is_ram)(void *ctx, gpa_t addr, uint64_t len);
	/*
	 * Do outside of the pause what can be done there. 0, or a negative errno and
	 * the batch fails with HVPOKE_HOST_ERROR.
	 */
	int (*prepare)(void *ctx, const struct hvpoke_entry *entry, uint32_t nr);
	/*
	 * In the pause: verify all old bytes, then write all new ones. Returns @nr, or
	 * the index of the first entry whose old bytes do not stand, or a negative
	 * errno; nothing is written then (-ECANCELED: the agent has taken the
	 * batch back, so nobody waits for an answer).
	 */
	int64_t (*apply)(void *ctx, const struct hvpoke_entry *entry, uint32_t nr);
};

/*
 * What the engine needs of a VMM, and all that it knows of one. Each call
 * gets the @ctx that was given to hvp_guest_new().
 */
struct hvp_backend {
	/*
	 * The only way from a guest address to a host pointer. Returns NULL
	 * unless all of [@addr, @addr + @len) is RAM of the guest, contiguous
	 * in the host too. Never blocks, callable from any thread, also while
	 * vCPUs run. The pointer is good for the VM's life, and page aligned if
	 * @addr is.
	 */
	void *(*translate)(void *ctx, gpa_t addr, uint64_t len);
	/*
	 * NULL: sites are reached through translate(), as is everything else.
	 * Else translate() is for the command page and the lists only, whose
	 * addresses need not be guest physical ones (proto/hvpoke_shm.h), and
	 * sites are reached through these.
	 */
	const struct hvp_text_ops *text;
	/*
	 * Stop every vCPU outside of guest mode, with port and MMIO accesses
	 * completed. Returns 0, or a negative errno with every vCPU running
	 * (-EBUSY: paused by somebody else, -ETIMEDOUT: a vCPU did not stop,
	 * -ECANCELED: the VM ends).
	 * Called on a vCPU's own thread, that vCPU counts as stopped.
	 */
	int (*pause)(void *ctx, struct hvp_pause_times *times);
	/* Undo pause(). Cannot fail. */
	void (*resume)(void *ctx, struct hvp_pause_times *times);
	/* Interrupt the guest: a host request waits (HVPOKE_CMD_FETCH). */
	int (*notify)(void *ctx);
};

#endif /* HVP_BACKEND_H */
