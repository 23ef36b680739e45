// SPDX-License-Identifier: GPL-2.0-or-later
/* The client's end of the control protocol: every wait is bounded. */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "json_build.h"

#define MAX_MESSAGE	 (1024u * 1024) /* bytes of a line from the server */
#define CONNECT_AGAIN_MS 20

struct hvp_client {
	int fd;
	int64_t last_id;
	struct json_object *greeting;
	char *in; /* in[in_at..in_len) is not taken yet */
	size_t in_at, in_len, in_size;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 0 if @fd is ready before @deadline (now_ms()), or -ETIMEDOUT. */
static int wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};
	int64_t left;
	int ready;

	do {
		left = deadline - now_ms();
		ready = poll(&poll_fd, 1, left > 0 ? (int)left : 0);
		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
	} while (ready < 0 || left > 0);
	return -ETIMEDOUT;
}

/* A UNIX socket whose queue is full says EAGAIN, and poll() cannot tell when it has room. */
static int connect_by(int fd, const struct sockaddr_un *addr, int64_t deadline)
{
	while (connect(fd, (const struct sockaddr *)addr, sizeof(*addr))) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (now_ms() >= deadline)
			return -ETIMEDOUT;
		usleep(CONNECT_AGAIN_MS * 1000);
	}
	return 0;
}

/* What the server's first line says: 0 if it is a greeting that we understand. */
static int check_greeting(struct hvp_client *client, struct json_object *message)
{
	struct json_object *event, *data, *error, *code, *protocol;

	if (json_object_object_get_ex(message, "error", &error) &&
	    json_object_object_get_ex(error, "code", &code)) {
		const char *word = json_object_get_string(code);

		if (word && !strcmp(word, "busy"))
			return -EBUSY;
		return word && !strcmp(word, "forbidden") ? -EACCES : -EPROTO;
	}
	if (!json_object_object_get_ex(message, "event", &event) ||
	    !json_object_is_type(event, json_type_string) ||
	    strcmp(json_object_get_string(event), "hello") != 0 ||
	    !json_object_object_get_ex(message, "data", &data) ||
	    !json_object_object_get_ex(data, "protocol", &protocol) ||
	    !json_object_is_type(protocol, json_type_int))
		return -EPROTO;
	if (json_object_get_int64(protocol) != HVP_CONTROL_PROTOCOL)
		return -EPROTONOSUPPORT;
	client->greeting = json_object_get(data);
	return 0;
}

static int greet(struct hvp_client *client, int timeout_ms)
{
	struct json_object *message;
	int err = hvp_client_receive(client, timeout_ms, &message);

	if (err)
		return err;
	err = check_greeting(client, message);
	json_object_put(message);
	return err;
}

int hvp_client_connect(struct hvp_client **out, const char *path, int timeout_ms)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int64_t deadline = now_ms() + timeout_ms;
	struct hvp_client *client;
	int err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = client->fd < 0 ? -errno : connect_by(client->fd, &addr, deadline);
	if (!err) {
		timeout_ms = (int)(deadline - now_ms());
		err = greet(client, timeout_ms > 0 ? timeout_ms : 0);
	}
	if (err)
		hvp_client_close(client);
	else
		*out = client;
	return err;
}

void hvp_client_close(struct hvp_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	json_object_put(client->greeting);
	free(client->in);
	free(client);
}

struct json_object *hvp_client_greeting(struct hvp_client *client)
{
	return client->greeting;
}

static int send_all(struct hvp_client *client, const char *text, size_t len, int timeout_ms)
{
	int64_t deadline = now_ms() + timeout_ms;
	ssize_t sent;
	int err;

	while (len) {
		sent = send(client->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0) {
			text += sent;
			len -= (size_t)sent;
		} else if (errno == EAGAIN) {
			err = wait_for(client->fd, POLLOUT, deadline);
			if (err)
				return err;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			return 0; /* who waits for the answer is told, after what was said last */
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int64_t hvp_client_send(struct hvp_client *client, const char *method, struct json_object *params,
			int timeout_ms)
{
	struct json_object *request = json_object_new_object();
	const char *text;
	char *line = NULL;
	int len = -1, err;

	hvp_json_add(request, "id", json_object_new_int64(++client->last_id));
	hvp_json_add(request, "method", json_object_new_string(method));
	if (params)
		hvp_json_add(request, "params", params);
	text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text && hvp_json_whole(request))
		len = asprintf(&line, "%s\n", text);
	json_object_put(request);
	if (len < 0)
		return -ENOMEM;
	err = send_all(client, line, (size_t)len, timeout_ms);
	free(line);
	return err ? err : client->last_id;
}

static struct json_object *parse(const char *line, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(HVP_CONTROL_MAX_DEPTH);
	struct json_object *message;

	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	message = json_tokener_parse_ex(tokener, line, (int)len + 1);
	json_tokener_free(tokener);
	if (message && !json_object_is_type(message, json_type_object)) {
		json_object_put(message);
		return NULL;
	}
	return message;
}

/* Take a whole line from the input, if there is one. 0, -EAGAIN or -EPROTO. */
static int take_line(struct hvp_client *client, struct json_object **message)
{
	char *line = NULL, *newline = NULL;

	if (client->in_at < client->in_len) {
		line = client->in + client->in_at;
		newline = memchr(line, '\n', client->in_len - client->in_at);
	}
	if (!newline)
		return -EAGAIN;
	*newline = '\0';
	client->in_at += (size_t)(newline - line) + 1;
	*message = parse(line, (size_t)(newline - line));
	return *message ? 0 : -EPROTO;
}

/* Read what there is. 0 or a negative errno, -EAGAIN if nothing. */
static int read_more(struct hvp_client *client)
{
	ssize_t got;

	client->in_len -= client->in_at;
	if (client->in_at)
		memmove(client->in, client->in + client->in_at, client->in_len);
	client->in_at = 0;
	if (client->in_len == client->in_size) {
		size_t bigger = client->in_size ? client->in_size * 2 : 4096;
		char *moved;

		if (bigger > MAX_MESSAGE)
			return -EPROTO;
		moved = realloc(client->in, bigger);
		if (!moved)
			return -ENOMEM;
		client->in = moved;
		client->in_size = bigger;
	}
	got = recv(client->fd, client->in + client->in_len, client->in_size - client->in_len,
		   MSG_DONTWAIT);
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	client->in_len += (size_t)got;
	return got ? 0 : -ECONNRESET;
}

int hvp_client_receive(struct hvp_client *client, int timeout_ms, struct json_object **message)
{
	int64_t deadline = now_ms() + timeout_ms;
	int err;

	for (;;) {
		err = take_line(client, message);
		if (err != -EAGAIN)
			return err;
		err = read_more(client);
		if (err == -EAGAIN)
			err = wait_for(client->fd, POLLIN, deadline);
		if (err)
			return err;
	}
}

/* Is @message the answer to @id? One without an id that is an error answers what we sent last. */
static bool answers(struct json_object *message, int64_t id)
{
	struct json_object *value;

	if (!json_object_object_get_ex(message, "id", &value))
		return false;
	return !value ||
	       (json_object_is_type(value, json_type_int) && json_object_get_int64(value) == id);
}

int hvp_client_answer(struct hvp_client *client, int64_t id, int timeout_ms,
		      struct json_object **result, struct json_object **error)
{
	int64_t deadline = now_ms() + timeout_ms;
	struct json_object *message, *body = NULL;
	int64_t left;
	int err;

	*result = NULL;
	*error = NULL;
	for (;;) {
		left = deadline - now_ms();
		err = hvp_client_receive(client, left > 0 ? (int)left : 0, &message);
		if (err)
			return err;
		if (answers(message, id))
			break;
		json_object_put(message);
		/* A server that goes on and on with events does not answer, either. */
		if (now_ms() >= deadline)
			return -ETIMEDOUT;
	}
	if (json_object_object_get_ex(message, "error", &body) &&
	    json_object_is_type(body, json_type_object))
		*error = json_object_get(body);
	else if (json_object_object_get_ex(message, "result", &body) &&
		 json_object_is_type(body, json_type_object))
		*result = json_object_get(body);
	json_object_put(message);
	return *error || *result ? 0 : -EPROTO;
}

int hvp_client_call(struct hvp_client *client, const char *method, struct json_object *params,
		    int timeout_ms, struct json_object **result, struct json_object **error)
{
	int64_t id = hvp_client_send(client, method, params, timeout_ms);

	if (id < 0)
		return (int)id;
	return hvp_client_answer(client, id, timeout_ms, result, error);
}
