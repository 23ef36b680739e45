// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>

#include "engine.h"
#include "list.h"

/* @before: the range before this one, which is good, or NULL. */
static enum hvpoke_status range_check(const struct hvpoke_range *range,
				      const struct hvpoke_range *before,
				      const struct hvp_backend *backend, void *ctx)
{
	if (!range->len)
		return HVPOKE_BAD_HEADER;
	if (before && range->gpa < before->gpa)
		return HVPOKE_UNSORTED;
	/* A difference, not a sum: cannot wrap around. */
	if (before && range->gpa - before->gpa < before->len)
		return HVPOKE_OVERLAP;
	if (!hvp_is_ram(backend, ctx, range->gpa, range->len))
		return HVPOKE_BAD_GPA;
	return HVPOKE_OK;
}

static enum hvpoke_status ranges_check(const struct hvpoke_range *range, uint32_t nr,
				       const struct hvp_backend *backend, void *ctx,
				       uint32_t *bad_index)
{
	enum hvpoke_status status;

	for (uint32_t i = 0; i < nr; i++) {
		status = range_check(&range[i], i ? &range[i - 1] : NULL, backend, ctx);
		if (status != HVPOKE_OK) {
			*bad_index = i;
			return status;
		}
	}
	return HVPOKE_OK;
}

enum hvpoke_status hvp_ranges_copy(struct hvp_ranges *ranges, const struct hvp_backend *backend,
				   void *ctx, gpa_t list, uint32_t nr, uint32_t *bad_index)
{
	struct hvpoke_range *range = NULL;
	enum hvpoke_status status;

	if (nr > HVPOKE_MAX_RANGES)
		return HVPOKE_BAD_HEADER;
	if (nr) {
		range = malloc(nr * sizeof(*range));
		if (!range) {
			hvp_host_error("no memory for the text ranges", ENOMEM);
			return HVPOKE_HOST_ERROR;
		}
	}
	status = hvp_list_copy(backend, ctx, list, nr, range, bad_index);
	if (status == HVPOKE_OK)
		status = ranges_check(range, nr, backend, ctx, bad_index);
	if (status != HVPOKE_OK) {
		free(range);
		return status;
	}
	*ranges = (struct hvp_ranges){.nr = nr, .range = range};
	return HVPOKE_OK;
}

void hvp_ranges_clear(struct hvp_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct hvp_ranges){0};
}

static bool range_holds(const struct hvpoke_range *range, uint64_t addr, uint64_t len)
{
	/* No sum of guest values: none can wrap around. */
	return addr >= range->gpa && addr - range->gpa < range->len &&
	       len <= range->len - (addr - range->gpa);
}

const struct hvpoke_range *hvp_ranges_find(const struct hvp_ranges *ranges, uint64_t addr,
					   uint64_t len, uint32_t *hint)
{
	uint32_t low = 0, high = ranges->nr, middle;

	if (*hint < ranges->nr && range_holds(&ranges->range[*hint], addr, len))
		return &ranges->range[*hint];

	/* The last range that does not begin behind @addr. */
	while (low < high) {
		middle = low + (high - low) / 2;
		if (ranges->range[middle].gpa <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !range_holds(&ranges->range[low - 1], addr, len))
		return NULL;
	*hint = low - 1;
	return &ranges->range[low - 1];
}
