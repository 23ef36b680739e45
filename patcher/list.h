/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_LIST_H
#define HVP_LIST_H

#include <stdint.h>

#include "../proto/hvpoke_abi.h"
#include "backend.h"

/* What lists carry: struct hvpoke_entry and struct hvpoke_range are as large. */
#define HVP_RECORD_SIZE 32
_Static_assert(sizeof(struct hvpoke_entry) == HVP_RECORD_SIZE, "entry");
_Static_assert(sizeof(struct hvpoke_range) == HVP_RECORD_SIZE, "range");
#define HVP_RECORDS_PER_PAGE (HVPOKE_PAGE_SIZE / HVP_RECORD_SIZE)

/*
 * Copy @nr records out of the guest, by way of the struct hvpoke_page_list at
 * @list. @records has room for them. Each word of the guest's is read once.
 * HVPOKE_OK, or HVPOKE_BAD_GPA with @bad_index the first record that could not
 * be reached. Chains that run in a circle are harmless: no more of a chain is
 * walked than @nr records need.
 */
enum hvpoke_status hvp_list_copy(const struct hvp_backend *backend, void *ctx, gpa_t list,
				 uint32_t nr, void *records, uint32_t *bad_index);

/* The host address of the guest page at @page; NULL if not page aligned or not RAM. */
void *hvp_page_at(const struct hvp_backend *backend, void *ctx, gpa_t page);

#endif /* HVP_LIST_H */
