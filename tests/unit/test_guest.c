// SPDX-License-Identifier: GPL-2.0-or-later
/* The doorbell's command page, registration, statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine.h"
#include "fake_backend.h"

static int setup(void **state)
{
	static struct fake fake;

	fake_init(&fake, FAKE_RAM);
	*state = &fake;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static void command_page_must_be_ram(void **state)
{
	struct fake *fake = *state;

	assert_int_equal(hvp_guest_command(fake->guest, gpa(fake->size)), HVPOKE_BAD_GPA);
	assert_int_equal(hvp_guest_command(fake->guest, gpa(UINT64_MAX & ~0xfffull)),
			 HVPOKE_BAD_GPA);
	assert_int_equal(hvp_guest_command(fake->guest, gpa(FAKE_CMD + 8)), HVPOKE_BAD_GPA);
	assert_int_equal(fake_cmd(fake)->status, 0);
}

static void header_is_checked(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_cmd *cmd = fake_cmd(fake);

	cmd->version = HVPOKE_ABI_VERSION + 1;
	cmd->cmd = HVPOKE_CMD_HELLO;
	assert_int_equal(hvp_guest_command(fake->guest, gpa(FAKE_CMD)), HVPOKE_BAD_VERSION);
	assert_int_equal(cmd->status, HVPOKE_BAD_VERSION);

	cmd->version = HVPOKE_ABI_VERSION;
	cmd->reserved = 1;
	assert_int_equal(hvp_guest_command(fake->guest, gpa(FAKE_CMD)), HVPOKE_BAD_HEADER);
	assert_int_equal(cmd->status, HVPOKE_BAD_HEADER);

	assert_int_equal(fake_ring(fake, 0), HVPOKE_BAD_COMMAND);
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BYE + 1), HVPOKE_BAD_COMMAND);
	assert_int_equal(fake_ring(fake, 0xffffffff), HVPOKE_BAD_COMMAND);
}

static void hello_registers_the_agent(void **state)
{
	struct fake *fake = *state;
	struct hvp_agent_info info;

	hvp_guest_agent(fake->guest, &info);
	assert_false(info.present);
	fake_hello(fake);
	assert_int_equal(fake_cmd(fake)->hello.features, HVPOKE_FEATURES);
	assert_int_equal(fake_cmd(fake)->hello.max_sites, HVPOKE_MAX_SITES);
	assert_int_equal(fake_cmd(fake)->hello.bad_index, HVPOKE_NO_INDEX);
	hvp_guest_agent(fake->guest, &info);
	assert_true(info.present);
	assert_string_equal(info.kernel, "6.1.0-test");
	assert_string_equal(info.agent, "1.0");
	assert_int_equal(info.nr_ranges, 1);
	assert_true(info.probe_gva[0] == FAKE_TEXT_GVA + 0x42);

	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BYE), HVPOKE_OK);
	hvp_guest_agent(fake->guest, &info);
	assert_false(info.present);
	assert_int_equal(info.nr_ranges, 0);
	assert_string_equal(info.kernel, "");
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BYE), HVPOKE_NOT_HELLO);
}

/* The scope decides what a batch may do, so one that is unknown changes nothing. */
static void the_scope_is_checked(void **state)
{
	struct fake *fake = *state;
	struct hvp_agent_info info;

	for (uint32_t scope = HVPOKE_SCOPE_DYNDBG; scope <= HVPOKE_SCOPE_ALL; scope++) {
		fake->scope = scope;
		fake_hello(fake);
		hvp_guest_agent(fake->guest, &info);
		assert_int_equal(info.scope, scope);
	}
	fake->scope = HVPOKE_SCOPE_STATIC_KEYS;
	fake_hello(fake);
	for (fake->scope = HVPOKE_SCOPE_ALL + 1; fake->scope; fake->scope <<= 1) {
		assert_int_equal(fake_hello_ranges(fake, NULL, 0), HVPOKE_BAD_HEADER);
		assert_int_equal(fake_cmd(fake)->hello.bad_index, HVPOKE_NO_INDEX);
	}
	fake->scope = HVPOKE_SCOPE_DYNDBG;
	fake_hello_ranges(fake, NULL, 0);
	fake_cmd(fake)->hello.reserved = 1;
	fake_cmd(fake)->hello.scope = HVPOKE_SCOPE_ALL;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_HELLO), HVPOKE_BAD_HEADER);
	hvp_guest_agent(fake->guest, &info);
	assert_int_equal(info.scope, HVPOKE_SCOPE_DYNDBG);
}

static void commands_need_a_hello(void **state)
{
	struct fake *fake = *state;

	assert_int_equal(fake_batch(fake, NULL, 0), HVPOKE_NOT_HELLO);
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_FETCH), HVPOKE_NOT_HELLO);
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_COMPLETE), HVPOKE_NOT_HELLO);
	fake_hello(fake);
	assert_int_equal(fake_batch(fake, NULL, 0), HVPOKE_OK);
	hvp_guest_reset(fake->guest);
	assert_int_equal(fake_batch(fake, NULL, 0), HVPOKE_NOT_HELLO);
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_FETCH), HVPOKE_NOT_HELLO);
}

/* What the agent says of itself goes to terminals and into JSON. */
static void guest_strings_are_made_harmless(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_cmd *cmd = fake_cmd(fake);
	struct hvp_agent_info info;

	memset(cmd, 0, sizeof(*cmd));
	memset(cmd->hello.kernel, 'x', sizeof(cmd->hello.kernel));
	memcpy(cmd->hello.agent, "a\x1b[2J\n\xff\"\0hidden", 16);
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_HELLO), HVPOKE_OK);
	hvp_guest_agent(fake->guest, &info);
	assert_int_equal(strlen(info.kernel), sizeof(cmd->hello.kernel));
	assert_string_equal(info.agent, "a?[2J??\"");
}

static void ranges_are_checked(void **state)
{
	struct fake *fake = *state;
	const struct hvpoke_range good = {.gpa = FAKE_TEXT, .len = 0x1000};
	static const struct {
		struct hvpoke_range range;
		enum hvpoke_status status;
	} bad[] = {
		{{.gpa = FAKE_TEXT + 0x1000, .len = 0}, HVPOKE_BAD_HEADER},
		{{.gpa = FAKE_TEXT - 1, .len = 1}, HVPOKE_UNSORTED},
		{{.gpa = FAKE_TEXT, .len = 1}, HVPOKE_OVERLAP},
		{{.gpa = FAKE_TEXT + 0xfff, .len = 1}, HVPOKE_OVERLAP},
		{{.gpa = FAKE_RAM, .len = 1}, HVPOKE_BAD_GPA},
		{{.gpa = FAKE_RAM - 1, .len = 2}, HVPOKE_BAD_GPA},
		{{.gpa = FAKE_TEXT + 0x1000, .len = UINT64_MAX}, HVPOKE_BAD_GPA},
		{{.gpa = FAKE_TEXT + 0x1000, .len = -(FAKE_TEXT + 0x1000ull)}, HVPOKE_BAD_GPA},
		{{.gpa = UINT64_MAX, .len = 1}, HVPOKE_BAD_GPA},
	};
	struct hvpoke_range range[3] = {good, {.gpa = FAKE_TEXT + 0x1000, .len = 0x1000}};
	struct hvp_agent_info info;

	assert_int_equal(fake_hello_ranges(fake, range, 2), HVPOKE_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		range[1] = bad[i].range;
		range[2] = (struct hvpoke_range){0}; /* bad as well, but not the first */
		assert_int_equal(fake_hello_ranges(fake, range, 3), bad[i].status);
		assert_int_equal(fake_cmd(fake)->hello.bad_index, 1);
		hvp_guest_agent(fake->guest, &info);
		assert_int_equal(info.nr_ranges, 2); /* as it was */
	}
	assert_int_equal(fake_hello_ranges(fake, NULL, 0), HVPOKE_OK);
	hvp_guest_agent(fake->guest, &info);
	assert_int_equal(info.nr_ranges, 0);
}

/* An INT3 in registered text is text patching's; the host asks by kernel address. */
static void text_by_kernel_address(void **state)
{
	struct fake *fake = *state;
	const struct hvpoke_range range[] = {
		{.gpa = FAKE_TEXT, .gva = FAKE_TEXT_GVA, .len = 0x1000},
		{.gpa = FAKE_TEXT + 0x1000, .gva = 0xffffffffc0000000, .len = 0x10},
	};

	assert_false(hvp_guest_is_text_gva(fake->guest, 0));
	assert_int_equal(fake_hello_ranges(fake, range, 2), HVPOKE_OK);
	assert_true(hvp_guest_is_text_gva(fake->guest, FAKE_TEXT_GVA));
	assert_true(hvp_guest_is_text_gva(fake->guest, FAKE_TEXT_GVA + 0xfff));
	assert_true(hvp_guest_is_text_gva(fake->guest, 0xffffffffc000000f));
	assert_false(hvp_guest_is_text_gva(fake->guest, FAKE_TEXT_GVA - 1));
	assert_false(hvp_guest_is_text_gva(fake->guest, FAKE_TEXT_GVA + 0x1000));
	assert_false(hvp_guest_is_text_gva(fake->guest, 0xffffffffc0000010));
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BYE), HVPOKE_OK);
	assert_false(hvp_guest_is_text_gva(fake->guest, FAKE_TEXT_GVA));
}

static void many_ranges(void **state)
{
	struct fake *fake = *state;
	static struct hvpoke_range range[HVPOKE_MAX_RANGES + 1];
	struct hvpoke_entry entry;
	uint32_t nr = 20000;

	for (uint32_t i = 0; i < HVPOKE_MAX_RANGES + 1; i++)
		range[i] = (struct hvpoke_range){.gpa = FAKE_TEXT + i * 8ull, .len = 5};
	assert_int_equal(fake_hello_ranges(fake, range, nr), HVPOKE_OK);
	for (uint32_t i = 0; i < nr; i += 511) {
		entry = fake_entry(range[i].gpa, FAKE_NOP5, FAKE_JMP5, i);
		fake_put(fake, &entry, entry.old_insn);
		assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_OK);
		entry.gpa++;
		assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_NOT_TEXT);
	}
	entry = fake_entry(range[nr].gpa, FAKE_NOP5, FAKE_JMP5, 0);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_NOT_TEXT);

	fake_cmd(fake)->hello.nr_ranges = HVPOKE_MAX_RANGES + 1;
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_HELLO), HVPOKE_BAD_HEADER);
	assert_int_equal(fake_cmd(fake)->hello.bad_index, HVPOKE_NO_INDEX);
}

/* The most there may be, in a guest with room for the list. */
static void most_ranges(void **state)
{
	static struct hvpoke_range range[HVPOKE_MAX_RANGES];
	struct fake fake;

	(void)state;
	fake_init(&fake, 16 << 20);
	for (uint32_t i = 0; i < HVPOKE_MAX_RANGES; i++)
		range[i] = (struct hvpoke_range){.gpa = i * 2ull, .len = 2};
	assert_int_equal(fake_hello_ranges(&fake, range, HVPOKE_MAX_RANGES), HVPOKE_OK);
	range[HVPOKE_MAX_RANGES - 1].len = 0;
	assert_int_equal(fake_hello_ranges(&fake, range, HVPOKE_MAX_RANGES), HVPOKE_BAD_HEADER);
	assert_int_equal(fake_cmd(&fake)->hello.bad_index, HVPOKE_MAX_RANGES - 1);
	fake_free(&fake);
}

static void stats_add_up(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT, FAKE_NOP5, FAKE_JMP5, 1);
	struct hvp_stats stats;
	uint64_t total = 0, max = 0, last = 0;

	hvp_guest_stats(fake->guest, &stats);
	assert_true(stats.pauses == 0 && stats.pause_p50_ns == 0 && stats.pause_p99_ns == 0);
	fake_hello(fake);
	fake_put(fake, &entry, entry.old_insn);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_OK);
	assert_int_equal(fake_cmd(fake)->batch.written, 1);
	total += fake_cmd(fake)->batch.pause_ns;
	max = total;
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(fake_batch(fake, NULL, 0), HVPOKE_OK);
		last = fake_cmd(fake)->batch.pause_ns;
		assert_true(last > 0 && last >= fake_cmd(fake)->batch.apply_ns);
		total += last;
		max = last > max ? last : max;
	}
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_MISMATCH);
	last = fake_cmd(fake)->batch.pause_ns;
	total += last;
	max = last > max ? last : max;
	entry.len = 3;
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_BAD_LENGTH);

	hvp_guest_stats(fake->guest, &stats);
	assert_int_equal(stats.batches, 3001);
	assert_int_equal(stats.refused, 2);
	assert_int_equal(stats.sites, 1);
	assert_int_equal(stats.pauses, 3002);
	assert_int_equal(stats.pauses, fake->pauses);
	assert_int_equal(stats.last_status, HVPOKE_BAD_LENGTH);
	assert_int_equal(stats.last_kick_ns, 1000);
	assert_int_equal(stats.last_wake_ns, 2000);
	assert_true(stats.last_pause_ns == last);
	assert_true(stats.total_pause_ns == total);
	assert_true(stats.max_pause_ns == max);
	assert_true(stats.pause_p50_ns > 0 && stats.pause_p50_ns <= stats.pause_p99_ns);
	assert_true(stats.pause_p99_ns <= max);
}

/* Nearest rank, over the last 1,024. */
static void percentiles(void **state)
{
	struct fake *fake = *state;
	struct hvp_batch_result result = {.paused = true};
	struct hvp_stats stats;

	for (result.pause_ns = 1; result.pause_ns <= 1000; result.pause_ns++)
		hvp_counters_add(&fake->guest->counters, &result);
	hvp_guest_stats(fake->guest, &stats);
	assert_int_equal(stats.pause_p50_ns, 500);
	assert_int_equal(stats.pause_p99_ns, 990);
	for (; result.pause_ns <= 2000; result.pause_ns++)
		hvp_counters_add(&fake->guest->counters, &result);
	hvp_guest_stats(fake->guest, &stats);
	assert_int_equal(stats.pause_p50_ns, 976 + 512);
	assert_int_equal(stats.pause_p99_ns, 976 + 1014);
	assert_int_equal(stats.max_pause_ns, 2000);
	assert_int_equal(stats.total_pause_ns, 2000 * 2001 / 2);
}

static void freeing_nothing(void **state)
{
	(void)state;
	hvp_guest_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(command_page_must_be_ram, setup, teardown),
		cmocka_unit_test_setup_teardown(header_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(hello_registers_the_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(the_scope_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(commands_need_a_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(guest_strings_are_made_harmless, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(text_by_kernel_address, setup, teardown),
		cmocka_unit_test_setup_teardown(many_ranges, setup, teardown),
		cmocka_unit_test(most_ranges),
		cmocka_unit_test_setup_teardown(stats_add_up, setup, teardown),
		cmocka_unit_test_setup_teardown(percentiles, setup, teardown),
		cmocka_unit_test(freeing_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
