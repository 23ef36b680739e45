// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why not just read a byte of each page: a read maps a page of a memfd
 * read-only, or a hole of it not at all, and the write in the pause would fault
 * again. Why not read a byte and write it back: the guest runs, and a store of its
 * own between the two would be undone.
 *
 * MADV_POPULATE_WRITE (Linux 5.14) takes the write faults without a write, and
 * says so where a fault would have been a SIGBUS. Older kernels get a locked OR
 * with 0: always a write to the page tables, never a change, and atomic for the
 * guest's own stores and instruction fetches (SDM volume 3, "Locked Atomic
 * Operations").
 *
 * A page may be reclaimed again before the pause. Then the pause takes longer;
 * nothing worse. Locking all text into memory is the operator's business.
 */
#include <errno.h>
#include <sys/mman.h>

#include "check.h"
#include "touch.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Pages that are this near to each other are touched in one system call, with
 * those between them, which are text as well and resident as a rule. Measured: a call costs
 * about as much as two more pages in another.
 */
#define TOUCH_GAP (2 * HVPOKE_PAGE_SIZE)

/* Pages to be touched: guest physical, [start, end). */
struct run {
	uint64_t start;
	uint64_t end;
};

void hvp_touch_by_store(void *start, size_t len)
{
	/* Assembly: a compiler may turn an atomic OR with 0 into a load. */
	for (size_t at = 0; at < len; at += HVPOKE_PAGE_SIZE)
		asm volatile("lock orb $0, %0" : "+m"(*((uint8_t *)start + at)) : : "cc");
}

/* EINVAL is also what a mapping gets that may not be written: is it the kernel, or the mapping? */
static bool can_populate(void)
{
	static _Alignas(HVPOKE_PAGE_SIZE) uint8_t page[HVPOKE_PAGE_SIZE];

	return !madvise(page, sizeof(page), MADV_POPULATE_WRITE);
}

static int run_flush(const struct hvp_guest *guest, const struct run *run)
{
	size_t len = run->end - run->start;
	void *start;
	int err;

	if (!len)
		return 0;
	start = hvp_translate(guest, run->start, len);
	if (!start)
		return -EFAULT;
	if (!madvise(start, len, MADV_POPULATE_WRITE))
		return 0;
	err = -errno;
	if (err != -EINVAL || can_populate())
		return err;
	hvp_touch_by_store(start, len);
	return 0;
}

static int run_add(const struct hvp_guest *guest, struct run *run, uint64_t addr)
{
	uint64_t page = addr & ~(uint64_t)HVPOKE_PAGE_MASK;
	int err;

	if (page >= run->start && page < run->end)
		return 0;
	/* Only if all between is RAM, in one piece, can the two be touched together. */
	if (run->end && page >= run->end && page - run->end <= TOUCH_GAP &&
	    hvp_translate(guest, run->start, page + HVPOKE_PAGE_SIZE - run->start)) {
		run->end = page + HVPOKE_PAGE_SIZE;
		return 0;
	}
	err = run_flush(guest, run);
	*run = (struct run){.start = page, .end = page + HVPOKE_PAGE_SIZE};
	return err;
}

int hvp_touch(const struct hvp_guest *guest, const union hvp_slot *slot, uint32_t nr)
{
	struct run first = {0}, second = {0};
	const struct hvpoke_entry *entry;
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++) {
		entry = &slot[i].entry;
		err = run_add(guest, &first, entry->gpa);
		if (!err && entry->gpa2)
			err = run_add(guest, &second, entry->gpa2);
	}
	if (!err)
		err = run_flush(guest, &first);
	if (!err)
		err = run_flush(guest, &second);
	return err;
}
