/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_TOUCH_H
#define HVP_TOUCH_H

#include "engine.h"

/*
 * Make every page that the @nr checked entries at @slot are on present and
 * writable in the host's page tables, without a change to it, so that the pause
 * has no page fault. 0, or a negative errno if a page cannot be had (-ENOMEM,
 * -EHWPOISON, -EFAULT): a write to it would have killed us.
 */
int hvp_touch(const struct hvp_guest *guest, const union hvp_slot *slot, uint32_t nr);

/* The same for @len bytes at @start, both page aligned; for kernels before 5.14. */
void hvp_touch_by_store(void *start, size_t len);

#endif /* HVP_TOUCH_H */
