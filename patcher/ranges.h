/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_RANGES_H
#define HVP_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"
#include "backend.h"

/* The text that the agent registered: sorted, not overlapping, all of it RAM. */
struct hvp_ranges {
	uint32_t nr;
	struct hvpoke_range *range; /* nr of them, malloc'ed; NULL if nr is 0 */
};

/*
 * Copy and check the @nr ranges listed at @list. HVPOKE_OK and @ranges filled in
 * (release with hvp_ranges_clear()); or @ranges left as it was, and @bad_index the
 * first offender: HVPOKE_BAD_GPA (not RAM, or not one piece of it in the host),
 * BAD_HEADER (length 0), UNSORTED, OVERLAP. Without an index:
 * BAD_HEADER (@nr too large), HOST_ERROR (out of memory).
 */
enum hvpoke_status hvp_ranges_copy(struct hvp_ranges *ranges, const struct hvp_backend *backend,
				   void *ctx, gpa_t list, uint32_t nr, uint32_t *bad_index);
void hvp_ranges_clear(struct hvp_ranges *ranges);

/*
 * The range that holds all of [@addr, @addr + @len), or NULL. @hint is where
 * the last search of this caller ended (start with 0): a sorted batch asks for
 * the same range again and again.
 */
const struct hvpoke_range *hvp_ranges_find(const struct hvp_ranges *ranges, uint64_t addr,
					   uint64_t len, uint32_t *hint);

#endif /* HVP_RANGES_H */
