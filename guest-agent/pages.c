// SPDX-License-Identifier: GPL-2.0-only
/*
 * A list of pages as the host reads it. Single pages are to be had when a large
 * piece of contiguous memory is not.
 */
#include <linux/gfp.h>
#include <linux/io.h>

#include "hvpoke.h"

static struct hvpoke_page_list *next_list(const struct hvpoke_page_list *list)
{
	return list->next_gpa ? phys_to_virt(list->next_gpa) : NULL;
}

static u64 new_page(gfp_t zero)
{
	void *page = (void *)__get_free_page(GFP_HVP | zero);

	return page ? virt_to_phys(page) : 0;
}

int hvp_pages_grow(struct hvp_pages *pages, unsigned int nr)
{
	struct hvpoke_page_list *list;
	unsigned int i;
	u64 gpa;

	while (pages->nr < nr) {
		if (!pages->first) {
			gpa = new_page(__GFP_ZERO);
			if (!gpa)
				return -ENOMEM;
			pages->first = phys_to_virt(gpa);
		}
		list = pages->first;
		for (i = pages->nr; i >= HVPOKE_LIST_PAGES; i -= HVPOKE_LIST_PAGES) {
			if (!list->next_gpa)
				list->next_gpa = new_page(__GFP_ZERO);
			list = next_list(list);
			if (!list)
				return -ENOMEM;
		}
		gpa = new_page(0);
		if (!gpa)
			return -ENOMEM;
		list->page_gpa[i] = gpa;
		pages->nr++;
	}
	return 0;
}

void hvp_pages_free(struct hvp_pages *pages)
{
	struct hvpoke_page_list *list = pages->first, *next;
	unsigned int i;

	while (list) {
		for (i = 0; i < HVPOKE_LIST_PAGES && pages->nr; i++, pages->nr--)
			free_page((unsigned long)phys_to_virt(list->page_gpa[i]));
		next = next_list(list);
		free_page((unsigned long)list);
		list = next;
	}
	pages->first = NULL;
}

void *hvp_pages_at(const struct hvp_pages *pages, unsigned int index)
{
	const struct hvpoke_page_list *list = pages->first;

	for (; index >= HVPOKE_LIST_PAGES; index -= HVPOKE_LIST_PAGES)
		list = next_list(list);
	return phys_to_virt(list->page_gpa[index]);
}

u64 hvp_pages_gpa(const struct hvp_pages *pages)
{
	return pages->first ? virt_to_phys(pages->first) : 0;
}
