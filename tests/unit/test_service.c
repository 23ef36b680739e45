// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * info, stats, toggle and idle, over a real socket. The test's own thread plays
 * the guest: it fetches and completes requests through the doorbell.
 */
#include "service_fixture.h"

static void informs(void **state)
{
	struct fixture *f = *state;
	struct json_object *result;

	raw_say(f->fd, "{\"id\":1,\"method\":\"info\"}");
	result = next(f, "result");
	expect_text(result, "name", "\"vm\"");
	expect_text(result, "protocol", "1");
	expect_text(result, "state", "\"running\"");
	expect_text(result, "vcpus", "2");
	expect_text(result, "agent", "{\"present\":false}");
	assert_int_equal(json_object_get_int(json_object_object_get(result, "pid")), getpid());
	json_object_put(result);

	fake_hello(&f->fake);
	atomic_store(&f->paused, true);
	raw_say(f->fd, "{\"id\":1,\"method\":\"info\"}");
	result = next(f, "result");
	expect_text(result, "state", "\"paused\"");
	expect_text(result, "agent",
		    "{\"present\":true,\"kernel\":\"6.1.0-test\",\"version\":\"1.0\",\"ranges\":1,"
		    "\"scope\":\"dyndbg\"}");
	json_object_put(result);
}

/* What the guest calls itself goes to terminals and into JSON. */
static void cleans_the_guests_strings(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_cmd *cmd = fake_cmd(&f->fake);
	struct json_object *result, *agent;

	memset(cmd, 0, sizeof(*cmd));
	memset(cmd->hello.kernel, 0x1b, sizeof(cmd->hello.kernel)); /* and no NUL */
	memcpy(cmd->hello.agent, "\xff\xc2\x9b\"\n1", 7);
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_HELLO), HVPOKE_OK);
	raw_say(f->fd, "{\"id\":1,\"method\":\"info\"}");
	result = next(f, "result");
	agent = json_object_object_get(result, "agent");
	expect_text(agent, "kernel",
		    "\"????????????????????????????????????????????????????????????????\"");
	expect_text(agent, "version", "\"???\\\"?1\"");
	json_object_put(result);
}

static void counts(void **state)
{
	struct fixture *f = *state;
	struct json_object *result;

	assert_int_equal(fake_batch(&f->fake, NULL, 0), HVPOKE_OK);
	raw_say(f->fd, "{\"id\":1,\"method\":\"stats\"}");
	result = next(f, "result");
	expect_text(result, "batches", "1");
	expect_text(result, "pauses", "1");
	expect_text(result, "requests", "0");
	expect_text(result, "sites", "0");
	expect_text(result, "int3_patch", "0");
	expect_text(result, "noisy", "0");
	expect_text(result, "last_status", "\"done\"");
	assert_true(json_object_is_type(json_object_object_get(result, "pause_p99_us"),
					json_type_double));
	json_object_put(result);
}

static void toggles(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_complete *complete;
	struct json_object *result;
	struct hvpoke_query *query;
	uint64_t id;

	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":"
		       "{\"query\":\"!module virtio* +p; file a.c -p\"}}");
	atomic_store(&f->int3, 100);
	id = guest_fetch(f, 1);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, 0);
	assert_int_equal(fake_cmd(&f->fake)->fetch.nr_queries, 2);
	query = (struct hvpoke_query *)fake_cmd(&f->fake)->fetch.data;
	assert_int_equal(query->negate, HVPOKE_NEG_MODULE);
	assert_string_equal((char *)query + query->module, "virtio*");
	assert_int_equal(fake_batch(&f->fake, NULL, 0), HVPOKE_OK);
	complete = guest_completion(f, id);
	complete->matched = 700;
	complete->changed = 650;
	complete->sites = 643;
	complete->native_sites = 5;
	complete->guest_ns = 1234567;
	complete->ipis = 3;
	complete->own_int3 = 2;
	complete->batches = 1;
	strcpy(complete->message, "some \x07");
	guest_complete(f);
	result = next(f, "result");
	expect_text(result, "via", "\"hvpoke\"");
	expect_text(result, "matched", "700");
	expect_text(result, "changed", "650");
	expect_text(result, "sites", "643");
	expect_text(result, "native_sites", "5");
	expect_text(result, "ipis", "3");
	expect_text(result, "own_int3", "2");
	expect_text(result, "batches", "1");
	expect_text(result, "pauses", "1");
	expect_text(result, "guest_us", "1234.567");
	expect_text(result, "fallback", "null");
	expect_text(result, "message", "\"some ?\"");
	assert_true(json_object_get_double(json_object_object_get(result, "pause_us")) > 0);
	json_object_put(result);
}

/* The native way, INT3 hits during it, and the reason for a fallback. */
static void toggles_natively(void **state)
{
	struct fixture *f = *state;
	struct json_object *result;
	uint64_t id;

	atomic_store(&f->int3, 1000);
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":"
		       "{\"query\":\"+p\",\"via\":\"native\",\"timeout_ms\":60000}}");
	id = guest_fetch(f, 1);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, HVPOKE_REQ_NATIVE);
	atomic_fetch_add(&f->int3, 17);
	guest_completion(f, id)->fallback = HVPOKE_MISMATCH;
	guest_complete(f);
	result = next(f, "result");
	expect_text(result, "via", "\"native\"");
	expect_text(result, "int3", "17");
	expect_text(result, "pauses", "0");
	expect_text(result, "pause_us", "0.000");
	expect_text(result, "fallback", "\"a site's memory does not hold the expected old bytes\"");
	json_object_put(result);
	/* A VMM that cannot count them says so. */
	f->service.int3_hits = NULL;
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	guest_completion(f, guest_fetch(f, 2))->fallback = 0xffffffff;
	guest_complete(f);
	result = next(f, "result");
	expect_text(result, "int3", "null");
	expect_text(result, "fallback", "\"unknown status\"");
	json_object_put(result);
}

static void idles(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_complete *complete;
	uint64_t id;
	char *line;

	raw_say(f->fd, "{\"id\":1,\"method\":\"idle\",\"params\":{\"ms\":250}}");
	id = guest_fetch(f, 1);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, HVPOKE_REQ_COUNT_IDLE);
	assert_int_equal(fake_cmd(&f->fake)->fetch.idle_ms, 250);
	assert_int_equal(fake_cmd(&f->fake)->fetch.nr_queries, 0);
	complete = guest_completion(f, id);
	complete->ipis = 5;
	complete->guest_ns = 250000001;
	guest_complete(f);
	line = raw_line(f->fd);
	assert_string_equal(line, "{\"id\":1,\"result\":{\"ipis\":5,\"guest_us\":250000.001}}");
	free(line);
}

static void passes_the_guests_error_on(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_complete *complete;
	struct json_object *error, *data;

	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	complete = guest_completion(f, guest_fetch(f, 1));
	complete->error = EINVAL;
	complete->bad_query = 0;
	complete->matched = 4;
	guest_complete(f);
	error = next(f, "error");
	expect_text(error, "code", "\"guest-failed\"");
	expect_text(error, "message", "\"the guest refused the request: Invalid argument\"");
	data = json_object_object_get(error, "data");
	expect_text(data, "errno", "22");
	expect_text(data, "bad_query", "0");
	expect_text(data, "matched", "4");
	json_object_put(error);
	/* A guest may call anything an errno. */
	raw_say(f->fd, "{\"id\":1,\"method\":\"idle\",\"params\":{\"ms\":1}}");
	complete = guest_completion(f, guest_fetch(f, 2));
	complete->error = 0xfffffffe;
	guest_complete(f);
	error = next(f, "error");
	expect_text(error, "message", "\"the guest refused the request: unknown error\"");
	data = json_object_object_get(error, "data");
	expect_text(data, "errno", "4294967294");
	assert_null(json_object_object_get(data, "bad_query"));
	json_object_put(error);
}

struct bad {
	const char *request;
	const char *code;
};

static void refuses_bad_params(void **state)
{
	static const struct bad bad[] = {
		{"\"info\",\"params\":{\"x\":1}", "bad-params"},
		{"\"stats\",\"params\":{\"x\":1}", "bad-params"},
		{"\"toggle\"", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":1}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":null}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\\u0000\"}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"via\":\"\"}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"via\":null}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"timeout_ms\":0}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"timeout_ms\":-1}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"timeout_ms\":1.5}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"timeout_ms\":\"1\"}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"timeout_ms\":3600001}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"timeout_ms\":4294967297}",
		 "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"+p\",\"Via\":\"native\"}", "bad-params"},
		{"\"toggle\",\"params\":{\"query\":\"\"}", "bad-query"},
		{"\"toggle\",\"params\":{\"query\":\"!line 3 +p\"}", "bad-query"},
		{"\"idle\"", "bad-params"},
		{"\"idle\",\"params\":{\"ms\":0}", "bad-params"},
		{"\"idle\",\"params\":{\"ms\":600001}", "bad-params"},
		{"\"idle\",\"params\":{\"ms\":true}", "bad-params"},
		{"\"idle\",\"params\":{\"ms\":1,\"query\":\"+p\"}", "bad-params"},
	};
	struct fixture *f = *state;
	char line[256];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "{\"id\":1,\"method\":%s}", bad[i].request);
		raw_say(f->fd, line);
		expect_reply(f->fd, "1", bad[i].code);
	}
	assert_int_equal(atomic_load(&f->fake.notifies), 0);
}

static void names_the_bad_word(void **state)
{
	struct fixture *f = *state;
	struct json_object *error;

	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"modul a +p\"}}");
	error = next(f, "error");
	expect_text(error, "data", "{\"word\":\"modul\",\"column\":1}");
	json_object_put(error);
}

static void says_at_once_that_nobody_can_answer(void **state)
{
	struct fixture *f = *state;

	/* Long timeouts: only an answer that does not wait for the guest comes in time. */
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	expect_reply(f->fd, "1", "no-agent");
	raw_say(f->fd, "{\"id\":2,\"method\":\"idle\",\"params\":{\"ms\":600000}}");
	expect_reply(f->fd, "2", "no-agent");
	fake_hello(&f->fake);
	atomic_store(&f->paused, true);
	raw_say(f->fd, "{\"id\":3,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	expect_reply(f->fd, "3", "paused");
	raw_say(f->fd, "{\"id\":4,\"method\":\"idle\",\"params\":{\"ms\":600000}}");
	expect_reply(f->fd, "4", "paused");
	atomic_store(&f->paused, false);
	f->fake.notify_err = -EIO;
	raw_say(f->fd, "{\"id\":5,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	expect_reply(f->fd, "5", "internal");
}

static void times_out(void **state)
{
	struct fixture *f = *state;
	uint64_t id;

	/* One that was never fetched is taken back ... */
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":"
		       "{\"query\":\"+p\",\"timeout_ms\":50}}");
	expect_reply(f->fd, "1", "timeout");
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_FETCH), HVPOKE_NO_REQUEST);
	/* ... and one that was may be completed, only nobody hears of it. */
	raw_say(f->fd, "{\"id\":2,\"method\":\"toggle\",\"params\":"
		       "{\"query\":\"+p\",\"timeout_ms\":300}}");
	id = guest_fetch(f, 2);
	expect_reply(f->fd, "2", "timeout");
	guest_completion(f, id);
	guest_complete(f);
	raw_say(f->fd, "{\"id\":3,\"method\":\"echo\"}");
	expect_reply(f->fd, "3", NULL);
}

static void tells_of_a_lost_agent(void **state)
{
	struct fixture *f = *state;

	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	raw_say(f->fd, "{\"id\":2,\"method\":\"toggle\",\"params\":{\"query\":\"-p\"}}");
	while (atomic_load(&f->fake.notifies) < 2)
		usleep(1000);
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_FETCH), HVPOKE_OK);
	hvp_guest_reset(f->fake.guest);
	expect_reply(f->fd, "1", "agent-lost");
	expect_reply(f->fd, "2", "agent-lost");
	raw_say(f->fd, "{\"id\":3,\"method\":\"toggle\",\"params\":{\"query\":\"-p\"}}");
	expect_reply(f->fd, "3", "no-agent");
}

static void bounds_what_waits(void **state)
{
	struct fixture *f = *state;
	int fds[3], i;
	char line[128];

	for (i = 0; i < HVP_MAX_REQUESTS + 1; i++) {
		int fd = i % 32 ? fds[i / 32] : (fds[i / 32] = raw_open(&f->server));

		snprintf(line, sizeof(line),
			 "{\"id\":%d,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}", i);
		raw_say(fd, line);
		/* One client's requests are taken in turn; here the turn is between clients. */
		while (i < HVP_MAX_REQUESTS && atomic_load(&f->fake.notifies) <= (unsigned int)i)
			usleep(100);
	}
	expect_reply(fds[2], "64", "busy");
	for (i = 0; i < 3; i++)
		close(fds[i]);
}

/* The client goes, the guest never answers, the server closes: nothing may leak (ASan looks). */
static void closes_with_requests_open(void **state)
{
	struct fixture *f = *state;
	int fd = raw_open(&f->server);

	raw_say(fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	raw_say(f->fd, "{\"id\":2,\"method\":\"idle\",\"params\":{\"ms\":10}}");
	close(fd);
	guest_fetch(f, 3);
	expect_alive(&f->server);
}

/* Requests that time out just when the guest completes them: each gets one answer. */
static void races_the_guest(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 1; i <= 300; i++) {
		struct json_object *message, *error;

		raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":"
			       "{\"query\":\"+p\",\"timeout_ms\":2}}");
		while (atomic_load(&f->fake.notifies) < (unsigned int)i)
			;
		usleep((useconds_t)(i % 40) * 100);
		if (fake_ring(&f->fake, HVPOKE_CMD_FETCH) == HVPOKE_OK) {
			guest_completion(f, fake_cmd(&f->fake)->fetch.id);
			guest_complete(f);
		}
		message = raw_message(f->fd);
		error = json_object_object_get(message, "error");
		if (error)
			expect_text(error, "code", "\"timeout\"");
		else
			assert_non_null(json_object_object_get(message, "result"));
		json_object_put(message);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, service_setup, service_teardown)
#define AGENT_TEST(name) \
	cmocka_unit_test_setup_teardown(name, service_setup_agent, service_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(informs),
		TEST(cleans_the_guests_strings),
		AGENT_TEST(counts),
		AGENT_TEST(toggles),
		AGENT_TEST(toggles_natively),
		AGENT_TEST(idles),
		AGENT_TEST(passes_the_guests_error_on),
		AGENT_TEST(refuses_bad_params),
		AGENT_TEST(names_the_bad_word),
		TEST(says_at_once_that_nobody_can_answer),
		AGENT_TEST(times_out),
		AGENT_TEST(tells_of_a_lost_agent),
		AGENT_TEST(bounds_what_waits),
		AGENT_TEST(closes_with_requests_open),
		AGENT_TEST(races_the_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
