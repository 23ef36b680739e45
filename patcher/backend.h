/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_BACKEND_H
#define HVP_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "gpa.h"

/* Where the time of one pause went, CLOCK_MONOTONIC nanoseconds. */
struct hvp_pause_times {
	uint64_t kick_ns; /* first kick until the last vCPU stood still */
	uint64_t wake_ns; /* resume called until every vCPU was let go */
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
