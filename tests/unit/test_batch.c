// SPDX-License-Identifier: GPL-2.0-or-later
/* The way of a batch: what is refused, with which index, and what is written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_backend.h"
#include "insn.h"

static int setup(void **state)
{
	static struct fake fake;

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

/* Three good sites, put in place; the tests spoil one of them. */
static void good_three(struct fake *fake, struct hvpoke_entry *entry)
{
	entry[0] = fake_entry(FAKE_TEXT + 0x10, FAKE_NOP5, FAKE_JMP5, 0x11223344);
	entry[1] = fake_entry(FAKE_TEXT + 0x20, FAKE_NOP2, FAKE_JMP2, 0x7f);
	entry[2] = fake_entry(FAKE_TEXT + 0x3010, FAKE_CALL5, FAKE_NOP5, 0xfffffffb);
	for (int i = 0; i < 3; i++)
		fake_put(fake, &entry[i], entry[i].old_insn);
}

static void all_forms_are_written(void **state)
{
	static const enum fake_insn longs[] = {FAKE_NOP5, FAKE_JMP5, FAKE_CALL5};
	static const enum fake_insn shorts[] = {FAKE_NOP2, FAKE_JMP2};
	struct fake *fake = *state;
	struct hvpoke_entry entry[13];
	uint64_t at = FAKE_TEXT;
	uint32_t nr = 0;

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++, at += 5)
			entry[nr++] = fake_entry(at, longs[i], longs[j], 0xcccccccc);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++, at += 2)
			entry[nr++] = fake_entry(at, shorts[i], shorts[j], 0xcc);
	for (uint32_t i = 0; i < nr; i++)
		fake_put(fake, &entry[i], entry[i].old_insn);
	((uint8_t *)fake_at(fake, at))[0] = 0x5a;
	fake_applied(fake, entry, nr);
	assert_int_equal(((uint8_t *)fake_at(fake, at))[0], 0x5a);
}

static void empty_batch_pauses(void **state)
{
	struct fake *fake = *state;

	fake_applied(fake, NULL, 0);
	assert_true(fake_cmd(fake)->batch.pause_ns > 0);
	/* The list is not looked at. */
	fake_cmd(fake)->batch.entries_gpa = UINT64_MAX;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
}

static void header_is_checked(void **state)
{
	struct fake *fake = *state;

	fake_batch(fake, NULL, 0);
	fake_cmd(fake)->batch.flags = 1;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_HEADER);
	fake_cmd(fake)->batch.flags = 0;
	fake_cmd(fake)->batch.nr_entries = HVPOKE_MAX_SITES + 1;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_TOO_LARGE);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, HVPOKE_NO_INDEX);
	fake_cmd(fake)->batch.nr_entries = UINT32_MAX;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_TOO_LARGE);
	hvp_guest_limit(fake->guest, &(struct hvp_limits){.max_sites = 7, .seconds = 1});
	fake_cmd(fake)->batch.nr_entries = 8;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_TOO_LARGE);
	assert_int_equal(fake->pauses, 1);
}

/* Each rule, broken at each place of the batch. CASES 4. */
static void each_rule_names_its_site(void **state)
{
	static const struct {
		const char *what;
		size_t offset;
		uint8_t value;
		enum hvpoke_status status;
	} rule[] = {
		{"reserved", offsetof(struct hvpoke_entry, reserved), 1, HVPOKE_BAD_HEADER},
		{"reserved", sizeof(struct hvpoke_entry) - 1, 0x80, HVPOKE_BAD_HEADER},
		{"kind 1", offsetof(struct hvpoke_entry, kind), HVPOKE_SITE_PROBE, HVPOKE_BAD_KIND},
		{"kind 2", offsetof(struct hvpoke_entry, kind), 2, HVPOKE_BAD_KIND},
		{"kind 255", offsetof(struct hvpoke_entry, kind), 255, HVPOKE_BAD_KIND},
		{"length 0", offsetof(struct hvpoke_entry, len), 0, HVPOKE_BAD_LENGTH},
		{"length 1", offsetof(struct hvpoke_entry, len), 1, HVPOKE_BAD_LENGTH},
		{"length 3", offsetof(struct hvpoke_entry, len), 3, HVPOKE_BAD_LENGTH},
		{"length 6", offsetof(struct hvpoke_entry, len), 6, HVPOKE_BAD_LENGTH},
		{"length 255", offsetof(struct hvpoke_entry, len), 255, HVPOKE_BAD_LENGTH},
		{"INT3", offsetof(struct hvpoke_entry, new_insn), 0xcc, HVPOKE_BAD_OPCODE},
		{"old INT3", offsetof(struct hvpoke_entry, old_insn), 0xcc, HVPOKE_BAD_OPCODE},
		{"RET", offsetof(struct hvpoke_entry, new_insn), 0xc3, HVPOKE_BAD_OPCODE},
		{"1-byte NOP", offsetof(struct hvpoke_entry, new_insn), 0x90, HVPOKE_BAD_OPCODE},
		{"page 2", offsetof(struct hvpoke_entry, gpa2) + 1, 0x10, HVPOKE_BAD_STRADDLE},
		{"no RAM", offsetof(struct hvpoke_entry, gpa) + 7, 0x80, HVPOKE_BAD_GPA},
	};
	struct fake *fake = *state;
	struct hvpoke_entry entry[3];

	for (size_t r = 0; r < sizeof(rule) / sizeof(*rule); r++) {
		for (uint32_t i = 0; i < 3; i++) {
			good_three(fake, entry);
			((uint8_t *)&entry[i])[rule[r].offset] = rule[r].value;
			/* A site behind it that is bad too must not be the one that is named. */
			if (i < 2)
				entry[2].len = 77;
			fake_refused(fake, entry, 3, rule[r].status, i);
		}
	}
	good_three(fake, entry);
	fake_applied(fake, entry, 3);
}

/* For what the agent takes over if nobody says anything. */
static bool known(const uint8_t *insn, unsigned int len)
{
	return hvp_insn_known(HVPOKE_SITE_INSN, insn, insn, len, HVPOKE_SCOPE_DYNDBG);
}

/* CASES 4: no byte but those of the forms passes, in any place of an instruction. */
static void only_whole_forms_pass(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_NOP5, 0);
	uint8_t *insn[] = {entry.old_insn, entry.new_insn};

	for (int which = 0; which < 2; which++) {
		for (int at = 0; at < 5; at++) {
			for (int value = 0; value < 256; value++) {
				uint8_t was = insn[which][at];
				bool jump = at == 0 && (value == 0xe8 || value == 0xe9);

				insn[which][at] = value;
				if (value != was && !jump)
					assert_int_equal(fake_batch(fake, &entry, 1),
							 HVPOKE_BAD_OPCODE);
				insn[which][at] = was;
			}
		}
	}
	assert_int_equal(fake->pauses, 0);
	entry = fake_entry(FAKE_TEXT, FAKE_NOP2, FAKE_NOP2, 0);
	for (int value = 0; value < 256; value++) {
		uint8_t two[2][HVPOKE_MAX_INSN] = {{value, 0x90}, {0x66, value}};

		assert_int_equal(known(two[0], 2), value == 0x66 || value == 0xeb);
		assert_int_equal(known(two[1], 2), value == 0x90);
		assert_false(known(two[1], 1) || known(two[1], 3));
	}
	/* Bytes past a short instruction are part of no form. */
	entry.new_insn[2] = 0xcc;
	fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
	entry.new_insn[2] = 0;
	entry.old_insn[4] = 1;
	fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
}

static void order_is_checked(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[3];

	good_three(fake, entry);
	entry[1].gpa = entry[0].gpa - 0x10;
	fake_refused(fake, entry, 3, HVPOKE_UNSORTED, 1);
	entry[1].gpa = entry[0].gpa; /* twice the same */
	fake_refused(fake, entry, 3, HVPOKE_OVERLAP, 1);
	entry[1].gpa = entry[0].gpa + 4;
	fake_refused(fake, entry, 3, HVPOKE_OVERLAP, 1);
	entry[1].gpa = entry[0].gpa + 5;
	fake_put(fake, &entry[1], entry[1].old_insn);
	entry[2].gpa = entry[1].gpa + 1;
	fake_refused(fake, entry, 3, HVPOKE_OVERLAP, 2);
	entry[2].gpa = entry[1].gpa - 1;
	fake_refused(fake, entry, 3, HVPOKE_UNSORTED, 2);
	entry[2].gpa = entry[1].gpa + 2;
	fake_put(fake, &entry[2], entry[2].old_insn);
	fake_applied(fake, entry, 3);
}

static void text_ranges_are_checked(void **state)
{
	struct fake *fake = *state;
	const uint64_t end = FAKE_TEXT + FAKE_TEXT_SIZE;
	struct hvpoke_entry entry[2];

	entry[0] = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_JMP5, 1);
	entry[1] = fake_entry(end - 5, FAKE_NOP5, FAKE_JMP5, 1);
	fake_put(fake, &entry[0], entry[0].old_insn);
	fake_put(fake, &entry[1], entry[1].old_insn);
	fake_applied(fake, entry, 2);

	entry[0] = fake_entry(FAKE_TEXT - 1 - 5, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 1, HVPOKE_NOT_TEXT, 0);
	entry[0] = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_JMP5, 1);
	entry[1] = fake_entry(end, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 2, HVPOKE_NOT_TEXT, 1);
	entry[1] = fake_entry(FAKE_RAM - 5, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 2, HVPOKE_NOT_TEXT, 1);
	entry[1] = fake_entry(FAKE_RAM, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 2, HVPOKE_BAD_GPA, 1);
	/* The command page, the list, and a sum that wraps around. */
	entry[0] = fake_entry(FAKE_CMD, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 1, HVPOKE_NOT_TEXT, 0);
	entry[0] = fake_entry(FAKE_LIST, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 1, HVPOKE_NOT_TEXT, 0);
	entry[0] = fake_entry(UINT64_MAX - 4, FAKE_NOP5, FAKE_JMP5, 1);
	fake_refused(fake, entry, 1, HVPOKE_BAD_GPA, 0);
	entry[0] = fake_entry(UINT64_MAX - 1, FAKE_NOP2, FAKE_JMP2, 1);
	fake_refused(fake, entry, 1, HVPOKE_BAD_GPA, 0);
}

/* Two ranges that touch are still two pieces of text: no site is part of both. */
static void a_site_lies_in_one_range(void **state)
{
	struct fake *fake = *state;
	const struct hvpoke_range range[] = {
		{.gpa = FAKE_TEXT, .gva = FAKE_TEXT_GVA, .len = 0x103},
		{.gpa = FAKE_TEXT + 0x103, .gva = FAKE_TEXT_GVA + 0x103, .len = 0x100},
	};
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT + 0x100, FAKE_NOP5, FAKE_JMP5, 1);

	assert_int_equal(fake_hello_ranges(fake, range, 2), HVPOKE_OK);
	fake_put(fake, &entry, entry.old_insn);
	fake_refused(fake, &entry, 1, HVPOKE_NOT_TEXT, 0);
	entry.gpa -= 2;
	fake_put(fake, &entry, entry.old_insn);
	fake_applied(fake, &entry, 1);
}

static void the_list_must_be_ram(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_page_list *list = fake_at(fake, FAKE_LIST);
	struct hvpoke_entry entry[300];
	static const uint64_t bad[] = {FAKE_LIST + 8, FAKE_RAM, UINT64_MAX, UINT64_MAX - 4095};

	for (int i = 0; i < 300; i++) {
		entry[i] = fake_entry(FAKE_TEXT + i * 8, FAKE_NOP5, FAKE_JMP5, i);
		fake_put(fake, &entry[i], entry[i].old_insn);
	}
	for (size_t b = 0; b < sizeof(bad) / sizeof(*bad); b++) {
		/* A page of records: its first record is the first that cannot be had. */
		for (uint32_t page = 0; page < 3; page++) {
			fake_batch(fake, NULL, 0);
			fake_list(fake, FAKE_LIST, entry, 300);
			list->page_gpa[page] = bad[b];
			fake_cmd(fake)->batch.nr_entries = 300;
			assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_GPA);
			assert_int_equal(fake_cmd(fake)->batch.bad_index, page * 128);
		}
		fake_list(fake, FAKE_LIST, entry, 300);
		fake_cmd(fake)->batch.entries_gpa = bad[b];
		assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_GPA);
		assert_int_equal(fake_cmd(fake)->batch.bad_index, 0);
	}
	fake_cmd(fake)->batch.entries_gpa = 0;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_GPA);
	fake_applied(fake, entry, 300);
}

/* A chain that is too short, and one that runs in a circle. */
static void the_chain_of_lists_is_bounded(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_page_list *list = fake_at(fake, FAKE_LIST);
	struct hvpoke_cmd *cmd = fake_cmd(fake);
	const uint32_t in_one = HVPOKE_LIST_PAGES * HVPOKE_ENTRIES_PER_PAGE;
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_JMP5, 1);

	fake_batch(fake, &entry, 1);
	for (int i = 0; i < HVPOKE_LIST_PAGES; i++)
		list->page_gpa[i] = list->page_gpa[0];
	cmd->batch.nr_entries = in_one + 1;
	cmd->batch.entries_gpa = FAKE_LIST;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_GPA);
	assert_int_equal(cmd->batch.bad_index, in_one);

	list->next_gpa = FAKE_LIST;
	cmd->batch.nr_entries = HVPOKE_MAX_SITES;
	/* Read whole, and then refused for what it says: the second site is empty. */
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_BAD_LENGTH);
	assert_int_equal(cmd->batch.bad_index, 1);

	/* The command page as the list and as the records: refused, whatever it reads as. */
	cmd->batch.entries_gpa = FAKE_CMD;
	assert_int_not_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	list->page_gpa[0] = FAKE_CMD;
	cmd->batch.entries_gpa = FAKE_LIST;
	assert_int_not_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
}

/* All or nothing, whichever site does not match. */
static void one_mismatch_writes_nothing(void **state)
{
	struct fake *fake = *state;
	static uint8_t before[FAKE_TEXT_SIZE];
	struct hvpoke_entry entry[200];
	uint8_t *text = fake_at(fake, FAKE_TEXT);

	for (int i = 0; i < 200; i++) {
		entry[i] = fake_entry(FAKE_TEXT + 3 + i * 4091, i % 3 ? FAKE_NOP5 : FAKE_NOP2,
				      i % 3 ? FAKE_JMP5 : FAKE_JMP2, i);
		fake_put(fake, &entry[i], entry[i].old_insn);
	}
	for (uint32_t bad = 0; bad < 200; bad++) {
		uint8_t *last = text + entry[bad].gpa - FAKE_TEXT;

		if (!entry[bad].gpa2)
			last += entry[bad].len - 1; /* the last byte is compared as well */
		*last ^= 1;
		memcpy(before, text, sizeof(before));
		assert_int_equal(fake_batch(fake, entry, 200), HVPOKE_MISMATCH);
		assert_int_equal(fake_cmd(fake)->batch.bad_index, bad);
		assert_int_equal(fake_cmd(fake)->batch.written, 0);
		assert_true(fake_cmd(fake)->batch.pause_ns > 0);
		assert_memory_equal(text, before, sizeof(before));
		*last ^= 1;
	}
	fake_applied(fake, entry, 200);
}

static void put_int3(struct fake *fake)
{
	*(uint8_t *)fake_at(fake, FAKE_TEXT + 0x20) = 0xcc;
}

/* CASES 9: the guest's own INT3 patching reached the site just before it was paused. */
static void int3_at_a_site_is_a_mismatch(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[3];

	good_three(fake, entry);
	fake->at_pause = put_int3;
	assert_int_equal(fake_batch(fake, entry, 3), HVPOKE_MISMATCH);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, 1);
	assert_true(fake_holds(fake, &entry[0], entry[0].old_insn));
	assert_true(fake_holds(fake, &entry[2], entry[2].old_insn));
	assert_int_equal(*(uint8_t *)fake_at(fake, FAKE_TEXT + 0x20), 0xcc);
	fake->at_pause = NULL;
	fake_put(fake, &entry[1], entry[1].old_insn);
	fake_applied(fake, entry, 3);
}

static void a_pause_that_fails(void **state)
{
	static const struct {
		int err;
		enum hvpoke_status status;
	} fault[] = {
		{-EBUSY, HVPOKE_BUSY},
		{-ETIMEDOUT, HVPOKE_PAUSE_FAILED},
		{-EIO, HVPOKE_HOST_ERROR},
	};
	struct fake *fake = *state;
	struct hvpoke_entry entry[3];

	good_three(fake, entry);
	for (size_t i = 0; i < sizeof(fault) / sizeof(*fault); i++) {
		fake->pause_err = fault[i].err;
		fake_refused(fake, entry, 3, fault[i].status, HVPOKE_NO_INDEX);
		assert_int_equal(fake->resumes, 0);
	}
	fake->pause_err = 0;
	fake_applied(fake, entry, 3);
}

static enum hvpoke_status second_status;

/* While the first batch holds the pause, a second vCPU rings: both commands. */
static void ring_again(struct fake *fake)
{
	struct hvpoke_cmd *cmd = fake_at(fake, FAKE_CMD + HVPOKE_PAGE_SIZE);

	memset(cmd, 0, sizeof(*cmd));
	cmd->version = HVPOKE_ABI_VERSION;
	cmd->cmd = HVPOKE_CMD_BATCH;
	second_status = hvp_guest_command(fake->guest, gpa(FAKE_CMD + HVPOKE_PAGE_SIZE));
	assert_int_equal(cmd->batch.bad_index, HVPOKE_NO_INDEX);
	cmd->cmd = HVPOKE_CMD_HELLO;
	assert_int_equal(hvp_guest_command(fake->guest, gpa(FAKE_CMD + HVPOKE_PAGE_SIZE)),
			 HVPOKE_BUSY);
}

/* It must be answered at once: waiting, it could not be paused by the first. */
static void a_second_batch_is_busy(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[3];
	struct hvp_stats stats;

	good_three(fake, entry);
	fake->at_pause = ring_again;
	second_status = HVPOKE_OK;
	fake_applied(fake, entry, 3);
	assert_int_equal(second_status, HVPOKE_BUSY);
	hvp_guest_stats(fake->guest, &stats);
	assert_int_equal(stats.batches, 1);
	assert_int_equal(stats.refused, 1);
}

/* The command page and the list may be where the text is: only the guest's loss. */
static void command_and_list_inside_text(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT + 0x2100, FAKE_NOP5, FAKE_JMP5, 7);
	struct hvpoke_cmd *cmd = fake_at(fake, FAKE_TEXT);
	struct hvpoke_entry *in_list;

	memset(cmd, 0, sizeof(*cmd));
	cmd->version = HVPOKE_ABI_VERSION;
	cmd->cmd = HVPOKE_CMD_BATCH;
	cmd->batch.nr_entries = 1;
	/* The record is at +0x2000 and the site in the same page: copied before written. */
	cmd->batch.entries_gpa = fake_list(fake, FAKE_TEXT + 0x1000, &entry, 1);
	in_list = fake_at(fake, FAKE_TEXT + 0x2000);
	fake_put(fake, &entry, entry.old_insn);
	assert_int_equal(hvp_guest_command(fake->guest, gpa(FAKE_TEXT)), HVPOKE_OK);
	assert_true(fake_holds(fake, &entry, entry.new_insn));

	/* The site is the record's own bytes: what they say when they are copied counts. */
	entry = fake_entry(FAKE_TEXT + 0x2000 + offsetof(struct hvpoke_entry, old_insn), FAKE_NOP5,
			   FAKE_JMP5, 7);
	*in_list = entry;
	assert_int_equal(hvp_guest_command(fake->guest, gpa(FAKE_TEXT)), HVPOKE_OK);
	assert_memory_equal(in_list->old_insn, entry.new_insn, HVPOKE_MAX_INSN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_forms_are_written, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_batch_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(header_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(each_rule_names_its_site, setup, teardown),
		cmocka_unit_test_setup_teardown(only_whole_forms_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(order_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(text_ranges_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_site_lies_in_one_range, setup, teardown),
		cmocka_unit_test_setup_teardown(the_list_must_be_ram, setup, teardown),
		cmocka_unit_test_setup_teardown(the_chain_of_lists_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(one_mismatch_writes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(int3_at_a_site_is_a_mismatch, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pause_that_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(a_second_batch_is_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(command_and_list_inside_text, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
