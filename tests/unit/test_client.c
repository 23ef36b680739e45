// SPDX-License-Identifier: GPL-2.0-or-later
/* The client's end: every wait is bounded, and no server can confuse it. */
#include "control_server.h"

#include "client.h"

#include <time.h>

/* A server that says what the test wants, whatever it is asked. */
struct liar {
	char dir[64];
	char path[96];
	int listener;
	const char *says;
	size_t len;
	bool hangs_up; /* at once */
	pthread_t thread;
};

static void *lie(void *arg)
{
	struct liar *liar = arg;
	int fd = accept(liar->listener, NULL, NULL);
	char sink[4096];

	if (fd < 0)
		return NULL;
	/* Not raw_send(): the client may be gone by now. */
	if (send(fd, liar->says, liar->len, MSG_NOSIGNAL) > 0 && !liar->hangs_up)
		while (recv(fd, sink, sizeof(sink), 0) > 0)
			;
	close(fd);
	return NULL;
}

static void liar_listen(struct liar *liar, int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(liar->dir, "/tmp/hvpoke-test-XXXXXX");
	assert_non_null(mkdtemp(liar->dir));
	snprintf(liar->path, sizeof(liar->path), "%s/vm.sock", liar->dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", liar->path);
	liar->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(liar->listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(liar->listener, backlog), 0);
}

static void liar_end(struct liar *liar)
{
	close(liar->listener);
	unlink(liar->path);
	rmdir(liar->dir);
}

static int connect_to_liar(const char *says, size_t len, struct hvp_client **client)
{
	struct liar liar = {.says = says, .len = len};
	int err;

	liar_listen(&liar, 5);
	pthread_create(&liar.thread, NULL, lie, &liar);
	err = hvp_client_connect(client, liar.path, 300);
	if (!err)
		hvp_client_close(*client);
	pthread_join(liar.thread, NULL);
	liar_end(&liar);
	return err;
}

static void judges_the_greeting(void **state)
{
	static const struct {
		const char *says;
		int err;
	} cases[] = {
		{"{\"event\":\"hello\",\"data\":{\"protocol\":1}}\n", 0},
		{"{\"event\":\"hello\",\"data\":{\"protocol\":1,\"new\":{}}}\n{\"rest", 0},
		{"{\"event\":\"hello\",\"data\":{\"protocol\":2}}\n", -EPROTONOSUPPORT},
		{"{\"event\":\"hello\",\"data\":{\"protocol\":\"1\"}}\n", -EPROTO},
		{"{\"event\":\"hello\",\"data\":1}\n", -EPROTO},
		{"{\"event\":\"hello\"}\n", -EPROTO},
		{"{\"event\":3,\"data\":{\"protocol\":1}}\n", -EPROTO},
		{"{\"id\":null,\"error\":{\"code\":\"busy\",\"message\":\"x\"}}\n", -EBUSY},
		{"{\"id\":null,\"error\":{\"code\":\"forbidden\"}}\n", -EACCES},
		{"{\"id\":null,\"error\":{\"code\":null}}\n", -EPROTO},
		{"{\"id\":null,\"error\":[]}\n", -EPROTO},
		{"SSH-2.0-OpenSSH_9.2p1\r\n", -EPROTO},
		{"[]\n", -EPROTO},
		{"\n", -EPROTO},
		{"{\"event\":\"hello\",\"data\":{\"protocol\":1}}", -ETIMEDOUT},
	};
	struct hvp_client *client;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(connect_to_liar(cases[i].says, strlen(cases[i].says), &client),
				 cases[i].err);
}

static void bounds_a_line(void **state)
{
	struct hvp_client *client;
	size_t len = 4u << 20;
	char *much = malloc(len);

	(void)state;
	memset(much, 'x', len);
	assert_int_equal(connect_to_liar(much, len, &client), -EPROTO);
	free(much);
}

static int64_t ms_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
}

static void says_why_there_is_no_connection(void **state)
{
	struct hvp_client *client;
	struct liar liar = {0};
	char name[200];

	(void)state;
	assert_int_equal(hvp_client_connect(&client, "/nonexistent/x.sock", 100), -ENOENT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(hvp_client_connect(&client, name, 100), -ENAMETOOLONG);
	liar_listen(&liar, 5);
	close(liar.listener);
	liar.listener = -1;
	assert_int_equal(hvp_client_connect(&client, liar.path, 100), -ECONNREFUSED);
	liar_end(&liar);
}

/* A stopped process: connections queue up in the kernel until its queue is full. */
static void does_not_hang_on_a_stopped_server(void **state)
{
	struct hvp_client *client;
	struct liar liar = {0};
	struct timespec start;
	int i;

	(void)state;
	liar_listen(&liar, 0);
	/* The first one stays in the queue, which is full then. */
	for (i = 0; i < 4; i++) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		assert_int_equal(hvp_client_connect(&client, liar.path, 200), -ETIMEDOUT);
		assert_in_range(ms_since(&start), 190, 1500);
	}
	liar_end(&liar);
}

static struct hvp_call *silent_call;

static void silent(void *ctx, struct hvp_call *call, struct json_object *params)
{
	(void)ctx;
	(void)params;
	silent_call = call;
}

static const struct hvp_method methods[] = {{"echo", echo}, {"silent", silent}, {NULL, NULL}};

static void calls(void **state)
{
	struct json_object *params = json_object_new_object(), *result, *error;
	struct hvp_client *client;
	struct server server;
	int64_t id;

	(void)state;
	server_start(&server, methods, NULL);
	assert_int_equal(hvp_client_connect(&client, server.path, 1000), 0);
	assert_string_equal(
		json_object_get_string(json_object_object_get(hvp_client_greeting(client), "vm")),
		"vm");
	json_object_object_add(params, "x", json_object_new_string("a\nb\xc3\xa9"));
	assert_int_equal(hvp_client_call(client, "echo", params, 1000, &result, &error), 0);
	assert_null(error);
	assert_string_equal(json_object_get_string(json_object_object_get(result, "x")),
			    "a\nb\xc3\xa9");
	json_object_put(result);
	assert_int_equal(hvp_client_call(client, "nope", NULL, 1000, &result, &error), 0);
	assert_null(result);
	assert_string_equal(json_object_get_string(json_object_object_get(error, "code")),
			    "unknown-method");
	json_object_put(error);
	/* A timeout loses nothing; answers to others and events are passed over. */
	id = hvp_client_send(client, "silent", NULL, 1000);
	assert_true(id > 0);
	assert_int_equal(hvp_client_answer(client, id, 50, &result, &error), -ETIMEDOUT);
	assert_int_equal(hvp_client_call(client, "subscribe", NULL, 1000, &result, &error), 0);
	json_object_put(result);
	hvp_control_event(server.control, "x", json_object_new_object());
	assert_true(hvp_client_send(client, "echo", NULL, 1000) > 0);
	hvp_call_reply(silent_call, json_object_new_object());
	assert_int_equal(hvp_client_answer(client, id, 1000, &result, &error), 0);
	assert_non_null(result);
	json_object_put(result);
	/* The server ends. */
	server_stop(&server);
	id = hvp_client_send(client, "echo", NULL, 1000);
	if (id > 0)
		id = hvp_client_answer(client, id, 1000, &result, &error);
	assert_int_equal(id, -ECONNRESET);
	hvp_client_close(client);
}

/* As one does that turns a client away for another one. */
static void hears_why_the_server_hung_up(void **state)
{
	static const char says[] = "{\"event\":\"hello\",\"data\":{\"protocol\":1}}\n"
				   "{\"id\":null,\"error\":{\"code\":\"busy\"}}\n";
	struct json_object *result, *error;
	struct hvp_client *client;
	struct liar liar = {.says = says, .len = sizeof(says) - 1, .hangs_up = true};

	(void)state;
	liar_listen(&liar, 5);
	pthread_create(&liar.thread, NULL, lie, &liar);
	assert_int_equal(hvp_client_connect(&client, liar.path, 1000), 0);
	pthread_join(liar.thread, NULL);
	assert_int_equal(hvp_client_call(client, "echo", NULL, 1000, &result, &error), 0);
	assert_null(result);
	assert_string_equal(json_object_get_string(json_object_object_get(error, "code")), "busy");
	json_object_put(error);
	assert_int_equal(hvp_client_call(client, "echo", NULL, 1000, &result, &error), -ECONNRESET);
	hvp_client_close(client);
	liar_end(&liar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_the_greeting),
		cmocka_unit_test(bounds_a_line),
		cmocka_unit_test(says_why_there_is_no_connection),
		cmocka_unit_test(does_not_hang_on_a_stopped_server),
		cmocka_unit_test(calls),
		cmocka_unit_test(hears_why_the_server_hung_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
