/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_REQUEST_H
#define HVP_REQUEST_H

#include <stdint.h>

#include "guest.h"
#include "stats.h"
#include "undo.h"

/* A host request: waiting in line, or with the agent ("running"). */
struct hvp_request;

/* Callers hold guest->lock. */
struct hvp_requests {
	struct hvp_request *first; /* waiting, oldest first */
	uint32_t nr_waiting;
	struct hvp_request *running; /* fetched, not completed */
	uint64_t last_id;
};

/*
 * HVPOKE_CMD_FETCH. HVPOKE_OK and @fetch filled in, HVPOKE_NO_REQUEST, or
 * HVPOKE_NOT_HELLO. An agent does one request at a time: if it fetches while
 * one is running, it has forgotten that one (it crashed, it was replaced), and
 * the one that was running is lost.
 */
enum hvpoke_status hvp_request_fetch(struct hvp_guest *guest, struct hvpoke_fetch *fetch);
/* HVPOKE_CMD_COMPLETE. HVPOKE_OK, HVPOKE_BAD_REQUEST or HVPOKE_NOT_HELLO. */
enum hvpoke_status hvp_request_complete(struct hvp_guest *guest,
					const struct hvpoke_complete *complete);

/*
 * The batch that the request in progress is to put back, or NULL if it is none such or the
 * batch is kept no more. With guest->owner, which keeps it.
 */
const struct hvp_undo_batch *hvp_request_undoes(struct hvp_guest *guest);
/* That was tried. @batch: what hvp_request_undoes() returned. */
void hvp_request_undone(struct hvp_guest *guest, const struct hvp_undo_batch *batch,
			const struct hvp_batch_result *result);
/* Who asked for the request in progress. False: there is none, or nobody whom the log knows. */
bool hvp_request_origin(struct hvp_guest *guest, struct hvp_origin *origin);

/*
 * Take every request out of @requests, under guest->lock, to be handed to
 * hvp_requests_lost() without it.
 */
struct hvp_request *hvp_requests_take(struct hvp_requests *requests);
/* Tell each one's owner that it is lost. No lock held. */
void hvp_requests_lost(struct hvp_guest *guest, struct hvp_request *requests);

#endif /* HVP_REQUEST_H */
