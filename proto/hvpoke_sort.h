/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hvpoke_sort.h - sort a batch's sites by address.
 *
 * A stable radix sort from the lowest digit up, on (key, index) pairs in
 * memory of the caller's. Self-contained: the kernel module and the host
 * compile this very file.
 *
 * Why not the kernel's sort(): it is a heap sort, log2(n) indirect calls and
 * a cache miss or two for each element. Here an element is moved two or three
 * times in all. The instructions count as much as the time: a guest may run
 * on an emulator at a million of them a second, so digits in which no two keys
 * differ are skipped, and the counters stay few while the elements are few.
 *
 * An includer that must not hold the CPU for long defines
 * HVPOKE_SORT_RESCHED() (cond_resched() in the kernel) before it includes
 * this file; it is called before each pass over the elements.
 */
#ifndef HVPOKE_SORT_H
#define HVPOKE_SORT_H

#include <linux/types.h>

#ifndef HVPOKE_SORT_RESCHED
#define HVPOKE_SORT_RESCHED() \
	do {                  \
	} while (0)
#endif

struct hvpoke_sort_item {
	__u64 key;
	__u32 index; /* the caller's; carried along */
	__u32 unused;
};

/* The widest digit: its counters (8 KiB) still fit the L1 cache. */
#define HVPOKE_SORT_MAX_BITS 11
/* Below HVPOKE_SORT_FEW elements, going through 2^11 counters would cost more than a pass saves. */
#define HVPOKE_SORT_FEW	     2048
#define HVPOKE_SORT_FEW_BITS 8
/* So few are sorted by insertion. */
#define HVPOKE_SORT_TINY 24
/* 64 bits in digits of 8. */
#define HVPOKE_SORT_MAX_PASSES 8

/* Bytes of scratch memory that hvpoke_sort() needs for @nr items. */
static inline unsigned long hvpoke_sort_scratch(__u32 nr)
{
	return nr * (unsigned long)sizeof(struct hvpoke_sort_item) +
	       (2ul << HVPOKE_SORT_MAX_BITS) * sizeof(__u32);
}

static inline void hvpoke_sort_insertion(struct hvpoke_sort_item *items, __u32 nr)
{
	struct hvpoke_sort_item item;
	__u32 i, at;

	for (i = 1; i < nr; i++) {
		item = items[i];
		for (at = i; at && items[at - 1].key > item.key; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

/*
 * Cover the bits set in @differ with digits of @bits bits. Fills in where each
 * begins, returns how many there are; HVPOKE_SORT_MAX_PASSES + 1 if that is
 * not enough of them.
 */
static inline unsigned int hvpoke_sort_digits(__u64 differ, unsigned int bits, __u8 *shift)
{
	unsigned int nr = 0, end;

	while (differ && nr <= HVPOKE_SORT_MAX_PASSES) {
		shift[nr] = (__u8)__builtin_ctzll(differ);
		end = shift[nr] + bits;
		differ = end < 64 ? differ & (~0ull << end) : 0;
		nr++;
	}
	return nr;
}

/*
 * One pass: @from to @to by the digit at @shift. @counts holds how often each
 * value of the digit occurs. @next, if not NULL, is counted for the digit at
 * @next_shift on the way: the order of the elements does not matter for that.
 */
static inline void hvpoke_sort_pass(const struct hvpoke_sort_item *from,
				    struct hvpoke_sort_item *to, __u32 nr, __u64 mask,
				    unsigned int shift, __u32 *counts, unsigned int next_shift,
				    __u32 *next)
{
	__u32 i, sum = 0, count;

	for (i = 0; i <= mask; i++) {
		count = counts[i];
		counts[i] = sum;
		sum += count;
		if (next)
			next[i] = 0;
	}
	for (i = 0; i < nr; i++) {
		to[counts[(from[i].key >> shift) & mask]++] = from[i];
		if (next)
			next[(from[i].key >> next_shift) & mask]++;
	}
}

/*
 * Sort @items by key; equal keys keep their order. @scratch has
 * hvpoke_sort_scratch(@nr) bytes, aligned for a __u64. Returns where the result
 * is: @items or @scratch. The other one's content is lost.
 */
static inline struct hvpoke_sort_item *hvpoke_sort(struct hvpoke_sort_item *items, __u32 nr,
						   void *scratch)
{
	struct hvpoke_sort_item *from = items, *to = scratch, *swap;
	__u32 *counts = (__u32 *)(to + nr), *next = counts + (1u << HVPOKE_SORT_MAX_BITS), *done;
	unsigned int bits = nr < HVPOKE_SORT_FEW ? HVPOKE_SORT_FEW_BITS : HVPOKE_SORT_MAX_BITS;
	__u8 shift[HVPOKE_SORT_MAX_PASSES + 1];
	__u64 differ = 0, mask, last;
	unsigned int passes, pass;
	int sorted = 1;
	__u32 i;

	if (nr <= HVPOKE_SORT_TINY) {
		hvpoke_sort_insertion(items, nr);
		return items;
	}
	for (i = 0, last = items[0].key; i < nr; i++) {
		differ |= items[i].key ^ items[0].key;
		sorted &= items[i].key >= last;
		last = items[i].key;
	}
	if (sorted)
		return items;

	/* As narrow as the same number of passes allows: fewer counters to go through. */
	passes = hvpoke_sort_digits(differ, bits, shift);
	while (bits > 1 && hvpoke_sort_digits(differ, bits - 1, shift) == passes)
		bits--;
	hvpoke_sort_digits(differ, bits, shift);
	mask = (1ull << bits) - 1;

	for (i = 0; i <= mask; i++)
		counts[i] = 0;
	for (i = 0; i < nr; i++)
		counts[(from[i].key >> shift[0]) & mask]++;
	for (pass = 0; pass < passes; pass++) {
		int more = pass + 1 < passes;

		HVPOKE_SORT_RESCHED();
		hvpoke_sort_pass(from, to, nr, mask, shift[pass], counts,
				 more ? shift[pass + 1] : 0, more ? next : NULL);
		swap = from;
		from = to;
		to = swap;
		done = counts;
		counts = next;
		next = done;
	}
	return from;
}

#endif /* HVPOKE_SORT_H */
