// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text that is registered with the host: the kernel's own in one piece, and
 * that of each module that had sites to be patched, page by page since its
 * pages lie anywhere in memory.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/utsname.h>

#include "compat.h"
#include "hvpoke.h"

struct hvp_text {
	struct list_head link;
	struct module *mod;
	unsigned long addr, len;
};

static LIST_HEAD(texts);
static bool stale = true;
static struct hvp_pages list;

int hvp_ranges_add(struct module *mod)
{
	struct hvp_text *text;

	list_for_each_entry(text, &texts, link)
		if (text->mod == mod)
			return 0;
	text = kmalloc(sizeof(*text), GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	text->mod = mod;
	text->addr = hvp_module_text(mod, &text->len);
	list_add(&text->link, &texts);
	stale = true;
	return 0;
}

void hvp_ranges_forget(struct module *mod)
{
	struct hvp_text *text, *next;

	list_for_each_entry_safe(text, next, &texts, link) {
		if (text->mod == mod) {
			list_del(&text->link);
			kfree(text);
			stale = true;
		}
	}
}

void hvp_ranges_stale(void)
{
	stale = true;
}

void hvp_ranges_free(void)
{
	struct hvp_text *text, *next;

	list_for_each_entry_safe(text, next, &texts, link) {
		list_del(&text->link);
		kfree(text);
	}
	hvp_pages_free(&list);
}

static int by_gpa(const void *a, const void *b)
{
	u64 x = ((const struct hvpoke_range *)a)->gpa, y = ((const struct hvpoke_range *)b)->gpa;

	return x < y ? -1 : x > y;
}

/* One range a page; returns how many. */
static u32 fill(struct hvpoke_range *range)
{
	unsigned long addr, end;
	struct hvp_text *text;
	u32 nr = 0;

	range[nr++] = (struct hvpoke_range){
		.gpa = __pa(hvp_symbols.stext),
		.gva = hvp_symbols.stext,
		.len = hvp_symbols.etext - hvp_symbols.stext,
	};
	list_for_each_entry(text, &texts, link) {
		end = text->addr + text->len;
		for (addr = text->addr; addr < end; addr += PAGE_SIZE)
			range[nr++] = (struct hvpoke_range){
				.gpa = page_to_phys(hvp_text_page(addr)),
				.gva = addr,
				.len = min(end - addr, PAGE_SIZE),
			};
	}
	return nr;
}

static u32 merge(struct hvpoke_range *range, u32 nr)
{
	u32 i, last = 0;

	for (i = 1; i < nr; i++) {
		if (range[i].gpa == range[last].gpa + range[last].len &&
		    range[i].gva == range[last].gva + range[last].len)
			range[last].len += range[i].len;
		else
			range[++last] = range[i];
	}
	return last + 1;
}

/* The ranges as they are now, into @list. Returns how many, or 0 for lack of memory. */
static u32 collect(void)
{
	struct hvpoke_range *range;
	struct hvp_text *text;
	u32 nr = 1, i, part;

	list_for_each_entry(text, &texts, link)
		nr += DIV_ROUND_UP(text->len, PAGE_SIZE);
	range = kvmalloc_array(nr, sizeof(*range), GFP_HVP);
	if (!range)
		return 0;
	nr = fill(range);
	sort(range, nr, sizeof(*range), by_gpa, NULL);
	nr = merge(range, nr);
	if (hvp_pages_grow(&list, DIV_ROUND_UP(nr, HVPOKE_RANGES_PER_PAGE))) {
		kvfree(range);
		return 0;
	}
	for (i = 0; i < nr; i += part) {
		part = min_t(u32, nr - i, HVPOKE_RANGES_PER_PAGE);
		memcpy(hvp_pages_at(&list, i / HVPOKE_RANGES_PER_PAGE), &range[i],
		       part * sizeof(*range));
	}
	kvfree(range);
	return nr;
}

u32 hvp_ranges_sync(void)
{
	struct hvpoke_hello hello = {};
	u32 status;

	if (!stale && hvp_host_greeted())
		return HVPOKE_OK;
	hello.nr_ranges = collect();
	if (!hello.nr_ranges)
		return HVPOKE_NO_MEMORY;
	hvp_hooks_probes(hello.probe_gva);
	strscpy(hello.kernel, init_utsname()->release, sizeof(hello.kernel));
	strscpy(hello.agent, HVP_VERSION, sizeof(hello.agent));
	status = hvp_host_hello(&hello, &list);
	stale = status != HVPOKE_OK;
	return status;
}
