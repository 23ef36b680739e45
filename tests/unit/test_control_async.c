// SPDX-License-Identifier: GPL-2.0-or-later
/* Answers that come later, from other threads, too late, or to nobody; and events. */
#include "control_server.h"

/* Calls that wait for the test to answer them. */
struct held {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct hvp_call *calls[256];
	int nr;
	atomic_int expired;
	bool answer_expired; /* expired() answers; else somebody else will */
};

static void hold(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct held *held = ctx;

	(void)params;
	pthread_mutex_lock(&held->lock);
	held->calls[held->nr++] = call;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

static struct hvp_call *take_held(struct held *held)
{
	struct hvp_call *call;

	pthread_mutex_lock(&held->lock);
	while (!held->nr)
		pthread_cond_wait(&held->changed, &held->lock);
	call = held->calls[--held->nr];
	pthread_mutex_unlock(&held->lock);
	return call;
}

static void *answer_soon(void *arg)
{
	usleep(1000);
	hvp_call_reply(arg, json_object_new_object());
	return NULL;
}

static void later(void *ctx, struct hvp_call *call, struct json_object *params)
{
	pthread_t thread;

	(void)ctx;
	(void)params;
	assert_int_equal(pthread_create(&thread, NULL, answer_soon, call), 0);
	pthread_detach(thread);
}

static void on_expired(struct hvp_call *call, void *arg)
{
	struct held *held = *(struct held **)arg;

	atomic_fetch_add(&held->expired, 1);
	if (held->answer_expired)
		hvp_call_fail(call, "timeout", NULL, "too late");
}

/* Answered by nobody. "ms" is a parameter. */
static void never(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct held **arg = malloc(sizeof(struct held *));

	*arg = ctx;
	hvp_call_set_timeout(
		call, (unsigned int)json_object_get_int(json_object_object_get(params, "ms")),
		on_expired, arg);
}

/* Both: it may expire, and the test answers. */
static void either(void *ctx, struct hvp_call *call, struct json_object *params)
{
	never(ctx, call, params);
	hold(ctx, call, params);
}

static void big(void *ctx, struct hvp_call *call, struct json_object *params)
{
	size_t len = (size_t)json_object_get_int(json_object_object_get(params, "len"));
	char *text = malloc(len);
	struct json_object *result = json_object_new_object();

	(void)ctx;
	memset(text, 'x', len);
	json_object_object_add(result, "text", json_object_new_string_len(text, (int)len));
	free(text);
	hvp_call_reply(call, result);
}

static const struct hvp_method methods[] = {{"echo", echo},   {"hold", hold},	  {"later", later},
					    {"never", never}, {"either", either}, {"big", big},
					    {NULL, NULL}};

struct fixture {
	struct server server;
	struct held held;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pthread_mutex_init(&f->held.lock, NULL);
	pthread_cond_init(&f->held.changed, NULL);
	f->held.answer_expired = true;
	server_start(&f->server, methods, &f->held);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	server_stop(&f->server);
	free(f);
	return 0;
}

static void answers_from_other_threads(void **state)
{
	struct fixture *f = *state;
	int fds[8], client, i, round;
	bool seen[HVP_CONTROL_MAX_CALLS];
	char line[64];

	for (client = 0; client < 8; client++)
		fds[client] = raw_open(&f->server);
	for (round = 0; round < 10; round++) {
		for (client = 0; client < 8; client++) {
			for (i = 0; i < HVP_CONTROL_MAX_CALLS; i++) {
				snprintf(line, sizeof(line), "{\"id\":%d,\"method\":\"later\"}", i);
				raw_say(fds[client], line);
			}
		}
		for (client = 0; client < 8; client++) {
			memset(seen, 0, sizeof(seen));
			for (i = 0; i < HVP_CONTROL_MAX_CALLS; i++) {
				struct json_object *reply = raw_message(fds[client]);
				int id = json_object_get_int(json_object_object_get(reply, "id"));

				assert_non_null(json_object_object_get(reply, "result"));
				assert_in_range(id, 0, HVP_CONTROL_MAX_CALLS - 1);
				assert_false(seen[id]);
				seen[id] = true;
				json_object_put(reply);
			}
		}
	}
	for (client = 0; client < 8; client++)
		close(fds[client]);
}

static void refuses_an_id_that_is_in_use(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server), other = raw_open(&f->server);

	raw_say(fd, "{\"id\":7,\"method\":\"hold\"}");
	raw_say(fd, "{\"id\":7,\"method\":\"echo\"}");
	expect_reply(fd, "null", "bad-request");
	/* Another kind of 7, and another connection's, are other ids. */
	raw_say(fd, "{\"id\":\"7\",\"method\":\"echo\"}");
	expect_reply(fd, "\"7\"", NULL);
	raw_say(other, "{\"id\":7,\"method\":\"echo\"}");
	expect_reply(other, "7", NULL);
	hvp_call_reply(take_held(&f->held), json_object_new_object());
	expect_reply(fd, "7", NULL);
	raw_say(fd, "{\"id\":7,\"method\":\"echo\"}");
	expect_reply(fd, "7", NULL);
	close(fd);
	close(other);
}

static void bounds_requests_in_flight(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server), i;
	char line[64];

	for (i = 0; i <= HVP_CONTROL_MAX_CALLS; i++) {
		snprintf(line, sizeof(line), "{\"id\":%d,\"method\":\"hold\"}", i);
		raw_say(fd, line);
	}
	expect_reply(fd, "32", "busy");
	expect_alive(&f->server);
	for (i = 0; i < HVP_CONTROL_MAX_CALLS; i++)
		hvp_call_fail(take_held(&f->held), "internal", NULL, "%s", "no");
	for (i = 0; i < HVP_CONTROL_MAX_CALLS; i++)
		json_object_put(raw_message(fd));
	raw_say(fd, "{\"id\":1,\"method\":\"echo\"}");
	expect_reply(fd, "1", NULL);
	close(fd);
}

static void drops_the_answer_of_who_hung_up(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server);

	raw_say(fd, "{\"id\":1,\"method\":\"hold\"}");
	raw_say(fd, "{\"id\":2,\"method\":\"never\",\"params\":{\"ms\":20}}");
	close(fd);
	expect_alive(&f->server);
	hvp_call_reply(take_held(&f->held), json_object_new_object());
	while (!atomic_load(&f->held.expired))
		usleep(1000);
	expect_alive(&f->server);
}

static void waits_with_who_closed_one_half(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server);

	raw_say(fd, "{\"id\":1,\"method\":\"hold\"}");
	shutdown(fd, SHUT_WR);
	expect_alive(&f->server);
	hvp_call_reply(take_held(&f->held), json_object_new_object());
	expect_reply(fd, "1", NULL);
	assert_null(raw_line(fd));
	close(fd);
}

static void expires(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server);

	/* The later one is asked for first. */
	raw_say(fd, "{\"id\":1,\"method\":\"never\",\"params\":{\"ms\":200}}");
	raw_say(fd, "{\"id\":2,\"method\":\"never\",\"params\":{\"ms\":50}}");
	raw_say(fd, "{\"id\":3,\"method\":\"either\",\"params\":{\"ms\":100000}}");
	hvp_call_reply(take_held(&f->held), json_object_new_object());
	expect_reply(fd, "3", NULL);
	expect_reply(fd, "2", "timeout");
	expect_reply(fd, "1", "timeout");
	assert_int_equal(atomic_load(&f->held.expired), 2);
	close(fd);
}

/* expired() may leave the answer to the thread that is about to give it. */
static void leaves_an_expired_call_to_its_answer(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server);

	f->held.answer_expired = false;
	raw_say(fd, "{\"id\":1,\"method\":\"either\",\"params\":{\"ms\":1}}");
	while (!atomic_load(&f->held.expired))
		usleep(1000);
	hvp_call_reply(take_held(&f->held), json_object_new_object());
	expect_reply(fd, "1", NULL);
	close(fd);
}

/* Calls that are open when the server closes: expired, answered later, answered meanwhile. */
static void closes_with_calls_open(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct hvp_call *first, *second;
	int fd;

	(void)state;
	pthread_mutex_init(&f->held.lock, NULL);
	pthread_cond_init(&f->held.changed, NULL);
	server_start(&f->server, methods, &f->held);
	fd = raw_open(&f->server);
	raw_say(fd, "{\"id\":1,\"method\":\"hold\"}");
	first = take_held(&f->held);
	raw_say(fd, "{\"id\":2,\"method\":\"either\",\"params\":{\"ms\":100000}}");
	second = take_held(&f->held);
	f->held.answer_expired = true;
	raw_say(fd, "{\"id\":3,\"method\":\"never\",\"params\":{\"ms\":100000}}");
	raw_say(fd, "{\"id\":4,\"method\":\"echo\"}");
	expect_reply(fd, "4", NULL);
	server_halt(&f->server);
	f->held.answer_expired = false;
	hvp_call_fail(second, "internal", NULL, "as the server closes");
	f->held.answer_expired = true;
	/* It must not expire what is answered. */
	atomic_store(&f->held.expired, 0);
	hvp_control_close(f->server.control);
	assert_int_equal(atomic_load(&f->held.expired), 1);
	hvp_call_reply(first, json_object_new_object());
	expect_end(fd);
	close(fd);
	rmdir(f->server.dir);
	free(f);
}

static void *send_events(void *arg)
{
	struct server *server = arg;
	int i;

	for (i = 0; i < 100; i++) {
		struct json_object *data = json_object_new_object();

		json_object_object_add(data, "n", json_object_new_int(i));
		hvp_control_event(server->control, "tick", data);
	}
	return NULL;
}

static void tells_those_that_subscribed(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server), other = raw_open(&f->server), i, next[4] = {0}, n;
	pthread_t threads[4];

	raw_say(fd, "{\"id\":1,\"method\":\"subscribe\"}");
	expect_reply(fd, "1", NULL);
	/* One that closed its half still listens. */
	shutdown(fd, SHUT_WR);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, send_events, &f->server);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 400; i++) {
		struct json_object *event = raw_message(fd);
		int sender;

		assert_string_equal(json_object_get_string(json_object_object_get(event, "event")),
				    "tick");
		n = json_object_get_int(
			json_object_object_get(json_object_object_get(event, "data"), "n"));
		/* Each thread's events are in order: this is the next of some thread. */
		for (sender = 0; sender < 4 && next[sender] != n; sender++)
			;
		assert_in_range(sender, 0, 3);
		next[sender]++;
		json_object_put(event);
	}
	raw_say(other, "{\"id\":1,\"method\":\"echo\"}");
	expect_reply(other, "1", NULL); /* and no event before it */
	close(fd);
	close(other);
}

static void drops_who_does_not_take_events(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server), i;
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	raw_say(fd, "{\"id\":1,\"method\":\"subscribe\"}");
	expect_reply(fd, "1", NULL);
	for (i = 0; i < 5000; i++) {
		struct json_object *data = json_object_new_object();

		json_object_object_add(data, "text", json_object_new_string(text));
		hvp_control_event(f->server.control, "noise", data);
		if (i % 100 == 0)
			expect_alive(&f->server);
	}
	expect_end(fd);
	expect_alive(&f->server);
	close(fd);
}

static void ends_who_gets_more_than_it_can_hold(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server);

	raw_say(fd, "{\"id\":1,\"method\":\"big\",\"params\":{\"len\":900000}}");
	expect_reply(fd, "1", NULL);
	raw_say(fd, "{\"id\":1,\"method\":\"big\",\"params\":{\"len\":2000000}}");
	expect_end(fd);
	expect_alive(&f->server);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_from_other_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_an_id_that_is_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(bounds_requests_in_flight, setup, teardown),
		cmocka_unit_test_setup_teardown(drops_the_answer_of_who_hung_up, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_with_who_closed_one_half, setup, teardown),
		cmocka_unit_test_setup_teardown(expires, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_an_expired_call_to_its_answer, setup,
						teardown),
		cmocka_unit_test(closes_with_calls_open),
		cmocka_unit_test_setup_teardown(tells_those_that_subscribed, setup, teardown),
		cmocka_unit_test_setup_teardown(drops_who_does_not_take_events, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_who_gets_more_than_it_can_hold, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
