// SPDX-License-Identifier: GPL-2.0-or-later
#include "copy.h"
#include "list.h"

void *hvp_page_at(const struct hvp_backend *backend, void *ctx, gpa_t page)
{
	if (page.addr & HVPOKE_PAGE_MASK)
		return NULL;
	return backend->translate(ctx, page, HVPOKE_PAGE_SIZE);
}

static gpa_t load_gpa(const __u64 *from)
{
	return gpa(__atomic_load_n(from, __ATOMIC_RELAXED));
}

enum hvpoke_status hvp_list_copy(const struct hvp_backend *backend, void *ctx, gpa_t list,
				 uint32_t nr, void *records, uint32_t *bad_index)
{
	const struct hvpoke_page_list *chain = NULL;
	uint32_t done = 0, n, slot = HVPOKE_LIST_PAGES;
	const void *data;

	while (done < nr) {
		if (slot == HVPOKE_LIST_PAGES) {
			/* 0 ends a chain, so no list page stands there. */
			chain = list.addr ? hvp_page_at(backend, ctx, list) : NULL;
			if (!chain)
				break;
			list = load_gpa(&chain->next_gpa);
			slot = 0;
		}
		data = hvp_page_at(backend, ctx, load_gpa(&chain->page_gpa[slot++]));
		if (!data)
			break;
		n = nr - done < HVP_RECORDS_PER_PAGE ? nr - done : HVP_RECORDS_PER_PAGE;
		hvp_copy_in((uint8_t *)records + (size_t)done * HVP_RECORD_SIZE, data,
			    (size_t)n * HVP_RECORD_SIZE);
		done += n;
	}
	if (done == nr)
		return HVPOKE_OK;
	*bad_index = done;
	return HVPOKE_BAD_GPA;
}
