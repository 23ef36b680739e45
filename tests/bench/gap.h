/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gap.h - the pause as a guest sees it: one CPU does nothing but read its time stamp counter,
 * and notes the largest gap between two reads; another one sends the batches. This is the
 * part of both in the guest, the same one under hvpoke-vmm (gap_vmm.c) and under QEMU
 * (tests/qemu/guest).
 */
#ifndef TESTS_BENCH_GAP_H
#define TESTS_BENCH_GAP_H

#include <linux/types.h>

#define GAP_SITES   2048u /* of one batch, 16 bytes apart */
#define GAP_WINDOWS 500u  /* with a batch in each, and as many without */
#define GAP_ROUND   100u  /* of them in one request to a guest of QEMU's, which may be slow */
#define GAP_WARM_UP 16u	  /* batches before them; even, as they go on and off */

/* What a guest's functions need besides; a guest that has such says so first. */
#ifndef GAP_FN
#define GAP_FN static inline __attribute__((always_inline, unused))
#endif

struct gap_watch {
	__u32 asked;   /* by the CPU that sends */
	__u32 taken;   /* by the one that watches: the last that it has answered */
	__u32 largest; /* ticks, in the window that ended so */
};

GAP_FN __u64 gap_now(void)
{
	__u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (__u64)high << 32 | low;
}

/* Does not return. */
GAP_FN void gap_watch(volatile struct gap_watch *watch)
{
	__u64 last = gap_now(), now, ticks;
	__u32 largest = 0;

	for (;;) {
		now = gap_now();
		ticks = now - last;
		last = now;
		if (ticks > largest)
			largest = ticks > 0xffffffff ? 0xffffffff : (__u32)ticks;
		/* Behind the gap itself: one that is open when it is asked for counts. */
		if (watch->asked != watch->taken) {
			watch->largest = largest;
			largest = 0;
			watch->taken = watch->asked;
		}
	}
}

/* End a window, and begin the next: the largest gap, ticks. */
GAP_FN __u32 gap_take(volatile struct gap_watch *watch)
{
	watch->asked++;
	while (watch->taken != watch->asked)
		;
	return watch->largest;
}

/* A window of @ticks in which nothing happens. */
GAP_FN __u32 gap_idle(volatile struct gap_watch *watch, __u32 ticks)
{
	__u64 start;

	gap_take(watch);
	start = gap_now();
	while (gap_now() - start < ticks)
		;
	return gap_take(watch);
}

#endif /* TESTS_BENCH_GAP_H */
