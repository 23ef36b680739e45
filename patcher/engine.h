/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_ENGINE_H
#define HVP_ENGINE_H

#include <pthread.h>

#include "arena.h"
#include "guest.h"
#include "guest_limits.h"
#include "ranges.h"
#include "request.h"
#include "stats.h"
#include "undo.h"

/*
 * The inside of struct hvp_guest. The way of a doorbell through the files:
 *
 *   command.c   copy the command, dispatch, write the OUT fields back
 *   batch.c     the way of a batch:
 *     guest_limits.c  has the guest had its share?
 *     list.c      copy its entries, once
 *     check.c     shape, order, opcodes (insn.c), text ranges (ranges.c),
 *                 second pages (straddle.c)
 *     poke.c      host addresses; in the pause: verify all, write all
 *     touch.c     no page fault in the pause
 *     undo.c      keep what was written; put it back
 *   hello.c     the agent registers
 *   request.c   host requests: submit, fetch, complete
 *
 * Two locks, never both waited for:
 *
 * @owner belongs to the one vCPU whose batch or hello is in hand. It is only
 * ever tried: a second vCPU gets HVPOKE_BUSY instead of waiting, since a vCPU
 * that waits here is one that the first one's pause would wait for. (The
 * agent sends one command at a time, so it never sees that.) Held over the pause.
 *
 * @lock guards what other threads look at. Held for microseconds at the very
 * most; never over a pause, a callback, a page fault on guest memory or a system
 * call. May be taken with @owner held.
 */
struct hvp_guest {
	const struct hvp_backend *backend;
	void *ctx;
	struct hvp_limits limits; /* set before the guest runs */
	struct hvp_audit *audit;  /* likewise; NULL: no log */

	pthread_mutex_t owner;
	struct hvp_arena arena;
	struct hvp_rates rates;
	/* The last agent's, also after it has gone. Read with one of the locks, written with both. */
	struct hvp_ranges ranges;
	uint32_t scope; /* enum hvpoke_scope; likewise */

	pthread_mutex_t lock;
	struct hvp_agent_info agent;
	struct hvp_requests requests;
	struct hvp_counters counters;
	struct hvp_undo undo;
};

static inline void *hvp_translate(const struct hvp_guest *guest, uint64_t addr, uint64_t len)
{
	return guest->backend->translate(guest->ctx, gpa(addr), len);
}

/* Is all of that RAM in which sites may be? */
static inline bool hvp_is_ram(const struct hvp_backend *backend, void *ctx, uint64_t addr,
			      uint64_t len)
{
	if (backend->text)
		return backend->text->is_ram(ctx, gpa(addr), len);
	return backend->translate(ctx, gpa(addr), len);
}

/*
 * The cause of a HVPOKE_HOST_ERROR, to stderr. @err: a positive errno. Only the
 * first few of a process: a guest that can make its host fail must not be able
 * to fill the log.
 */
#define HVP_HOST_ERRORS 16
void hvp_host_error(const char *what, int err);

#endif /* HVP_ENGINE_H */
