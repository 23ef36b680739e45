// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A batch is sorted by the sites' first parts. The second part of one that
 * straddles two pages may be anywhere, since its page need not follow in physical
 * memory. So the second parts are sorted by themselves, and held against each
 * other and against the first parts in one walk along both.
 */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "hvpoke_sort.h"

/* Sorted, in @items or behind them; *@found: how many. */
static struct hvpoke_sort_item *second_parts(const union hvp_slot *slot, uint32_t nr,
					     struct hvpoke_sort_item *items, uint32_t *found)
{
	*found = 0;
	for (uint32_t i = 0; i < nr; i++)
		if (slot[i].entry.gpa2)
			items[(*found)++] = (struct hvpoke_sort_item){
				.key = slot[i].entry.gpa2,
				.index = i,
			};
	return hvpoke_sort(items, *found, items + *found);
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* @second: the second parts, sorted. The smallest index of a later one of two that overlap. */
static uint32_t first_overlap(const union hvp_slot *slot, uint32_t nr,
			      const struct hvpoke_sort_item *second, uint32_t nr_second)
{
	uint32_t first = 0, found = HVPOKE_NO_INDEX, bad;
	const struct hvpoke_entry *entry;

	for (uint32_t i = 0; i < nr_second; i++) {
		entry = &slot[second[i].index].entry;
		/* Every second part begins its page: those of the same page overlap. */
		if (i && second[i - 1].key == second[i].key && second[i].index < found)
			found = second[i].index;
		/* A first part ends with its page: only those that begin on this one matter. */
		while (first < nr && slot[first].entry.gpa < entry->gpa2)
			first++;
		if (first < nr &&
		    slot[first].entry.gpa - entry->gpa2 < entry->len - hvp_first_part(entry)) {
			bad = later(first, second[i].index);
			if (bad < found)
				found = bad;
		}
	}
	return found;
}

enum hvpoke_status hvp_straddle_check(const union hvp_slot *slot, uint32_t nr,
				      uint32_t nr_straddling, uint32_t *bad_index)
{
	struct hvpoke_sort_item *items, *second;
	uint32_t found, nr_second;

	if (!nr_straddling)
		return HVPOKE_OK;
	items = malloc(nr_straddling * sizeof(*items) + hvpoke_sort_scratch(nr_straddling));
	if (!items) {
		hvp_host_error("no memory to check the sites that straddle pages", ENOMEM);
		return HVPOKE_HOST_ERROR;
	}
	second = second_parts(slot, nr, items, &nr_second);
	found = first_overlap(slot, nr, second, nr_second);
	free(items);
	if (found == HVPOKE_NO_INDEX)
		return HVPOKE_OK;
	*bad_index = found;
	return HVPOKE_OVERLAP;
}
