// SPDX-License-Identifier: GPL-2.0-or-later
#include "control_server.h"

static void *server_loop(void *arg)
{
	struct server *server = arg;
	struct pollfd fds[2] = {{.fd = hvp_control_fd(server->control), .events = POLLIN},
				{.fd = server->stop, .events = POLLIN}};

	while (!fds[1].revents) {
		if (poll(fds, 2, -1) > 0 && fds[0].revents)
			hvp_control_work(server->control);
	}
	return NULL;
}

void server_dir(struct server *server)
{
	memset(server, 0, sizeof(*server));
	strcpy(server->dir, "/tmp/hvpoke-test-XXXXXX");
	assert_non_null(mkdtemp(server->dir));
	snprintf(server->path, sizeof(server->path), "%s/vm.sock", server->dir);
}

void server_run(struct server *server)
{
	server->stop = eventfd(0, 0);
	assert_int_equal(pthread_create(&server->thread, NULL, server_loop, server), 0);
}

void server_start(struct server *server, const struct hvp_method *methods, void *ctx)
{
	server_dir(server);
	assert_int_equal(hvp_control_open(&server->control, server->path, "vm", methods, ctx), 0);
	server_run(server);
}

void server_halt(struct server *server)
{
	eventfd_write(server->stop, 1);
	pthread_join(server->thread, NULL);
	close(server->stop);
}

void server_stop(struct server *server)
{
	server_halt(server);
	hvp_control_close(server->control);
	assert_int_equal(rmdir(server->dir), 0); /* so the socket is gone */
}

int raw_connect(const struct server *server)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = ANSWER_S};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", server->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return fd;
}

char *raw_line(int fd)
{
	size_t len = 0, size = 256;
	char *line = malloc(size);
	ssize_t got;

	for (;;) {
		got = recv(fd, line + len, 1, 0);
		if (got < 0 && errno != ECONNRESET)
			fail_msg("no answer within %d s: %s", ANSWER_S, strerror(errno));
		if (got <= 0) {
			free(line);
			return NULL;
		}
		if (line[len] == '\n')
			break;
		if (++len == size) {
			size *= 2;
			line = realloc(line, size);
		}
	}
	line[len] = '\0';
	return line;
}

struct json_object *raw_message(int fd)
{
	struct json_object *message;
	char *line = raw_line(fd);

	if (!line)
		return NULL;
	message = json_tokener_parse(line);
	if (!message)
		fail_msg("the server sent what is not JSON: %s", line);
	free(line);
	return message;
}

void raw_send(int fd, const void *data, size_t len)
{
	const char *at = data;
	ssize_t sent;

	while (len) {
		sent = send(fd, at, len, MSG_NOSIGNAL);
		assert_true(sent > 0);
		at += sent;
		len -= (size_t)sent;
	}
}

void raw_say(int fd, const char *line)
{
	raw_send(fd, line, strlen(line));
	raw_send(fd, "\n", 1);
}

int raw_open(const struct server *server)
{
	int fd = raw_connect(server);
	struct json_object *greeting = raw_message(fd);

	assert_non_null(greeting);
	assert_non_null(json_object_object_get(greeting, "event"));
	json_object_put(greeting);
	return fd;
}

void expect_reply(int fd, const char *id, const char *code)
{
	struct json_object *message = raw_message(fd);
	struct json_object *error;
	const char *got;

	assert_non_null(message);
	assert_string_equal(
		json_object_to_json_string_ext(json_object_object_get(message, "id"), 0), id);
	error = json_object_object_get(message, "error");
	if (code) {
		if (!error)
			fail_msg("a result where %s was due", code);
		got = json_object_get_string(json_object_object_get(error, "code"));
		assert_string_equal(got, code);
		got = json_object_get_string(json_object_object_get(error, "message"));
		assert_true(got && *got);
	} else {
		if (error)
			fail_msg("an error where a result was due: %s",
				 json_object_to_json_string(error));
		assert_non_null(json_object_object_get(message, "result"));
	}
	json_object_put(message);
}

void expect_end(int fd)
{
	char *line;

	while ((line = raw_line(fd)))
		free(line);
}

void expect_alive(const struct server *server)
{
	struct json_object *greeting = NULL;
	int fd = -1, i;

	/* Clients that are gone hold their places until the server has noticed. */
	for (i = 0; i < ANSWER_S * 100; i++) {
		fd = raw_connect(server);
		greeting = raw_message(fd);
		if (greeting && json_object_object_get(greeting, "event"))
			break;
		json_object_put(greeting);
		close(fd);
		usleep(10000);
	}
	assert_int_not_equal(i, ANSWER_S * 100);
	json_object_put(greeting);
	raw_say(fd, "{\"id\":1,\"method\":\"echo\"}");
	expect_reply(fd, "1", NULL);
	close(fd);
}

void echo(void *ctx, struct hvp_call *call, struct json_object *params)
{
	(void)ctx;
	hvp_call_reply(call, json_object_get(params));
}
