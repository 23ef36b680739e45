// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random command pages, for two seconds, from a seed that stays the same: good
 * commands of which a few bytes were changed, and some that are noise. Nothing
 * crashes, every answer is a known status, no pause stays open, and no byte
 * changes but sites of a batch that was applied and the OUT fields of the command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fake_backend.h"

/* Small, so that wrong addresses often hit something. */
#define RAM	  0x40000
#define TEXT	  0x20000
#define TEXT_SIZE 0x10000
#define SECONDS	  2
#define MAX_SITES 40

static uint64_t state = 0x243f6a8885a308d3ull;

static uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t below(uint32_t n)
{
	return random64() % n;
}

static void hello(struct fake *fake)
{
	const struct hvpoke_range range[] = {
		{.gpa = TEXT, .gva = FAKE_TEXT_GVA, .len = TEXT_SIZE / 2},
		{.gpa = TEXT + TEXT_SIZE / 2, .gva = FAKE_TEXT_GVA + TEXT_SIZE / 2, .len = 0x800},
	};

	fake->scope = below(HVPOKE_SCOPE_ALL + 1);
	fake_hello_ranges(fake, range, 2);
}

static bool scope_is_all(struct fake *fake)
{
	struct hvp_agent_info info;

	hvp_guest_agent(fake->guest, &info);
	return info.scope == HVPOKE_SCOPE_ALL;
}

/* Any two of a row can be exchanged for each other. */
static const enum fake_insn of_jump_labels[] = {FAKE_NOP5, FAKE_JMP5, FAKE_CALL5};
static const enum fake_insn of_static_calls[] = {FAKE_NOP5, FAKE_JMP5,	FAKE_CALL5, FAKE_RET5,
						 FAKE_XOR5, FAKE_XORQ5, FAKE_UD5};
static const enum fake_insn of_probes[][2] = {{FAKE_INT3, FAKE_PUSH1},
					      {FAKE_INT3_5, FAKE_PROBE_JMP5}};

static struct hvpoke_entry random_entry(uint64_t at, bool all)
{
	uint32_t target = (uint32_t)random64();
	unsigned int one = below(2);

	if (!all)
		return fake_entry(at, of_jump_labels[below(3)], of_jump_labels[below(3)], target);
	switch (below(4)) {
	case 0: return fake_entry(at, of_probes[0][one], of_probes[0][!one], target);
	case 1: return fake_entry(at, of_probes[1][one], of_probes[1][!one], target);
	case 2: return fake_entry(at, FAKE_JCC6, FAKE_JCC6, target);
	default:
		return fake_entry(at, of_static_calls[below(7)], of_static_calls[below(7)], target);
	}
}

/* A good batch at random places of the text, or what looks like one. */
static uint32_t random_entries(struct fake *fake, struct hvpoke_entry *entry)
{
	uint32_t nr = below(MAX_SITES), at = 0;
	bool all = scope_is_all(fake);

	for (uint32_t i = 0; i < nr; i++) {
		at += HVPOKE_MAX_INSN + below(1200);
		entry[i] = random_entry(TEXT + at, all);
		if (at + 16 >= TEXT_SIZE)
			return i;
		/* What stands there is what the batch says, most often. */
		if (below(200))
			fake_put(fake, &entry[i], entry[i].old_insn);
	}
	return nr;
}

static void fill_command(struct fake *fake, struct hvpoke_entry *entry, uint32_t *nr)
{
	struct hvpoke_cmd *cmd = fake_cmd(fake);

	*nr = 0;
	memset(cmd, 0, sizeof(*cmd));
	cmd->version = HVPOKE_ABI_VERSION;
	switch (below(8)) {
	case 0:
		cmd->cmd = HVPOKE_CMD_FETCH + below(3);
		cmd->complete.id = below(10);
		break;
	case 1: hello(fake); break;
	case 2:
		for (size_t i = 0; i < sizeof(*cmd); i++)
			((uint8_t *)cmd)[i] = random64();
		cmd->version = HVPOKE_ABI_VERSION;
		cmd->cmd = below(7);
		cmd->reserved = 0;
		break;
	default:
		*nr = random_entries(fake, entry);
		cmd->cmd = HVPOKE_CMD_BATCH;
		cmd->batch.nr_entries = *nr;
		cmd->batch.entries_gpa = fake_list(fake, FAKE_LIST, entry, *nr);
	}
}

/* Change a few bytes of the command, of the list, or of the records. */
static void mutate(struct fake *fake, uint32_t nr)
{
	static const uint8_t liked[] = {0, 1, 2, 5, 6, 0x10, 0x66, 0x7f, 0x80, 0xcc, 0xe9, 0xff};
	uint64_t at;

	for (uint32_t n = below(4); n; n--) {
		switch (below(3)) {
		case 0: at = FAKE_CMD + below(64); break;
		case 1: at = FAKE_LIST + below(64); break;
		default:
			at = FAKE_LIST + HVPOKE_PAGE_SIZE +
			     below((nr + 1) * sizeof(struct hvpoke_entry));
		}
		*(uint8_t *)fake_at(fake, at) = below(2) ? liked[below(sizeof(liked))] : random64();
	}
}

static bool same(struct fake *fake, const uint8_t *before, uint64_t start, uint64_t end)
{
	return !memcmp(fake->ram + start, before + start, end - start);
}

/* @before and the guest's memory now differ only in OUT fields; if applied, also in text. */
static void check_memory(struct fake *fake, const uint8_t *before, bool applied)
{
	const uint64_t middle = TEXT + TEXT_SIZE / 2;

	assert_true(same(fake, before, 0, FAKE_CMD));
	assert_true(same(fake, before, FAKE_CMD + HVPOKE_PAGE_SIZE, TEXT));
	assert_true(applied || same(fake, before, TEXT, middle + 0x800));
	assert_true(same(fake, before, middle + 0x800, RAM)); /* behind the second range */
}

/*
 * The text is 0x5a and whole instructions, before and after: no INT3 begins one
 * of them, whatever stands in displacements. (Kprobes, which only the widest scope
 * has, are INT3s.)
 */
static void check_no_int3(struct fake *fake)
{
	const uint8_t *text = fake_at(fake, TEXT);
	unsigned int found = 0;

	for (uint32_t at = 0; at < TEXT_SIZE; at++) {
		if (text[at] == 0xe8 || text[at] == 0xe9)
			at += 4;
		else if (text[at] == 0xeb)
			at++;
		else
			found += text[at] == 0xcc;
	}
	assert_int_equal(found, 0);
}

/* What a host answers: neither the agent's own words nor none at all. */
static bool known_status(enum hvpoke_status status)
{
	return status <= HVPOKE_HOST_ERROR || status == HVPOKE_BAD_KIND;
}

static void random_commands(void **unused)
{
	static uint8_t before[RAM];
	struct hvpoke_entry entry[MAX_SITES];
	unsigned int seen[HVPOKE_BAD_KIND + 1] = {0};
	unsigned int rounds = 0;
	enum hvpoke_status status;
	struct fake fake;
	bool all;
	time_t end = time(NULL) + SECONDS;
	uint32_t nr;

	(void)unused;
	fake_init(&fake, RAM);
	hello(&fake);
	do {
		if (below(64) == 0)
			hvp_guest_submit(fake.guest, HVPOKE_REQ_COUNT_IDLE, 1, NULL, NULL, NULL);
		memset(fake_at(&fake, TEXT), 0x5a, TEXT_SIZE);
		fill_command(&fake, entry, &nr);
		mutate(&fake, nr);
		memcpy(before, fake.ram, RAM);
		all = scope_is_all(&fake);
		status = hvp_guest_command(fake.guest, gpa(FAKE_CMD));
		assert_true(known_status(status));
		check_memory(&fake, before, status == HVPOKE_OK);
		if (status == HVPOKE_OK && !all)
			check_no_int3(&fake);
		assert_int_equal(fake.pauses, fake.resumes);
		seen[status]++;
		if (status == HVPOKE_NOT_HELLO)
			hello(&fake);
		rounds++;
	} while (rounds < 2000 || time(NULL) < end);
	print_message("%u commands\n", rounds);
	for (unsigned int s = 0; s <= HVPOKE_BAD_KIND; s++)
		if (seen[s])
			print_message("%8u %s\n", seen[s], hvpoke_status_text(s));
	assert_true(seen[HVPOKE_OK] && seen[HVPOKE_BAD_GPA] && seen[HVPOKE_BAD_OPCODE] &&
		    seen[HVPOKE_BAD_KIND] && seen[HVPOKE_MISMATCH]);
	fake_free(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
