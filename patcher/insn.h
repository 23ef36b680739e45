/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_INSN_H
#define HVP_INSN_H

#include <stdbool.h>
#include <stdint.h>

struct hvpoke_entry;

/* Bytes of a site: the first byte of a probed instruction, or a whole instruction. */
#define HVP_INSN_BYTE  1
#define HVP_INSN_SHORT 2
#define HVP_INSN_LONG  5
#define HVP_INSN_JCC   6

/* May a site of this kind (HVPOKE_SITE_*) exist in @scope (enum hvpoke_scope)? */
bool hvp_insn_kind_known(unsigned int kind, uint32_t scope);
/* May it have @len bytes? @kind and @scope are known. */
bool hvp_insn_len_known(unsigned int kind, unsigned int len, uint32_t scope);

/*
 * May the @len bytes at @old become those at @new_insn? Kind and length are known.
 * Bytes past @len are not looked at.
 */
bool hvp_insn_known(unsigned int kind, const uint8_t *old, const uint8_t *new_insn,
		    unsigned int len, uint32_t scope);

/* Is that known entry a jump label: a NOP for a JMP of the same length, or the other way round? */
bool hvp_insn_is_label(const struct hvpoke_entry *entry);

#endif /* HVP_INSN_H */
