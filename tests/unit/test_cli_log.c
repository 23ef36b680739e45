// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log and undo of the real hvpoke, against a real control server with a real log, and a guest in
 * this process that puts back what it is asked to; and against servers that answer nonsense.
 */
#include <dirent.h>

#include "audit.h"
#include "cli_run.h"
#include "json_build.h"
#include "service_fixture.h"

#define RUN(...)                                                         \
	({                                                               \
		const char *argv[] = {hvpoke_path(), __VA_ARGS__, NULL}; \
		struct run run_;                                         \
                                                                         \
		run_with(&run_, argv, -1);                               \
		run_;                                                    \
	})

static struct hvp_audit *audit;
static char log_dir[64];
static struct fixture *f;
static pthread_t thread;
static atomic_bool guest_runs;

/* An agent that undoes what it is asked to, and has nothing else to do. */
static void *guest(void *arg)
{
	struct hvpoke_cmd *cmd = fake_cmd(&f->fake);
	bool undo;
	uint64_t id;

	while (atomic_load(&guest_runs)) {
		if (fake_ring(&f->fake, HVPOKE_CMD_FETCH) != HVPOKE_OK) {
			usleep(1000);
			continue;
		}
		id = cmd->fetch.id;
		undo = cmd->fetch.flags & HVPOKE_REQ_UNDO;
		memset(cmd, 0, sizeof(*cmd));
		if (undo) {
			cmd->batch.flags = HVPOKE_BATCH_UNDO;
			fake_ring(&f->fake, HVPOKE_CMD_BATCH);
		}
		guest_completion(f, id);
		fake_ring(&f->fake, HVPOKE_CMD_COMPLETE);
	}
	return arg;
}

static void start_guest(void)
{
	atomic_store(&guest_runs, true);
	assert_int_equal(pthread_create(&thread, NULL, guest, NULL), 0);
}

static void stop_guest(void)
{
	if (atomic_exchange(&guest_runs, false))
		pthread_join(thread, NULL);
}

static int setup(void **state)
{
	struct hvp_audit_config config = {.dir = log_dir};

	strcpy(log_dir, "/tmp/hvpoke-log-XXXXXX");
	assert_non_null(mkdtemp(log_dir));
	service_setup(state);
	f = *state;
	setenv("HVPOKE_RUNTIME_DIR", f->server.dir, 1);
	assert_int_equal(hvp_audit_open(&audit, &config, "vm"), 0);
	hvp_guest_set_audit(f->fake.guest, audit);
	return 0;
}

static int teardown(void **state)
{
	char path[96];

	stop_guest();
	service_teardown(state);
	hvp_audit_close(audit);
	snprintf(path, sizeof(path), "%s/vm.jsonl", log_dir);
	unlink(path);
	return rmdir(log_dir);
}

/* Records are written by a thread of its own: until @nr are there. */
static void wait_for(size_t nr)
{
	struct json_object *records;
	bool there = false;

	for (int i = 0; i < ANSWER_S * 100 && !there; i++) {
		records = hvp_audit_read(audit, HVP_AUDIT_READ_MAX, 0);
		there = json_object_array_length(records) >= nr;
		json_object_put(records);
		if (!there)
			usleep(10000);
	}
	assert_true(there);
}

/* @nr sites of text that are turned on, by a batch of the guest's own. */
static void apply(uint32_t nr)
{
	struct hvpoke_entry entry[4];

	for (uint32_t i = 0; i < nr; i++) {
		entry[i] = fake_entry(FAKE_TEXT + 0x10 * i, FAKE_NOP5, FAKE_JMP5, 0x100);
		fake_put(&f->fake, &entry[i], entry[i].old_insn);
	}
	fake_applied(&f->fake, entry, nr);
}

static void shows_an_empty_log(void **state)
{
	struct json_object *object;
	struct run run;

	(void)state;
	run = RUN("log", "vm");
	expect(&run, 0, "", "nothing is recorded of this VM yet");
	run = RUN("log", "vm", "--json");
	expect(&run, 0, "", "");
	assert_string_equal(run.out, "");
	assert_string_equal(run.err, "");
	hvp_guest_set_audit(f->fake.guest, NULL);
	run = RUN("log", "vm", "--json");
	expect(&run, 1, "", "its log was switched off");
	object = parsed(&run);
	assert_string_equal(error_code(object), "no-log");
	json_object_put(object);
	run = RUN("log", "nosuch");
	expect(&run, 3, "", "there is no VM \"nosuch\"");
}

/* Each kind of record, in each form that its cells have. */
static void shows_what_was_done(void **state)
{
	const struct hvp_origin client = {
		.uid = 1000, .pid = 4711, .method = "toggle", .what = "module a +p"};
	const struct hvp_origin native = {
		.uid = 0, .pid = 12, .method = "key", .what = "on x", .native = true};
	const struct hvp_batch_result done = {.bad_index = HVPOKE_NO_INDEX,
					      .written = 711,
					      .paused = true,
					      .pause_ns = 158345,
					      .apply_ns = 7001};
	const struct hvp_batch_result refused = {.status = HVPOKE_MISMATCH, .bad_index = 5};
	struct hvp_outcome outcome = {.guest = {.sites = 4}};
	struct json_object *object;
	struct run run;

	(void)state;
	hvp_audit_batch(audit, &client, 711, 0, &done);
	hvp_audit_batch(audit, NULL, 9, 0, &refused);
	hvp_audit_batch(audit, &client, 711, 1, &done);
	outcome.guest.fallback = HVPOKE_RATE;
	hvp_audit_answered(audit, &client, &outcome, false);
	outcome.guest.fallback = 0;
	outcome.guest.error = 22;
	strcpy(outcome.guest.message, "no \033[31mmodule");
	hvp_audit_answered(audit, &native, &outcome, false);
	hvp_audit_unanswered(audit, &client, "lost", NULL);
	wait_for(6);

	run = RUN("log", "vm");
	assert_int_equal(run.code, 0);
	assert_int_equal(strncmp(run.out, "ID  TIME", 8), 0);
	expect(&run, 0, "Z  uid 1000, pid 4711  711    158.3 us  OK    ", "");
	expect(&run, 0, "  batch: toggle module a +p\n", "");
	expect(&run, 0, "Z  guest               9      -         MISMATCH at site 5  ", "");
	expect(&run, 0, "  batch\n", "");
	expect(&run, 0, "  batch, undoes 1\n", "");
	expect(&run, 0, "  done, natively: RATE    toggle module a +p\n", "");
	expect(&run, 0,
	       "  uid 0, pid 12       4      0.0 us    failed: no ?[31mmodule  "
	       "key on x (native)\n",
	       "");
	expect(&run, 0, "  -      -         lost        ", "");

	run = RUN("log", "--count", "2", "--json", "vm");
	object = parsed(&run);
	expect_text(object, "id", "5");
	json_object_put(object);
	expect(&run, 0, "\n{\"id\":6,", "");
	run = RUN("log", "--count", "1", f->server.path);
	expect(&run, 0, "\n6   ", "");
	assert_null(strstr(run.out, "\n5   "));
}

/* So many at once that not each has a record. */
static void tells_of_a_flood(void **state)
{
	const struct hvp_batch_result refused = {.status = HVPOKE_BUSY,
						 .bad_index = HVPOKE_NO_INDEX};
	const struct hvp_audit_config soon = {.dir = log_dir, .sum_ms = 20};
	struct run run;

	(void)state;
	for (unsigned int i = 0; i < HVP_AUDIT_REFUSED + 100; i++)
		hvp_audit_batch(audit, NULL, 3, 0, &refused);
	wait_for(HVP_AUDIT_REFUSED);
	run = RUN("log", "vm");
	expect(&run, 0, "BUSY", "batches more came too fast to be recorded one by one");
	run = RUN("log", "vm", "--json");
	expect(&run, 0, "BUSY", "");
	assert_string_equal(run.err, "");
	/* Their sum, once it is written: at the latest when the log is closed. */
	hvp_guest_set_audit(f->fake.guest, NULL);
	hvp_audit_close(audit);
	assert_int_equal(hvp_audit_open(&audit, &soon, "vm"), 0);
	hvp_guest_set_audit(f->fake.guest, audit);
	run = RUN("log", "vm");
	expect(&run, 0, " more batches\n", "");
	assert_string_equal(run.err, "");
}

/* A server whose answers to "log" are these, one after the other; then it has no log any more. */
static struct server other;
static const char *const *answers;
static char asked[512];

static void answer_log(void *ctx, struct hvp_call *call, struct json_object *params)
{
	size_t used = strlen(asked);

	(void)ctx;
	snprintf(asked + used, sizeof(asked) - used, "%s\n",
		 json_object_to_json_string_ext(params, JSON_C_TO_STRING_PLAIN));
	if (*answers)
		hvp_call_reply(call, json_tokener_parse(*answers++));
	else
		hvp_call_fail(call, "no-log", NULL, "no log any more");
}

static const struct hvp_method other_methods[] = {{"log", answer_log}, {NULL, NULL}};

static int setup_other(void **state)
{
	(void)state;
	*asked = '\0';
	server_start(&other, other_methods, NULL);
	return setenv("HVPOKE_RUNTIME_DIR", other.dir, 1);
}

static int teardown_other(void **state)
{
	(void)state;
	server_stop(&other);
	return 0;
}

#define BATCH(id)                                                                  \
	"{\"id\":" id ",\"time\":\"2026-12-01T07:31:29.123Z\",\"kind\":\"batch\"," \
	"\"by\":\"guest\",\"sites\":2,\"written\":2,\"status\":\"OK\",\"pause_us\":1.5}"

/* New records come as they are made, below the first ones' titles, until there is an end to it. */
static void follows(void **state)
{
	static const char *const come[] = {"{\"records\":[" BATCH("7") "]}", "{\"records\":[]}",
					   "{\"records\":[" BATCH("8") "," BATCH("9") "]}", NULL};
	static const char *const none[] = {"{\"records\":[]}", "{\"records\":[]}", NULL};
	struct run run;

	(void)state;
	answers = come;
	run = RUN("log", "--follow", "--count", "5", "vm");
	expect(&run, 1,
	       "ID  TIME                      BY     SITES  PAUSE   RESULT  WHAT\n"
	       "7   2026-12-01 07:31:29.123Z  guest  2      1.5 us  OK      batch\n"
	       "8  2026-12-01 07:31:29.123Z  guest  2  1.5 us  OK  batch\n"
	       "9  2026-12-01 07:31:29.123Z  guest  2  1.5 us  OK  batch\n",
	       "no log any more");
	assert_string_equal(asked, "{\"count\":5,\"after\":0}\n"
				   "{\"count\":1000,\"after\":7}\n"
				   "{\"count\":1000,\"after\":7}\n"
				   "{\"count\":1000,\"after\":9}\n");
	/* There is nothing yet, but there may be. */
	answers = none;
	run = RUN("log", "--follow", "vm");
	assert_string_equal(run.out, "");
	assert_null(strstr(run.err, "nothing is recorded"));
	answers = come + 2;
	run = RUN("log", "--follow", "--json", "vm");
	expect(&run, 1, BATCH("8") "\n" BATCH("9") "\n{\"error\":", "no log any more");
}

/* Of another version, or not of good will. */
static void survives_any_answer(void **state)
{
	static const char *const answer[] = {
		"{}",
		"{\"records\":{}}",
		"{\"records\":[{},{\"kind\":7,\"id\":\"x\",\"by\":\"\\u001b[2J\"},[],null]}",
		"{\"records\":[" BATCH("1") "],\"lost\":3,\"file\":\"/var/log/vm.jsonl\"}",
		NULL,
	};
	struct json_object *object;
	struct run run;

	(void)state;
	answers = answer;
	run = RUN("log", "vm");
	expect(&run, 1, "", "records were expected, and none came");
	run = RUN("log", "--json", "vm");
	expect(&run, 1, "", "records were expected, and none came");
	object = parsed(&run);
	assert_string_equal(error_code(object), "bad-answer");
	json_object_put(object);
	run = RUN("log", "vm");
	expect(&run, 0, "?[2J", "");
	run = RUN("log", "vm");
	expect(&run, 0, "OK", "3 records could not be written to /var/log/vm.jsonl and are lost");
}

static void undoes(void **state)
{
	struct json_object *object;
	struct run run;

	(void)state;
	fake_hello(&f->fake);
	start_guest();
	apply(3);
	run = RUN("undo", "vm", "1");
	expect(&run, 0, "undone  1\nid      2\nsites   3\npauses  1\n", "");
	assert_int_equal(f->fake.pauses, 2);
	assert_memory_equal(fake_at(&f->fake, FAKE_TEXT + 0x20), "\x0f\x1f\x44\x00\x00", 5);
	/* It does not hold any more what the batch wrote. */
	run = RUN("undo", "vm", "1", "--timeout", "60", "--json");
	expect(&run, 1, "\"site\":0", "no longer holds what the batch wrote");
	object = parsed(&run);
	assert_string_equal(error_code(object), "changed");
	json_object_put(object);
	wait_for(4);
	run = RUN("log", "vm");
	expect(&run, 0, "  batch, undoes 1\n", "");
	expect(&run, 0, "  undo batch 1\n", "");
	run = RUN("undo", "vm", "77");
	expect(&run, 1, "", "77 is none of the last");
	run = RUN("undo", "nosuch", "1");
	expect(&run, 3, "", "there is no VM \"nosuch\"");
	stop_guest();
	run = RUN("undo", "vm", "2", "--timeout", "0.2");
	expect(&run, 4, "", "within 0.200 s");
}

static void explains_its_usage(void **state)
{
	static const char *const wrong[][4] = {
		{"undo"},
		{"undo", "vm"},
		{"undo", "vm", "1", "2"},
		{"undo", "vm", "1", "--native"},
		{"undo", "vm", ""},
		{"undo", "vm", "0"},
		{"undo", "vm", "-1"},
		{"undo", "vm", "+1"},
		{"undo", "vm", " 1"},
		{"undo", "vm", "1x"},
		{"undo", "vm", "x"},
		{"undo", "vm", "9223372036854775808"},
		{"undo", "vm", "99999999999999999999"},
		{"log"},
		{"log", "vm", "1"},
		{"log", "vm", "--timeout", "1"},
		{"log", "vm", "--yes"},
		{"log", "vm", "--socket-dir", "/run"},
		{"log", "vm", "--count"},
		{"log", "vm", "--count", "0"},
		{"log", "vm", "--count", "1001"},
		{"log", "vm", "--count", "-1"},
		{"log", "vm", "--count", "x"},
		{"log", "vm", "--count", "5x"},
		{"info", "vm", "--follow"},
		{"info", "vm", "--count", "1"},
		{"info", "vm", "--timeout=1"},
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		run = RUN(wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3]);
		expect(&run, 2, "", "usage: hvpoke ");
	}
	run = RUN("log", "-h");
	expect(&run, 0, "usage: hvpoke log [--count N] [--follow]", "");
	run = RUN("undo", "-h", "--json");
	expect(&run, 0, "usage: hvpoke undo", "");
	run = RUN("-h");
	expect(&run, 0, "undo", "");
	run = RUN("--help");
	expect(&run, 0, "undo", "");
}

#define TEST(name)	 cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_OTHER(name) cmocka_unit_test_setup_teardown(name, setup_other, teardown_other)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shows_an_empty_log),
		TEST(shows_what_was_done),
		TEST(tells_of_a_flood),
		TEST_OTHER(follows),
		TEST(undoes),
		TEST_OTHER(survives_any_answer),
		TEST(explains_its_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
