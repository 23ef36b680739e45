// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke_sort() against qsort() over many shapes; both must agree on every element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned int rescheds;
#define HVPOKE_SORT_RESCHED() (rescheds++)
#include "hvpoke_sort.h"

#define NR_MAX 65536

static struct hvpoke_sort_item *input, *sorted, *expected;
static void *scratch;

static uint64_t random64(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* By key, then by place: what a stable sort makes of it. */
static int compare(const void *a, const void *b)
{
	const struct hvpoke_sort_item *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static void check(uint32_t nr)
{
	const uint8_t *guard = (uint8_t *)scratch + hvpoke_sort_scratch(nr);
	const struct hvpoke_sort_item *result;

	for (uint32_t i = 0; i < nr; i++)
		input[i].index = i;
	memcpy(sorted, input, nr * sizeof(*input));
	memcpy(expected, input, nr * sizeof(*input));
	qsort(expected, nr, sizeof(*expected), compare);
	memset(scratch, 0xa5, hvpoke_sort_scratch(nr) + 1);
	result = hvpoke_sort(sorted, nr, scratch);
	assert_true(result == sorted || result == scratch);
	assert_memory_equal(result, expected, nr * sizeof(*expected));
	assert_int_equal(*guard, 0xa5);
}

static void for_sizes(uint64_t (*key)(uint32_t i, uint32_t nr))
{
	static const uint32_t sizes[] = {0,   1,   2,	3,    23,   24,	  25,	26,
					 100, 255, 600, 2047, 2048, 2049, 6000, NR_MAX};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		for (uint32_t i = 0; i < sizes[s]; i++)
			input[i] = (struct hvpoke_sort_item){.key = key(i, sizes[s])};
		check(sizes[s]);
	}
}

static uint64_t key_sorted(uint32_t i, uint32_t nr)
{
	(void)nr;
	return i * 7ull;
}

static uint64_t key_reversed(uint32_t i, uint32_t nr)
{
	return (nr - i) * 4099ull;
}

static uint64_t key_equal(uint32_t i, uint32_t nr)
{
	(void)i, (void)nr;
	return 0x1234567890abcdefull;
}

static uint64_t key_two_values(uint32_t i, uint32_t nr)
{
	(void)i, (void)nr;
	return random64() & (1ull << 63);
}

static uint64_t key_random(uint32_t i, uint32_t nr)
{
	(void)i, (void)nr;
	return random64();
}

static uint64_t key_few_values(uint32_t i, uint32_t nr)
{
	(void)i, (void)nr;
	return 0xffff800000000000ull + random64() % 13;
}

/* 14 MiB of kernel text, and modules far from it. */
static uint64_t key_kernel(uint32_t i, uint32_t nr)
{
	(void)nr;
	return i % 9 ? 0x1000000 + random64() % (14 << 20) : (1ull << 33) + random64() % (1 << 22);
}

static uint64_t key_ends(uint32_t i, uint32_t nr)
{
	(void)nr;
	return i % 3 ? (i % 3 == 1 ? 0 : UINT64_MAX) : random64();
}

static uint64_t key_almost_sorted(uint32_t i, uint32_t nr)
{
	return i == nr / 2 ? 0 : i + 1;
}

static uint64_t key_one_bit(uint32_t i, uint32_t nr)
{
	(void)nr;
	return 1ull << (i * 37 % 64);
}

static void every_shape(void **state)
{
	(void)state;
	for_sizes(key_sorted);
	for_sizes(key_reversed);
	for_sizes(key_equal);
	for_sizes(key_two_values);
	for_sizes(key_random);
	for_sizes(key_few_values);
	for_sizes(key_kernel);
	for_sizes(key_ends);
	for_sizes(key_almost_sorted);
	for_sizes(key_one_bit);
}

/* Keys that differ in every possible stretch of bits: every choice of digits. */
static void every_stretch_of_bits(void **state)
{
	(void)state;
	for (unsigned int low = 0; low < 64; low++) {
		for (unsigned int high = low; high < 64; high++) {
			uint64_t mask = (~0ull >> (63 - high)) & (~0ull << low);

			for (uint32_t i = 0; i < 64; i++)
				input[i].key = random64() & mask;
			check(64);
		}
	}
}

static void random_sizes(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		uint32_t nr = random64() % 4500;
		uint64_t mask = random64();

		mask &= random64();
		for (uint32_t i = 0; i < nr; i++)
			input[i].key = random64() & mask;
		check(nr);
	}
}

static void resched_between_passes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NR_MAX; i++)
		input[i].key = key_kernel(i, NR_MAX);
	rescheds = 0;
	check(NR_MAX);
	assert_in_range(rescheds, 3, 6);
	rescheds = 0;
	for (uint32_t i = 0; i < NR_MAX; i++)
		input[i].key = i;
	check(NR_MAX);
	assert_int_equal(rescheds, 0); /* sorted already */
}

static int setup(void **state)
{
	(void)state;
	input = calloc(NR_MAX, sizeof(*input));
	sorted = calloc(NR_MAX, sizeof(*sorted));
	expected = calloc(NR_MAX, sizeof(*expected));
	scratch = malloc(hvpoke_sort_scratch(NR_MAX) + 1);
	return input && sorted && expected && scratch ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(input);
	free(sorted);
	free(expected);
	free(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shape),
		cmocka_unit_test(every_stretch_of_bits),
		cmocka_unit_test(random_sizes),
		cmocka_unit_test(resched_between_passes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
