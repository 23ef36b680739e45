// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * undo: what a batch has written is put back whole or not at all, and only where it is still
 * the same text. The test's own thread plays the guest.
 */
#include "audit.h"
#include "service_fixture.h"
#include "undo.h"

#define SITES 5

static struct hvp_audit *audit;

static int setup(void **state)
{
	const struct hvp_audit_config none = {0};
	struct fixture *f;

	service_setup(state);
	f = *state;
	assert_int_equal(hvp_audit_open(&audit, &none, "vm"), 0);
	hvp_guest_set_audit(f->fake.guest, audit);
	f->fake.scope = HVPOKE_SCOPE_ALL;
	fake_hello(&f->fake);
	return 0;
}

static int teardown(void **state)
{
	service_teardown(state);
	hvp_audit_close(audit);
	return 0;
}

/* The batch of these tests: labels of both lengths, both ways, the last one over a page's end. */
static void make_batch(struct hvpoke_entry *entry)
{
	entry[0] = fake_entry(FAKE_TEXT + 0x10, FAKE_NOP5, FAKE_JMP5, 0x100);
	entry[1] = fake_entry(FAKE_TEXT + 0x20, FAKE_JMP5, FAKE_NOP5, 0x200);
	entry[2] = fake_entry(FAKE_TEXT + 0x30, FAKE_NOP2, FAKE_JMP2, 0x30);
	entry[3] = fake_entry(FAKE_TEXT + 0x40, FAKE_JMP2, FAKE_NOP2, 0x40);
	entry[4] = fake_entry(FAKE_TEXT + 0xffe, FAKE_NOP5, FAKE_JMP5, 0x300);
	entry[4].gpa2 = FAKE_TEXT + 0x1000;
}

/* The first batch, id 1. */
static void apply(struct fixture *f, struct hvpoke_entry *entry)
{
	make_batch(entry);
	for (int i = 0; i < SITES; i++)
		fake_put(&f->fake, &entry[i], entry[i].old_insn);
	fake_applied(&f->fake, entry, SITES);
}

static void expect_sites(struct fixture *f, const struct hvpoke_entry *entry, bool written)
{
	for (int i = 0; i < SITES; i++)
		assert_true(fake_holds(&f->fake, &entry[i],
				       written ? entry[i].new_insn : entry[i].old_insn));
}

static enum hvpoke_status ring_undo(struct fixture *f)
{
	struct hvpoke_cmd *cmd = fake_cmd(&f->fake);

	memset(cmd, 0, sizeof(*cmd));
	cmd->batch.flags = HVPOKE_BATCH_UNDO;
	return fake_ring(&f->fake, HVPOKE_CMD_BATCH);
}

/* A client asks for it, the guest fetches; it is the @nr-th time that something waits. */
static uint64_t ask(struct fixture *f, unsigned int id, unsigned int nr)
{
	char line[128];
	uint64_t request;

	snprintf(line, sizeof(line), "{\"id\":1,\"method\":\"undo\",\"params\":{\"id\":%u}}", id);
	raw_say(f->fd, line);
	request = guest_fetch(f, nr);
	assert_int_equal(fake_cmd(&f->fake)->fetch.flags, HVPOKE_REQ_UNDO);
	assert_int_equal(fake_cmd(&f->fake)->fetch.nr_queries, 0);
	return request;
}

static void answer(struct fixture *f, uint64_t request)
{
	guest_completion(f, request);
	guest_complete(f);
}

static void refuses(struct fixture *f, unsigned int id, const char *code)
{
	char line[128];

	snprintf(line, sizeof(line), "{\"id\":1,\"method\":\"undo\",\"params\":{\"id\":%u}}", id);
	raw_say(f->fd, line);
	expect_reply(f->fd, "1", code);
}

static void puts_back(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];
	struct json_object *result;
	uint64_t request;

	apply(f, entry);
	request = ask(f, 1, 1);
	assert_int_equal(ring_undo(f), HVPOKE_OK);
	assert_int_equal(fake_cmd(&f->fake)->batch.written, SITES);
	assert_int_equal(f->fake.pauses, 2);
	expect_sites(f, entry, false);
	answer(f, request);
	result = next(f, "result");
	expect_text(result, "undone", "1");
	expect_text(result, "id", "2");
	expect_text(result, "sites", "5");
	expect_text(result, "pauses", "1");
	json_object_put(result);

	/* That was a batch as well (and 3 the request): put that one back. */
	request = ask(f, 2, 2);
	assert_int_equal(ring_undo(f), HVPOKE_OK);
	expect_sites(f, entry, true);
	answer(f, request);
	expect_reply(f->fd, "1", NULL);
}

/* One site that holds something else, and nothing is put back. */
static void finds_what_has_changed(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];
	struct json_object *error;
	uint64_t request;

	apply(f, entry);
	fake_put(&f->fake, &entry[3], entry[3].old_insn);
	request = ask(f, 1, 1);
	assert_int_equal(ring_undo(f), HVPOKE_MISMATCH);
	assert_int_equal(fake_cmd(&f->fake)->batch.bad_index, 3);
	assert_int_equal(fake_cmd(&f->fake)->batch.written, 0);
	for (int i = 0; i < SITES; i++)
		assert_true(fake_holds(&f->fake, &entry[i],
				       i == 3 ? entry[i].old_insn : entry[i].new_insn));
	/* Whatever the agent says of it. */
	answer(f, request);
	error = next(f, "error");
	expect_text(error, "code", "\"changed\"");
	expect_text(json_object_object_get(error, "data"), "site", "3");
	assert_non_null(strstr(json_object_get_string(json_object_object_get(error, "message")),
			       "0xffffffff81000040"));
	json_object_put(error);
}

static void hello_serial(struct fixture *f, uint64_t serial)
{
	const struct hvpoke_range text = {
		.gpa = FAKE_TEXT, .gva = FAKE_TEXT_GVA, .len = FAKE_TEXT_SIZE, .serial = serial};

	assert_int_equal(fake_hello_ranges(&f->fake, &text, 1), HVPOKE_OK);
}

/* The same bytes at the same place, but a module that was loaded again. */
static void is_not_done_to_other_text(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];
	struct json_object *error;
	uint64_t request;

	hello_serial(f, 1);
	apply(f, entry);
	hello_serial(f, 2);
	request = ask(f, 1, 1);
	assert_int_equal(ring_undo(f), HVPOKE_NOT_TEXT);
	assert_int_equal(fake_cmd(&f->fake)->batch.bad_index, 0);
	expect_sites(f, entry, true);
	assert_int_equal(f->fake.pauses, 1);
	answer(f, request);
	error = next(f, "error");
	expect_text(error, "code", "\"gone\"");
	json_object_put(error);

	/* Registered again as it was: it is the same text. */
	hello_serial(f, 1);
	request = ask(f, 1, 2);
	assert_int_equal(ring_undo(f), HVPOKE_OK);
	expect_sites(f, entry, false);
	answer(f, request);
	expect_reply(f->fd, "1", NULL);
}

/* Its text may be anything: the guest has booted again. */
static void is_forgotten_with_the_agent(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];

	apply(f, entry);
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_BYE), HVPOKE_OK);
	refuses(f, 1, "no-agent");
	fake_hello(&f->fake);
	refuses(f, 1, "no-batch");
	expect_sites(f, entry, true);
}

/* Static calls, ftrace, kprobes: one of them, and the batch stays. */
static void only_labels(void **state)
{
	static const struct {
		enum fake_insn old, new_insn;
	} others[] = {
		{FAKE_NOP5, FAKE_CALL5}, {FAKE_CALL5, FAKE_NOP5},	 {FAKE_CALL5, FAKE_CALL5},
		{FAKE_JMP5, FAKE_JMP5},	 {FAKE_RET5, FAKE_JMP5},	 {FAKE_JMP5, FAKE_RET5},
		{FAKE_JCC6, FAKE_JCC6},	 {FAKE_PUSH1, FAKE_INT3},	 {FAKE_INT3, FAKE_PUSH1},
		{FAKE_XOR5, FAKE_CALL5}, {FAKE_INT3_5, FAKE_PROBE_JMP5},
	};
	struct fixture *f = *state;
	unsigned int id;

	for (id = 1; id <= sizeof(others) / sizeof(*others); id++) {
		struct hvpoke_entry entry[2] = {
			fake_entry(FAKE_TEXT + 0x10, FAKE_NOP5, FAKE_JMP5, id),
			fake_entry(FAKE_TEXT + 0x20, others[id - 1].old, others[id - 1].new_insn,
				   0x1000),
		};

		fake_put(&f->fake, &entry[0], entry[0].old_insn);
		fake_put(&f->fake, &entry[1], entry[1].old_insn);
		fake_applied(&f->fake, entry, 2);
	}
	for (id = 1; id <= sizeof(others) / sizeof(*others); id++) {
		assert_int_equal(hvp_guest_can_undo(f->fake.guest, id), -EOPNOTSUPP);
	}
	refuses(f, 1, "no-labels");
}

/* A guest writes nothing that way unless a client has asked for it, and once only. */
static void only_when_asked_for(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];
	struct hvpoke_cmd *cmd;
	uint64_t request;

	apply(f, entry);
	assert_int_equal(ring_undo(f), HVPOKE_NO_REQUEST);
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	request = guest_fetch(f, 1);
	assert_int_equal(ring_undo(f), HVPOKE_NO_REQUEST);
	answer(f, request);
	expect_reply(f->fd, "1", NULL);
	expect_sites(f, entry, true);

	request = ask(f, 1, 2);
	assert_int_equal(ring_undo(f), HVPOKE_OK);
	assert_int_equal(ring_undo(f), HVPOKE_NO_REQUEST);
	expect_sites(f, entry, false);
	answer(f, request);
	expect_reply(f->fd, "1", NULL);

	/* With entries of its own, or with what there is not. */
	cmd = fake_cmd(&f->fake);
	memset(cmd, 0, sizeof(*cmd));
	cmd->batch.flags = HVPOKE_BATCH_UNDO;
	cmd->batch.nr_entries = 1;
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_HEADER);
	cmd->batch.nr_entries = 0;
	cmd->batch.entries_gpa = FAKE_LIST;
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_HEADER);
	cmd->batch.flags = HVPOKE_BATCH_UNDO << 1;
	cmd->batch.entries_gpa = 0;
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_HEADER);
}

static void agent_does_not_try(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];
	struct hvpoke_complete *complete;
	uint64_t request;

	apply(f, entry);
	answer(f, ask(f, 1, 1));
	expect_reply(f->fd, "1", "bad-answer");
	request = ask(f, 1, 2);
	complete = guest_completion(f, request);
	complete->error = 95;
	guest_complete(f);
	expect_reply(f->fd, "1", "guest-failed");
	expect_sites(f, entry, true);
	f->fake.pause_err = -ETIMEDOUT;
	request = ask(f, 1, 3);
	assert_int_equal(ring_undo(f), HVPOKE_PAUSE_FAILED);
	answer(f, request);
	expect_reply(f->fd, "1", "undo-failed");
	expect_sites(f, entry, true);
}

static void takes_an_id(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry entry[SITES];

	refuses(f, 1, "no-batch");
	apply(f, entry);
	raw_say(f->fd, "{\"id\":1,\"method\":\"undo\"}");
	expect_reply(f->fd, "1", "bad-params");
	raw_say(f->fd, "{\"id\":1,\"method\":\"undo\",\"params\":{\"id\":0}}");
	expect_reply(f->fd, "1", "bad-params");
	raw_say(f->fd, "{\"id\":1,\"method\":\"undo\",\"params\":{\"id\":\"1\"}}");
	expect_reply(f->fd, "1", "bad-params");
	raw_say(f->fd, "{\"id\":1,\"method\":\"undo\",\"params\":{\"id\":1,\"x\":1}}");
	expect_reply(f->fd, "1", "bad-params");
	atomic_store(&f->paused, true);
	refuses(f, 2, "paused");
	/* No log, no ids. */
	hvp_guest_set_audit(f->fake.guest, NULL);
	atomic_store(&f->paused, false);
	refuses(f, 17, "no-batch");
}

/* So many batches, and so many sites of all of them. */
static void keeps_so_many(void **state)
{
	struct fixture *f = *state;
	struct hvpoke_entry *entry = calloc(HVP_UNDO_SITES + 1, sizeof(*entry));
	struct hvpoke_entry one = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_JMP5, 1);
	const uint32_t half = HVP_UNDO_SITES / 2;
	uint64_t id;
	uint32_t i;

	for (id = 1; id <= HVP_UNDO_BATCHES + 1; id++) {
		fake_put(&f->fake, &one, one.old_insn);
		fake_applied(&f->fake, &one, 1);
	}
	assert_int_equal(hvp_guest_can_undo(f->fake.guest, 1), -ENOENT);
	for (id = 2; id <= HVP_UNDO_BATCHES + 1; id++)
		assert_int_equal(hvp_guest_can_undo(f->fake.guest, id), 0);

	/* Behind the list, which needs some of the text's memory. */
	for (i = 0; i < HVP_UNDO_SITES + 1; i++)
		entry[i] = fake_entry(FAKE_TEXT + 0x20000 + 2 * i, FAKE_NOP2, FAKE_JMP2, 1);
	for (int batch = 0; batch < 3; batch++, id++) {
		for (i = 0; i < half; i++)
			fake_put(&f->fake, &entry[i], entry[i].old_insn);
		assert_int_equal(fake_batch(&f->fake, entry, half), HVPOKE_OK);
	}
	assert_int_equal(hvp_guest_can_undo(f->fake.guest, id - 3), -ENOENT);
	assert_int_equal(hvp_guest_can_undo(f->fake.guest, id - 2), 0);
	assert_int_equal(hvp_guest_can_undo(f->fake.guest, id - 1), 0);
	/* More than are kept at all. */
	for (i = 0; i < HVP_UNDO_SITES + 1; i++)
		fake_put(&f->fake, &entry[i], entry[i].old_insn);
	assert_int_equal(fake_batch(&f->fake, entry, HVP_UNDO_SITES + 1), HVPOKE_OK);
	assert_int_equal(hvp_guest_can_undo(f->fake.guest, id), -EOPNOTSUPP);
	assert_int_equal(hvp_guest_can_undo(f->fake.guest, id - 1), 0);
	free(entry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(puts_back, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_what_has_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(is_not_done_to_other_text, setup, teardown),
		cmocka_unit_test_setup_teardown(is_forgotten_with_the_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(only_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(only_when_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(agent_does_not_try, setup, teardown),
		cmocka_unit_test_setup_teardown(takes_an_id, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_so_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
