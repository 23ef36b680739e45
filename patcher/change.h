/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_CHANGE_H
#define HVP_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "query.h"

/*
 * Changes of other kinds than dynamic debug's, as records of the same sort. Each
 * of these makes one record: 0 with @queries filled in (release with
 * hvp_queries_free()), -EINVAL or -E2BIG (@error's message says why, without a
 * column), or -ENOMEM.
 */

/* The static key @name, of the kernel or "MODULE:NAME", on or off. No glob. */
int hvp_change_key(const char *name, bool on, struct hvp_queries *queries,
		   struct hvp_query_error *error);
/*
 * The trace events that match @glob, on or off. "SYSTEM:EVENT", each a glob; an
 * empty one, or "SYSTEM" alone, is that with '*', as in the kernel's set_event.
 */
int hvp_change_events(const char *glob, bool on, struct hvp_queries *queries,
		      struct hvp_query_error *error);
int hvp_change_scope(uint32_t scope, struct hvp_queries *queries, struct hvp_query_error *error);
/* For HVPOKE_REQ_LIST_KEYS: the keys that match @glob, the first @skip of them left out. */
int hvp_change_list_keys(const char *glob, uint32_t skip, struct hvp_queries *queries,
			 struct hvp_query_error *error);

/* Put the records of @more behind those of @queries. 0, -E2BIG or -ENOMEM with both as before. */
int hvp_queries_append(struct hvp_queries *queries, const struct hvp_queries *more);

#endif /* HVP_CHANGE_H */
