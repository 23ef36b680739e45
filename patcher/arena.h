/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_ARENA_H
#define HVP_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"

/*
 * A checked entry, ready to be written: where it stands in the host's memory
 * instead of where it stands in the guest's. The instruction bytes keep their
 * place.
 */
struct hvp_poke {
	uint8_t *at;  /* the first part */
	uint8_t *at2; /* the part on the second page, or NULL */
	uint8_t len;
	uint8_t kind;
	uint8_t old_insn[HVPOKE_MAX_INSN];
	uint8_t new_insn[HVPOKE_MAX_INSN];
	uint8_t first; /* bytes at @at; the others are at @at2 */
	uint8_t unused;
};

/* An entry becomes a poke in place: a batch costs 32 bytes of host memory a site. */
union hvp_slot {
	struct hvpoke_entry entry;
	struct hvp_poke poke;
};
_Static_assert(sizeof(union hvp_slot) == sizeof(struct hvpoke_entry), "slot");
_Static_assert(offsetof(struct hvp_poke, new_insn) == offsetof(struct hvpoke_entry, new_insn),
	       "bytes keep their place");

/*
 * The host's copy of the batch in hand, mapped rather than malloc'ed: what is
 * given back is really given back.
 */
struct hvp_arena {
	union hvp_slot *slot; /* NULL if capacity is 0 */
	size_t capacity;      /* slots */
};

/*
 * Kept from one batch to the next: 512 KiB. A kernel's largest dynamic debug
 * request is far below that; after a larger batch (all of ftrace's 65,000
 * sites, say) the memory goes back, and the next such batch pays for the page
 * faults, outside of the pause.
 */
#define HVP_ARENA_KEEP 16384

/* Make room for @nr slots; their contents are undefined. 0 or -ENOMEM. */
int hvp_arena_reserve(struct hvp_arena *arena, uint32_t nr);
/* The batch is done: give back what is not worth keeping. */
void hvp_arena_trim(struct hvp_arena *arena);
void hvp_arena_release(struct hvp_arena *arena);

#endif /* HVP_ARENA_H */
