// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control server, its methods and the engine behind them, each of whose calls fails once.
 * A client gets an answer, an error, or the end of its connection; the next one is served.
 */
#include "each_call.h"

#include "../unit/service_fixture.h"

/* One request's outcome. */
enum got { RESULT, ERROR, END };

static void *const *fixture_of(struct fixture **f)
{
	return (void *const *)f;
}

static struct fixture *start(void)
{
	struct fixture *f;

	service_setup_agent((void **)fixture_of(&f));
	return f;
}

static void reconnect(struct fixture *f)
{
	char *line = NULL;

	while (!line) {
		close(f->fd);
		f->fd = raw_connect(&f->server);
		line = raw_line(f->fd);
	}
	free(line);
}

/* What came for the request with id 1. Events in between are none of our business. */
static enum got take_answer(struct fixture *f)
{
	struct json_object *message, *id, *error, *code;
	enum got got = END;

	while ((message = raw_message(f->fd))) {
		if (json_object_object_get_ex(message, "id", &id))
			break;
		json_object_put(message);
	}
	if (!message)
		return END;
	got = json_object_object_get_ex(message, "error", &error) ? ERROR : RESULT;
	if (got == ERROR) {
		assert_true(json_object_object_get_ex(error, "code", &code));
		assert_string_equal(json_object_get_string(code), "internal");
	} else {
		assert_int_equal(json_object_get_int(id), 1);
		assert_non_null(json_object_object_get(message, "result"));
	}
	json_object_put(message);
	return got;
}

/* The guest does what it is asked for, if it is. */
static void be_guest(struct fixture *f, unsigned int before)
{
	struct hvpoke_complete *complete;
	struct pollfd ready = {.fd = f->fd, .events = POLLIN};
	uint64_t id;

	while (poll(&ready, 1, 1) == 0 && atomic_load(&f->fake.notifies) == before)
		;
	if (fake_ring(&f->fake, HVPOKE_CMD_FETCH) != HVPOKE_OK)
		return;
	id = fake_cmd(&f->fake)->fetch.id;
	if (!id)
		return;
	complete = guest_completion(f, id);
	complete->sites = 1;
	if (fake_cmd(&f->fake)->fetch.flags & HVPOKE_REQ_LIST_KEYS)
		fake_add_key(complete, "key", true, 1);
	guest_complete(f);
}

static enum got ask(struct fixture *f, const char *request, bool of_guest)
{
	unsigned int before = atomic_load(&f->fake.notifies);
	enum got got;
	ssize_t sent;

	sent = send(f->fd, request, strlen(request), MSG_NOSIGNAL);
	if (sent == (ssize_t)strlen(request) && of_guest)
		be_guest(f, before);
	got = sent < 0 ? END : take_answer(f);
	if (got == END)
		reconnect(f);
	return got;
}

static const struct {
	const char *line;
	bool of_guest;
} requests[] = {
	{"{\"id\":1,\"method\":\"info\"}\n", false},
	{"{\"id\":1,\"method\":\"stats\",\"params\":{}}\n", false},
	{"{\"id\":1,\"method\":\"subscribe\"}\n", false},
	{"{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"module a +p\"}}\n", true},
	{"{\"id\":1,\"method\":\"key\",\"params\":{\"name\":\"a\",\"enable\":true}}\n", true},
	{"{\"id\":1,\"method\":\"event\",\"params\":{\"glob\":\"a\",\"enable\":true}}\n", true},
	{"{\"id\":1,\"method\":\"keys\"}\n", true},
	{"{\"id\":1,\"method\":\"idle\",\"params\":{\"ms\":1}}\n", true},
	{"{\"id\":1,\"method\":\"scope\"}\n", false},
	{"{\"id\":1,\"method\":\"scope\",\"params\":{\"scope\":\"dyndbg\"}}\n", true},
	{"{\"id\":1,\"method\":\"queue-add\",\"params\":{\"changes\":["
	 "{\"change\":\"toggle\",\"query\":\"module a +p\"}]}}\n",
	 false},
	{"{\"id\":1,\"method\":\"queue-show\"}\n", false},
	{"{\"id\":1,\"method\":\"queue-commit\",\"params\":{\"changes\":["
	 "{\"change\":\"key\",\"name\":\"a\",\"enable\":false}]}}\n",
	 true},
	{"{\"id\":1,\"method\":\"queue-clear\"}\n", false},
};
#define NR_REQUESTS (sizeof(requests) / sizeof(*requests))

static unsigned int serves(enum failing_how how, unsigned int nth)
{
	struct fixture *f = start();
	unsigned int failed, wrong = 0;

	failing_begin(how, nth, true);
	for (size_t i = 0; i < NR_REQUESTS; i++)
		wrong += ask(f, requests[i].line, requests[i].of_guest) != RESULT;
	hvp_control_event(f->server.control, "state", json_object_new_object());
	failed = failing_end();
	/* One that fails costs one answer; a signal costs none. */
	assert_true(wrong <= (how == FAILING_ERROR ? failed : 0));
	/* It may have been the event that failed, which ends the connection. */
	reconnect(f);
	for (size_t i = 0; i < NR_REQUESTS; i++)
		assert_int_equal(ask(f, requests[i].line, requests[i].of_guest), RESULT);
	service_teardown((void **)fixture_of(&f));
	return failed;
}

static void serving(void **state)
{
	(void)state;
	each_call("control server, 14 requests", serves);
}

/* What a queue holds is what its last answer said, or more by what was not answered. */
static unsigned int queues(enum failing_how how, unsigned int nth)
{
	static const char add[] = "{\"id\":1,\"method\":\"queue-add\",\"params\":{\"changes\":["
				  "{\"change\":\"toggle\",\"query\":\"module a +p\"},"
				  "{\"change\":\"key\",\"name\":\"a\",\"enable\":true}]}}\n";
	struct fixture *f = start();
	struct json_object *result;
	unsigned int failed;
	size_t queued;
	enum got got;

	assert_int_equal(ask(f, add, false), RESULT);
	failing_begin(how, nth, true);
	got = ask(f, add, false);
	failed = failing_end();
	raw_say(f->fd, "{\"id\":1,\"method\":\"queue-show\"}");
	result = next(f, "result");
	queued = json_object_array_length(json_object_object_get(result, "changes"));
	assert_int_equal(json_object_get_int(json_object_object_get(result, "queued")), queued);
	assert_true(queued == 4 || (queued == 2 && got != RESULT));
	/* Two records of each kind, whole. */
	assert_true(f->service.queue.records.nr == queued);
	json_object_put(result);
	service_teardown((void **)fixture_of(&f));
	return failed;
}

static void queueing(void **state)
{
	(void)state;
	each_call("control server, queue-add", queues);
}

static const struct hvp_method only_echo[] = {{"echo", echo}, {NULL, NULL}};

/* Opened, or an error and nothing left; and it can be opened then. */
static unsigned int open_server(struct server *server, enum failing_how how, unsigned int nth)
{
	unsigned int failed;
	int err;

	failing_begin(how, nth, true);
	err = hvp_control_open(&server->control, server->path, "vm", only_echo, NULL);
	failed = failing_end();
	assert_true(err <= 0);
	if (how != FAILING_ERROR)
		assert_true(!err || err == -EINTR);
	if (err)
		assert_int_equal(
			hvp_control_open(&server->control, server->path, "vm", only_echo, NULL), 0);
	server_run(server);
	expect_alive(server);
	server_stop(server);
	return failed;
}

static unsigned int opens(enum failing_how how, unsigned int nth)
{
	struct server server;

	server_dir(&server);
	return open_server(&server, how, nth);
}

/* In place of one that has died. */
static unsigned int replaces(enum failing_how how, unsigned int nth)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct server server;
	int dead;

	server_dir(&server);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", server.path);
	dead = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(dead, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(dead);
	return open_server(&server, how, nth);
}

static void opening(void **state)
{
	(void)state;
	each_call("control server, open", opens);
	each_call("control server, open in place of a dead one", replaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),
		cmocka_unit_test(queueing),
		cmocka_unit_test(serving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
