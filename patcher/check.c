// SPDX-License-Identifier: GPL-2.0-or-later
#include "check.h"
#include "insn.h"

static bool all_zero(const uint8_t *bytes, unsigned int len)
{
	uint8_t sum = 0;

	while (len--)
		sum |= *bytes++;
	return !sum;
}

static enum hvpoke_status check_bytes(const struct hvpoke_entry *entry, uint32_t scope)
{
	unsigned int len = entry->len;

	if (!all_zero(entry->reserved, sizeof(entry->reserved)))
		return HVPOKE_BAD_HEADER;
	if (!hvp_insn_kind_known(entry->kind, scope))
		return HVPOKE_BAD_KIND;
	if (!hvp_insn_len_known(entry->kind, len, scope))
		return HVPOKE_BAD_LENGTH;
	if (!all_zero(entry->old_insn + len, HVPOKE_MAX_INSN - len) ||
	    !all_zero(entry->new_insn + len, HVPOKE_MAX_INSN - len))
		return HVPOKE_BAD_OPCODE;
	if (!hvp_insn_known(entry->kind, entry->old_insn, entry->new_insn, len, scope))
		return HVPOKE_BAD_OPCODE;
	return HVPOKE_OK;
}

static enum hvpoke_status check_order(const struct hvpoke_entry *entry,
				      const struct hvpoke_entry *before)
{
	if (entry->gpa < before->gpa)
		return HVPOKE_UNSORTED;
	/* A difference, not a sum: cannot wrap around. */
	if (entry->gpa - before->gpa < hvp_first_part(before))
		return HVPOKE_OVERLAP;
	return HVPOKE_OK;
}

static enum hvpoke_status check_part(const struct hvp_guest *guest, uint64_t addr, unsigned int len,
				     const struct hvpoke_range **range, uint32_t *hint)
{
	*range = hvp_ranges_find(&guest->ranges, addr, len, hint);
	if (*range)
		return HVPOKE_OK;
	return hvp_is_ram(guest->backend, guest->ctx, addr, len) ? HVPOKE_NOT_TEXT : HVPOKE_BAD_GPA;
}

static enum hvpoke_status check_place(const struct hvp_guest *guest,
				      const struct hvpoke_entry *entry, uint32_t *hint)
{
	unsigned int first = hvp_first_part(entry);
	const struct hvpoke_range *range, *range2;
	bool straddles = first < entry->len;
	enum hvpoke_status status;

	if (straddles != (entry->gpa2 != 0) || (entry->gpa2 & HVPOKE_PAGE_MASK))
		return HVPOKE_BAD_STRADDLE;
	status = check_part(guest, entry->gpa, first, &range, hint);
	if (status != HVPOKE_OK || !straddles)
		return status;
	status = check_part(guest, entry->gpa2, entry->len - first, &range2, hint);
	if (status != HVPOKE_OK)
		return status;
	/*
	 * Both are text, but do they follow one another in the guest's addresses?
	 * The old bytes cannot tell: the end of a NOP is zeroes, and those
	 * stand in many places.
	 */
	if (range->gva + (entry->gpa - range->gpa) + first !=
	    range2->gva + (entry->gpa2 - range2->gpa))
		return HVPOKE_BAD_STRADDLE;
	return HVPOKE_OK;
}

enum hvpoke_status hvp_check(const struct hvp_guest *guest, const union hvp_slot *slot, uint32_t nr,
			     uint32_t *bad_index)
{
	enum hvpoke_status status = HVPOKE_OK, overlap;
	uint32_t i, hint = 0, nr_straddling = 0;

	for (i = 0; i < nr; i++) {
		status = check_bytes(&slot[i].entry, guest->scope);
		if (status == HVPOKE_OK && i)
			status = check_order(&slot[i].entry, &slot[i - 1].entry);
		if (status == HVPOKE_OK)
			status = check_place(guest, &slot[i].entry, &hint);
		if (status != HVPOKE_OK)
			break;
		nr_straddling += slot[i].entry.gpa2 != 0;
	}
	if (status != HVPOKE_OK)
		*bad_index = i;
	/* Among the entries before that one, two may still be in each other's way. */
	overlap = hvp_straddle_check(slot, i, nr_straddling, bad_index);
	return overlap == HVPOKE_OK ? status : overlap;
}
