// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control methods that the guest's agent has to answer: toggle and idle. A
 * guest may be slow, or never answer: then the request is taken back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "service_internal.h"
#include "text.h"

#define DEFAULT_TIMEOUT_MS 120000
#define MAX_TIMEOUT_MS	   3600000
#define MAX_IDLE_MS	   600000

/* Freed with its call: by the control server, once the answer is on its way. */
struct guest_request {
	struct hvp_service *service;
	struct hvp_call *call;
	bool idle;
	bool native;
	uint64_t int3_before;
	unsigned int timeout_ms;
	uint64_t id; /* the server's thread only: done() may run before it is known */
};

/* What a client asked for. */
struct wish {
	const char *query;
	bool native;
	unsigned int idle_ms;
	unsigned int timeout_ms;
};

static uint64_t int3_hits(struct hvp_service *service)
{
	return service->int3_hits ? service->int3_hits(service) : 0;
}

static struct json_object *toggle_result(const struct guest_request *request,
					 const struct hvp_outcome *outcome)
{
	const struct hvpoke_complete *guest = &outcome->guest;
	struct hvp_service *service = request->service;
	struct json_object *result = json_object_new_object();

	json_object_object_add(result, "via",
			       json_object_new_string(request->native ? "native" : "hvpoke"));
	service_add_u64(result, "matched", guest->matched);
	service_add_u64(result, "changed", guest->changed);
	service_add_u64(result, "sites", guest->sites);
	service_add_u64(result, "native_sites", guest->native_sites);
	service_add_u64(result, "ipis", guest->ipis);
	json_object_object_add(result, "int3",
			       service->int3_hits ? json_object_new_uint64(int3_hits(service) -
									   request->int3_before)
						  : NULL);
	service_add_u64(result, "own_int3", guest->own_int3);
	service_add_u64(result, "batches", guest->batches);
	service_add_u64(result, "pauses", outcome->pauses);
	json_object_object_add(result, "pause_us", service_us(outcome->pause_ns));
	json_object_object_add(result, "apply_us", service_us(outcome->apply_ns));
	json_object_object_add(result, "guest_us", service_us(guest->guest_ns));
	json_object_object_add(result, "fallback",
			       guest->fallback
				       ? json_object_new_string(hvpoke_status_text(guest->fallback))
				       : NULL);
	json_object_object_add(result, "message",
			       service_guest_string(guest->message, sizeof(guest->message)));
	return result;
}

static struct json_object *idle_result(const struct hvp_outcome *outcome)
{
	struct json_object *result = json_object_new_object();

	service_add_u64(result, "ipis", outcome->guest.ipis);
	json_object_object_add(result, "guest_us", service_us(outcome->guest.guest_ns));
	return result;
}

/* The agent says that it could not do it, or not all of it. */
static void fail_with_errno(struct guest_request *request, const struct hvp_outcome *outcome,
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

/* On the thread that rang the doorbell. */
static void done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	struct guest_request *request = arg;
	struct json_object *result;

	(void)id;
	if (outcome->lost) {
		hvp_call_fail(request->call, "agent-lost", NULL,
			      "the guest's agent went away before it answered");
		return;
	}
	result = request->idle ? idle_result(outcome) : toggle_result(request, outcome);
	if (outcome->guest.error)
		fail_with_errno(request, outcome, result);
	else
		hvp_call_reply(request->call, result);
}

/* On the server's thread. */
static void expired(struct hvp_call *call, void *arg)
{
	struct guest_request *request = arg;

	/* No id: it was never submitted, and has been answered. */
	if (!request->id || !hvp_guest_cancel(request->service->guest, request->id))
		return;
	hvp_call_fail(call, "timeout", NULL,
		      "the guest did not answer within %u.%03u s; if its agent had begun already, "
		      "it still goes on",
		      request->timeout_ms / 1000, request->timeout_ms % 1000);
}

static void fail_submit(struct hvp_call *call, int err)
{
	switch (err) {
	case -ENODEV:
		hvp_call_fail(call, "no-agent", NULL,
			      "no agent is registered: load hvpoke.ko in the guest");
		break;
	case -EBUSY:
		hvp_call_fail(call, "busy", NULL, "%d requests wait for this guest already",
			      HVP_MAX_REQUESTS);
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

/* @queries: NULL for idle. */
static void submit(struct hvp_service *service, struct hvp_call *call, const struct wish *wish,
		   const struct hvp_queries *queries)
{
	struct guest_request *request;
	uint32_t flags = queries ? 0 : HVPOKE_REQ_COUNT_IDLE;
	int64_t id;

	if (service->is_paused && service->is_paused(service)) {
		hvp_call_fail(call, "paused", NULL,
			      "the VM is paused, so its guest cannot answer: resume it first");
		return;
	}
	request = calloc(1, sizeof(*request));
	if (!request) {
		hvp_call_fail(call, "internal", NULL, "out of memory");
		return;
	}
	if (wish->native)
		flags |= HVPOKE_REQ_NATIVE;
	request->service = service;
	request->call = call;
	request->idle = !queries;
	request->native = wish->native;
	request->timeout_ms = wish->timeout_ms;
	request->int3_before = int3_hits(service);
	hvp_call_set_timeout(call, wish->timeout_ms, expired, request);
	id = hvp_guest_submit(service->guest, flags, wish->idle_ms, queries, done, request);
	/* done() may have answered already; the request lives until we are back in the server. */
	if (id > 0)
		request->id = (uint64_t)id;
	else
		fail_submit(call, (int)id);
}

/* An integer in [1, max], or the call is failed. */
static bool take_int(struct hvp_call *call, const char *key, struct json_object *value,
		     unsigned int max, unsigned int *to)
{
	int64_t number = json_object_get_int64(value);

	if (!json_object_is_type(value, json_type_int) || number < 1 || number > max) {
		hvp_call_fail(call, "bad-params", NULL, "\"%s\" must be an integer from 1 to %u",
			      key, max);
		return false;
	}
	*to = (unsigned int)number;
	return true;
}

static bool take_query(struct hvp_call *call, struct json_object *value, struct wish *wish)
{
	if (!json_object_is_type(value, json_type_string)) {
		hvp_call_fail(call, "bad-params", NULL, "\"query\" must be a string");
		return false;
	}
	wish->query = json_object_get_string(value);
	if (strlen(wish->query) != (size_t)json_object_get_string_len(value)) {
		hvp_call_fail(call, "bad-params", NULL, "\"query\" has a NUL character in it");
		return false;
	}
	return true;
}

static bool take_via(struct hvp_call *call, struct json_object *value, struct wish *wish)
{
	const char *via = "";

	if (json_object_is_type(value, json_type_string))
		via = json_object_get_string(value);
	wish->native = !strcmp(via, "native");
	if (!wish->native && strcmp(via, "hvpoke") != 0) {
		hvp_call_fail(call, "bad-params", NULL, "\"via\" must be \"hvpoke\" or \"native\"");
		return false;
	}
	return true;
}

static void fail_unknown(struct hvp_call *call, const char *method, const char *key)
{
	hvp_call_fail(call, "bad-params", NULL, "\"%s\" has no parameter \"%.64s\"", method, key);
}

static bool toggle_params(struct hvp_call *call, struct json_object *params, struct wish *wish)
{
	json_object_object_foreach(params, key, value)
	{
		bool ok = true;

		if (!strcmp(key, "query")) {
			ok = take_query(call, value, wish);
		} else if (!strcmp(key, "via")) {
			ok = take_via(call, value, wish);
		} else if (!strcmp(key, "timeout_ms")) {
			ok = take_int(call, key, value, MAX_TIMEOUT_MS, &wish->timeout_ms);
		} else {
			fail_unknown(call, "toggle", key);
			ok = false;
		}
		if (!ok)
			return false;
	}
	if (!wish->query)
		hvp_call_fail(call, "bad-params", NULL, "\"toggle\" needs a \"query\"");
	return wish->query;
}

static struct json_object *query_error_data(struct hvp_query_error *error)
{
	struct json_object *data = json_object_new_object();

	hvp_text_clean(error->word);
	json_object_object_add(data, "word", json_object_new_string(error->word));
	service_add_u64(data, "column", error->column);
	return data;
}

void hvp_service_toggle(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct wish wish = {.timeout_ms = DEFAULT_TIMEOUT_MS};
	struct hvp_query_error error = {0};
	struct hvp_queries queries = {0};
	int err;

	if (!toggle_params(call, params, &wish))
		return;
	err = hvp_queries_parse(wish.query, &queries, &error);
	if (err == -EINVAL || err == -E2BIG) {
		hvp_call_fail(call, "bad-query", query_error_data(&error), "%s", error.message);
		return;
	}
	if (err) {
		hvp_call_fail(call, "internal", NULL, "%s", strerror(-err));
		return;
	}
	submit(ctx, call, &wish, &queries);
	hvp_queries_free(&queries);
}

void hvp_service_idle(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct wish wish = {0};

	json_object_object_foreach(params, key, value)
	{
		bool ok = true;

		if (!strcmp(key, "ms")) {
			ok = take_int(call, key, value, MAX_IDLE_MS, &wish.idle_ms);
		} else if (!strcmp(key, "timeout_ms")) {
			ok = take_int(call, key, value, MAX_TIMEOUT_MS, &wish.timeout_ms);
		} else {
			fail_unknown(call, "idle", key);
			ok = false;
		}
		if (!ok)
			return;
	}
	if (!wish.idle_ms) {
		hvp_call_fail(call, "bad-params", NULL, "\"idle\" needs \"ms\"");
		return;
	}
	if (!wish.timeout_ms)
		wish.timeout_ms = wish.idle_ms + DEFAULT_TIMEOUT_MS;
	submit(ctx, call, &wish, NULL);
}
