/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_POKE_H
#define HVP_POKE_H

#include "engine.h"

/*
 * Turn the @nr checked entries at @slot into pokes, in place. True, or false
 * with @bad_index the first one that the back end does not translate (which
 * it did when the ranges were registered).
 */
bool hvp_poke_prepare(const struct hvp_guest *guest, union hvp_slot *slot, uint32_t nr,
		      uint32_t *bad_index);

/* Only while the guest is paused. The first poke whose old bytes do not stand there, or @nr. */
uint32_t hvp_poke_verify(const union hvp_slot *slot, uint32_t nr);
/* Only while the guest is paused, and after a verify that returned @nr. */
void hvp_poke_write(const union hvp_slot *slot, uint32_t nr);

#endif /* HVP_POKE_H */
