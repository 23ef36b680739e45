// SPDX-License-Identifier: GPL-2.0-or-later
#include "undo.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "engine.h"
#include "insn.h"

/* Where @entry is in registered text. NULL: nowhere, or in two texts at once. */
static const struct hvpoke_range *text_of(const struct hvp_guest *guest,
					  const struct hvpoke_entry *entry, uint32_t *hint)
{
	unsigned int first = hvp_first_part(entry);
	const struct hvpoke_range *range, *second;

	range = hvp_ranges_find(&guest->ranges, entry->gpa, first, hint);
	if (!range || !entry->gpa2)
		return range;
	second = hvp_ranges_find(&guest->ranges, entry->gpa2, entry->len - first, hint);
	return second && second->serial == range->serial ? range : NULL;
}

static bool all_labels(const union hvp_slot *slot, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!hvp_insn_is_label(&slot[i].entry))
			return false;
	return true;
}

struct hvp_undo_batch *hvp_undo_note(const struct hvp_guest *guest, const union hvp_slot *slot,
				     uint32_t nr)
{
	bool labels = nr <= HVP_UNDO_SITES && all_labels(slot, nr);
	uint32_t room = labels ? nr : 0, hint = 0;
	const struct hvpoke_range *range;
	struct hvp_undo_batch *batch;

	batch = malloc(sizeof(*batch) + room * sizeof(*batch->site));
	if (!batch)
		return NULL;
	*batch = (struct hvp_undo_batch){.labels = labels, .nr = nr};
	for (uint32_t i = 0; i < room; i++) {
		range = text_of(guest, &slot[i].entry, &hint);
		if (!range) {
			batch->labels = false;
			break;
		}
		batch->site[i] = (struct hvp_undo_site){
			.entry = slot[i].entry,
			.gva = range->gva + (slot[i].entry.gpa - range->gpa),
			.serial = range->serial,
		};
	}
	return batch;
}

static uint32_t sites_of(const struct hvp_undo_batch *batch)
{
	return batch && batch->labels ? batch->nr : 0;
}

static void drop(struct hvp_undo *undo, unsigned int index)
{
	undo->nr_sites -= sites_of(undo->batch[index]);
	free(undo->batch[index]);
	undo->batch[index] = NULL;
}

void hvp_undo_forget(struct hvp_undo *undo)
{
	for (unsigned int i = 0; i < HVP_UNDO_BATCHES; i++)
		drop(undo, i);
}

void hvp_undo_keep(struct hvp_guest *guest, struct hvp_undo_batch *batch, uint64_t id)
{
	struct hvp_undo *undo = &guest->undo;

	if (!batch || !id) {
		free(batch);
		return;
	}
	batch->id = id;
	pthread_mutex_lock(&guest->lock);
	/* The oldest make room, first of all the one whose place this is. */
	drop(undo, undo->next);
	for (unsigned int i = 1; i < HVP_UNDO_BATCHES; i++)
		if (undo->nr_sites + sites_of(batch) > HVP_UNDO_SITES)
			drop(undo, (undo->next + i) % HVP_UNDO_BATCHES);
	undo->batch[undo->next] = batch;
	undo->next = (undo->next + 1) % HVP_UNDO_BATCHES;
	undo->nr_sites += sites_of(batch);
	pthread_mutex_unlock(&guest->lock);
}

const struct hvp_undo_batch *hvp_undo_find(const struct hvp_undo *undo, uint64_t id)
{
	for (unsigned int i = 0; i < HVP_UNDO_BATCHES; i++)
		if (undo->batch[i] && undo->batch[i]->id == id)
			return undo->batch[i];
	return NULL;
}

enum hvpoke_status hvp_undo_fill(const struct hvp_guest *guest, const struct hvp_undo_batch *batch,
				 union hvp_slot *slot, uint32_t *bad_index)
{
	const struct hvpoke_range *range;
	uint32_t hint = 0;

	for (uint32_t i = 0; i < batch->nr; i++) {
		const struct hvp_undo_site *site = &batch->site[i];
		struct hvpoke_entry *entry = &slot[i].entry;

		range = text_of(guest, &site->entry, &hint);
		if (!range || range->serial != site->serial ||
		    range->gva + (site->entry.gpa - range->gpa) != site->gva) {
			*bad_index = i;
			return HVPOKE_NOT_TEXT;
		}
		*entry = site->entry;
		memcpy(entry->old_insn, site->entry.new_insn, sizeof(entry->old_insn));
		memcpy(entry->new_insn, site->entry.old_insn, sizeof(entry->new_insn));
	}
	return HVPOKE_OK;
}
