// SPDX-License-Identifier: GPL-2.0-or-later
#include "qmp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "fault.h"
#include "json_build.h"

#define READ_SIZE 16384
#define MAX_DEPTH 32

void qmp_close(struct qmp *qmp)
{
	if (qmp->fd >= 0)
		close(qmp->fd);
	free(qmp->in);
	qmp->fd = -1;
	qmp->in = NULL;
	qmp->len = qmp->size = 0;
}

/* Read what there is. 0, -EAGAIN if there is nothing, -ECONNRESET, -EPROTO, -ENOMEM. */
static int fill(struct qmp *qmp)
{
	ssize_t got;
	char *in;

	if (qmp->len >= QMP_MAX_LINE)
		return -EPROTO;
	if (qmp->size - qmp->len < READ_SIZE) {
		in = realloc(qmp->in, qmp->size * 2 + READ_SIZE);
		if (!in)
			return -ENOMEM;
		qmp->in = in;
		qmp->size = qmp->size * 2 + READ_SIZE;
	}
	got = recv(qmp->fd, qmp->in + qmp->len, qmp->size - qmp->len, MSG_DONTWAIT);
	if (got > 0) {
		qmp->len += got;
		return 0;
	}
	if (!got)
		return -ECONNRESET;
	return errno == EINTR || errno == EAGAIN ? -EAGAIN : -ECONNRESET;
}

/* The next whole line as an object. 0, -EAGAIN if there is none yet, -EPROTO or -ENOMEM. */
static int next_message(struct qmp *qmp, struct json_object **object)
{
	char *end = qmp->len ? memchr(qmp->in, '\n', qmp->len) : NULL;
	struct json_tokener *tokener;
	size_t used;

	if (!end)
		return -EAGAIN;
	tokener = json_tokener_new_ex(MAX_DEPTH);
	if (!tokener)
		return -ENOMEM;
	used = end - qmp->in + 1;
	*object = json_tokener_parse_ex(tokener, qmp->in, (int)used);
	json_tokener_free(tokener);
	qmp->len -= used;
	memmove(qmp->in, end + 1, qmp->len);
	if (json_object_is_type(*object, json_type_object))
		return 0;
	json_object_put(*object);
	*object = NULL;
	return -EPROTO;
}

static bool take_event(struct qmp *qmp, struct json_object *object)
{
	struct json_object *event = json_object_object_get(object, "event");

	if (!json_object_is_type(event, json_type_string))
		return false;
	if (qmp->on_event)
		qmp->on_event(qmp->ctx, json_object_get_string(event),
			      json_object_object_get(object, "data"));
	return true;
}

/* The next message that is there and not an event; the caller puts it. Likewise. */
static int next_answer(struct qmp *qmp, struct json_object **object)
{
	int err;

	while (!(err = next_message(qmp, object)) && take_event(qmp, *object)) {
		json_object_put(*object);
		*object = NULL; /* what comes next may be nothing at all */
	}
	return err;
}

/*
 * The next message that is not an event; the caller puts it. One that never stops to send
 * events does not answer in time either.
 */
static int receive(struct qmp *qmp, int64_t deadline, struct json_object **object)
{
	struct pollfd poll_fd = {.fd = qmp->fd, .events = POLLIN};
	int err;

	for (;;) {
		err = next_answer(qmp, object);
		if (err != -EAGAIN)
			return err;
		err = fill(qmp);
		if (err && err != -EAGAIN)
			return err;
		if (!deadline_left(deadline))
			break;
		if (err)
			poll(&poll_fd, 1, deadline_left(deadline));
	}
	/* What has come in the last moment counts. */
	err = next_answer(qmp, object);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

/* QEMU reads as it likes: with a full buffer the rest waits, up to the deadline. */
static int send_all(struct qmp *qmp, const char *text, int64_t deadline)
{
	struct pollfd poll_fd = {.fd = qmp->fd, .events = POLLOUT};
	size_t len = strlen(text), sent = 0;
	ssize_t now;

	while (sent < len) {
		now = send(qmp->fd, text + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (now >= 0) {
			sent += now;
		} else if (errno == EAGAIN) {
			if (!deadline_left(deadline))
				return -ETIMEDOUT;
			poll(&poll_fd, 1, deadline_left(deadline));
		} else if (errno != EINTR) {
			return -ECONNRESET;
		}
	}
	return 0;
}

/* Takes @arguments. */
static int send_command(struct qmp *qmp, const char *command, struct json_object *arguments,
			int64_t deadline)
{
	struct json_object *request = json_object_new_object();
	const char *text;
	char *line = NULL;
	int err = -ENOMEM;

	hvp_json_add(request, "execute", json_object_new_string(command));
	if (arguments)
		hvp_json_add(request, "arguments", arguments);
	hvp_json_add(request, "id", json_object_new_int64(++qmp->last_id));
	text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	if (text && hvp_json_whole(request) && asprintf(&line, "%s\n", text) >= 0) {
		err = send_all(qmp, line, deadline);
		free(line);
	}
	json_object_put(request);
	return err;
}

static int explain(struct message *message, const char *command, int err)
{
	const char *reason = strerrordesc_np(-err);

	if (err == -ETIMEDOUT)
		reason = "no answer in time; its main loop is busy, or the process is stopped";
	else if (err == -ECONNRESET)
		reason = "it closed its monitor";
	else if (err == -EPROTO)
		reason = "what it sends is not QMP";
	return message_set(message, err, "QEMU's monitor, \"%s\": %s", command, reason);
}

static int take_answer(struct json_object *answer, const char *command, struct json_object **result,
		       struct message *message)
{
	struct json_object *value, *why = NULL;

	if (json_object_object_get_ex(answer, "return", &value)) {
		if (result)
			*result = json_object_get(value);
		return 0;
	}
	if (!json_object_object_get_ex(answer, "error", &value))
		return explain(message, command, -EPROTO);
	json_object_object_get_ex(value, "desc", &why);
	return message_set(message, -EREMOTEIO, "QEMU refused \"%s\": %s", command,
			   why ? json_object_get_string(why) : "without a reason");
}

int qmp_call(struct qmp *qmp, const char *command, struct json_object *arguments, int timeout_ms,
	     struct json_object **result, struct message *message)
{
	int64_t deadline = deadline_in(timeout_ms);
	struct json_object *answer, *id;
	bool ours;
	int err;

	if (result)
		*result = NULL;
	if (qmp->fd < 0) {
		json_object_put(arguments);
		return explain(message, command, -ECONNRESET);
	}
	err = send_command(qmp, command, arguments, deadline);
	fault(command);
	while (!err) {
		err = receive(qmp, deadline, &answer);
		if (err)
			break;
		/* Another id: the late answer to a command that was given up. */
		ours = json_object_object_get_ex(answer, "id", &id) &&
		       json_object_get_int64(id) == qmp->last_id;
		if (ours)
			err = take_answer(answer, command, result, message);
		json_object_put(answer);
		if (ours)
			return err;
		if (!deadline_left(deadline))
			err = -ETIMEDOUT;
	}
	return explain(message, command, err);
}

int qmp_post(struct qmp *qmp, const char *command)
{
	return qmp->fd < 0 ? -ECONNRESET : send_command(qmp, command, NULL, deadline_in(0));
}

int qmp_human(struct qmp *qmp, const char *command, char **text, struct message *message)
{
	struct json_object *arguments = json_object_new_object(), *result;
	const char *string;
	int err;

	if (!arguments)
		return explain(message, command, -ENOMEM);
	hvp_json_add(arguments, "command-line", json_object_new_string(command));
	err = qmp_call(qmp, "human-monitor-command", arguments, QMP_TIMEOUT_MS, &result, message);
	if (err)
		return err;
	/* Null is an answer too, and no text. */
	string = json_object_get_string(result);
	*text = string ? strdup(string) : NULL;
	err = *text ? 0 : explain(message, command, string ? -ENOMEM : -EPROTO);
	json_object_put(result);
	return err;
}

int qmp_work(struct qmp *qmp)
{
	struct json_object *object;
	int err, filled;

	/* Once: if there is more, the loop comes back, and has been to others in between. */
	filled = fill(qmp);
	while (!(err = next_answer(qmp, &object)))
		json_object_put(object); /* a late one */
	if (err != -EAGAIN)
		return err;
	return filled == -EAGAIN ? 0 : filled;
}

int qmp_open(struct qmp *qmp, int fd, struct message *message)
{
	struct json_object *greeting = NULL;
	int err;

	qmp->fd = fd;
	qmp->last_id = 0;
	err = receive(qmp, deadline_in(QMP_TIMEOUT_MS), &greeting);
	if (!err && !json_object_object_get(greeting, "QMP"))
		err = -EPROTO;
	json_object_put(greeting);
	if (err)
		explain(message, "greeting", err);
	else
		err = qmp_call(qmp, "qmp_capabilities", NULL, QMP_TIMEOUT_MS, NULL, message);
	if (err)
		qmp_close(qmp);
	return err;
}
