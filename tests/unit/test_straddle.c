// SPDX-License-Identifier: GPL-2.0-or-later
/* Sites that straddle two pages, which need not be neighbours in physical memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_backend.h"

/*
 * The text: pages in an order of their own in the guest's addresses. PAGE(n) is the
 * GPA of the nth page of kernel addresses.
 */
#define NR_PAGES 8
static const unsigned int place[NR_PAGES] = {5, 2, 7, 0, 3, 6, 1, 4};
#define PAGE(n) (FAKE_TEXT + (uint64_t)place[n] * HVPOKE_PAGE_SIZE)

static int setup(void **state)
{
	static struct fake fake;
	struct hvpoke_range range[NR_PAGES];

	fake_init(&fake, FAKE_RAM);
	for (unsigned int i = 0; i < NR_PAGES; i++)
		range[place[i]] = (struct hvpoke_range){
			.gpa = PAGE(i),
			.gva = FAKE_TEXT_GVA + i * HVPOKE_PAGE_SIZE,
			.len = HVPOKE_PAGE_SIZE,
		};
	assert_int_equal(fake_hello_ranges(&fake, range, NR_PAGES), HVPOKE_OK);
	*state = &fake;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

/* The site @back bytes before the end of the nth page. */
static struct hvpoke_entry site(unsigned int n, unsigned int back, enum fake_insn old,
				enum fake_insn new_insn, uint32_t target)
{
	struct hvpoke_entry entry =
		fake_entry(PAGE(n) + HVPOKE_PAGE_SIZE - back, old, new_insn, target);

	if (entry.gpa2)
		entry.gpa2 = PAGE(n + 1);
	return entry;
}

static void both_parts_are_written(void **state)
{
	struct fake *fake = *state;
	static uint8_t before[NR_PAGES * HVPOKE_PAGE_SIZE];
	uint8_t *text = fake_at(fake, FAKE_TEXT);
	struct hvpoke_entry entry;

	for (unsigned int n = 0; n < NR_PAGES - 1; n++) {
		for (unsigned int back = 1; back <= 5; back++) {
			entry = site(n, back, FAKE_NOP5, FAKE_JMP5, 0x01020304 * back);
			assert_int_equal(entry.gpa2 != 0, back < 5);
			memset(text, 0x5a, sizeof(before));
			fake_put(fake, &entry, entry.new_insn);
			memcpy(before, text, sizeof(before));
			fake_put(fake, &entry, entry.old_insn);
			assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_OK);
			assert_memory_equal(text, before, sizeof(before));
		}
	}
	entry = site(0, 1, FAKE_NOP2, FAKE_JMP2, 0x12);
	fake_put(fake, &entry, entry.old_insn);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_OK);
	assert_true(fake_holds(fake, &entry, entry.new_insn));
}

/* A mismatch in one byte of either part, or of a site beside it, writes neither. */
static void either_part_can_mismatch(void **state)
{
	struct fake *fake = *state;
	static uint8_t before[NR_PAGES * HVPOKE_PAGE_SIZE];
	uint8_t *text = fake_at(fake, FAKE_TEXT);
	struct hvpoke_entry entry[2] = {
		site(6, 8, FAKE_NOP2, FAKE_JMP2, 1),  /* on page 1 of the memory */
		site(0, 3, FAKE_CALL5, FAKE_NOP5, 2), /* on page 5, and on 2 */
	};

	for (unsigned int byte = 0; byte < 5; byte++) {
		fake_put(fake, &entry[0], entry[0].old_insn);
		fake_put(fake, &entry[1], entry[1].old_insn);
		*(uint8_t *)fake_at(fake, byte < 3 ? entry[1].gpa + byte
						   : entry[1].gpa2 + byte - 3) ^= 0x10;
		memcpy(before, text, sizeof(before));
		assert_int_equal(fake_batch(fake, entry, 2), HVPOKE_MISMATCH);
		assert_int_equal(fake_cmd(fake)->batch.bad_index, 1);
		assert_memory_equal(text, before, sizeof(before));
	}
}

static void refused(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr,
		    enum hvpoke_status status, uint32_t bad_index)
{
	assert_int_equal(fake_batch(fake, entry, nr), status);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, bad_index);
	assert_int_equal(fake_cmd(fake)->batch.written, 0);
	assert_int_equal(fake->pauses, 0);
}

static void the_second_page_is_checked(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry good = site(2, 2, FAKE_NOP5, FAKE_JMP5, 1), bad = good;

	bad.gpa2 = 0; /* missing */
	refused(fake, &bad, 1, HVPOKE_BAD_STRADDLE, 0);
	bad.gpa2 = good.gpa2 + 2; /* not page aligned */
	refused(fake, &bad, 1, HVPOKE_BAD_STRADDLE, 0);
	bad.gpa2 = PAGE(5); /* text, but not the page that follows */
	refused(fake, &bad, 1, HVPOKE_BAD_STRADDLE, 0);
	bad.gpa2 = PAGE(2); /* the same page again */
	refused(fake, &bad, 1, HVPOKE_BAD_STRADDLE, 0);
	bad.gpa2 = FAKE_TEXT + NR_PAGES * HVPOKE_PAGE_SIZE; /* behind the text */
	refused(fake, &bad, 1, HVPOKE_NOT_TEXT, 0);
	bad.gpa2 = FAKE_RAM;
	refused(fake, &bad, 1, HVPOKE_BAD_GPA, 0);
	bad.gpa2 = -(uint64_t)HVPOKE_PAGE_SIZE;
	refused(fake, &bad, 1, HVPOKE_BAD_GPA, 0);
	bad = site(2, 5, FAKE_NOP5, FAKE_JMP5, 1);
	bad.gpa2 = PAGE(3); /* not needed */
	refused(fake, &bad, 1, HVPOKE_BAD_STRADDLE, 0);
}

/* A second part overlaps sites that are before or behind its own in the batch. */
static void second_parts_overlap(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[3];

	/* Page 0 of kernel addresses is behind page 1 in memory: the batch begins with page 1. */
	entry[0] = fake_entry(PAGE(1) + 3, FAKE_NOP2, FAKE_JMP2, 1);
	entry[1] = site(0, 1, FAKE_NOP5, FAKE_JMP5, 1); /* 4 bytes on page 1 */
	refused(fake, entry, 2, HVPOKE_OVERLAP, 1);
	entry[0].gpa++;
	fake_put(fake, &entry[0], entry[0].old_insn);
	fake_put(fake, &entry[1], entry[1].old_insn);
	assert_int_equal(fake_batch(fake, entry, 2), HVPOKE_OK);
	fake->pauses = fake->resumes = 0;

	/* Page 2 is behind page 1 in memory: the site there comes later, and is the offender. */
	entry[0] = site(1, 1, FAKE_NOP5, FAKE_JMP5, 1);
	entry[1] = fake_entry(PAGE(2), FAKE_NOP2, FAKE_JMP2, 1);
	refused(fake, entry, 2, HVPOKE_OVERLAP, 1);

	/* An overlap before the first site that is bad by itself comes first; else not. */
	entry[2] = fake_entry(PAGE(2) + 0x100, FAKE_NOP2, FAKE_JMP2, 1);
	entry[2].len = 9;
	refused(fake, entry, 3, HVPOKE_OVERLAP, 1);
	entry[1].gpa += 0x80;
	refused(fake, entry, 3, HVPOKE_BAD_LENGTH, 2);
}

/* Ranges that no honest guest has: two pages at one address, and one that is off by two bytes. */
static void ranges_that_lie(void **state)
{
	struct fake *fake = *state;
	const struct hvpoke_range range[] = {
		{.gpa = FAKE_TEXT, .gva = FAKE_TEXT_GVA, .len = 0x1000},
		{.gpa = FAKE_TEXT + 0x1000, .gva = FAKE_TEXT_GVA, .len = 0x1000},
		{.gpa = FAKE_TEXT + 0x5000, .gva = FAKE_TEXT_GVA + 0x1000, .len = 0x1000},
		{.gpa = FAKE_TEXT + 0x7002, .gva = FAKE_TEXT_GVA + 0x1000, .len = 0x100},
	};
	struct hvpoke_entry entry[2] = {
		fake_entry(FAKE_TEXT + 0xffe, FAKE_NOP5, FAKE_JMP5, 1),
		fake_entry(FAKE_TEXT + 0x1ffd, FAKE_NOP5, FAKE_JMP5, 1),
	};

	assert_int_equal(fake_hello_ranges(fake, range, 4), HVPOKE_OK);
	entry[0].gpa2 = FAKE_TEXT + 0x5000;
	entry[1].gpa2 = FAKE_TEXT + 0x5000;
	refused(fake, entry, 2, HVPOKE_OVERLAP, 1);
	entry[0].gpa2 = FAKE_TEXT + 0x7002;
	refused(fake, entry, 2, HVPOKE_BAD_STRADDLE, 0);
}

static uint64_t random64(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/*
 * The rules again, in the plainest way: a map of who owns each byte. Only faults of order and
 * place; the entries' bytes are good.
 */
static enum hvpoke_status oracle(const struct hvpoke_entry *entry, uint32_t nr, uint32_t *bad)
{
	bool owned[NR_PAGES * HVPOKE_PAGE_SIZE] = {false};
	enum hvpoke_status status = HVPOKE_OK;

	for (uint32_t i = 0; i < nr; i++) {
		unsigned int room = HVPOKE_PAGE_SIZE - entry[i].gpa % HVPOKE_PAGE_SIZE;
		bool straddles = room < entry[i].len;
		unsigned int page = (entry[i].gpa - FAKE_TEXT) / HVPOKE_PAGE_SIZE, n = 0;
		unsigned int prev_len = 0;

		*bad = i;
		if (i) {
			unsigned int prev_room =
				HVPOKE_PAGE_SIZE - entry[i - 1].gpa % HVPOKE_PAGE_SIZE;

			prev_len = prev_room < entry[i - 1].len ? prev_room : entry[i - 1].len;
			if (entry[i].gpa < entry[i - 1].gpa)
				return HVPOKE_UNSORTED;
			if (entry[i].gpa < entry[i - 1].gpa + prev_len)
				return HVPOKE_OVERLAP;
		}
		if (straddles == !entry[i].gpa2)
			return HVPOKE_BAD_STRADDLE;
		while (place[n] != page)
			n++;
		if (straddles && (n + 1 == NR_PAGES || entry[i].gpa2 != PAGE(n + 1)))
			return HVPOKE_BAD_STRADDLE;
		for (unsigned int byte = 0; byte < entry[i].len; byte++) {
			uint64_t at =
				byte < room ? entry[i].gpa + byte : entry[i].gpa2 + byte - room;

			if (owned[at - FAKE_TEXT])
				status = HVPOKE_OVERLAP;
			owned[at - FAKE_TEXT] = true;
		}
		if (status != HVPOKE_OK)
			return status;
	}
	*bad = HVPOKE_NO_INDEX;
	return HVPOKE_OK;
}

static int by_gpa(const void *a, const void *b)
{
	const struct hvpoke_entry *x = a, *y = b;

	return (x->gpa > y->gpa) - (x->gpa < y->gpa);
}

/* Crowded around the pages' ends, mostly sorted, a few of them spoiled. */
static uint32_t random_batch(struct hvpoke_entry *entry)
{
	uint32_t nr = random64() % 24;

	for (uint32_t i = 0; i < nr; i++) {
		unsigned int n = random64() % (NR_PAGES - 1);
		bool is_long = random64() % 3;

		entry[i] = random64() % 2
				   ? site(n, 1 + random64() % 12, is_long ? FAKE_NOP5 : FAKE_NOP2,
					  is_long ? FAKE_JMP5 : FAKE_JMP2, 0)
				   : fake_entry(PAGE(n) + random64() % 16,
						is_long ? FAKE_NOP5 : FAKE_NOP2,
						is_long ? FAKE_JMP5 : FAKE_JMP2, 0);
	}
	qsort(entry, nr, sizeof(*entry), by_gpa);
	/* Overlaps would be in nearly every batch: leave most of the plain ones out. */
	for (uint32_t i = 1; i < nr; i++)
		if (random64() % 50 && entry[i].gpa < entry[i - 1].gpa + 5)
			memmove(&entry[i], &entry[i + 1], (--nr - i) * sizeof(*entry)), i--;
	if (nr && random64() % 8 == 0)
		entry[random64() % nr].gpa2 = random64() % 3 ? PAGE(random64() % NR_PAGES) : 0;
	if (nr > 1 && random64() % 8 == 0) {
		uint32_t i = random64() % (nr - 1);
		struct hvpoke_entry swap = entry[i];

		entry[i] = entry[i + 1];
		entry[i + 1] = swap;
	}
	return nr;
}

static void agrees_with_a_map_of_bytes(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[24];
	unsigned int seen[HVPOKE_HOST_ERROR + 1] = {0};

	for (int round = 0; round < 40000; round++) {
		uint32_t nr = random_batch(entry), bad;
		enum hvpoke_status status = oracle(entry, nr, &bad);

		for (uint32_t i = 0; status == HVPOKE_OK && i < nr; i++)
			fake_put(fake, &entry[i], entry[i].old_insn);
		assert_int_equal(fake_batch(fake, entry, nr), status);
		assert_int_equal(fake_cmd(fake)->batch.bad_index, bad);
		seen[status]++;
	}
	/* Each outcome was really among them. */
	assert_true(seen[HVPOKE_OK] > 1000);
	assert_true(seen[HVPOKE_OVERLAP] > 1000);
	assert_true(seen[HVPOKE_BAD_STRADDLE] > 1000);
	assert_true(seen[HVPOKE_UNSORTED] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_parts_are_written, setup, teardown),
		cmocka_unit_test_setup_teardown(either_part_can_mismatch, setup, teardown),
		cmocka_unit_test_setup_teardown(the_second_page_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(second_parts_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_that_lie, setup, teardown),
		cmocka_unit_test_setup_teardown(agrees_with_a_map_of_bytes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
