/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_GUEST_H
#define HVP_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"
#include "backend.h"
#include "guest_limits.h"
#include "origin.h"
#include "query.h"

/*
 * One guest as the host sees it: its registered agent and text ranges, the
 * batch in hand, the host requests that wait. Opaque; made by
 * hvp_guest_new(). All functions may be called from any thread.
 */
struct hvp_guest;

struct hvp_stats {
	uint64_t batches; /* applied */
	uint64_t refused; /* any status but OK */
	uint64_t rated;	  /* of these: RATE */
	uint64_t sites;	  /* written since start */
	uint64_t pauses;
	uint64_t requests; /* host requests completed */
	uint64_t last_pause_ns, last_apply_ns, last_kick_ns, last_wake_ns;
	uint64_t max_pause_ns;
	uint64_t total_pause_ns;
	uint64_t pause_p50_ns, pause_p99_ns; /* over the last 1,024 pauses */
	uint32_t last_status;		     /* enum hvpoke_status of the last batch */
	uint64_t noisy; /* as the agent said last: see struct hvpoke_complete */
};

/* What the agent said of itself; all zero if none is registered. */
struct hvp_agent_info {
	bool present;
	char kernel[65];
	char agent[33];
	uint32_t nr_ranges;
	uint32_t scope; /* enum hvpoke_scope */
	uint64_t probe_gva[HVPOKE_MAX_PROBES];
};

/* The outcome of a host request, as it goes to its client. */
struct hvp_outcome {
	struct hvpoke_complete guest; /* strings terminated */
	uint64_t pauses;	      /* pauses made for the guest while it ran */
	uint64_t pause_ns;	      /* their sum */
	uint64_t apply_ns;	      /* likewise */
	bool lost;		      /* the agent went away; nothing else is valid */
	/* With HVPOKE_REQ_UNDO: what became of the batch that puts another one back. */
	struct hvp_undone {
		bool tried;
		enum hvpoke_status status;
		uint64_t id;	    /* the record of this one in the log */
		uint32_t sites;	    /* written */
		uint32_t bad_index; /* the first site that does not hold what was written, ... */
		uint64_t bad_gva;   /* and its address in the guest's kernel, if it is known */
	} undone;
};

/*
 * Called once for each submitted request, on the thread that rang the
 * doorbell (or called hvp_guest_reset()), with no lock held. Must not block.
 */
typedef void (*hvp_done_fn)(void *arg, uint64_t id, const struct hvp_outcome *outcome);

/* @backend and @ctx must outlive the guest. NULL if out of memory. */
struct hvp_guest *hvp_guest_new(const struct hvp_backend *backend, void *ctx);
void hvp_guest_free(struct hvp_guest *guest);
/*
 * Before the guest runs. Without it the ABI's bounds are all there are, and 64 requests. Each
 * within what guest_limits.h says.
 */
void hvp_guest_limit(struct hvp_guest *guest, const struct hvp_limits *limits);
const struct hvp_limits *hvp_guest_limits(const struct hvp_guest *guest);
/* Record what is done to the guest; without that nothing can be undone. Before it runs. */
struct hvp_audit;
void hvp_guest_set_audit(struct hvp_guest *guest, struct hvp_audit *audit);
struct hvp_audit *hvp_guest_audit(struct hvp_guest *guest);

/*
 * The doorbell: run the command in the guest's page at @page, write its OUT
 * fields back. Never trusts what stands there; never fails the host. Returns
 * the status, also written to the page if that is memory at all.
 */
enum hvpoke_status hvp_guest_command(struct hvp_guest *guest, gpa_t page);

/*
 * The guest was reset or its agent is gone: forget it, fail its requests as lost.
 * Does not wait for a batch that another thread has in hand: whoever reuses the
 * guest's memory stops the vCPU threads first.
 */
void hvp_guest_reset(struct hvp_guest *guest);

/*
 * Queue a request for the agent and interrupt it. @flags: HVPOKE_REQ_*.
 * @queries is copied (ignored with HVPOKE_REQ_COUNT_IDLE, which takes @idle_ms).
 * Returns its id (> 0), or a negative errno: -ENODEV no agent registered,
 * -EBUSY too many waiting (hvp_limits.max_requests), -E2BIG the queries do not fit in
 * HVPOKE_REQ_DATA.
 */
struct hvp_submission {
	uint32_t flags;
	uint32_t idle_ms;
	const struct hvp_queries *queries; /* not with HVPOKE_REQ_COUNT_IDLE and HVPOKE_REQ_UNDO */
	uint64_t undo;			   /* with HVPOKE_REQ_UNDO: the batch's id */
	const struct hvp_origin *origin;   /* for the log; copied. NULL: not recorded */
	hvp_done_fn done;
	void *arg;
};
int64_t hvp_guest_submit_request(struct hvp_guest *guest, const struct hvp_submission *submission);
int64_t hvp_guest_submit(struct hvp_guest *guest, uint32_t flags, uint32_t idle_ms,
			 const struct hvp_queries *queries, hvp_done_fn done, void *arg);

/*
 * Could the batch @id be put back, as far as can be told from here? 0, or a negative
 * errno: -ENODEV no agent, -ENOENT it is not among those that are kept, -EOPNOTSUPP some of
 * its sites are no jump labels.
 */
int hvp_guest_can_undo(struct hvp_guest *guest, uint64_t id);
/*
 * Stop waiting for @id: done() will not be called for it any more. Returns
 * false if it has been called, or is being called, already. A request that
 * the agent has fetched goes on in the guest.
 */
bool hvp_guest_cancel(struct hvp_guest *guest, uint64_t id);

void hvp_guest_stats(struct hvp_guest *guest, struct hvp_stats *stats);
void hvp_guest_agent(struct hvp_guest *guest, struct hvp_agent_info *info);

/* Whether the kernel address @gva lies in the text that the agent registered. */
bool hvp_guest_is_text_gva(struct hvp_guest *guest, uint64_t gva);

#endif /* HVP_GUEST_H */
