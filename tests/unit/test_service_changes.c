// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * key, keys, event, scope and the queue, over a real socket. The test's own thread plays
 * the guest.
 */
#include "service_fixture.h"

static void ask(struct fixture *f, const char *method, const char *params)
{
	char line[4096];

	snprintf(line, sizeof(line), "{\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
	raw_say(f->fd, line);
}

/* The @index-th record of what the guest has fetched. */
static const struct hvpoke_query *record(struct fixture *f, unsigned int index)
{
	const struct hvpoke_fetch *fetch = &fake_cmd(&f->fake)->fetch;
	const uint8_t *at = fetch->data;

	assert_true(index < fetch->nr_queries);
	while (index--)
		at += ((const struct hvpoke_query *)at)->size;
	assert_true(at < fetch->data + fetch->data_len);
	return (const struct hvpoke_query *)at;
}

static void expect_record(struct fixture *f, unsigned int index, unsigned int kind, char op,
			  const char *text)
{
	const struct hvpoke_query *query = record(f, index);

	assert_int_equal(query->kind, kind);
	assert_int_equal(query->op, op);
	assert_string_equal((const char *)query + query->text, text);
}

static void expect_result(struct fixture *f, const char *key, const char *json)
{
	struct json_object *result = next(f, "result");

	expect_text(result, key, json);
	json_object_put(result);
}

static void expect_error(struct fixture *f, const char *code, const char *message)
{
	struct json_object *error = next(f, "error");
	const char *got = json_object_get_string(json_object_object_get(error, "message"));

	assert_string_equal(json_object_get_string(json_object_object_get(error, "code")), code);
	if (!strstr(got, message))
		fail_msg("\"%s\" expected in: %s", message, got);
	json_object_put(error);
}

static void switches_keys_and_events(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_complete *complete;
	struct json_object *result;
	uint64_t id;

	ask(f, "key", "{\"name\":\"sched_schedstats\",\"enable\":true}");
	id = guest_fetch(f, 1);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, 0);
	assert_int_equal(fake_cmd(&f->fake)->fetch.nr_queries, 1);
	expect_record(f, 0, HVPOKE_CHANGE_KEY, '+', "sched_schedstats");
	complete = guest_completion(f, id);
	complete->matched = complete->changed = 1;
	complete->sites = 12;
	complete->noisy = 321;
	guest_complete(f);
	result = next(f, "result");
	expect_text(result, "via", "\"hvpoke\"");
	expect_text(result, "matched", "1");
	expect_text(result, "sites", "12");
	expect_text(result, "pauses", "0");
	json_object_put(result);
	ask(f, "stats", "{}");
	expect_result(f, "noisy", "321");

	ask(f, "event",
	    "{\"glob\":\"sched\",\"enable\":false,\"via\":\"native\",\"timeout_ms\":9000}");
	id = guest_fetch(f, 2);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, HVPOKE_REQ_NATIVE);
	expect_record(f, 0, HVPOKE_CHANGE_EVENTS, '-', "sched:*");
	complete = guest_completion(f, id);
	complete->error = ENOENT;
	complete->bad_query = 0;
	guest_complete(f);
	expect_error(f, "guest-failed", "No such file");
	/* The last answer counts, and another agent starts anew. */
	ask(f, "stats", "{}");
	expect_result(f, "noisy", "0");
}

static void shows_and_sets_the_scope(void **state)
{
	struct fixture *f = *state;
	struct json_object *error;
	uint64_t id;

	ask(f, "scope", "{}");
	expect_error(f, "no-agent", "load hvpoke.ko");
	fake_hello(&f->fake);
	ask(f, "scope", "{}");
	expect_result(f, "scope", "\"dyndbg\"");

	ask(f, "scope", "{\"scope\":\"all\"}");
	id = guest_fetch(f, 1);
	assert_int_equal(record(f, 0)->kind, HVPOKE_CHANGE_SCOPE);
	assert_int_equal(record(f, 0)->first_line, HVPOKE_SCOPE_ALL);
	f->fake.scope = HVPOKE_SCOPE_ALL;
	fake_hello(&f->fake);
	guest_completion(f, id);
	guest_complete(f);
	expect_result(f, "scope", "\"all\"");
	ask(f, "info", "{}");
	expect_result(f, "agent",
		      "{\"present\":true,\"kernel\":\"6.1.0-test\",\"version\":\"1.0\","
		      "\"ranges\":1,\"scope\":\"all\"}");

	/* One that says "done" and is registered with what it was is not believed. */
	ask(f, "scope", "{\"scope\":\"static_keys\"}");
	guest_completion(f, guest_fetch(f, 2));
	guest_complete(f);
	error = next(f, "error");
	expect_text(error, "code", "\"bad-answer\"");
	expect_text(json_object_object_get(error, "data"), "scope", "\"all\"");
	json_object_put(error);
	/* One that says why not is. */
	ask(f, "scope", "{\"scope\":\"dyndbg\",\"timeout_ms\":1000}");
	id = guest_fetch(f, 3);
	guest_completion(f, id)->error = EBUSY;
	guest_complete(f);
	expect_error(f, "guest-failed", "busy");
}

static void lists_keys_by_the_page(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_complete *complete;
	struct json_object *result;
	uint64_t id;

	ask(f, "keys", "{}");
	id = guest_fetch(f, 1);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, HVPOKE_REQ_LIST_KEYS);
	expect_record(f, 0, HVPOKE_CHANGE_KEY, 0, "*");
	assert_int_equal(record(f, 0)->first_line, 0);
	complete = guest_completion(f, id);
	fake_add_key(complete, "sched_schedstats", true, 12);
	fake_add_key(complete, "kvm:x", true, 3);
	complete->more = 7;
	guest_complete(f);
	result = next(f, "result");
	expect_text(result, "keys",
		    "[{\"name\":\"sched_schedstats\",\"enabled\":true,\"sites\":12},"
		    "{\"name\":\"kvm:x\",\"enabled\":true,\"sites\":3}]");
	expect_text(result, "more", "7");
	json_object_put(result);

	ask(f, "keys", "{\"glob\":\"kvm:*\",\"skip\":2}");
	id = guest_fetch(f, 2);
	expect_record(f, 0, HVPOKE_CHANGE_KEY, 0, "kvm:*");
	assert_int_equal(record(f, 0)->first_line, 2);
	guest_completion(f, id);
	guest_complete(f);
	expect_result(f, "keys", "[]");
}

static void does_not_trust_a_list_of_keys(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_complete *complete;

	ask(f, "keys", "{}");
	complete = guest_completion(f, guest_fetch(f, 1));
	fake_add_key(complete, "good", true, 1);
	fake_add_key(complete, "ba\x1b[2Jd", true, 1);
	guest_complete(f);
	expect_error(f, "bad-answer", "wrong at byte 16 of 32");
	ask(f, "keys", "{}");
	complete = guest_completion(f, guest_fetch(f, 2));
	complete->data_len = UINT32_MAX;
	guest_complete(f);
	expect_error(f, "bad-answer", "wrong at byte 0 of 4294967295");
	/* There would be no end to asking. */
	ask(f, "keys", "{}");
	guest_completion(f, guest_fetch(f, 3))->more = 1;
	guest_complete(f);
	expect_error(f, "bad-answer", "that there are more");
	ask(f, "keys", "{}");
	complete = guest_completion(f, guest_fetch(f, 4));
	complete->error = EOPNOTSUPP;
	complete->data_len = UINT32_MAX;
	guest_complete(f);
	expect_error(f, "guest-failed", "not supported");
}

#define KEY_ON	  "{\"change\":\"key\",\"name\":\"k1\",\"enable\":true}"
#define EVENT_OFF "{\"change\":\"event\",\"glob\":\"sched\",\"enable\":false}"
#define TOGGLES	  "{\"change\":\"toggle\",\"query\":\"module a +p; module b -p\"}"

/* Changes of every kind, prepared by two clients, are one request, in their order. */
static void commits_a_queue_as_one_request(void **state)
{
	struct fixture *f = *state;
	struct json_object *result;
	int other = raw_open(&f->server);
	uint64_t id;

	ask(f, "queue-show", "{}");
	expect_result(f, "changes", "[]");
	ask(f, "queue-add", "{\"changes\":[" KEY_ON "]}");
	expect_result(f, "queued", "1");
	raw_say(other, "{\"id\":1,\"method\":\"queue-add\",\"params\":{\"changes\":[" TOGGLES
		       "," EVENT_OFF "]}}");
	expect_reply(other, "1", NULL);
	close(other);
	ask(f, "queue-show", "{}");
	result = next(f, "result");
	expect_text(result, "changes", "[" KEY_ON "," TOGGLES "," EVENT_OFF "]");
	expect_text(result, "queued", "3");
	expect_text(result, "max_bytes", "3072");
	json_object_put(result);
	assert_int_equal(atomic_load(&f->fake.notifies), 0);

	ask(f, "queue-commit",
	    "{\"via\":\"native\",\"timeout_ms\":5000,\"changes\":["
	    "{\"change\":\"key\",\"name\":\"k2\",\"enable\":false}]}");
	id = guest_fetch(f, 1);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, HVPOKE_REQ_NATIVE);
	assert_int_equal(fake_cmd(&f->fake)->fetch.nr_queries, 5);
	expect_record(f, 0, HVPOKE_CHANGE_KEY, '+', "k1");
	expect_record(f, 1, HVPOKE_CHANGE_DYNDBG, '+', "module a +p");
	expect_record(f, 2, HVPOKE_CHANGE_DYNDBG, '-', "module b -p");
	expect_record(f, 3, HVPOKE_CHANGE_EVENTS, '-', "sched:*");
	expect_record(f, 4, HVPOKE_CHANGE_KEY, '-', "k2");
	guest_completion(f, id)->matched = 44;
	guest_complete(f);
	expect_result(f, "matched", "44");
	/* What the guest got is queued no longer. */
	ask(f, "queue-show", "{}");
	expect_result(f, "queued", "0");
	ask(f, "queue-commit", "{}");
	expect_error(f, "queue-empty", "add a change first");
	/* All at once, with nothing queued before. */
	ask(f, "queue-commit", "{\"changes\":[" EVENT_OFF "," KEY_ON "]}");
	id = guest_fetch(f, 2);
	assert_int_equal(fake_cmd(&f->fake)->fetch.nr_queries, 2);
	guest_completion(f, id);
	guest_complete(f);
	expect_result(f, "via", "\"hvpoke\"");
}

/* Until the guest has it, nothing of a queue is lost. */
static void keeps_a_queue_until_it_is_handed_over(void **state)
{
	struct fixture *f = *state;

	ask(f, "queue-add", "{\"changes\":[" KEY_ON "]}");
	expect_result(f, "queued", "1");
	ask(f, "queue-commit", "{\"changes\":[" EVENT_OFF "]}");
	expect_error(f, "no-agent", "load hvpoke.ko");
	fake_hello(&f->fake);
	atomic_store(&f->paused, true);
	ask(f, "queue-commit", "{}");
	expect_error(f, "paused", "resume it first");
	atomic_store(&f->paused, false);
	ask(f, "queue-commit", "{\"via\":\"\"}");
	expect_error(f, "bad-params", "via");
	/* The change that came with a commit that failed is not queued. */
	ask(f, "queue-show", "{}");
	expect_result(f, "changes", "[" KEY_ON "]");
	hvp_guest_reset(f->fake.guest);
	ask(f, "queue-show", "{}");
	expect_result(f, "queued", "1");
	ask(f, "queue-clear", "{}");
	expect_result(f, "queued", "0");
	ask(f, "queue-show", "{}");
	expect_result(f, "used_bytes", "0");
}

/* Each call's changes are queued or none of them is, and all of them fit in one request. */
static void bounds_a_queue(void **state)
{
	struct fixture *f = *state;
	struct json_object *result;
	int i, queued;

	ask(f, "queue-add", "{\"changes\":[" KEY_ON ",{\"change\":\"key\",\"name\":\"\"}]}");
	expect_error(f, "bad-params", "enable");
	ask(f, "queue-add",
	    "{\"changes\":[" KEY_ON ",{\"change\":\"toggle\",\"query\":\"modul a +p\"}]}");
	expect_error(f, "bad-query", "unknown keyword");
	ask(f, "queue-show", "{}");
	expect_result(f, "queued", "0");
	for (i = 0; i < 100; i++) {
		struct json_object *message;

		ask(f, "queue-add", "{\"changes\":[" KEY_ON "," EVENT_OFF "]}");
		message = raw_message(f->fd);
		queued = !json_object_object_get(message, "error");
		json_object_put(message);
		if (!queued)
			break;
	}
	/* A record of 48 bytes with a short name is 56. */
	assert_int_equal(i, HVPOKE_REQ_DATA / (2 * 56));
	ask(f, "queue-show", "{}");
	result = next(f, "result");
	assert_int_equal(json_object_array_length(json_object_object_get(result, "changes")),
			 2 * i);
	json_object_put(result);
	ask(f, "queue-add", "{\"changes\":[" TOGGLES "]}");
	expect_error(f, "queue-full", "commit or clear the queue first");
	ask(f, "queue-commit", "{}");
	guest_completion(f, guest_fetch(f, 1));
	assert_int_equal(i * 2, 54);
	guest_complete(f);
	expect_result(f, "via", "\"hvpoke\"");
}

static void refuses_bad_params(void **state)
{
	static const struct {
		const char *method, *params, *code;
	} bad[] = {
		{"key", "{}", "bad-params"},
		{"key", "{\"name\":\"a\"}", "bad-params"},
		{"key", "{\"enable\":true}", "bad-params"},
		{"key", "{\"name\":\"a\",\"enable\":1}", "bad-params"},
		{"key", "{\"name\":1,\"enable\":true}", "bad-params"},
		{"key", "{\"name\":\"a\\u0000\",\"enable\":true}", "bad-params"},
		{"key", "{\"name\":\"a\",\"enable\":true,\"glob\":\"b\"}", "bad-params"},
		{"key", "{\"name\":\"a\",\"enable\":true,\"change\":\"key\"}", "bad-params"},
		{"key", "{\"name\":\"a*\",\"enable\":true}", "bad-query"},
		{"event", "{\"name\":\"a\",\"enable\":true}", "bad-params"},
		{"event", "{\"glob\":\"a:b:c\",\"enable\":true}", "bad-query"},
		{"event", "{\"glob\":\"\",\"enable\":true}", "bad-query"},
		{"toggle", "{\"query\":\"+p\",\"enable\":true}", "bad-params"},
		{"scope", "{\"scope\":\"everything\"}", "bad-params"},
		{"scope", "{\"scope\":2}", "bad-params"},
		{"scope", "{\"scope\":null}", "bad-params"},
		{"scope", "{\"via\":\"native\"}", "bad-params"},
		{"keys", "{\"glob\":1}", "bad-params"},
		{"keys", "{\"glob\":\"\"}", "bad-query"},
		{"keys", "{\"skip\":-1}", "bad-params"},
		{"keys", "{\"skip\":2147483648}", "bad-params"},
		{"keys", "{\"via\":\"native\"}", "bad-params"},
		{"queue-add", "{}", "bad-params"},
		{"queue-add", "{\"changes\":{}}", "bad-params"},
		{"queue-add", "{\"changes\":[1]}", "bad-params"},
		{"queue-add", "{\"changes\":[null]}", "bad-params"},
		{"queue-add", "{\"changes\":[{}]}", "bad-params"},
		{"queue-add", "{\"changes\":[{\"change\":\"scope\"}]}", "bad-params"},
		{"queue-add", "{\"changes\":[{\"change\":\"toggle\"}]}", "bad-params"},
		{"queue-add",
		 "{\"changes\":[{\"change\":\"toggle\",\"query\":\"+p\",\"via\":\"native\"}]}",
		 "bad-params"},
		{"queue-add", "{\"changes\":[],\"via\":\"native\"}", "bad-params"},
		{"queue-show", "{\"x\":1}", "bad-params"},
		{"queue-clear", "{\"x\":1}", "bad-params"},
		{"queue-commit", "{\"x\":1}", "bad-params"},
		{"queue-commit", "{\"changes\":1}", "bad-params"},
		{"queue-commit", "{\"changes\":[]}", "queue-empty"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ask(f, bad[i].method, bad[i].params);
		expect_reply(f->fd, "1", bad[i].code);
	}
	assert_int_equal(atomic_load(&f->fake.notifies), 0);
}

/* A queue that is never committed is let go of with its server (ASan looks). */
static void closes_with_a_queue(void **state)
{
	struct fixture *f = *state;

	ask(f, "queue-add", "{\"changes\":[" KEY_ON "," TOGGLES "]}");
	expect_result(f, "queued", "2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, service_setup, service_teardown)
#define AGENT_TEST(name) \
	cmocka_unit_test_setup_teardown(name, service_setup_agent, service_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AGENT_TEST(switches_keys_and_events),
		TEST(shows_and_sets_the_scope),
		AGENT_TEST(lists_keys_by_the_page),
		AGENT_TEST(does_not_trust_a_list_of_keys),
		AGENT_TEST(commits_a_queue_as_one_request),
		TEST(keeps_a_queue_until_it_is_handed_over),
		AGENT_TEST(bounds_a_queue),
		AGENT_TEST(refuses_bad_params),
		TEST(closes_with_a_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
