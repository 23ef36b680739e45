// SPDX-License-Identifier: GPL-2.0-or-later
/* The control server takes requests, whatever is sent to it. */
#include "control_server.h"

static const struct hvp_method methods[] = {{"echo", echo}, {NULL, NULL}};

static int setup(void **state)
{
	struct server *server = malloc(sizeof(*server));

	server_start(server, methods, NULL);
	*state = server;
	return 0;
}

static int teardown(void **state)
{
	server_stop(*state);
	free(*state);
	return 0;
}

static void greets(void **state)
{
	int fd = raw_connect(*state);
	struct json_object *hello = raw_message(fd);
	struct json_object *data = json_object_object_get(hello, "data");

	assert_string_equal(json_object_get_string(json_object_object_get(hello, "event")),
			    "hello");
	assert_int_equal(json_object_get_int(json_object_object_get(data, "protocol")), 1);
	assert_string_equal(json_object_get_string(json_object_object_get(data, "vm")), "vm");
	assert_int_equal(json_object_get_int(json_object_object_get(data, "pid")), getpid());
	assert_int_equal(strncmp(json_object_get_string(json_object_object_get(data, "server")),
				 "hvpoke ", 7),
			 0);
	json_object_put(hello);
	close(fd);
}

static void gives_ids_back(void **state)
{
	static const char *const ids[] = {
		"0",
		"-1",
		"9223372036854775807",
		"-9223372036854775807",
		"\"a/b \\\" \xc3\xa9\"",
		"\"\"",
	};
	int fd = raw_open(*state);
	char line[128];
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		char *got;

		snprintf(line, sizeof(line), "{\"method\":\"echo\",\"id\":%s}", ids[i]);
		raw_say(fd, line);
		snprintf(line, sizeof(line), "{\"id\":%s,\"result\":{}}", ids[i]);
		got = raw_line(fd);
		assert_string_equal(got, line);
		free(got);
	}
	close(fd);
}

struct bad {
	const char *text;
	size_t len; /* 0: strlen() */
	const char *id;
	const char *code;
};

#define RAW(text) text, sizeof(text) - 1

static const struct bad bad[] = {
	{"x", 0, "null", "parse-error"},
	{"{", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"echo\"", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"echo\"}}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"echo\"} {\"id\":2,\"method\":\"echo\"}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"echo\",}", 0, "null", "parse-error"},
	{"{'id':1,'method':'echo'}", 0, "null", "parse-error"},
	{"{id:1}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"echo\"/**/}", 0, "null", "parse-error"},
	{"\"\\x41\"", 0, "null", "parse-error"},
	{"\"\\u12\"", 0, "null", "parse-error"},
	{"[1,2", 0, "null", "parse-error"},
	{"tru", 0, "null", "parse-error"},
	{"-", 0, "null", "parse-error"},
	/* NUL bytes, where they could hide the rest of the line */
	{RAW("\0"), "null", "parse-error"},
	{RAW("{\"id\":1,\"method\":\"echo\"}\0{}"), "null", "parse-error"},
	{RAW("{\"id\":1,\"method\":\"ec\0ho\"}"), "null", "parse-error"},
	/* UTF-8: a stray byte, a cut sequence, overlong, a surrogate, past the end of Unicode */
	{"{\"id\":1,\"method\":\"\xff\"}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"\x80\"}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"\xe2\x82\"}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"\xc0\xaf\"}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"\xed\xa0\x80\"}", 0, "null", "parse-error"},
	{"{\"id\":1,\"method\":\"\xf4\x90\x80\x80\"}", 0, "null", "parse-error"},
	/* JSON, but no request */
	{"null", 0, "null", "bad-request"},
	{"1", 0, "null", "bad-request"},
	{"\"info\"", 0, "null", "bad-request"},
	{"[]", 0, "null", "bad-request"},
	{"{}", 0, "null", "bad-request"},
	{"{\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":1}", 0, "1", "bad-request"},
	{"{\"id\":null,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":1.5,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":1e2,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":true,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":{},\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":[1],\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":9223372036854775808,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":99999999999999999999999,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":-99999999999999999999999,\"method\":\"echo\"}", 0, "null", "bad-request"},
	{"{\"id\":2,\"method\":3}", 0, "2", "bad-request"},
	{"{\"id\":2,\"method\":null}", 0, "2", "bad-request"},
	{"{\"method\":[\"echo\"],\"id\":2}", 0, "2", "bad-request"},
	{"{\"id\":2,\"method\":\"echo\\u0000\"}", 0, "2", "bad-request"},
	{"{\"id\":3,\"method\":\"echo\",\"params\":[]}", 0, "3", "bad-request"},
	{"{\"id\":3,\"method\":\"echo\",\"params\":null}", 0, "3", "bad-request"},
	{"{\"id\":3,\"method\":\"echo\",\"params\":\"x\"}", 0, "3", "bad-request"},
	{"{\"id\":4,\"method\":\"echo\",\"extra\":1}", 0, "4", "bad-request"},
	{"{\"id\":4,\"method\":\"echo\",\"jsonrpc\":\"2.0\"}", 0, "4", "bad-request"},
	{"{\"id\":5,\"method\":\"\"}", 0, "5", "unknown-method"},
	{"{\"id\":5,\"method\":\"Echo\"}", 0, "5", "unknown-method"},
	{"{\"id\":5,\"method\":\"echo \"}", 0, "5", "unknown-method"},
	{"{\"id\":5,\"method\":\"%s%n\"}", 0, "5", "unknown-method"},
	{"{\"id\":6,\"method\":\"subscribe\",\"params\":{\"x\":1}}", 0, "6", "bad-params"},
};

/* Each gets its error, and the connection goes on. */
static void refuses_what_is_no_request(void **state)
{
	int fd = raw_open(*state);
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		raw_send(fd, bad[i].text, bad[i].len ? bad[i].len : strlen(bad[i].text));
		raw_send(fd, "\n", 1);
		expect_reply(fd, bad[i].id, bad[i].code);
		raw_say(fd, "{\"id\":\"next\",\"method\":\"echo\"}");
		expect_reply(fd, "\"next\"", NULL);
	}
	close(fd);
}

static void bounds_the_depth(void **state)
{
	int fd = raw_open(*state);
	char line[4096];
	int depth, i;

	/* The request itself and its params are two. */
	for (depth = HVP_CONTROL_MAX_DEPTH - 1; depth <= 1000; depth += 1 + depth / 2) {
		size_t at = (size_t)snprintf(line, sizeof(line),
					     "{\"id\":1,\"method\":\"echo\",\"params\":{\"x\":");
		bool fits = depth + 2 <= HVP_CONTROL_MAX_DEPTH;

		for (i = 0; i < depth; i++)
			line[at++] = '[';
		for (i = 0; i < depth; i++)
			line[at++] = ']';
		memcpy(line + at, "}}", sizeof("}}"));
		raw_say(fd, line);
		expect_reply(fd, fits ? "1" : "null", fits ? NULL : "too-deep");
	}
	raw_say(fd, "{\"id\":1,\"method\":\"echo\",\"params\":{\"x\":[[[[[[[[[[[[[]]]]]]]]]]]]]}}");
	expect_reply(fd, "1", NULL);
	close(fd);
}

/* A request of exactly @len bytes. */
static char *request_of(size_t len)
{
	static const char head[] = "{\"id\":1,\"method\":\"echo\",\"params\":{\"x\":\"";
	static const char tail[] = "\"}}";
	char *line = malloc(len + 1);

	memset(line, 'x', len);
	memcpy(line, head, sizeof(head) - 1);
	memcpy(line + len - strlen(tail), tail, sizeof(tail));
	return line;
}

static void bounds_the_line(void **state)
{
	char *fits = request_of(HVP_CONTROL_MAX_LINE);
	char *one_more = request_of(HVP_CONTROL_MAX_LINE + 1);
	char *much_more = request_of(10u << 20);
	int fd = raw_open(*state);

	raw_say(fd, fits);
	expect_reply(fd, "1", NULL);
	raw_say(fd, one_more);
	expect_reply(fd, "null", "too-large");
	raw_say(fd, fits);
	expect_reply(fd, "1", NULL);
	/* One error for one line, whatever its length; then the rest of it is skipped. */
	raw_say(fd, much_more);
	raw_say(fd, "{\"id\":2,\"method\":\"echo\"}");
	expect_reply(fd, "null", "too-large");
	expect_reply(fd, "2", NULL);
	free(fits);
	free(one_more);
	free(much_more);
	close(fd);
}

static void takes_bytes_one_at_a_time(void **state)
{
	static const char text[] =
		"{\"id\":1,\"method\":\"echo\",\"params\":{\"x\":\"\xc3\xa9\"}}\r\n"
		"\n \t\r\n{\"id\":2,\"method\":\"echo\"}\n";
	int fd = raw_open(*state);
	size_t i;

	for (i = 0; i < sizeof(text) - 1; i++)
		raw_send(fd, text + i, 1);
	expect_reply(fd, "1", NULL);
	expect_reply(fd, "2", NULL);
	close(fd);
}

static void answers_a_truncated_request(void **state)
{
	int fd = raw_open(*state);

	raw_say(fd, "{\"id\":1,\"method\":\"echo\"}");
	raw_send(fd, "{\"id\":2,\"method\":\"ec", 19);
	shutdown(fd, SHUT_WR);
	expect_reply(fd, "1", NULL);
	expect_reply(fd, "null", "parse-error");
	assert_null(raw_line(fd));
	close(fd);
}

#define PIPELINED 5000

static void *send_pipelined(void *arg)
{
	int fd = *(int *)arg, i;
	char line[64];

	for (i = 0; i < PIPELINED; i++) {
		snprintf(line, sizeof(line), "{\"id\":%d,\"method\":\"echo\"}", i);
		raw_say(fd, line);
	}
	return NULL;
}

static void answers_pipelined_requests_in_turn(void **state)
{
	int fd = raw_open(*state), i;
	pthread_t sender;
	char id[16];

	pthread_create(&sender, NULL, send_pipelined, &fd);
	for (i = 0; i < PIPELINED; i++) {
		snprintf(id, sizeof(id), "%d", i);
		expect_reply(fd, id, NULL);
	}
	pthread_join(sender, NULL);
	close(fd);
}

/* A client that asks on and on and never reads is not read from either. */
static void does_not_hoard_for_who_never_reads(void **state)
{
	struct timeval limit = {.tv_usec = 300000};
	char *line = request_of(32 * 1024);
	int fd = raw_open(*state);
	size_t total = 0;
	ssize_t sent;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	line[32 * 1024] = '\n'; /* in place of the NUL */
	do {
		sent = send(fd, line, 32 * 1024 + 1, MSG_NOSIGNAL);
		if (sent > 0)
			total += (size_t)sent;
	} while (sent == 32 * 1024 + 1 && total < 64u << 20);
	/* Socket buffers both ways and the server's own: far below what was offered. */
	assert_true(total < 4u << 20);
	expect_alive(*state);
	free(line);
	close(fd);
}

/* Ends of all sorts; SIGPIPE would end this very process. */
static void survives_hang_ups(void **state)
{
	struct linger now = {.l_onoff = 1};
	int i;

	for (i = 0; i < 300; i++) {
		int fd = raw_connect(*state);

		if (i % 3 == 0)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		if (i % 2)
			raw_say(fd,
				"{\"id\":1,\"method\":\"echo\"}\n{\"id\":2,\"method\":\"echo\"}");
		if (i % 5 == 1)
			raw_send(fd, "{\"id\":", 6);
		if (i % 7 == 1)
			shutdown(fd, SHUT_RD);
		close(fd);
	}
	expect_alive(*state);
}

/* What was asked for before the client hung up is done. */
static atomic_int counted;

static void count(void *ctx, struct hvp_call *call, struct json_object *params)
{
	(void)ctx;
	(void)params;
	atomic_fetch_add(&counted, 1);
	hvp_call_reply(call, json_object_new_object());
}

static void does_what_was_asked_before_the_end(void **state)
{
	static const struct hvp_method counting[] = {{"count", count}, {NULL, NULL}};
	struct server server;
	int fd, i;

	(void)state;
	server_start(&server, counting, NULL);
	/* No more at once than are served. */
	for (i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++) {
		fd = raw_connect(&server);
		raw_say(fd, "{\"id\":1,\"method\":\"count\"}\n{\"id\":2,\"method\":\"count\"}");
		close(fd);
	}
	for (i = 0; i < ANSWER_S * 100 && atomic_load(&counted) < 2 * HVP_CONTROL_MAX_CLIENTS; i++)
		usleep(10000);
	assert_int_equal(atomic_load(&counted), 2 * HVP_CONTROL_MAX_CLIENTS);
	server_stop(&server);
}

/* Good requests with some bytes changed, from a fixed seed: every line gets an answer. */
static void answers_mutated_requests(void **state)
{
	static const char good[] = "{\"id\":1,\"method\":\"echo\",\"params\":{\"a\":[1,-2.5e3,true,"
				   "null,\"\\u00e9\"]}}";
	int fd = raw_open(*state), round, change;
	char line[sizeof(good)];
	unsigned int seed = 1;

	for (round = 0; round < 20000; round++) {
		memcpy(line, good, sizeof(good));
		for (change = rand_r(&seed) % 6; change >= 0; change--) {
			size_t at = (size_t)rand_r(&seed) % (sizeof(good) - 1);
			char byte = (char)rand_r(&seed);

			line[at] = byte == '\n' ? ' ' : byte;
		}
		raw_send(fd, line, sizeof(good) - 1);
		raw_send(fd, "\n", 1);
		json_object_put(raw_message(fd));
	}
	raw_say(fd, "{\"id\":2,\"method\":\"echo\"}");
	expect_reply(fd, "2", NULL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greets),
		cmocka_unit_test(gives_ids_back),
		cmocka_unit_test(refuses_what_is_no_request),
		cmocka_unit_test(bounds_the_depth),
		cmocka_unit_test(bounds_the_line),
		cmocka_unit_test(takes_bytes_one_at_a_time),
		cmocka_unit_test(answers_a_truncated_request),
		cmocka_unit_test(answers_pipelined_requests_in_turn),
		cmocka_unit_test(does_not_hoard_for_who_never_reads),
		cmocka_unit_test(survives_hang_ups),
		cmocka_unit_test(does_what_was_asked_before_the_end),
		cmocka_unit_test(answers_mutated_requests),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
