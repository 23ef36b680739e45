// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several changes of any kind as one request: prepared one by one, kept by the server
 * for whoever comes next, and handed to the guest all at once. All of it runs on
 * the server's thread.
 */
#include <errno.h>
#include <string.h>

#include "change.h"
#include "service_internal.h"

static void queue_release(struct hvp_queue *queue)
{
	json_object_put(queue->changes);
	hvp_queries_free(&queue->records);
	queue->changes = NULL;
}

void hvp_service_release(struct hvp_service *service)
{
	queue_release(&service->queue);
}

/* A queue of its own, with the changes of @from. Its records, or those of @from, are good. */
static bool queue_copy(struct hvp_queue *to, const struct hvp_queue *from)
{
	*to = (struct hvp_queue){.changes = json_object_new_array()};
	for (size_t i = 0; from->changes && i < json_object_array_length(from->changes); i++)
		hvp_json_append(to->changes,
				json_object_get(json_object_array_get_idx(from->changes, i)));
	return hvp_json_whole(to->changes) && !hvp_queries_append(&to->records, &from->records);
}

static bool queue_add(struct hvp_queue *queue, struct hvp_call *call, struct json_object *change)
{
	struct hvp_queries queries = {0};
	int err;

	if (!service_take_change(call, change, &queries))
		return false;
	err = hvp_queries_append(&queue->records, &queries);
	if (!err) {
		hvp_json_append(queue->changes, json_object_get(change));
		err = hvp_json_whole(queue->changes) ? 0 : -ENOMEM;
	}
	if (err == -E2BIG)
		hvp_call_fail(
			call, "queue-full", NULL,
			"a request holds %u bytes; %zu changes take %zu, and the next needs %zu: "
			"commit or clear the queue first",
			HVPOKE_REQ_DATA, json_object_array_length(queue->changes),
			queue->records.len, queries.len);
	else if (err)
		hvp_call_fail(call, "internal", NULL, "%s", strerror(-err));
	hvp_queries_free(&queries);
	return !err;
}

static bool queue_add_all(struct hvp_queue *queue, struct hvp_call *call,
			  struct json_object *changes)
{
	if (!json_object_is_type(changes, json_type_array)) {
		hvp_call_fail(call, "bad-params", NULL, "\"changes\" must be an array");
		return false;
	}
	for (size_t i = 0; i < json_object_array_length(changes); i++)
		if (!queue_add(queue, call, json_object_array_get_idx(changes, i)))
			return false;
	return true;
}

static size_t queue_length(const struct hvp_queue *queue)
{
	return queue->changes ? json_object_array_length(queue->changes) : 0;
}

/* @with_changes: list them. */
static void reply_queue(const struct hvp_queue *queue, struct hvp_call *call, bool with_changes)
{
	struct json_object *result = json_object_new_object();

	if (with_changes)
		hvp_json_add(result, "changes",
			     queue->changes ? json_object_get(queue->changes)
					    : json_object_new_array());
	service_add_u64(result, "queued", queue_length(queue));
	service_add_u64(result, "used_bytes", queue->records.len);
	service_add_u64(result, "max_bytes", HVPOKE_REQ_DATA);
	hvp_call_reply(call, result);
}

void hvp_service_queue_show(void *ctx, struct hvp_call *call, struct json_object *params)
{
	const struct hvp_service *service = ctx;

	if (service_no_params(call, "queue-show", params))
		reply_queue(&service->queue, call, true);
}

void hvp_service_queue_clear(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_service *service = ctx;

	if (!service_no_params(call, "queue-clear", params))
		return;
	queue_release(&service->queue);
	reply_queue(&service->queue, call, false);
}

static bool new_copy(struct hvp_queue *to, const struct hvp_service *service, struct hvp_call *call)
{
	if (queue_copy(to, &service->queue))
		return true;
	queue_release(to);
	hvp_call_fail(call, "internal", NULL, "out of memory");
	return false;
}

/* All of the changes or none: a copy is filled, and takes the queue's place. */
void hvp_service_queue_add(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_service *service = ctx;
	struct json_object *changes = NULL;
	struct hvp_queue copy;

	json_object_object_foreach(params, key, value)
	{
		if (strcmp(key, "changes") != 0) {
			service_fail_unknown(call, "queue-add", key);
			return;
		}
		changes = value;
	}
	if (!new_copy(&copy, service, call))
		return;
	if (!queue_add_all(&copy, call, changes)) {
		queue_release(&copy);
		return;
	}
	queue_release(&service->queue);
	service->queue = copy;
	reply_queue(&service->queue, call, false);
}

static bool commit_params(struct hvp_call *call, struct json_object *params,
			  struct service_wish *wish, struct hvp_queue *queue)
{
	json_object_object_foreach(params, key, value)
	{
		bool ok;

		if (!strcmp(key, "changes"))
			ok = queue_add_all(queue, call, value);
		else if (!strcmp(key, "via"))
			ok = service_take_via(call, value, wish);
		else if (!strcmp(key, "timeout_ms"))
			ok = service_take_timeout(call, value, wish);
		else
			ok = service_fail_unknown(call, "queue-commit", key);
		if (!ok)
			return false;
	}
	if (queue_length(queue))
		return true;
	hvp_call_fail(call, "queue-empty", NULL, "the queue is empty: add a change first");
	return false;
}

static void describe_all(struct hvp_origin *origin, struct json_object *changes)
{
	for (size_t i = 0; i < json_object_array_length(changes); i++) {
		hvp_origin_add(origin, i ? "; " : "");
		service_describe(origin, json_object_array_get_idx(changes, i));
	}
}

/* What the guest was given is no longer queued, whatever becomes of it there. */
void hvp_service_queue_commit(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_origin origin = {.method = "queue-commit"};
	struct service_wish wish = {.timeout_ms = SERVICE_TIMEOUT_MS,
				    .origin = &origin,
				    .answer = service_change_answer};
	struct hvp_service *service = ctx;
	struct hvp_queue copy;

	if (!new_copy(&copy, service, call))
		return;
	if (commit_params(call, params, &wish, &copy)) {
		describe_all(&origin, copy.changes);
		if (service_submit(service, call, &wish, &copy.records))
			queue_release(&service->queue);
	}
	queue_release(&copy);
}
