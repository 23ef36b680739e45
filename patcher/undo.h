/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_UNDO_H
#define HVP_UNDO_H

#include <stdbool.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"

struct hvp_guest;
union hvp_slot;

/*
 * What the last batches of a guest's agent have written, so that it can be put back: in
 * memory, bounded, forgotten with the agent. Only jump labels (a NOP, and a JMP of the same
 * length): their two instructions mean the same for as long as their text is there. What
 * static calls, ftrace and kprobes have written may lead to code that the kernel has
 * freed since.
 */
#define HVP_UNDO_BATCHES 64
#define HVP_UNDO_SITES	 32768u /* of all of them */

struct hvp_undo_site {
	struct hvpoke_entry entry;
	uint64_t gva;
	uint64_t serial; /* of the text that it is in: struct hvpoke_range */
};

struct hvp_undo_batch {
	uint64_t id;
	bool labels; /* all of its sites are, and here they are; else there is none here */
	uint32_t nr;
	struct hvp_undo_site site[];
};

/* Under guest->lock; batches are made and freed by whoever has guest->owner. */
struct hvp_undo {
	struct hvp_undo_batch *batch[HVP_UNDO_BATCHES]; /* a ring, by @next */
	unsigned int next;
	uint32_t nr_sites;
};

/*
 * The checked entries at @slot, which are about to be written. To be kept or freed. NULL: out
 * of memory, then this batch cannot be undone. With guest->owner.
 */
struct hvp_undo_batch *hvp_undo_note(const struct hvp_guest *guest, const union hvp_slot *slot,
				     uint32_t nr);
/* They have been written as batch @id (0: or have not). Takes @batch, which may be NULL. */
void hvp_undo_keep(struct hvp_guest *guest, struct hvp_undo_batch *batch, uint64_t id);
/* Another agent, or none: what was written is none of its text. Under guest->lock. */
void hvp_undo_forget(struct hvp_undo *undo);

/*
 * Fill @slot, room for @batch->nr, with what puts @batch back, sorted as it was. HVPOKE_OK,
 * or NOT_TEXT with *@bad_index: the text of that site is gone. With guest->owner.
 */
enum hvpoke_status hvp_undo_fill(const struct hvp_guest *guest, const struct hvp_undo_batch *batch,
				 union hvp_slot *slot, uint32_t *bad_index);
/* The batch @id, or NULL. Under guest->lock; it stays for whoever has guest->owner. */
const struct hvp_undo_batch *hvp_undo_find(const struct hvp_undo *undo, uint64_t id);

#endif /* HVP_UNDO_H */
