// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The forms that patch more than jump labels: static calls, ftrace, kprobes. Which of them
 * pass depends on the scope that the agent registered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_backend.h"

/* An agent that takes over whatever patches text. */
static int setup(void **state)
{
	static struct fake fake;

	fake_init(&fake, FAKE_RAM);
	fake.scope = HVPOKE_SCOPE_ALL;
	fake_hello(&fake);
	*state = &fake;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

/* Every form that an agent with HVPOKE_SCOPE_ALL may send beside those of jump labels. */
static const enum fake_insn static_calls[] = {FAKE_NOP5, FAKE_JMP5,  FAKE_CALL5, FAKE_RET5,
					      FAKE_XOR5, FAKE_XORQ5, FAKE_UD5};
static const enum fake_insn probes[][2] = {{FAKE_INT3, FAKE_PUSH1}, {FAKE_INT3_5, FAKE_PROBE_JMP5}};

#define NR_STATIC_CALLS (sizeof(static_calls) / sizeof(*static_calls))
#define NR_PROBES	(sizeof(probes) / sizeof(*probes))

/* Old and new are any two of one kind and length: not always each other's reverse. */
static uint32_t all_forms(struct fake *fake, struct hvpoke_entry *entry, uint64_t at)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < NR_STATIC_CALLS; i++)
		for (size_t j = 0; j < NR_STATIC_CALLS; j++, at += 5)
			entry[nr++] = fake_entry(at, static_calls[i], static_calls[j], 0xcccccccc);
	for (size_t i = 0; i < NR_PROBES; i++)
		for (size_t j = 0; j < 2; j++, at += entry[nr - 1].len)
			entry[nr++] = fake_entry(at, probes[i][j], probes[i][!j], 0x11223344);
	for (unsigned int condition = 0; condition < 16; condition++, at += 6) {
		entry[nr] = fake_entry(at, FAKE_JCC6, FAKE_JCC6, condition);
		entry[nr].old_insn[1] = 0x80 + condition;
		entry[nr].new_insn[2] = 0xcc;
		nr++;
	}
	entry[nr++] = fake_entry(at, FAKE_NOP2, FAKE_JMP2, 0xcc);
	for (uint32_t i = 0; i < nr; i++)
		fake_put(fake, &entry[i], entry[i].old_insn);
	return nr;
}

static void all_forms_of_every_scope(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[128];
	uint32_t nr;

	/* Packed, over the end of a page, and no byte before or behind them changes. */
	memset(fake_at(fake, FAKE_TEXT), 0x5a, 0x2000);
	nr = all_forms(fake, entry, FAKE_TEXT + 0x1000 - 0x83);
	fake_applied(fake, entry, nr);
	assert_int_equal(*(uint8_t *)fake_at(fake, entry[0].gpa - 1), 0x5a);
	assert_int_equal(*(uint8_t *)fake_at(fake, entry[nr - 1].gpa + 2), 0x5a);
	/* None of the others is written if one does not match, whatever its form. */
	for (uint32_t bad = 0; bad < nr; bad++) {
		static uint8_t before[0x2000];
		uint8_t *last;

		all_forms(fake, entry, entry[0].gpa);
		last = fake_at(fake, entry[bad].gpa2 ? entry[bad].gpa2
						     : entry[bad].gpa + entry[bad].len - 1);
		*last ^= 0x10;
		memcpy(before, fake_at(fake, FAKE_TEXT), sizeof(before));
		assert_int_equal(fake_batch(fake, entry, nr), HVPOKE_MISMATCH);
		assert_int_equal(fake_cmd(fake)->batch.bad_index, bad);
		assert_int_equal(fake_cmd(fake)->batch.written, 0);
		assert_memory_equal(fake_at(fake, FAKE_TEXT), before, sizeof(before));
	}
}

/* What an agent did not say that it takes over is refused as before (CASES 4). */
static void forms_need_their_scope(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry;

	for (uint32_t scope = HVPOKE_SCOPE_DYNDBG; scope < HVPOKE_SCOPE_ALL; scope++) {
		fake->scope = scope;
		fake_hello(fake);
		for (size_t i = 0; i < NR_STATIC_CALLS; i++) {
			bool jump_label = static_calls[i] <= FAKE_CALL5;

			entry = fake_entry(FAKE_TEXT, static_calls[i], FAKE_NOP5, 0);
			fake_put(fake, &entry, entry.old_insn);
			if (jump_label)
				fake_applied(fake, &entry, 1);
			else
				fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
			entry = fake_entry(FAKE_TEXT, FAKE_NOP5, static_calls[i], 0);
			fake_put(fake, &entry, entry.old_insn);
			if (jump_label)
				fake_applied(fake, &entry, 1);
			else
				fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
		}
		entry = fake_entry(FAKE_TEXT, FAKE_JCC6, FAKE_JCC6, 0);
		fake_put(fake, &entry, entry.old_insn);
		fake_refused(fake, &entry, 1, HVPOKE_BAD_LENGTH, 0);
		for (size_t i = 0; i < NR_PROBES; i++) {
			entry = fake_entry(FAKE_TEXT, probes[i][1], probes[i][0], 0);
			fake_put(fake, &entry, entry.old_insn);
			fake_refused(fake, &entry, 1, HVPOKE_BAD_KIND, 0);
			entry.kind = HVPOKE_SITE_INSN;
			fake_refused(fake, &entry, 1, i ? HVPOKE_BAD_OPCODE : HVPOKE_BAD_LENGTH, 0);
		}
	}
	/* From the moment that it says so. */
	fake->scope = HVPOKE_SCOPE_ALL;
	fake_hello(fake);
	entry.kind = HVPOKE_SITE_PROBE;
	fake_applied(fake, &entry, 1);
	fake->scope = HVPOKE_SCOPE_STATIC_KEYS;
	fake_hello(fake);
	fake_put(fake, &entry, entry.old_insn);
	fake_refused(fake, &entry, 1, HVPOKE_BAD_KIND, 0);
}

/* With every form allowed, each byte that is not its own still refuses it. */
static void only_forms_of_their_kind_pass(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry;

	for (size_t i = FAKE_RET5 - FAKE_NOP5; i < NR_STATIC_CALLS; i++) {
		for (int at = 0; at < 5; at++) {
			for (int value = 0; value < 256; value++) {
				bool jump = at == 0 && (value == 0xe8 || value == 0xe9);

				entry = fake_entry(FAKE_TEXT, FAKE_NOP5, static_calls[i], 0);
				if (entry.new_insn[at] == value || jump)
					continue;
				entry.new_insn[at] = value;
				assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_OPCODE);
			}
		}
	}
	for (int value = 0; value < 256; value++) {
		entry = fake_entry(FAKE_TEXT, FAKE_JCC6, FAKE_JCC6, 0);
		entry.new_insn[0] = value;
		if (value != 0x0f)
			assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_OPCODE);
		entry.new_insn[0] = 0x0f;
		entry.new_insn[1] = value;
		if (value < 0x80 || value > 0x8f)
			assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_OPCODE);
		/* A probe's byte becomes INT3, or INT3 becomes it: never two others, nor INT3 twice. */
		entry = fake_entry(FAKE_TEXT, FAKE_PUSH1, FAKE_INT3, 0);
		entry.new_insn[0] = value;
		if (value != 0xcc)
			assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_OPCODE);
		entry = fake_entry(FAKE_TEXT, FAKE_INT3_5, FAKE_PROBE_JMP5, 0);
		entry.new_insn[0] = value;
		if (value != 0xe9)
			assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_OPCODE);
		entry = fake_entry(FAKE_TEXT, FAKE_PROBE_JMP5, FAKE_INT3_5, 0);
		entry.new_insn[0] = value;
		if (value != 0xcc)
			assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_OPCODE);
	}
	entry = fake_entry(FAKE_TEXT, FAKE_INT3, FAKE_PUSH1, 0);
	entry.new_insn[0] = 0xcc;
	fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
	assert_int_equal(fake->pauses, 0);
}

static void kinds_have_their_lengths(void **state)
{
	static const struct {
		uint8_t kind;
		uint8_t lens[5]; /* 0 ends them */
	} good[] = {{HVPOKE_SITE_INSN, {2, 5, 6}}, {HVPOKE_SITE_PROBE, {1, 5}}};
	struct fake *fake = *state;
	struct hvpoke_entry entry = {.gpa = FAKE_TEXT};

	for (size_t k = 0; k < 2; k++) {
		entry.kind = good[k].kind;
		for (int len = 0; len < 256; len++) {
			bool is_good = len && strchr((const char *)good[k].lens, len);

			entry.len = len;
			/* Zeroes are no form of any length. */
			fake_refused(fake, &entry, 1,
				     is_good ? HVPOKE_BAD_OPCODE : HVPOKE_BAD_LENGTH, 0);
		}
	}
	entry.len = 5;
	for (int kind = 2; kind < 256; kind++) {
		entry.kind = kind;
		fake_refused(fake, &entry, 1, HVPOKE_BAD_KIND, 0);
	}
	/* One byte ends where its page does. */
	entry = fake_entry(FAKE_TEXT + 0xfff, FAKE_PUSH1, FAKE_INT3, 0);
	assert_int_equal(entry.gpa2, 0);
	fake_put(fake, &entry, entry.old_insn);
	entry.gpa2 = FAKE_TEXT + 0x1000;
	fake_refused(fake, &entry, 1, HVPOKE_BAD_STRADDLE, 0);
	entry.gpa2 = 0;
	fake_applied(fake, &entry, 1);
	/* Neither kind's unused bytes are anything. */
	entry = fake_entry(FAKE_TEXT, FAKE_PUSH1, FAKE_INT3, 0);
	entry.new_insn[1] = 1;
	fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
	entry = fake_entry(FAKE_TEXT, FAKE_INT3_5, FAKE_PROBE_JMP5, 0);
	entry.old_insn[5] = 1;
	fake_refused(fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_forms_of_every_scope, setup, teardown),
		cmocka_unit_test_setup_teardown(forms_need_their_scope, setup, teardown),
		cmocka_unit_test_setup_teardown(only_forms_of_their_kind_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds_have_their_lengths, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
