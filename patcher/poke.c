// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inside of the pause is the cost that the guest sees, so nothing is
 * decided here: no translation, no allocation, no lock, no system call. What is
 * left is a cache miss for each site, and those are asked for ahead of time.
 */
#include <string.h>

#include "check.h"
#include "fault.h"
#include "insn.h"
#include "poke.h"

/* Sites. Far enough for a miss to memory at a few ns a site; not so far that L1 overflows. */
#define PREFETCH_AHEAD 24

bool hvp_poke_prepare(const struct hvp_guest *guest, union hvp_slot *slot, uint32_t nr,
		      uint32_t *bad_index)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct hvpoke_entry *entry = &slot[i].entry;
		unsigned int first = hvp_first_part(entry);
		uint8_t *at = hvp_translate(guest, entry->gpa, first), *at2 = NULL;

		if (entry->gpa2)
			at2 = hvp_translate(guest, entry->gpa2, entry->len - first);
		if (!at || (entry->gpa2 && !at2)) {
			*bad_index = i;
			return false;
		}
		slot[i].poke.at = at;
		slot[i].poke.at2 = at2;
		slot[i].poke.first = first;
	}
	return true;
}

/* Sizes that the compiler knows: a load and a compare or two, no call. */
static inline bool holds(const struct hvp_poke *poke)
{
	if (poke->at2)
		return !memcmp(poke->at, poke->old_insn, poke->first) &&
		       !memcmp(poke->at2, poke->old_insn + poke->first, poke->len - poke->first);
	switch (poke->len) {
	case HVP_INSN_LONG: return !memcmp(poke->at, poke->old_insn, HVP_INSN_LONG);
	case HVP_INSN_SHORT: return !memcmp(poke->at, poke->old_insn, HVP_INSN_SHORT);
	case HVP_INSN_JCC: return !memcmp(poke->at, poke->old_insn, HVP_INSN_JCC);
	default: return poke->at[0] == poke->old_insn[0];
	}
}

static inline void put(const struct hvp_poke *poke)
{
	if (poke->at2) {
		memcpy(poke->at, poke->new_insn, poke->first);
		memcpy(poke->at2, poke->new_insn + poke->first, poke->len - poke->first);
		return;
	}
	switch (poke->len) {
	case HVP_INSN_LONG: memcpy(poke->at, poke->new_insn, HVP_INSN_LONG); break;
	case HVP_INSN_SHORT: memcpy(poke->at, poke->new_insn, HVP_INSN_SHORT); break;
	case HVP_INSN_JCC: memcpy(poke->at, poke->new_insn, HVP_INSN_JCC); break;
	default: poke->at[0] = poke->new_insn[0]; break;
	}
}

uint32_t hvp_poke_verify(const union hvp_slot *slot, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (i + PREFETCH_AHEAD < nr)
			__builtin_prefetch(slot[i + PREFETCH_AHEAD].poke.at, 1);
		if (!holds(&slot[i].poke))
			return i;
	}
	return nr;
}

void hvp_poke_write(const union hvp_slot *slot, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (i + PREFETCH_AHEAD < nr)
			__builtin_prefetch(slot[i + PREFETCH_AHEAD].poke.at, 1);
		put(&slot[i].poke);
		fault("site-written");
	}
}
