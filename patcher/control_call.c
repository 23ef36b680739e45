// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Answers and events. They come from any thread, are put into words there, and
 * wait in the outbox until the server's thread hands them to the clients.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "clock.h"
#include "control_internal.h"
#include "text.h"

#define NS_PER_MS 1000000ull

struct hvp_call *call_new(struct hvp_control *control, struct client *client, char *id)
{
	struct hvp_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->control = control;
	call->client = client->serial;
	call->peer = client->peer;
	call->id = id;
	call->answer.call = call;
	atomic_fetch_add(&control->refs, 1);
	client->calls++;
	LIST_INSERT_HEAD(&control->calls, call, link);
	return call;
}

void hvp_call_peer(const struct hvp_call *call, uint32_t *uid, int32_t *pid)
{
	*uid = call->peer.uid;
	*pid = call->peer.pid;
}

void call_free(struct hvp_call *call)
{
	control_unref(call->control);
	free(call->answer.line);
	free(call->arg);
	free(call->id);
	free(call);
}

void control_unref(struct hvp_control *control)
{
	if (atomic_fetch_sub(&control->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&control->lock);
	free(control->path);
	free(control->name);
	free(control);
}

static const char *text_of(struct json_object *object, size_t *len)
{
	return json_object_to_json_string_length(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, len);
}

/* {"@head_name":@head,"@body_name":@body} and a newline; takes @body. NULL: out of memory. */
static char *make_line(const char *head_name, const char *head, const char *body_name,
		       struct json_object *body, size_t *len)
{
	const char *text = hvp_json_whole(body) ? text_of(body, len) : NULL;
	char *line = NULL;
	int printed = -1;

	if (text)
		printed = asprintf(&line, "{\"%s\":%s,\"%s\":%s}\n", head_name, head, body_name,
				   text);
	json_object_put(body);
	*len = printed < 0 ? 0 : (size_t)printed;
	return printed < 0 ? NULL : line;
}

static struct json_object *error_object(const char *code, const char *message,
					struct json_object *data)
{
	struct json_object *error = json_object_new_object();

	hvp_json_add(error, "code", json_object_new_string(code));
	hvp_json_add(error, "message", json_object_new_string(message));
	if (data)
		hvp_json_add(error, "data", data);
	return error;
}

char *control_error_line(const char *id, const char *code, const char *message, size_t *len)
{
	return make_line("id", id, "error", error_object(code, message, NULL), len);
}

char *control_event_line(const char *event, struct json_object *data, size_t *len)
{
	char name[64];

	snprintf(name, sizeof(name), "\"%s\"", event);
	return make_line("event", name, "data", data, len);
}

/* Put @message where the server's thread finds it. false: the server is closed. */
static bool post(struct hvp_control *control, struct message *message)
{
	bool closed;

	pthread_mutex_lock(&control->lock);
	closed = control->closed;
	if (!closed) {
		STAILQ_INSERT_TAIL(&control->outbox, message, link);
		if (!message->call)
			control->outbox_events += message->len;
		/* Fails only if 2^64 wake-ups are pending, and one is enough. */
		eventfd_write(control->wake_fd, 1);
	}
	pthread_mutex_unlock(&control->lock);
	return !closed;
}

static char *no_memory_line(const char *id, size_t *len)
{
	char *line;
	int printed = asprintf(&line,
			       "{\"id\":%s,\"error\":{\"code\":\"internal\",\"message\":\"out of "
			       "memory for the answer; the request may have been done\"}}\n",
			       id);

	*len = printed < 0 ? 0 : (size_t)printed;
	return printed < 0 ? NULL : line;
}

static void answer(struct hvp_call *call, const char *kind, struct json_object *body)
{
	struct message *answer = &call->answer;

	answer->line = make_line("id", call->id, kind, body, &answer->len);
	/* Where a large answer cannot be had, a small one may. */
	if (!answer->line)
		answer->line = no_memory_line(call->id, &answer->len);
	if (!post(call->control, &call->answer))
		call_free(call);
}

void hvp_call_reply(struct hvp_call *call, struct json_object *result)
{
	answer(call, "result", result);
}

void hvp_call_fail(struct hvp_call *call, const char *code, struct json_object *data,
		   const char *fmt, ...)
{
	char message[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	hvp_text_clean(message);
	answer(call, "error", error_object(code, message, data));
}

void hvp_call_set_timeout(struct hvp_call *call, unsigned int ms,
			  void (*expired)(struct hvp_call *call, void *arg), void *arg)
{
	call->deadline_ns = hvp_now_ns() + ms * NS_PER_MS;
	call->expired = expired;
	call->arg = arg;
}

void hvp_control_event(struct hvp_control *control, const char *event, struct json_object *data)
{
	struct message *message = calloc(1, sizeof(*message));
	bool posted = false;

	if (!message) {
		json_object_put(data);
		return;
	}
	message->line = control_event_line(event, data, &message->len);
	if (message->line) {
		bool full;

		pthread_mutex_lock(&control->lock);
		full = control->outbox_events + message->len > HVP_CONTROL_MAX_UNSENT;
		pthread_mutex_unlock(&control->lock);
		/* A server that is stuck must not fill the memory with news. */
		posted = !full && post(control, message);
	}
	if (!posted) {
		free(message->line);
		free(message);
	}
}

static void deliver_answer(struct hvp_control *control, struct hvp_call *call)
{
	struct client *client;

	LIST_FOREACH(client, &control->clients, link)
	{
		if (client->serial == call->client) {
			client_push(client, call->answer.line, call->answer.len);
			client->calls--;
			client->heard_ns = hvp_now_ns();
			break;
		}
	}
	LIST_REMOVE(call, link);
	call_free(call);
}

static void deliver_event(struct hvp_control *control, struct message *message)
{
	struct client *client;

	LIST_FOREACH(client, &control->clients, link)
	if (client->subscribed)
		client_push(client, message->line, message->len);
	free(message->line);
	free(message);
}

void control_deliver(struct hvp_control *control)
{
	STAILQ_HEAD(, message) taken = STAILQ_HEAD_INITIALIZER(taken);
	struct message *message;

	pthread_mutex_lock(&control->lock);
	STAILQ_CONCAT(&taken, &control->outbox);
	control->outbox_events = 0;
	pthread_mutex_unlock(&control->lock);
	while ((message = STAILQ_FIRST(&taken))) {
		STAILQ_REMOVE_HEAD(&taken, link);
		if (message->call)
			deliver_answer(control, message->call);
		else
			deliver_event(control, message);
	}
}

uint64_t control_expire(struct hvp_control *control, bool all)
{
	uint64_t now = hvp_now_ns(), next = 0;
	struct hvp_call *call;

	/* An answered call stays in the list until it is delivered, so this is safe. */
	LIST_FOREACH(call, &control->calls, link)
	{
		if (call->deadline_ns && (all || call->deadline_ns <= now)) {
			call->deadline_ns = 0;
			call->expired(call, call->arg);
		}
		if (call->deadline_ns && (!next || call->deadline_ns < next))
			next = call->deadline_ns;
	}
	return next;
}
