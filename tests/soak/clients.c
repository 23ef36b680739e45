// SPDX-License-Identifier: GPL-2.0-or-later
#include "clients.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "clock.h"

#define WAIT_MS	 60000
#define DAWDLING 30 /* requests of one client that may be unanswered: 32 */
#define CROWD	 80 /* clients of a server: 64 */

struct json_object *client_call(const char *path, const char *method, struct json_object *params,
				char code[CLIENT_CODE])
{
	struct json_object *result = NULL, *error = NULL;
	struct hvp_client *client;
	int err = hvp_client_connect(&client, path, WAIT_MS);

	snprintf(code, CLIENT_CODE, "gone");
	if (err) {
		json_object_put(params);
		return NULL;
	}
	err = hvp_client_call(client, method, params, WAIT_MS, &result, &error);
	hvp_client_close(client);
	if (err == -ETIMEDOUT)
		fail_msg("%s: no answer to %s within %d ms", path, method, WAIT_MS);
	if (error)
		snprintf(code, CLIENT_CODE, "%s",
			 json_object_get_string(json_object_object_get(error, "code")));
	json_object_put(error);
	return result;
}

void client_do(const char *path, const char *method, struct json_object *params)
{
	char code[CLIENT_CODE];
	struct json_object *result = client_call(path, method, params, code);

	if (!result)
		fail_msg("%s: %s: expected a result, got %s", path, method, code);
	json_object_put(result);
}

static bool has_agent(const char *path)
{
	char code[CLIENT_CODE];
	struct json_object *result = client_call(path, "info", NULL, code), *agent, *present;
	bool has = result && json_object_object_get_ex(result, "agent", &agent) &&
		   json_object_object_get_ex(agent, "present", &present) &&
		   json_object_get_boolean(present);

	json_object_put(result);
	return has;
}

void client_wait_for_agent(const char *path)
{
	uint64_t until = hvp_now_ns() + WAIT_MS * 1000000ull;

	while (!has_agent(path)) {
		if (hvp_now_ns() > until)
			fail_msg("%s: no agent after %d ms", path, WAIT_MS);
		usleep(2000);
	}
}

void client_look(const char *path)
{
	client_do(path, "info", NULL);
	client_do(path, "stats", NULL);
}

static struct json_object *changes(void)
{
	return json_tokener_parse(
		"{\"changes\":[{\"change\":\"toggle\",\"query\":\"module usb* +p\"},"
		"{\"change\":\"key\",\"name\":\"sched_schedstats\",\"enable\":true}]}");
}

void client_queue(const char *path)
{
	client_do(path, "queue-add", changes());
	client_do(path, "queue-show", NULL);
	client_do(path, "queue-clear", NULL);
	client_do(path, "queue-add", changes());
	client_do(path, "queue-commit", NULL);
}

void client_pause(const char *path)
{
	struct json_object *params = json_object_new_object(), *result;
	char code[CLIENT_CODE];

	client_do(path, "pause", NULL);
	json_object_object_add(params, "query", json_object_new_string("+p"));
	result = client_call(path, "toggle", params, code);
	if (result || strcmp(code, "paused") != 0)
		fail_msg("%s: expected \"paused\", got %s", path, code);
	client_do(path, "resume", NULL);
}

static int raw(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail_msg("%s: %s", path, strerror(errno));
	return fd;
}

/* The other side may have hung up. */
static void say(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t done = send(fd, at, len, MSG_NOSIGNAL);

		if (done <= 0)
			return;
		at += done;
		len -= (size_t)done;
	}
}

/* A line, without what is beyond the buffer. False at the connection's end. */
static bool line(int fd, char *text, size_t size)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	size_t len = 0;
	char byte;

	for (;;) {
		if (poll(&readable, 1, WAIT_MS) != 1)
			fail_msg("no line within %d ms", WAIT_MS);
		if (recv(fd, &byte, 1, 0) != 1)
			return false;
		if (byte == '\n')
			break;
		if (len < size - 1)
			text[len++] = byte;
	}
	text[len] = '\0';
	return true;
}

void client_hang_up(const char *path)
{
	static const char request[] =
		"{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}\n";
	int fd = raw(path);

	say(fd, request, sizeof(request) - 1);
	close(fd);
}

unsigned int client_babble(const char *path)
{
	static const struct {
		const char *bytes;
		size_t len;
	} nonsense[] = {
#define LINE(text) {text "\n", sizeof(text)}
		LINE("{"),
		LINE("[[[[[[[[[[[[[[[[[[[[[[[["),
		LINE("\xff\xfe"),
		LINE("{\"id\":1,\"method\":\"\\u0000\"}"),
		LINE("{\"id\":1,\"method\":\"no such method\"}"),
		LINE("{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"modul usb +p\"}}"),
		LINE("{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":7}}"),
		LINE("{\"id\":99999999999999999999999,\"method\":\"info\"}"),
		LINE("{\"id\":1}"),
		LINE("7"),
		LINE("a\0b"),
#undef LINE
	};
	static char much[70000];
	unsigned int nr = sizeof(nonsense) / sizeof(*nonsense);
	char text[1024];
	int fd = raw(path);

	assert_true(line(fd, text, sizeof(text)));
	memset(much, 'x', sizeof(much));
	much[sizeof(much) - 1] = '\n';
	for (unsigned int i = 0; i <= nr; i++) {
		if (i < nr)
			say(fd, nonsense[i].bytes, nonsense[i].len);
		else
			say(fd, much, sizeof(much));
		assert_true(line(fd, text, sizeof(text)));
		if (!strstr(text, "\"error\""))
			fail_msg("%s: expected an error to line %u, got %s", path, i, text);
	}
	say(fd, "{\"id\":2,\"method\":\"info\"}\n", 25);
	assert_true(line(fd, text, sizeof(text)));
	assert_non_null(strstr(text, "\"result\""));
	close(fd);
	return nr + 1;
}

int client_dawdle(const char *path)
{
	char request[64];
	int fd = raw(path);

	for (int i = 0; i < DAWDLING; i++) {
		snprintf(request, sizeof(request), "{\"id\":%d,\"method\":\"stats\"}\n", i);
		say(fd, request, strlen(request));
	}
	return fd;
}

void client_catch_up(int fd)
{
	char text[4096];

	for (int i = 0; i < 1 + DAWDLING; i++)
		if (!line(fd, text, sizeof(text)))
			fail_msg("a slow client got %d of %d lines", i, 1 + DAWDLING);
	close(fd);
}

unsigned int client_crowd(const char *path)
{
	int fds[CROWD];

	for (int i = 0; i < CROWD; i++)
		fds[i] = raw(path);
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
	return CROWD;
}
