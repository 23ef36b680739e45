// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sites of a request: collected in the order in which the kernel flips
 * them, sorted by guest physical address, handed to the host in one piece.
 *
 * All memory that sending needs is had when a site is added, so that a full
 * batch can be sent when there is no more of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define HVPOKE_SORT_RESCHED() cond_resched()
#include "../proto/hvpoke_sort.h"

#include "compat.h"
#include "hvpoke.h"

#define FIRST_SITES 256u
#define KEEP_SITES  4096u /* memory for more is given back after the request */

/* A struct jump_entry is aligned to 8 bytes: its lowest bit is free for the type. */
#define SITE_TYPE 1ul

static struct {
	unsigned long *site;
	struct hvpoke_sort_item *item;
	void *scratch; /* for hvpoke_sort() */
	u32 nr, max;
	struct hvp_pages entries;
} batch;

static struct jump_entry *site_entry(unsigned long site)
{
	return (struct jump_entry *)(site & ~SITE_TYPE);
}

static enum jump_label_type site_type(unsigned long site)
{
	return site & SITE_TYPE;
}

static int batch_grow(void)
{
	u32 max = batch.max ? 2 * batch.max : FIRST_SITES;
	unsigned long *site;
	void *item, *scratch;

	if (max > HVPOKE_MAX_SITES)
		return -ENOMEM;
	site = kvmalloc_array(max, sizeof(*site), GFP_HVP);
	item = kvmalloc_array(max, sizeof(*batch.item), GFP_HVP);
	scratch = kvmalloc(hvpoke_sort_scratch(max), GFP_HVP);
	if (!site || !item || !scratch ||
	    hvp_pages_grow(&batch.entries, DIV_ROUND_UP(max, HVPOKE_ENTRIES_PER_PAGE))) {
		kvfree(site);
		kvfree(item);
		kvfree(scratch);
		return -ENOMEM;
	}
	if (batch.nr)
		memcpy(site, batch.site, batch.nr * sizeof(*site));
	kvfree(batch.site);
	kvfree(batch.item);
	kvfree(batch.scratch);
	batch.site = site;
	batch.item = item;
	batch.scratch = scratch;
	batch.max = max;
	return 0;
}

void hvp_batch_free(void)
{
	kvfree(batch.site);
	kvfree(batch.item);
	kvfree(batch.scratch);
	hvp_pages_free(&batch.entries);
	memset(&batch, 0, sizeof(batch));
}

int hvp_batch_add(struct jump_entry *entry, enum jump_label_type type)
{
	if (batch.nr == batch.max && batch_grow())
		return -ENOMEM;
	batch.site[batch.nr++] = (unsigned long)entry | type;
	return 0;
}

bool hvp_batch_waits(void)
{
	return smp_load_acquire(&batch.nr); /* pairs with hvp_batch_flush() */
}

bool hvp_batch_holds(const struct jump_entry *entry)
{
	u32 i;

	for (i = 0; i < batch.nr; i++)
		if (site_entry(batch.site[i]) == entry)
			return true;
	return false;
}

/* The pages of a module's text lie anywhere; its sites come one after the other. */
struct text_page {
	unsigned long addr;
	u64 gpa;
};

static u64 text_gpa(unsigned long addr, struct text_page *page)
{
	if (hvp_core_text(addr))
		return __pa(addr);
	if (page->addr != (addr & PAGE_MASK)) {
		page->addr = addr & PAGE_MASK;
		page->gpa = page_to_phys(hvp_text_page(page->addr));
	}
	return page->gpa + offset_in_page(addr);
}

static struct hvpoke_sort_item *batch_sort(void)
{
	struct text_page page = {};
	u32 i;

	for (i = 0; i < batch.nr; i++) {
		batch.item[i].key = text_gpa(jump_entry_code(site_entry(batch.site[i])), &page);
		batch.item[i].index = i;
	}
	return hvpoke_sort(batch.item, batch.nr, batch.scratch);
}

/*
 * The next site of the sorted ones. One that was flipped more than once in the
 * request is there as often, in that order (the sort is stable): the last one
 * tells what is to be.
 */
static unsigned long next_site(const struct hvpoke_sort_item *item, u32 *at)
{
	while (*at + 1 < batch.nr && item[*at + 1].key == item[*at].key)
		++*at;
	return batch.site[item[(*at)++].index];
}

/* Bring on the instructions. False: nothing is to be done about this site. */
static bool site_patch(unsigned long site, struct hvp_patch *patch)
{
	struct jump_entry *entry = site_entry(site);

	if (hvp_patch_make(patch, entry, site_type(site))) {
		pr_err("%pS holds %5ph, which is no instruction of this jump label; left alone\n",
		       (void *)jump_entry_code(entry), (void *)jump_entry_code(entry));
		return false;
	}
	return patch->len;
}

/* Returns how many there are. With text_mutex held: the text is what it seems. */
static u32 batch_build(const struct hvpoke_sort_item *item)
{
	struct hvpoke_entry *entry = NULL;
	struct text_page page = {};
	struct hvp_patch patch;
	unsigned long site, end;
	u32 at = 0, nr = 0;
	u64 gpa;

	while (at < batch.nr) {
		gpa = item[at].key;
		site = next_site(item, &at);
		if (!site_patch(site, &patch))
			continue;
		if (nr % HVPOKE_ENTRIES_PER_PAGE == 0) {
			cond_resched();
			entry = hvp_pages_at(&batch.entries, nr / HVPOKE_ENTRIES_PER_PAGE);
		}
		*entry = (struct hvpoke_entry){ .gpa = gpa, .len = patch.len };
		if (offset_in_page(gpa) + patch.len > PAGE_SIZE) {
			end = jump_entry_code(site_entry(site)) + patch.len - 1;
			entry->gpa2 = text_gpa(end & PAGE_MASK, &page);
		}
		memcpy(entry->old_insn, patch.old_insn, sizeof(entry->old_insn));
		memcpy(entry->new_insn, patch.new_insn, sizeof(entry->new_insn));
		entry++;
		nr++;
	}
	return nr;
}

static u32 batch_send(const struct hvpoke_sort_item *item, struct hvp_result *result)
{
	struct hvpoke_batch cmd = { .bad_index = HVPOKE_NO_INDEX };
	u32 status = HVPOKE_OK;

	mutex_lock(hvp_symbols.text_mutex);
	cmd.nr_entries = batch_build(item);
	if (cmd.nr_entries)
		status = hvp_host_batch(&cmd, &batch.entries);
	mutex_unlock(hvp_symbols.text_mutex);

	if (cmd.nr_entries && status == HVPOKE_OK) {
		result->batches++;
		result->sites += cmd.nr_entries;
	}
	if (status == HVPOKE_NOT_HELLO)
		hvp_ranges_stale();
	return status;
}

static u32 greet_and_send(const struct hvpoke_sort_item *item, struct hvp_result *result)
{
	u32 status = hvp_ranges_sync();

	return status == HVPOKE_OK ? batch_send(item, result) : status;
}

static void batch_native(const struct hvpoke_sort_item *item, struct hvp_result *result)
{
	struct jump_entry *entry;
	struct hvp_patch patch;
	unsigned long site;
	u32 at = 0;

	while (at < batch.nr) {
		site = next_site(item, &at);
		if (!site_patch(site, &patch))
			continue;
		entry = site_entry(site);
		if (!hvp_native_queue(entry, site_type(site))) {
			hvp_native_apply();
			WARN_ON_ONCE(!hvp_native_queue(entry, site_type(site)));
		}
		result->sites++;
		result->native_sites++;
	}
	hvp_native_apply();
}

/* Once for each reason: it may come back with every request. */
static void say(u32 status)
{
	static unsigned long said;

	if (!test_and_set_bit(status % BITS_PER_LONG, &said))
		pr_warn("patching %u sites the kernel's own way: %s (said once)\n", batch.nr,
			hvpoke_status_text(status));
}

u32 hvp_batch_flush(struct hvp_result *result)
{
	const struct hvpoke_sort_item *item;
	u32 status;

	if (!batch.nr)
		return HVPOKE_OK;
	item = batch_sort();
	status = greet_and_send(item, result);
	/* A host that has been started between the two. */
	if (status == HVPOKE_NOT_HELLO)
		status = greet_and_send(item, result);
	if (status != HVPOKE_OK) {
		say(status);
		batch_native(item, result);
	}
	/* Whoever sees in hvp_batch_waits() that none wait sees the new text, too. */
	smp_store_release(&batch.nr, 0);
	if (batch.max > KEEP_SITES)
		hvp_batch_free();
	return status;
}
