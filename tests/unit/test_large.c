// SPDX-License-Identifier: GPL-2.0-or-later
/* Batches of 65,536 sites and of the most there may be, over 14 MiB of text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fake_backend.h"

#define MIB	  (1ull << 20)
#define TEXT	  (64 * MIB) /* below it the list: 32 MiB for the most sites */
#define TEXT_SIZE (14 * MIB)
#define RAM	  (80 * MIB)
#define MANY	  65536u

static struct hvpoke_entry *entry;
static uint8_t *expected;

static int setup(void **state)
{
	static struct fake fake;
	const struct hvpoke_range text = {.gpa = TEXT, .gva = FAKE_TEXT_GVA, .len = TEXT_SIZE};

	fake_init(&fake, RAM);
	assert_int_equal(fake_hello_ranges(&fake, &text, 1), HVPOKE_OK);
	entry = calloc(HVPOKE_MAX_SITES, sizeof(*entry));
	expected = malloc(TEXT_SIZE);
	*state = &fake;
	return entry && expected ? 0 : -1;
}

static int teardown(void **state)
{
	fake_free(*state);
	free(entry);
	free(expected);
	return 0;
}

/* @nr sites evenly over the text, some of them straddling; @expected is what shall become of it. */
static void lay_out(struct fake *fake, uint32_t nr)
{
	uint8_t *text = fake_at(fake, TEXT);
	uint64_t step = TEXT_SIZE / nr;

	memset(text, 0x5a, TEXT_SIZE);
	for (uint32_t i = 0; i < nr; i++) {
		entry[i] = fake_entry(TEXT + i * step, FAKE_NOP5, FAKE_JMP5, i);
		fake_put(fake, &entry[i], entry[i].new_insn);
	}
	memcpy(expected, text, TEXT_SIZE);
	for (uint32_t i = 0; i < nr; i++)
		fake_put(fake, &entry[i], entry[i].old_insn);
}

static double ms_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - start->tv_sec) * 1e3 + (now.tv_nsec - start->tv_nsec) / 1e6;
}

static void apply(struct fake *fake, uint32_t nr)
{
	struct hvpoke_cmd *cmd = fake_cmd(fake);
	struct timespec start;
	double all;

	fake_batch(fake, NULL, 0);
	cmd->batch.nr_entries = nr;
	cmd->batch.entries_gpa = fake_list(fake, FAKE_LIST, entry, nr);
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(fake_ring(fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	all = ms_since(&start);
	assert_int_equal(cmd->batch.written, nr);
	assert_memory_equal(fake_at(fake, TEXT), expected, TEXT_SIZE);
	print_message("%u sites: %.2f ms in all, %.3f ms of it in the pause (%.1f ns a site)\n", nr,
		      all, cmd->batch.apply_ns / 1e6, (double)cmd->batch.apply_ns / nr);
}

static void many_sites_are_one_batch(void **state)
{
	struct fake *fake = *state;

	for (int round = 0; round < 3; round++) {
		lay_out(fake, MANY);
		apply(fake, MANY);
	}
	assert_int_equal(fake->pauses, 6);
	lay_out(fake, 1905);
	apply(fake, 1905);
}

static void the_last_of_many_mismatches(void **state)
{
	struct fake *fake = *state;

	lay_out(fake, MANY);
	*(uint8_t *)fake_at(fake, entry[MANY - 1].gpa + 4) = 0xcc;
	memcpy(expected, fake_at(fake, TEXT), TEXT_SIZE);
	assert_int_equal(fake_batch(fake, entry, MANY), HVPOKE_MISMATCH);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, MANY - 1);
	assert_memory_equal(fake_at(fake, TEXT), expected, TEXT_SIZE);
}

static void as_many_as_there_may_be(void **state)
{
	struct fake *fake = *state;

	lay_out(fake, HVPOKE_MAX_SITES);
	apply(fake, HVPOKE_MAX_SITES);
	entry[HVPOKE_MAX_SITES - 1].gpa--;
	entry[HVPOKE_MAX_SITES - 1].reserved[1] = 1;
	assert_int_equal(fake_batch(fake, entry, HVPOKE_MAX_SITES), HVPOKE_BAD_HEADER);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, HVPOKE_MAX_SITES - 1);
}

/* Mapped, not resident: TSan's shadow of what was given back stays resident. */
static unsigned long mapped_kib(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/self/status", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmSize: %lu", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

/* The host's copy of a huge batch does not stay with it. */
static void memory_is_given_back(void **state)
{
	struct fake *fake = *state;
	unsigned long before, after;

	lay_out(fake, HVPOKE_MAX_SITES);
	before = mapped_kib();
	assert_int_equal(fake_batch(fake, entry, HVPOKE_MAX_SITES), HVPOKE_OK);
	after = mapped_kib();
	assert_true(after < before + 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_sites_are_one_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_of_many_mismatches, setup, teardown),
		cmocka_unit_test_setup_teardown(as_many_as_there_may_be, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_is_given_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
