// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The agent's sort against what it would use otherwise: a bottom-up binary heap
 * sort with an indirect comparison, the kind that the kernel's sort() is. The
 * same 64,983 items in no order, in the same run; the median of all rounds.
 * Prints a JSON object.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../proto/hvpoke_sort.h"

#define ENTRIES 64983u
#define ROUNDS	51u

typedef struct hvpoke_sort_item item_t;
typedef int (*compare_fn)(const void *a, const void *b);

static void swap_items(item_t *a, item_t *b)
{
	item_t item = *a;

	*a = *b;
	*b = item;
}

/*
 * Put the item at @root in its place in the heap of @nr: go down to a leaf along
 * the larger children without looking at the item itself (one comparison for
 * each level instead of two), then up again to where it belongs. Most items
 * belong near a leaf.
 */
static void sift_down(item_t *items, size_t root, size_t nr, compare_fn compare)
{
	size_t at = root, child, target;
	item_t item;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && compare(&items[child], &items[child + 1]) < 0)
			child++;
		at = child;
	}
	while (at != root && compare(&items[root], &items[at]) >= 0)
		at = (at - 1) / 2;
	/* Everything on the way from there to the root moves up by one. */
	target = at;
	item = items[target];
	items[target] = items[root];
	while (target != root) {
		target = (target - 1) / 2;
		swap_items(&items[target], &item);
	}
}

static __attribute__((noinline)) void heap_sort(item_t *items, size_t nr, compare_fn compare)
{
	for (size_t root = nr / 2; root-- > 0;)
		sift_down(items, root, nr, compare);
	while (nr > 1) {
		nr--;
		swap_items(&items[0], &items[nr]);
		sift_down(items, 0, nr, compare);
	}
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = ((const item_t *)a)->key, y = ((const item_t *)b)->key;

	return (x > y) - (x < y);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Sites of a kernel's text: any byte of 14 MiB, each at most once, in no order. */
static void fill(item_t *items)
{
	uint64_t x = 88172645463325252ull;

	for (uint32_t i = 0; i < ENTRIES; i++)
		items[i] = (item_t){
			.key = 0x1000000ull + (uint64_t)i * (14 << 20) / ENTRIES,
			.index = i,
		};
	for (uint32_t i = ENTRIES - 1; i > 0; i--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		swap_items(&items[i], &items[x % (i + 1)]);
	}
}

static bool is_sorted(const item_t *items)
{
	for (uint32_t i = 1; i < ENTRIES; i++)
		if (items[i - 1].key >= items[i].key)
			return false;
	return true;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static item_t unsorted[ENTRIES], items[ENTRIES];
	double radix[ROUNDS], heap[ROUNDS], start;
	void *scratch = malloc(hvpoke_sort_scratch(ENTRIES));
	const item_t *sorted;
	bool ok = scratch;

	fill(unsorted);
	for (unsigned int i = 0; i < ROUNDS && ok; i++) {
		memcpy(items, unsorted, sizeof(items));
		start = now_us();
		sorted = hvpoke_sort(items, ENTRIES, scratch);
		radix[i] = now_us() - start;
		ok = is_sorted(sorted);

		memcpy(items, unsorted, sizeof(items));
		start = now_us();
		heap_sort(items, ENTRIES, by_key);
		heap[i] = now_us() - start;
		ok = ok && is_sorted(items);
	}
	free(scratch);
	if (!ok) {
		fprintf(stderr, "sort: no memory, or the result is not sorted\n");
		return 1;
	}
	qsort(radix, ROUNDS, sizeof(radix[0]), by_time);
	qsort(heap, ROUNDS, sizeof(heap[0]), by_time);
	printf("{\"entries\": %u, \"radix_us\": %.1f, \"heap_us\": %.1f, \"ratio\": %.2f}\n",
	       ENTRIES, radix[ROUNDS / 2], heap[ROUNDS / 2], heap[ROUNDS / 2] / radix[ROUNDS / 2]);
	return 0;
}
