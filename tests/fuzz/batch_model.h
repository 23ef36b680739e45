/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FUZZ_BATCH_MODEL_H
#define FUZZ_BATCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "../../proto/hvpoke_abi.h"

/*
 * What proto/hvpoke_abi.h says of a batch and of text ranges, written a second time and in the
 * plainest way, without a look at the engine: what the engine takes, this takes, and nothing else.
 */
#define MODEL_RAM	0x38000u /* bytes of RAM at 0 */
#define MODEL_HOLE	0x27000u /* a page of it is none */
#define MODEL_MAX_SITES 2048u

struct model_ranges {
	uint32_t nr;
	uint32_t scope;
	struct hvpoke_range range[MODEL_MAX_SITES];
};

/* All of [@addr, @addr + @len) is RAM, in one piece. */
bool model_is_ram(uint64_t addr, uint64_t len);
bool model_ranges_good(const struct model_ranges *ranges);
/* All of it, but for the old bytes. */
bool model_batch_good(const struct model_ranges *ranges, const struct hvpoke_entry *entry,
		      uint32_t nr);

/* The range that @gpa is in, or NULL. */
const struct hvpoke_range *model_range(const struct model_ranges *ranges, uint64_t gpa);
/* Where byte @i of the entry's instruction is. */
uint64_t model_byte_at(const struct hvpoke_entry *entry, unsigned int i);
/* Do its old bytes stand in @ram? */
bool model_old_stands(const uint8_t *ram, const struct hvpoke_entry *entry);
void model_write(uint8_t *ram, const struct hvpoke_entry *entry, uint32_t nr);

/* Instructions by number (modulo how many there are): for making entries. */
struct model_form {
	uint8_t kind, len;
	uint8_t fixed; /* the first bytes; the others may be anything */
	bool all;      /* in the widest scope only */
	uint8_t bytes[HVPOKE_MAX_INSN];
};
const struct model_form *model_form(unsigned int number);

#endif /* FUZZ_BATCH_MODEL_H */
