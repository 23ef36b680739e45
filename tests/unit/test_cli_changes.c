// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * key, event, queue and scope of the real hvpoke, against a real control server and a
 * guest in this process that does what it is asked for: it has keys, events and a scope,
 * and what a command says of them is compared with what they are.
 */
#include <fnmatch.h>

#include "cli_run.h"
#include "service_fixture.h"

#define NR_KEYS	  400
#define NR_EVENTS 6

static struct model {
	char key[NR_KEYS][40];
	/* The guest's thread changes them while a command runs. */
	atomic_bool key_on[NR_KEYS], event_on[NR_EVENTS];
	atomic_uint requests, records, toggles;
	atomic_bool endless; /* says that there are more keys than it sends */
	pthread_t thread;
	atomic_bool runs;
} model;

static const char *const events[NR_EVENTS] = {"sched:sched_switch",    "sched:sched_waking",
					      "irq:irq_handler_entry", "irq:softirq_entry",
					      "timer:timer_start",     "other:sched_switch"};

static void guest_list_keys(const struct hvpoke_query *query, struct hvpoke_complete *answer)
{
	const char *glob = (const char *)query + query->text;
	uint32_t skip = query->first_line;

	for (int i = 0; i < NR_KEYS; i++) {
		if (fnmatch(glob, model.key[i], 0) || (skip && skip--))
			continue;
		if (answer->more || !fake_add_key(answer, model.key[i], model.key_on[i], i))
			answer->more++;
	}
	if (model.endless)
		answer->more = 1;
}

static void guest_switch(const char *name, atomic_bool *on, const struct hvpoke_query *query,
			 struct hvpoke_complete *answer)
{
	const char *text = (const char *)query + query->text;
	bool wanted = query->op == '+';

	if (query->kind == HVPOKE_CHANGE_KEY ? strcmp(text, name) : fnmatch(text, name, 0))
		return;
	answer->matched++;
	answer->changed += *on != wanted;
	*on = wanted;
}

/* One record. True if the agent has to register anew. */
static bool guest_change(struct fixture *f, const struct hvpoke_query *query,
			 struct hvpoke_complete *answer)
{
	uint64_t before = answer->matched;

	switch (query->kind) {
	case HVPOKE_CHANGE_DYNDBG: model.toggles++; return false;
	case HVPOKE_CHANGE_SCOPE: f->fake.scope = query->first_line; return true;
	case HVPOKE_CHANGE_KEY:
		for (int i = 0; i < NR_KEYS; i++)
			guest_switch(model.key[i], &model.key_on[i], query, answer);
		if (answer->matched == before)
			answer->error = ENOENT;
		return false;
	default:
		for (int i = 0; i < NR_EVENTS; i++)
			guest_switch(events[i], &model.event_on[i], query, answer);
		return false;
	}
}

static void guest_serve(struct fixture *f, const struct hvpoke_fetch *fetch)
{
	struct hvpoke_complete answer = {.id = fetch->id, .bad_query = HVPOKE_NO_INDEX};
	const uint8_t *at = fetch->data;
	bool hello = false;

	model.requests++;
	for (uint32_t i = 0; i < fetch->nr_queries; i++) {
		const struct hvpoke_query *query = (const void *)at;

		model.records++;
		if (fetch->flags & HVPOKE_REQ_LIST_KEYS)
			guest_list_keys(query, &answer);
		else
			hello |= guest_change(f, query, &answer);
		at += query->size;
	}
	if (hello)
		fake_hello(&f->fake);
	if (!(fetch->flags & (HVPOKE_REQ_LIST_KEYS | HVPOKE_REQ_NATIVE)))
		fake_batch(&f->fake, NULL, 0);
	fake_cmd(&f->fake)->complete = answer;
	fake_ring(&f->fake, HVPOKE_CMD_COMPLETE);
}

static void *guest(void *arg)
{
	struct fixture *f = arg;
	static struct hvpoke_fetch fetch;

	while (atomic_load(&model.runs)) {
		if (fake_ring(&f->fake, HVPOKE_CMD_FETCH) == HVPOKE_OK) {
			fetch = fake_cmd(&f->fake)->fetch;
			guest_serve(f, &fetch);
		} else {
			usleep(1000);
		}
	}
	return NULL;
}

static int setup(void **state)
{
	struct fixture *f;

	memset(&model, 0, sizeof(model));
	for (int i = 0; i < NR_KEYS; i++)
		snprintf(model.key[i], sizeof(model.key[i]), "%skey_%03d", i % 2 ? "kvm:" : "", i);
	service_setup_agent(state);
	f = *state;
	setenv("HVPOKE_RUNTIME_DIR", f->server.dir, 1);
	atomic_store(&model.runs, true);
	pthread_create(&model.thread, NULL, guest, f);
	return 0;
}

static void stop_guest(void)
{
	if (atomic_exchange(&model.runs, false))
		pthread_join(model.thread, NULL);
}

static int teardown(void **state)
{
	stop_guest();
	return service_teardown(state);
}

#define RUN(...)                                                         \
	({                                                               \
		const char *argv[] = {hvpoke_path(), __VA_ARGS__, NULL}; \
		struct run run_;                                         \
                                                                         \
		run_with(&run_, argv, -1);                               \
		run_;                                                    \
	})

static void lists_all_pages_of_keys(void **state)
{
	struct json_object *keys;
	struct run run;
	char line[80];

	(void)state;
	model.key_on[7] = true;
	run = RUN("key", "vm", "list");
	expect(&run, 0, "KEY          STATE  SITES\n", "");
	for (int i = 0; i < NR_KEYS; i++) {
		snprintf(line, sizeof(line), "\n%-11s  %-5s  %d\n", model.key[i],
			 i == 7 ? "on" : "off", i);
		if (!strstr(run.out, line))
			fail_msg("no line \"%s\"", line);
	}
	assert_in_range(model.requests, 3, 20); /* it did not fit in one */
	run = RUN("key", "vm", "list", "kvm:key_0*", "--json");
	expect(&run, 0, "{\"name\":\"kvm:key_007\",\"enabled\":true,\"sites\":7}", "");
	keys = parsed(&run);
	assert_int_equal(json_object_array_length(keys), 50);
	json_object_put(keys);
	run = RUN("key", "vm", "list", "nosuch*");
	expect(&run, 0, "", "no key that matches \"nosuch*\"");
	/* Bounded, whatever the guest says. */
	model.endless = true;
	run = RUN("key", "vm", "list", "nosuch*");
	expect(&run, 1, "", "says that there are more");
}

static void switches_a_key(void **state)
{
	struct json_object *object;
	struct run run;

	(void)state;
	run = RUN("key", "vm", "on", "key_004");
	expect(&run, 0, "matched   1\nchanged   1\n", "");
	expect(&run, 0, "pauses    1 (", "");
	assert_true(model.key_on[4]);
	run = RUN("key", "--native", "vm", "off", "key_004", "--json");
	expect(&run, 0, "\"via\":\"native\"", "");
	assert_false(model.key_on[4]);
	run = RUN("key", "vm", "on", "kvm:key_005");
	expect(&run, 0, "changed   1\n", "");
	run = RUN("key", "vm", "on", "key_005", "--json");
	expect(&run, 1, "", "the guest refused the request: No such file");
	object = parsed(&run);
	assert_string_equal(error_code(object), "guest-failed");
	json_object_put(object);
	/* Before anything is asked of a VM, also of one that is not there. */
	run = RUN("key", "nosuch", "on", "key*");
	expect(&run, 2, "", "switched by its whole name");
	run = RUN("key", "nosuch", "list", "a b");
	expect(&run, 2, "", "cannot stand in a glob of keys");
	run = RUN("key", "nosuch", "on", "a");
	expect(&run, 3, "", "there is no VM \"nosuch\"");
}

static void switches_events(void **state)
{
	struct run run;

	(void)state;
	run = RUN("event", "vm", "on", "sched");
	expect(&run, 0, "matched   2\nchanged   2\n", "");
	assert_true(model.event_on[0] && model.event_on[1] && !model.event_on[5]);
	run = RUN("event", "vm", "on", "*:sched_switch");
	expect(&run, 0, "matched   2\nchanged   1\n", "");
	run = RUN("event", "vm", "off", "*:*");
	expect(&run, 0, "matched   6\nchanged   3\n", "");
	run = RUN("event", "vm", "on", "sched_switch");
	expect(&run, 0, "matched   0\n", "any system is \"*:sched_switch\"");
	run = RUN("event", "vm", "on", "sched:nosuch");
	expect(&run, 0, "matched   0\n", "no event that matches \"sched:nosuch\"");
	run = RUN("event", "nosuch", "on", "a b");
	expect(&run, 2, "", "cannot stand in a glob of events");
}

static void shows_and_sets_the_scope(void **state)
{
	struct fixture *f = *state;
	struct json_object *object;
	struct run run;

	run = RUN("scope", "vm");
	expect(&run, 0, "scope  dyndbg\n", "");
	run = RUN("scope", "vm", "all");
	expect(&run, 0, "scope     all\n", "");
	run = RUN("info", "vm");
	expect(&run, 0, "agent scope           all\n", "");
	run = RUN("list");
	expect(&run, 0, "AGENT  SCOPE  KERNEL\n", "");
	expect(&run, 0, "1.0    all    6.1.0-test\n", "");
	run = RUN("scope", "vm", "static_keys", "--json");
	expect(&run, 0, "\"scope\":\"static_keys\"", "");
	object = parsed(&run);
	json_object_put(object);
	run = RUN("scope", f->server.path, "--json");
	expect(&run, 0, "{\"scope\":\"static_keys\"}\n", "");
	run = RUN("scope", "nosuch", "everything");
	expect(&run, 2, "", "the scope must be dyndbg, static_keys or all, not everything");
	run = RUN("stats", "vm");
	expect(&run, 0, "\nnoisy         0\n", "");
}

/* Prepared by several runs of the command, made as one request. */
static void queues_changes(void **state)
{
	struct json_object *object;
	unsigned int before;
	struct run run;

	(void)state;
	run = RUN("queue", "vm", "show");
	expect(&run, 0, "", "the queue is empty");
	run = RUN("queue", "vm", "add", "toggle", "module a +p; module b +p");
	expect(&run, 0, "queued      1\n", "");
	run = RUN("queue", "vm", "add", "key", "on", "key_010", "event", "on", "irq");
	expect(&run, 0, "queued      3\nused bytes  ", "");
	run = RUN("queue", "vm", "show");
	expect(&run, 0, "CHANGE  TO  WHAT\n", "");
	expect(&run, 0, "toggle  -   module a +p; module b +p\n", "");
	expect(&run, 0, "key     on  key_010\nevent   on  irq\n", "");
	run = RUN("queue", "vm", "show", "--json");
	object = parsed(&run);
	assert_int_equal(json_object_array_length(json_object_object_get(object, "changes")), 3);
	json_object_put(object);
	assert_int_equal(model.requests, 0);
	run = RUN("queue", "vm", "commit");
	expect(&run, 0, "matched   3\nchanged   3\n", "");
	expect(&run, 0, "pauses    1 (", "");
	assert_int_equal(model.requests, 1);
	assert_int_equal(model.records, 4);
	assert_int_equal(model.toggles, 2);
	assert_true(model.key_on[10] && model.event_on[2] && model.event_on[3]);
	run = RUN("queue", "vm", "commit");
	expect(&run, 1, "", "the queue is empty: add a change first");

	/* In one go, with the options of a request. */
	before = model.requests;
	run = RUN("queue", "vm", "commit", "key", "off", "key_010", "event", "off", "*:*",
		  "--native", "--json", "--timeout", "20");
	expect(&run, 0, "\"via\":\"native\",\"matched\":7,\"changed\":3", "");
	assert_int_equal(model.requests, before + 1);
	run = RUN("queue", "vm", "add", "key", "on", "key_010");
	run = RUN("queue", "vm", "clear");
	expect(&run, 0, "queued      0\n", "");
	run = RUN("queue", "vm", "show");
	expect(&run, 0, "", "the queue is empty");
}

static void a_queue_outlives_what_fails(void **state)
{
	struct fixture *f = *state;
	struct run run;

	run = RUN("queue", "vm", "add", "key", "on", "key_010", "event", "on", "a b");
	expect(&run, 2, "", "cannot stand");
	run = RUN("queue", "vm", "add", "key", "on", "key_010", "toggle", "modul a +p");
	expect(&run, 2, "", "  modul a +p\n  ^~~~~\n");
	run = RUN("queue", "vm", "add", "key", "on", "key_010");
	expect(&run, 0, "queued      1\n", "");
	stop_guest();
	atomic_store(&f->paused, true);
	run = RUN("queue", "vm", "commit");
	expect(&run, 1, "", "the VM is paused");
	run = RUN("queue", "vm", "show");
	expect(&run, 0, "key_010", "");
}

static void explains_its_usage(void **state)
{
	static const char *const wrong[][6] = {
		{"key", "vm"},
		{"key", "vm", "frobnicate"},
		{"key", "vm", "on"},
		{"key", "vm", "on", "a", "b"},
		{"key", "vm", "list", "a", "b"},
		{"key", "vm", "list", "--native"},
		{"event", "vm"},
		{"event", "vm", "on"},
		{"event", "vm", "frobnicate", "a"},
		{"event", "vm", "list", "a"},
		{"queue", "vm"},
		{"queue", "vm", "frobnicate"},
		{"queue", "vm", "add"},
		{"queue", "vm", "add", "frobnicate"},
		{"queue", "vm", "add", "toggle"},
		{"queue", "vm", "add", "key", "on"},
		{"queue", "vm", "add", "scope", "all"},
		{"queue", "vm", "commit", "key"},
		{"queue", "vm", "show", "more"},
		{"queue", "vm", "clear", "--native"},
		{"queue", "vm", "show", "--timeout", "3"},
		{"scope", "vm", "all", "more"},
		{"scope", "vm", "--native"},
		{"scope", "vm", "--timeout", "3"},
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		run = RUN(wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3], wrong[i][4],
			  wrong[i][5]);
		expect(&run, 2, "", "usage: hvpoke ");
	}
	assert_int_equal(model.requests, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_all_pages_of_keys), TEST(switches_a_key),
		TEST(switches_events),	       TEST(shows_and_sets_the_scope),
		TEST(queues_changes),	       TEST(a_queue_outlives_what_fails),
		TEST(explains_its_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
