/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_CHECK_H
#define HVP_CHECK_H

#include "engine.h"

/*
 * May the @nr entries at @slot be applied to @guest, as far as can be told
 * without looking at the text itself? HVPOKE_OK, or why not, with @bad_index the first
 * entry in batch order that may not. Of several faults of one entry the first
 * in this order counts: BAD_HEADER, BAD_KIND, BAD_LENGTH, BAD_OPCODE, UNSORTED,
 * OVERLAP, BAD_STRADDLE, BAD_GPA, NOT_TEXT. HVPOKE_HOST_ERROR if out of memory.
 */
enum hvpoke_status hvp_check(const struct hvp_guest *guest, const union hvp_slot *slot, uint32_t nr,
			     uint32_t *bad_index);

/* Bytes of @entry that stand at its gpa; the others, if any, stand at gpa2. */
static inline unsigned int hvp_first_part(const struct hvpoke_entry *entry)
{
	unsigned int room = HVPOKE_PAGE_SIZE - (entry->gpa & HVPOKE_PAGE_MASK);

	return entry->len < room ? entry->len : room;
}

/*
 * The part of the check that needs the whole batch (straddle.c): no second
 * part, wherever its page is, overlaps any other site. The entries have passed
 * every other check; @nr_straddling of them have a second part. HVPOKE_OK, OVERLAP, or
 * HOST_ERROR. @bad_index is the later one, in batch order, of the first two
 * that overlap.
 */
enum hvpoke_status hvp_straddle_check(const union hvp_slot *slot, uint32_t nr,
				      uint32_t nr_straddling, uint32_t *bad_index);

#endif /* HVP_CHECK_H */
