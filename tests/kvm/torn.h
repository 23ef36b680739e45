/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_TORN_H
#define TESTS_KVM_TORN_H

#include "guest.h"

/*
 * Four vCPUs run the patched sites while batches rewrite them.
 *
 * Four sites stand in a straight line. Each is a 5-byte instruction whose target
 * says which batch wrote it last (modulo 16), by the landing pad that it jumps
 * to: a pad loads its number into the site's register and jumps back behind the
 * site. The number 0 is a NOP, behind which pad 0 stands. So a walk along the
 * sites gives four numbers, which must be those of the same batch, unless a
 * batch came in between: then the later sites may show the newer one, never
 * the other way round. Everywhere else stands ud2, and the targets differ in
 * two bytes: half an old and half a new jump leads to an invalid opcode.
 *
 * Site 1 crosses a cache line, site 2 two pages that are not next to each
 * other in physical memory. Between site 0 and the others stand 2,000 sites
 * that nobody walks along: without a pause, to write them takes longer than to
 * walk from site 0 to site 1, and a walk would see new and then old.
 */
#define TORN_VCPUS 4
#define TORN_SITES 2004 /* of each batch */
/* Pauses are counted by their length: each us below 256, then 16 steps to the next power of 2. */
#define TORN_EXACT   256u
#define TORN_STEPS   16u
#define TORN_LENGTHS (TORN_EXACT + 24 * TORN_STEPS)

/* What the guest has seen so far; it stands in its memory. */
struct torn_figures {
	atomic_uint done;		     /* batches that were applied */
	_Atomic uint64_t walks[TORN_VCPUS];  /* along the sites */
	_Atomic uint64_t across[TORN_VCPUS]; /* of them, those that saw two batches */
	uint64_t longest_ns;		     /* of the pauses, as the host says */
	uint32_t lengths[TORN_LENGTHS];
};

/*
 * Make the guest and let it run @nr_batches; guest_finish() waits for their end, and fails if a
 * vCPU has seen a torn instruction or two states mixed.
 */
struct torn_figures *torn_start(struct guest *guest, uint32_t nr_batches);

/* The place of a pause of @us in lengths[]. */
GUEST_INLINE uint32_t torn_length(uint64_t us)
{
	uint32_t doublings = 0;

	if (us < TORN_EXACT)
		return (uint32_t)us;
	while (us >= 2 * TORN_STEPS) {
		us >>= 1;
		doublings++;
	}
	/* 256 us have come down to 16 by four. */
	doublings = TORN_EXACT + (doublings - 4) * TORN_STEPS + (uint32_t)(us - TORN_STEPS);
	return doublings < TORN_LENGTHS ? doublings : TORN_LENGTHS - 1;
}

/* The shortest pause, in us, that is longer than all of place @at. */
static inline uint64_t torn_length_end(uint32_t at)
{
	uint32_t behind = at - TORN_EXACT;

	if (at < TORN_EXACT)
		return at + 1;
	return (uint64_t)(TORN_STEPS + behind % TORN_STEPS + 1) << (behind / TORN_STEPS + 4);
}

#endif /* TESTS_KVM_TORN_H */
