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
#define TORN_VCPUS  4
#define TORN_SITES  2004 /* of each batch */
#define TORN_MAX_US 8191

/* What the guest has seen so far; it stands in its memory. */
struct torn_figures {
	atomic_uint done;			/* batches that were applied */
	_Atomic uint64_t walks[TORN_VCPUS];	/* along the sites */
	_Atomic uint64_t across[TORN_VCPUS];	/* of them, those that saw two batches */
	uint64_t longest_ns;			/* of the pauses, as the host says */
	uint32_t pauses_of_us[TORN_MAX_US + 1]; /* how many were so long; the last: or longer */
};

/*
 * Make the guest and let it run @nr_batches; guest_finish() waits for their end, and fails if a
 * vCPU has seen a torn instruction or two states mixed.
 */
struct torn_figures *torn_start(struct guest *guest, uint32_t nr_batches);

#endif /* TESTS_KVM_TORN_H */
