// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control methods that the guest's agent has to answer: what they have in common, and
 * idle. A guest may be slow, or never answer: then the request is taken back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "service_internal.h"

#define MAX_TIMEOUT_MS 3600000
#define MAX_IDLE_MS    600000

uint64_t service_int3_hits(struct hvp_service *service)
{
	return service->int3_hits ? service->int3_hits(service) : 0;
}

/* The agent says that it could not do it, or not all of it. */
static void fail_with_errno(struct service_request *request, const struct hvp_outcome *outcome,
			    struct json_object *data)
{
	const struct hvpoke_complete *guest = &outcome->guest;
	/* What a guest calls an errno need not be one. */
	const char *name = guest->error < 4096 ? strerrorname_np((int)guest->error) : NULL;
	const char *reason = name ? strerrordesc_np((int)guest->error) : "unknown error";
	char message[sizeof(guest->message) + 1];

	snprintf(message, sizeof(message), "%.*s", (int)sizeof(guest->message), guest->message);
	service_add_u64(data, "errno", guest->error);
	if (guest->bad_query != HVPOKE_NO_INDEX)
		service_add_u64(data, "bad_query", guest->bad_query);
	hvp_call_fail(request->call, "guest-failed", data, "the guest refused the request: %s",
		      *message ? message : reason);
}

void service_answer(struct service_request *request, const struct hvp_outcome *outcome,
		    struct json_object *result)
{
	if (outcome->guest.error)
		fail_with_errno(request, outcome, result);
	else
		hvp_call_reply(request->call, result);
}

/* On the thread that rang the doorbell. */
static void done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	struct service_request *request = arg;

	(void)id;
	if (outcome->lost)
		hvp_call_fail(request->call, "agent-lost", NULL,
			      "the guest's agent went away before it answered");
	else
		request->wish.answer(request, outcome);
}

/* On the server's thread. */
static void expired(struct hvp_call *call, void *arg)
{
	struct service_request *request = arg;

	/* No id: it was never submitted, and has been answered. */
	if (!request->id || !hvp_guest_cancel(request->service->guest, request->id))
		return;
	hvp_call_fail(call, "timeout", NULL,
		      "the guest did not answer within %u.%03u s; if its agent had begun already, "
		      "it still goes on",
		      request->wish.timeout_ms / 1000, request->wish.timeout_ms % 1000);
}

void service_fail_no_agent(struct hvp_call *call)
{
	hvp_call_fail(call, "no-agent", NULL,
		      "no agent is registered: load hvpoke.ko in the guest");
}

/* What is not handed over leaves a trace, too: @code, as the client gets it. */
static void record_refused(struct hvp_service *service, const struct service_wish *wish,
			   const char *code)
{
	hvp_audit_unanswered(hvp_guest_audit(service->guest), wish->origin, "refused", code);
}

static const char *submit_code(int err)
{
	switch (err) {
	case -ENODEV: return "no-agent";
	case -EBUSY: return "busy";
	case -E2BIG: return "bad-query";
	default: return "internal";
	}
}

static void fail_submit(struct hvp_service *service, struct hvp_call *call, int err)
{
	switch (err) {
	case -ENODEV: service_fail_no_agent(call); break;
	case -EBUSY:
		hvp_call_fail(call, "busy", NULL, "%u requests wait for this guest already",
			      (unsigned int)hvp_guest_limits(service->guest)->max_requests);
		break;
	case -E2BIG:
		hvp_call_fail(call, "bad-query", NULL,
			      "the queries do not fit in one request of %d bytes", HVPOKE_REQ_DATA);
		break;
	default:
		hvp_call_fail(call, "internal", NULL, "cannot hand the request to the guest: %s",
			      strerror(-err));
		break;
	}
}

bool service_submit(struct hvp_service *service, struct hvp_call *call,
		    const struct service_wish *wish, const struct hvp_queries *queries)
{
	struct hvp_submission submission = {
		.flags = wish->flags,
		.idle_ms = wish->idle_ms,
		.queries = queries,
		.undo = wish->undo,
		.origin = wish->origin,
		.done = done,
	};
	struct service_request *request;
	int64_t id;

	if (wish->origin) {
		hvp_call_peer(call, &wish->origin->uid, &wish->origin->pid);
		wish->origin->native = wish->flags & HVPOKE_REQ_NATIVE;
	}
	if (service->is_paused && service->is_paused(service)) {
		record_refused(service, wish, "paused");
		hvp_call_fail(call, "paused", NULL,
			      "the VM is paused, so its guest cannot answer: resume it first");
		return false;
	}
	request = calloc(1, sizeof(*request));
	if (!request) {
		hvp_call_fail(call, "internal", NULL, "out of memory");
		return false;
	}
	request->service = service;
	request->call = call;
	request->wish = *wish;
	request->int3_before = service_int3_hits(service);
	hvp_call_set_timeout(call, wish->timeout_ms, expired, request);
	request->wish.origin = NULL; /* it is the caller's */
	submission.arg = request;
	id = hvp_guest_submit_request(service->guest, &submission);
	/* done() may have answered already; the request lives until we are back in the server. */
	if (id > 0) {
		request->id = (uint64_t)id;
		return true;
	}
	record_refused(service, wish, submit_code((int)id));
	fail_submit(service, call, (int)id);
	return false;
}

bool service_take_int(struct hvp_call *call, const char *key, struct json_object *value,
		      unsigned int min, unsigned int max, unsigned int *to)
{
	int64_t number = json_object_get_int64(value);

	if (!json_object_is_type(value, json_type_int) || number < min || number > max) {
		hvp_call_fail(call, "bad-params", NULL, "\"%s\" must be an integer from %u to %u",
			      key, min, max);
		return false;
	}
	*to = (unsigned int)number;
	return true;
}

bool service_take_text(struct hvp_call *call, const char *key, struct json_object *value,
		       const char **to)
{
	if (!json_object_is_type(value, json_type_string)) {
		hvp_call_fail(call, "bad-params", NULL, "\"%s\" must be a string", key);
		return false;
	}
	*to = json_object_get_string(value);
	if (strlen(*to) != (size_t)json_object_get_string_len(value)) {
		hvp_call_fail(call, "bad-params", NULL, "\"%s\" has a NUL character in it", key);
		return false;
	}
	return true;
}

bool service_take_timeout(struct hvp_call *call, struct json_object *value,
			  struct service_wish *wish)
{
	return service_take_int(call, "timeout_ms", value, 1, MAX_TIMEOUT_MS, &wish->timeout_ms);
}

bool service_take_via(struct hvp_call *call, struct json_object *value, struct service_wish *wish)
{
	const char *via = "";

	if (json_object_is_type(value, json_type_string))
		via = json_object_get_string(value);
	if (!strcmp(via, "native")) {
		wish->flags |= HVPOKE_REQ_NATIVE;
	} else if (strcmp(via, "hvpoke") != 0) {
		hvp_call_fail(call, "bad-params", NULL, "\"via\" must be \"hvpoke\" or \"native\"");
		return false;
	}
	return true;
}

bool service_fail_unknown(struct hvp_call *call, const char *method, const char *key)
{
	hvp_call_fail(call, "bad-params", NULL, "\"%s\" has no parameter \"%.64s\"", method, key);
	return false;
}

static void idle_answer(struct service_request *request, const struct hvp_outcome *outcome)
{
	struct json_object *result = json_object_new_object();

	service_add_u64(result, "ipis", outcome->guest.ipis);
	hvp_json_add(result, "guest_us", service_us(outcome->guest.guest_ns));
	service_answer(request, outcome, result);
}

void hvp_service_idle(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct service_wish wish = {.flags = HVPOKE_REQ_COUNT_IDLE, .answer = idle_answer};

	json_object_object_foreach(params, key, value)
	{
		bool ok;

		if (!strcmp(key, "ms"))
			ok = service_take_int(call, key, value, 1, MAX_IDLE_MS, &wish.idle_ms);
		else if (!strcmp(key, "timeout_ms"))
			ok = service_take_timeout(call, value, &wish);
		else
			ok = service_fail_unknown(call, "idle", key);
		if (!ok)
			return;
	}
	if (!wish.idle_ms) {
		hvp_call_fail(call, "bad-params", NULL, "\"idle\" needs \"ms\"");
		return;
	}
	if (!wish.timeout_ms)
		wish.timeout_ms = wish.idle_ms + SERVICE_TIMEOUT_MS;
	service_submit(ctx, call, &wish, NULL);
}
