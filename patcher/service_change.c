// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control methods that change the guest: toggle, key, event and scope. The first three
 * can also be elements of a queue's "changes", with the same members.
 */
#include <errno.h>
#include <string.h>

#include "change.h"
#include "scope.h"
#include "service_internal.h"
#include "text.h"

static int make_toggle(const char *query, bool on, struct hvp_queries *queries,
		       struct hvp_query_error *error)
{
	(void)on; /* the query says it itself */
	return hvp_queries_parse(query, queries, error);
}

/* The kinds of changes, by the name of their method. */
static const struct kind {
	const char *method;
	const char *text; /* the parameter that says what is changed */
	bool takes_enable;
	int (*make)(const char *text, bool on, struct hvp_queries *queries,
		    struct hvp_query_error *error);
} kinds[] = {
	{"toggle", "query", false, make_toggle},
	{"key", "name", true, hvp_change_key},
	{"event", "glob", true, hvp_change_events},
};

static const struct kind *find_kind(const char *method)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].method, method))
			return &kinds[i];
	return NULL;
}

/* What every change comes to. */
static struct json_object *change_result(const struct service_request *request,
					 const struct hvp_outcome *outcome)
{
	const struct hvpoke_complete *guest = &outcome->guest;
	struct hvp_service *service = request->service;
	struct json_object *result = json_object_new_object();

	hvp_json_add(result, "via",
		     json_object_new_string(request->wish.flags & HVPOKE_REQ_NATIVE ? "native"
										    : "hvpoke"));
	service_add_u64(result, "matched", guest->matched);
	service_add_u64(result, "changed", guest->changed);
	service_add_u64(result, "sites", guest->sites);
	service_add_u64(result, "native_sites", guest->native_sites);
	service_add_u64(result, "ipis", guest->ipis);
	if (service->int3_hits)
		service_add_u64(result, "int3", service_int3_hits(service) - request->int3_before);
	else
		hvp_json_add_null(result, "int3");
	service_add_u64(result, "own_int3", guest->own_int3);
	service_add_u64(result, "batches", guest->batches);
	service_add_u64(result, "pauses", outcome->pauses);
	hvp_json_add(result, "pause_us", service_us(outcome->pause_ns));
	hvp_json_add(result, "apply_us", service_us(outcome->apply_ns));
	hvp_json_add(result, "guest_us", service_us(guest->guest_ns));
	if (guest->fallback)
		hvp_json_add(result, "fallback",
			     json_object_new_string(hvpoke_status_text(guest->fallback)));
	else
		hvp_json_add_null(result, "fallback");
	hvp_json_add(result, "message",
		     service_guest_string(guest->message, sizeof(guest->message)));
	return result;
}

void service_change_answer(struct service_request *request, const struct hvp_outcome *outcome)
{
	service_answer(request, outcome, change_result(request, outcome));
}

static struct json_object *query_error_data(struct hvp_query_error *error)
{
	struct json_object *data = json_object_new_object();

	hvp_text_clean(error->word);
	hvp_json_add(data, "word", json_object_new_string(error->word));
	service_add_u64(data, "column", error->column);
	return data;
}

static bool make_records(struct hvp_call *call, const struct kind *kind, const char *text, bool on,
			 struct hvp_queries *queries)
{
	struct hvp_query_error error = {0};
	int err = kind->make(text, on, queries, &error);

	if (err == -EINVAL || err == -E2BIG)
		hvp_call_fail(call, "bad-query", query_error_data(&error), "%s", error.message);
	else if (err)
		hvp_call_fail(call, "internal", NULL, "%s", strerror(-err));
	return !err;
}

/* @wish: NULL in a queue, whose elements say what they are in "change" instead. */
static bool take_change(struct hvp_call *call, const struct kind *kind, struct json_object *params,
			struct service_wish *wish, struct hvp_queries *queries)
{
	struct json_object *enable = NULL;
	const char *text = NULL;

	json_object_object_foreach(params, key, value)
	{
		bool ok = true;

		if (!strcmp(key, kind->text))
			ok = service_take_text(call, key, value, &text);
		else if (kind->takes_enable && !strcmp(key, "enable"))
			enable = value;
		else if (wish && !strcmp(key, "via"))
			ok = service_take_via(call, value, wish);
		else if (wish && !strcmp(key, "timeout_ms"))
			ok = service_take_timeout(call, value, wish);
		else if (wish || strcmp(key, "change") != 0)
			ok = service_fail_unknown(call, kind->method, key);
		if (!ok)
			return false;
	}
	if (!text) {
		hvp_call_fail(call, "bad-params", NULL, "\"%s\" needs a \"%s\"", kind->method,
			      kind->text);
		return false;
	}
	if (kind->takes_enable && !json_object_is_type(enable, json_type_boolean)) {
		hvp_call_fail(call, "bad-params", NULL,
			      "\"%s\" needs \"enable\", which must be true or false", kind->method);
		return false;
	}
	return make_records(call, kind, text, json_object_get_boolean(enable), queries);
}

bool service_take_change(struct hvp_call *call, struct json_object *change,
			 struct hvp_queries *queries)
{
	struct json_object *name = NULL;
	const struct kind *kind = NULL;

	if (json_object_is_type(change, json_type_object) &&
	    json_object_object_get_ex(change, "change", &name) &&
	    json_object_is_type(name, json_type_string))
		kind = find_kind(json_object_get_string(name));
	if (kind)
		return take_change(call, kind, change, NULL, queries);
	hvp_call_fail(call, "bad-params", NULL,
		      "an element of \"changes\" must be an object whose \"change\" is \"toggle\", "
		      "\"key\" or \"event\"");
	return false;
}

/* "on NAME", or a query as it is. */
static void describe(struct hvp_origin *origin, const struct kind *kind, struct json_object *params)
{
	if (kind->takes_enable)
		hvp_origin_add(origin,
			       json_object_get_boolean(json_object_object_get(params, "enable"))
				       ? "on "
				       : "off ");
	hvp_origin_add(origin, json_object_get_string(json_object_object_get(params, kind->text)));
}

void service_describe(struct hvp_origin *origin, struct json_object *change)
{
	const char *method = json_object_get_string(json_object_object_get(change, "change"));

	hvp_origin_add(origin, method);
	hvp_origin_add(origin, " ");
	describe(origin, find_kind(method), change);
}

static void change(void *ctx, struct hvp_call *call, struct json_object *params, const char *method)
{
	struct hvp_origin origin = {0};
	struct service_wish wish = {.timeout_ms = SERVICE_TIMEOUT_MS,
				    .origin = &origin,
				    .answer = service_change_answer};
	struct hvp_queries queries = {0};

	if (!take_change(call, find_kind(method), params, &wish, &queries))
		return;
	snprintf(origin.method, sizeof(origin.method), "%s", method);
	describe(&origin, find_kind(method), params);
	service_submit(ctx, call, &wish, &queries);
	hvp_queries_free(&queries);
}

void hvp_service_toggle(void *ctx, struct hvp_call *call, struct json_object *params)
{
	change(ctx, call, params, "toggle");
}

void hvp_service_key(void *ctx, struct hvp_call *call, struct json_object *params)
{
	change(ctx, call, params, "key");
}

void hvp_service_event(void *ctx, struct hvp_call *call, struct json_object *params)
{
	change(ctx, call, params, "event");
}

static void add_scope(struct json_object *result, const struct hvp_agent_info *agent)
{
	hvp_json_add(result, "scope", json_object_new_string(hvp_scope_name(agent->scope)));
}

/* What counts is what the agent has registered, not what it says of itself. */
static void scope_answer(struct service_request *request, const struct hvp_outcome *outcome)
{
	struct json_object *result = change_result(request, outcome);
	struct hvp_agent_info agent;

	hvp_guest_agent(request->service->guest, &agent);
	add_scope(result, &agent);
	if (outcome->guest.error || agent.scope == request->wish.scope)
		service_answer(request, outcome, result);
	else
		hvp_call_fail(request->call, "bad-answer", result,
			      "the agent says that its scope is changed, but it is registered with "
			      "%s, not %s",
			      hvp_scope_name(agent.scope), hvp_scope_name(request->wish.scope));
}

static void show_scope(struct hvp_service *service, struct hvp_call *call)
{
	struct hvp_agent_info agent;
	struct json_object *result;

	hvp_guest_agent(service->guest, &agent);
	if (!agent.present) {
		service_fail_no_agent(call);
		return;
	}
	result = json_object_new_object();
	add_scope(result, &agent);
	hvp_call_reply(call, result);
}

static bool take_scope(struct hvp_call *call, struct json_object *value, struct service_wish *wish)
{
	const char *name = "";

	if (json_object_is_type(value, json_type_string))
		name = json_object_get_string(value);
	if (hvp_scope_parse(name, &wish->scope))
		return true;
	hvp_call_fail(call, "bad-params", NULL, "\"scope\" must be " HVP_SCOPE_NAMES);
	return false;
}

void hvp_service_scope(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_origin origin = {.method = "scope"};
	struct service_wish wish = {
		.timeout_ms = SERVICE_TIMEOUT_MS, .origin = &origin, .answer = scope_answer};
	struct hvp_query_error error;
	struct hvp_queries queries;
	bool set = false;

	json_object_object_foreach(params, key, value)
	{
		bool ok;

		if (!strcmp(key, "scope"))
			ok = set = take_scope(call, value, &wish);
		else if (!strcmp(key, "timeout_ms"))
			ok = service_take_timeout(call, value, &wish);
		else
			ok = service_fail_unknown(call, "scope", key);
		if (!ok)
			return;
	}
	if (!set) {
		show_scope(ctx, call);
	} else if (hvp_change_scope(wish.scope, &queries, &error)) {
		hvp_call_fail(call, "internal", NULL, "out of memory");
	} else {
		hvp_origin_add(&origin, hvp_scope_name(wish.scope));
		service_submit(ctx, call, &wish, &queries);
		hvp_queries_free(&queries);
	}
}
