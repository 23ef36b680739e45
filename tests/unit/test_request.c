// SPDX-License-Identifier: GPL-2.0-or-later
/* Host requests: submit, fetch, complete, cancel and lose them, in every order. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_backend.h"

static uint8_t data[HVPOKE_REQ_DATA];
static const struct hvp_queries queries = {.nr = 3, .len = 144, .data = data};

/* What a request's owner was told. Static in the tests: freeing the guest tells them, too. */
struct told {
	unsigned int times;
	uint64_t id;
	struct hvp_outcome outcome;
};

static void done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	struct told *told = arg;

	told->times++;
	told->id = id;
	told->outcome = *outcome;
}

static int setup(void **state)
{
	static struct fake fake;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + 1;
	fake_init(&fake, FAKE_RAM);
	fake_hello(&fake);
	*state = &fake;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static int64_t submit(struct fake *fake, struct told *told)
{
	*told = (struct told){0};
	return hvp_guest_submit(fake->guest, HVPOKE_REQ_NATIVE, 0, &queries, done, told);
}

/* FETCH; the id, or 0 if there was none. */
static uint64_t fetch(struct fake *fake)
{
	struct hvpoke_cmd *cmd = fake_cmd(fake);
	enum hvpoke_status status;

	memset(cmd, 0xee, sizeof(*cmd));
	status = fake_ring(fake, HVPOKE_CMD_FETCH);
	if (status == HVPOKE_NO_REQUEST)
		return 0;
	assert_int_equal(status, HVPOKE_OK);
	return cmd->fetch.id;
}

static enum hvpoke_status complete(struct fake *fake, uint64_t id)
{
	struct hvpoke_cmd *cmd = fake_cmd(fake);

	memset(cmd, 0, sizeof(*cmd));
	cmd->complete.id = id;
	cmd->complete.error = 22;
	cmd->complete.bad_query = 1;
	cmd->complete.matched = 645;
	cmd->complete.changed = 643;
	memset(cmd->complete.message, 'm', sizeof(cmd->complete.message));
	cmd->complete.message[1] = '\n';
	return fake_ring(fake, HVPOKE_CMD_COMPLETE);
}

static void the_usual_way(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_JMP5, 1);
	struct hvp_stats stats;
	static struct told told;
	int64_t id;

	assert_int_equal(fake_batch(fake, NULL, 0), HVPOKE_OK); /* not part of the request */
	assert_int_equal(fetch(fake), 0);
	id = submit(fake, &told);
	assert_true(id > 0);
	assert_int_equal(fake->notifies, 1);
	assert_int_equal(fetch(fake), id);
	assert_int_equal(fake_cmd(fake)->fetch.flags, HVPOKE_REQ_NATIVE);
	assert_int_equal(fake_cmd(fake)->fetch.nr_queries, 3);
	assert_int_equal(fake_cmd(fake)->fetch.data_len, 144);
	assert_memory_equal(fake_cmd(fake)->fetch.data, data, 144);
	/* The host's stack does not leak behind it. */
	for (size_t i = 144; i < HVPOKE_REQ_DATA; i++)
		assert_int_equal(fake_cmd(fake)->fetch.data[i], 0);

	fake_put(fake, &entry, entry.old_insn);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_OK);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_MISMATCH);
	assert_int_equal(told.times, 0);
	assert_int_equal(complete(fake, id), HVPOKE_OK);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.id, id);
	assert_false(told.outcome.lost);
	assert_int_equal(told.outcome.guest.error, 22);
	assert_int_equal(told.outcome.guest.matched, 645);
	assert_int_equal(told.outcome.guest.changed, 643);
	assert_int_equal(told.outcome.guest.message[1], '?');
	assert_int_equal(strlen(told.outcome.guest.message), 127);
	assert_int_equal(told.outcome.pauses, 2);
	hvp_guest_stats(fake->guest, &stats);
	assert_int_equal(stats.requests, 1);
	assert_true(told.outcome.pause_ns > 0 && told.outcome.pause_ns < stats.total_pause_ns);
	assert_true(told.outcome.apply_ns <= told.outcome.pause_ns);

	/* Twice, and one that never was. */
	assert_int_equal(complete(fake, id), HVPOKE_BAD_REQUEST);
	assert_int_equal(complete(fake, 0), HVPOKE_BAD_REQUEST);
	assert_int_equal(told.times, 1);
	assert_false(hvp_guest_cancel(fake->guest, id));
}

static void first_in_first_out(void **state)
{
	struct fake *fake = *state;
	static struct told told[5];
	int64_t id[5];

	for (int i = 0; i < 5; i++)
		id[i] = submit(fake, &told[i]);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(fetch(fake), id[i]);
		if (i < 4)
			assert_int_equal(complete(fake, id[i + 1]), HVPOKE_BAD_REQUEST);
		assert_int_equal(complete(fake, id[i]), HVPOKE_OK);
		for (int j = 0; j < 5; j++)
			assert_int_equal(told[j].times, j <= i);
	}
	assert_int_equal(fetch(fake), 0);
}

static void an_idle_count_needs_no_queries(void **state)
{
	struct fake *fake = *state;
	struct told told = {0};
	int64_t id = hvp_guest_submit(fake->guest, HVPOKE_REQ_COUNT_IDLE, 1500, NULL, done, &told);

	assert_int_equal(fetch(fake), id);
	assert_int_equal(fake_cmd(fake)->fetch.flags, HVPOKE_REQ_COUNT_IDLE);
	assert_int_equal(fake_cmd(fake)->fetch.idle_ms, 1500);
	assert_int_equal(fake_cmd(fake)->fetch.nr_queries, 0);
	assert_int_equal(fake_cmd(fake)->fetch.data_len, 0);
	assert_int_equal(complete(fake, id), HVPOKE_OK);
	assert_int_equal(told.times, 1);
}

static void what_cannot_be_submitted(void **state)
{
	struct fake *fake = *state;
	struct hvp_queries large = {.nr = 1, .len = HVPOKE_REQ_DATA, .data = data};
	static struct told told[HVP_MAX_REQUESTS + 1];

	assert_true(hvp_guest_submit(fake->guest, 0, 0, &large, done, &told[0]) > 0);
	large.len++;
	assert_int_equal(hvp_guest_submit(fake->guest, 0, 0, &large, done, &told[1]), -E2BIG);
	fetch(fake);
	assert_memory_equal(fake_cmd(fake)->fetch.data, data, HVPOKE_REQ_DATA);
	assert_int_equal(complete(fake, fake_cmd(fake)->fetch.id), HVPOKE_OK);

	for (int i = 0; i < HVP_MAX_REQUESTS; i++)
		assert_true(submit(fake, &told[i]) > 0);
	assert_int_equal(submit(fake, &told[HVP_MAX_REQUESTS]), -EBUSY);
	assert_true(fetch(fake) > 0);
	assert_true(submit(fake, &told[HVP_MAX_REQUESTS]) > 0);
	hvp_guest_reset(fake->guest);
	for (int i = 0; i <= HVP_MAX_REQUESTS; i++)
		assert_true(told[i].times == 1 && told[i].outcome.lost);
	assert_int_equal(submit(fake, &told[0]), -ENODEV);
	assert_int_equal(told[0].times, 0);
}

static void cancel_before_the_fetch(void **state)
{
	struct fake *fake = *state;
	static struct told told[3];
	int64_t id[3];

	for (int i = 0; i < 3; i++)
		id[i] = submit(fake, &told[i]);
	assert_true(hvp_guest_cancel(fake->guest, id[1]));
	assert_false(hvp_guest_cancel(fake->guest, id[1]));
	assert_false(hvp_guest_cancel(fake->guest, 0));
	assert_false(hvp_guest_cancel(fake->guest, id[2] + 1));
	assert_int_equal(fetch(fake), id[0]);
	assert_int_equal(complete(fake, id[0]), HVPOKE_OK);
	assert_int_equal(fetch(fake), id[2]);
	assert_int_equal(complete(fake, id[2]), HVPOKE_OK);
	assert_int_equal(told[1].times, 0);
	/* The room in the line is free again. */
	for (int i = 0; i < HVP_MAX_REQUESTS; i++)
		assert_true(hvp_guest_cancel(fake->guest, submit(fake, &told[0])));
	assert_int_equal(fetch(fake), 0);
}

/* It goes on in the guest, and its completion is not an error of the agent's. */
static void cancel_after_the_fetch(void **state)
{
	struct fake *fake = *state;
	static struct told told;
	int64_t id = submit(fake, &told);

	assert_int_equal(fetch(fake), id);
	assert_true(hvp_guest_cancel(fake->guest, id));
	assert_false(hvp_guest_cancel(fake->guest, id));
	assert_int_equal(complete(fake, id), HVPOKE_OK);
	assert_int_equal(complete(fake, id), HVPOKE_BAD_REQUEST);
	assert_int_equal(told.times, 0);
}

static void lost_with_the_agent(void **state)
{
	struct fake *fake = *state;
	static struct told told[3];
	int64_t id[3];

	for (int how = 0; how < 3; how++) {
		fake_hello(fake);
		for (int i = 0; i < 3; i++)
			id[i] = submit(fake, &told[i]);
		assert_int_equal(fetch(fake), id[0]);
		assert_true(hvp_guest_cancel(fake->guest, id[1]));
		switch (how) {
		case 0: assert_int_equal(fake_ring(fake, HVPOKE_CMD_BYE), HVPOKE_OK); break;
		case 1: hvp_guest_reset(fake->guest); break;
		default:
			/* Another kernel says hello: this one was restarted unnoticed. */
			memset(fake_cmd(fake), 0, sizeof(struct hvpoke_cmd));
			strcpy(fake_cmd(fake)->hello.kernel, "6.12.0-test");
			assert_int_equal(fake_ring(fake, HVPOKE_CMD_HELLO), HVPOKE_OK);
		}
		assert_true(told[0].times == 1 && told[0].outcome.lost);
		assert_true(told[1].times == 0); /* cancelled */
		assert_true(told[2].times == 1 && told[2].outcome.lost);
	}
	assert_int_equal(fetch(fake), 0);
}

/* A module came or went in the middle of a request: nothing is lost. */
static void a_hello_of_the_same_agent_loses_nothing(void **state)
{
	struct fake *fake = *state;
	static struct told told[2];
	int64_t id = submit(fake, &told[0]);

	submit(fake, &told[1]);
	assert_int_equal(fetch(fake), id);
	assert_int_equal(fake_hello_ranges(fake, NULL, 0), HVPOKE_OK);
	assert_int_equal(complete(fake, id), HVPOKE_OK);
	assert_int_equal(told[0].times, 1);
	assert_false(told[0].outcome.lost);
	assert_int_equal(fetch(fake), id + 1);
}

/* An agent that fetches without having completed has forgotten what it did. */
static void a_forgotten_request_is_lost(void **state)
{
	struct fake *fake = *state;
	static struct told told[2];
	int64_t first = submit(fake, &told[0]), second = submit(fake, &told[1]);

	assert_int_equal(fetch(fake), first);
	assert_int_equal(fetch(fake), second);
	assert_true(told[0].times == 1 && told[0].outcome.lost);
	assert_int_equal(told[1].times, 0);
	assert_int_equal(complete(fake, first), HVPOKE_BAD_REQUEST);
	assert_int_equal(fetch(fake), 0);
	assert_true(told[1].times == 1 && told[1].outcome.lost);
}

/* The interrupt could not be sent: nobody would come for it. */
static void a_notify_that_fails(void **state)
{
	struct fake *fake = *state;
	static struct told told;

	fake->notify_err = -EIO;
	assert_int_equal(submit(fake, &told), -EIO);
	assert_int_equal(fetch(fake), 0);
	assert_int_equal(told.times, 0);
	fake->notify_err = 0;
	assert_true(submit(fake, &told) > 0);
}

static void freeing_the_guest_loses_them(void **state)
{
	static struct told told[2];
	struct fake fake;

	(void)state;
	fake_init(&fake, FAKE_RAM);
	fake_hello(&fake);
	submit(&fake, &told[0]);
	submit(&fake, &told[1]);
	fetch(&fake);
	fake_free(&fake);
	assert_true(told[0].times == 1 && told[0].outcome.lost);
	assert_true(told[1].times == 1 && told[1].outcome.lost);
}

#define RACE_ROUNDS 4000

struct race {
	struct fake *fake;
	atomic_uint told, cancelled;
};

static void race_done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	struct race *race = arg;

	(void)id, (void)outcome;
	race->told++;
}

/* A client: submits, and cancels every second request at some time or other. */
static void *race_client(void *arg)
{
	struct race *race = arg;
	int64_t id;

	for (int i = 0; i < RACE_ROUNDS; i++) {
		do
			id = hvp_guest_submit(race->fake->guest, 0, 0, &queries, race_done, race);
		while (id == -EBUSY);
		if (i % 2 && hvp_guest_cancel(race->fake->guest, id))
			race->cancelled++;
	}
	return NULL;
}

/* Every request ends exactly once: told, or cancelled. */
static void clients_and_agent_at_once(void **state)
{
	struct fake *fake = *state;
	struct race race = {.fake = fake};
	pthread_t client[2];
	uint64_t id;

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&client[i], NULL, race_client, &race), 0);
	while (race.told + race.cancelled < 2 * RACE_ROUNDS) {
		id = fetch(fake);
		if (id)
			complete(fake, id);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(client[i], NULL);
	assert_int_equal(race.told + race.cancelled, 2 * RACE_ROUNDS);
	assert_int_equal(fetch(fake), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_usual_way, setup, teardown),
		cmocka_unit_test_setup_teardown(first_in_first_out, setup, teardown),
		cmocka_unit_test_setup_teardown(an_idle_count_needs_no_queries, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_submitted, setup, teardown),
		cmocka_unit_test_setup_teardown(cancel_before_the_fetch, setup, teardown),
		cmocka_unit_test_setup_teardown(cancel_after_the_fetch, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_with_the_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hello_of_the_same_agent_loses_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_forgotten_request_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(a_notify_that_fails, setup, teardown),
		cmocka_unit_test(freeing_the_guest_loses_them),
		cmocka_unit_test_setup_teardown(clients_and_agent_at_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
