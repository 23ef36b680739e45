// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "engine.h"
#include "string_in.h"

struct hvp_request {
	struct hvp_request *next;
	uint64_t id;
	uint32_t flags;
	uint32_t idle_ms;
	hvp_done_fn done; /* NULL: cancelled, or the submitter does not care */
	void *arg;
	bool cancelled;
	struct hvp_origin origin; /* without a method: it is not recorded */
	uint64_t undo;		  /* the batch to be put back, or 0 */
	struct hvp_undone undone;
	/* The guest's counters when it was fetched. */
	uint64_t pauses, pause_ns, apply_ns;
	uint32_t nr_queries;
	uint32_t data_len;
	uint8_t data[];
};

static const struct hvp_queries *queries_of(const struct hvp_submission *submission)
{
	if (submission->flags & (HVPOKE_REQ_COUNT_IDLE | HVPOKE_REQ_UNDO))
		return NULL;
	return submission->queries;
}

static struct hvp_request *request_new(const struct hvp_submission *submission)
{
	const struct hvp_queries *queries = queries_of(submission);
	size_t len = queries ? queries->len : 0;
	struct hvp_request *request = calloc(1, sizeof(*request) + len);

	if (!request)
		return NULL;
	request->flags = submission->flags;
	request->done = submission->done;
	request->arg = submission->arg;
	if (submission->origin)
		request->origin = *submission->origin;
	if (submission->flags & HVPOKE_REQ_COUNT_IDLE)
		request->idle_ms = submission->idle_ms;
	if (submission->flags & HVPOKE_REQ_UNDO)
		request->undo = submission->undo;
	if (queries) {
		request->nr_queries = queries->nr;
		request->data_len = len;
		memcpy(request->data, queries->data, len);
	}
	return request;
}

/* 0 or -errno. Under guest->lock. */
static int request_queue(struct hvp_guest *guest, struct hvp_request *request)
{
	struct hvp_requests *requests = &guest->requests;
	struct hvp_request **at;

	if (!guest->agent.present)
		return -ENODEV;
	if (requests->nr_waiting >= guest->limits.max_requests)
		return -EBUSY;
	for (at = &requests->first; *at; at = &(*at)->next)
		;
	*at = request;
	requests->nr_waiting++;
	request->id = ++requests->last_id;
	return 0;
}

/* Take @id out of the line. NULL if it does not wait there. Under guest->lock. */
static struct hvp_request *request_unqueue(struct hvp_requests *requests, uint64_t id)
{
	struct hvp_request **at, *request;

	for (at = &requests->first; *at; at = &(*at)->next)
		if ((*at)->id == id)
			break;
	request = *at;
	if (request) {
		*at = request->next;
		requests->nr_waiting--;
	}
	return request;
}

int64_t hvp_guest_submit(struct hvp_guest *guest, uint32_t flags, uint32_t idle_ms,
			 const struct hvp_queries *queries, hvp_done_fn done, void *arg)
{
	const struct hvp_submission submission = {
		.flags = flags,
		.idle_ms = idle_ms,
		.queries = queries,
		.done = done,
		.arg = arg,
	};

	return hvp_guest_submit_request(guest, &submission);
}

int64_t hvp_guest_submit_request(struct hvp_guest *guest, const struct hvp_submission *submission)
{
	const struct hvp_queries *queries = queries_of(submission);
	struct hvp_request *request;
	int64_t id;
	int err;

	if (queries && queries->len > HVPOKE_REQ_DATA)
		return -E2BIG;
	request = request_new(submission);
	if (!request)
		return -ENOMEM;

	pthread_mutex_lock(&guest->lock);
	err = request_queue(guest, request);
	id = request->id;
	pthread_mutex_unlock(&guest->lock);
	if (err) {
		free(request);
		return err;
	}
	/* From here on the request may be fetched, completed and freed at any time. */
	err = guest->backend->notify(guest->ctx);
	if (!err)
		return id;
	pthread_mutex_lock(&guest->lock);
	request = request_unqueue(&guest->requests, id);
	pthread_mutex_unlock(&guest->lock);
	if (!request)
		return id; /* the agent has found it all the same */
	free(request);
	return err;
}

bool hvp_guest_cancel(struct hvp_guest *guest, uint64_t id)
{
	struct hvp_request *waiting, *running;
	struct hvp_origin origin = {0};
	bool cancelled;

	pthread_mutex_lock(&guest->lock);
	waiting = request_unqueue(&guest->requests, id);
	running = guest->requests.running;
	cancelled = waiting || (running && running->id == id && !running->cancelled);
	/* The agent will complete it: it must still be known then. */
	if (cancelled && !waiting)
		running->cancelled = true;
	if (cancelled)
		origin = (waiting ? waiting : running)->origin;
	pthread_mutex_unlock(&guest->lock);
	free(waiting);
	if (cancelled)
		hvp_audit_unanswered(guest->audit, &origin, "timeout",
				     waiting ? NULL : "the guest may still go on with it");
	return cancelled;
}

static void request_done(struct hvp_guest *guest, struct hvp_request *request,
			 const struct hvp_outcome *outcome)
{
	if (outcome->lost)
		hvp_audit_unanswered(guest->audit, &request->origin, "lost", NULL);
	else
		hvp_audit_answered(guest->audit, &request->origin, outcome, request->cancelled);
	if (request->done && !request->cancelled)
		request->done(request->arg, request->id, outcome);
	free(request);
}

const struct hvp_undo_batch *hvp_request_undoes(struct hvp_guest *guest)
{
	const struct hvp_undo_batch *batch = NULL;
	struct hvp_request *running;

	pthread_mutex_lock(&guest->lock);
	running = guest->requests.running;
	if (running && running->undo && !running->undone.tried)
		batch = hvp_undo_find(&guest->undo, running->undo);
	if (batch && !batch->labels)
		batch = NULL;
	pthread_mutex_unlock(&guest->lock);
	return batch;
}

void hvp_request_undone(struct hvp_guest *guest, const struct hvp_undo_batch *batch,
			const struct hvp_batch_result *result)
{
	struct hvp_request *running;

	pthread_mutex_lock(&guest->lock);
	running = guest->requests.running;
	/* Once for each: a guest that tries again gets no other answer for it. */
	if (running && running->undo && !running->undone.tried)
		running->undone = (struct hvp_undone){
			.tried = true,
			.status = result->status,
			.id = result->id,
			.sites = result->written,
			.bad_index = result->bad_index,
			.bad_gva = batch && result->bad_index < batch->nr
					   ? batch->site[result->bad_index].gva
					   : 0,
		};
	pthread_mutex_unlock(&guest->lock);
}

bool hvp_request_origin(struct hvp_guest *guest, struct hvp_origin *origin)
{
	struct hvp_request *running;
	bool known;

	pthread_mutex_lock(&guest->lock);
	running = guest->requests.running;
	known = running && *running->origin.method;
	if (known)
		*origin = running->origin;
	pthread_mutex_unlock(&guest->lock);
	return known;
}

struct hvp_request *hvp_requests_take(struct hvp_requests *requests)
{
	struct hvp_request *all = requests->first;

	if (requests->running) {
		requests->running->next = all;
		all = requests->running;
	}
	requests->first = NULL;
	requests->nr_waiting = 0;
	requests->running = NULL;
	return all;
}

void hvp_requests_lost(struct hvp_guest *guest, struct hvp_request *requests)
{
	const struct hvp_outcome lost = {.lost = true};
	struct hvp_request *next;

	for (; requests; requests = next) {
		next = requests->next;
		request_done(guest, requests, &lost);
	}
}

static void fill_fetch(struct hvpoke_fetch *fetch, const struct hvp_request *request)
{
	*fetch = (struct hvpoke_fetch){
		.id = request->id,
		.flags = request->flags,
		.idle_ms = request->idle_ms,
		.nr_queries = request->nr_queries,
		.data_len = request->data_len,
	};
	memcpy(fetch->data, request->data, request->data_len);
}

enum hvpoke_status hvp_request_fetch(struct hvp_guest *guest, struct hvpoke_fetch *fetch)
{
	struct hvp_requests *requests = &guest->requests;
	const struct hvp_counters *counters = &guest->counters;
	enum hvpoke_status status = HVPOKE_OK;
	struct hvp_request *forgotten = NULL, *request;

	pthread_mutex_lock(&guest->lock);
	if (!guest->agent.present) {
		status = HVPOKE_NOT_HELLO;
		goto unlock;
	}
	forgotten = requests->running;
	request = requests->first;
	if (request)
		request_unqueue(requests, request->id);
	requests->running = request;
	if (!request) {
		status = HVPOKE_NO_REQUEST;
		goto unlock;
	}
	request->next = NULL; /* alone, also if it is lost */
	request->pauses = counters->stats.pauses;
	request->pause_ns = counters->stats.total_pause_ns;
	request->apply_ns = counters->total_apply_ns;
	fill_fetch(fetch, request);
unlock:
	pthread_mutex_unlock(&guest->lock);
	hvp_requests_lost(guest, forgotten);
	return status;
}

enum hvpoke_status hvp_request_complete(struct hvp_guest *guest,
					const struct hvpoke_complete *complete)
{
	struct hvp_outcome outcome = {.guest = *complete};
	const struct hvp_counters *counters = &guest->counters;
	enum hvpoke_status status = HVPOKE_OK;
	struct hvp_request *request;

	hvp_string_in(outcome.guest.message, complete->message, sizeof(complete->message) - 1);

	pthread_mutex_lock(&guest->lock);
	request = guest->requests.running;
	if (!guest->agent.present) {
		status = HVPOKE_NOT_HELLO;
	} else if (!request || request->id != complete->id) {
		status = HVPOKE_BAD_REQUEST;
	} else {
		guest->requests.running = NULL;
		guest->counters.stats.requests++;
		guest->counters.stats.noisy = complete->noisy;
		outcome.pauses = counters->stats.pauses - request->pauses;
		outcome.pause_ns = counters->stats.total_pause_ns - request->pause_ns;
		outcome.apply_ns = counters->total_apply_ns - request->apply_ns;
		outcome.undone = request->undone;
	}
	pthread_mutex_unlock(&guest->lock);
	if (status == HVPOKE_OK)
		request_done(guest, request, &outcome);
	return status;
}
