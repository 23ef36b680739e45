// SPDX-License-Identifier: GPL-2.0-only
/*
 * A batch: sites collected in the order in which the kernel patches them, sorted by
 * guest physical address, handed to the host in one piece.
 *
 * A site is a jump label, whose instructions are made when the batch is sent, or a
 * poke, whose new instruction was given with it. All memory that sending needs is
 * had when a site is added, so that a full batch can be sent when there is no more
 * of it.
 *
 * Memory may be allocated with text_mutex held. Nothing that reclaims memory patches
 * text, but it may do IO, whose drivers may: none is started from here.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define HVPOKE_SORT_RESCHED() cond_resched()
#include "../proto/hvpoke_sort.h"

#include "compat.h"
#include "hvpoke.h"

#define FIRST_SITES 256u
#define KEEP_SITES  4096u /* memory for more is given back after the request */

/*
 * A struct jump_entry is aligned to 8 bytes: the lowest bits of a site are free. It
 * has the entry and its type, or the index of a poke.
 */
#define SITE_TYPE 1ul
#define SITE_POKE 2ul
#define SITE_BITS 2

static struct jump_entry *site_entry(unsigned long site)
{
	return (struct jump_entry *)(site & ~SITE_TYPE);
}

static enum jump_label_type site_type(unsigned long site)
{
	return site & SITE_TYPE;
}

static const struct hvp_poke *site_poke(const struct hvp_batch *batch, unsigned long site)
{
	return site & SITE_POKE ? &batch->poke[site >> SITE_BITS] : NULL;
}

static unsigned long site_addr(const struct hvp_batch *batch, unsigned long site)
{
	const struct hvp_poke *poke = site_poke(batch, site);

	return poke ? poke->addr : jump_entry_code(site_entry(site));
}

static int batch_grow(struct hvp_batch *batch)
{
	u32 max = batch->max ? 2 * batch->max : FIRST_SITES;
	unsigned long *site;
	void *item, *scratch;

	if (max > HVPOKE_MAX_SITES)
		return -ENOMEM;
	site = kvmalloc_array(max, sizeof(*site), GFP_HVP);
	item = kvmalloc_array(max, sizeof(*batch->item), GFP_HVP);
	scratch = kvmalloc(hvpoke_sort_scratch(max), GFP_HVP);
	if (!site || !item || !scratch ||
	    hvp_pages_grow(&batch->entries, DIV_ROUND_UP(max, HVPOKE_ENTRIES_PER_PAGE))) {
		kvfree(site);
		kvfree(item);
		kvfree(scratch);
		return -ENOMEM;
	}
	if (batch->nr)
		memcpy(site, batch->site, batch->nr * sizeof(*site));
	kvfree(batch->site);
	kvfree(batch->item);
	kvfree(batch->scratch);
	batch->site = site;
	batch->item = item;
	batch->scratch = scratch;
	batch->max = max;
	return 0;
}

static int pokes_grow(struct hvp_batch *batch)
{
	u32 max = batch->max_pokes ? 2 * batch->max_pokes : FIRST_SITES;
	struct hvp_poke *poke = kvmalloc_array(max, sizeof(*poke), GFP_HVP);

	if (!poke)
		return -ENOMEM;
	if (batch->nr_pokes)
		memcpy(poke, batch->poke, batch->nr_pokes * sizeof(*poke));
	kvfree(batch->poke);
	batch->poke = poke;
	batch->max_pokes = max;
	return 0;
}

void hvp_batch_free(struct hvp_batch *batch)
{
	kvfree(batch->site);
	kvfree(batch->item);
	kvfree(batch->scratch);
	kvfree(batch->poke);
	hvp_pages_free(&batch->entries);
	*batch = (struct hvp_batch){ .text_locked = batch->text_locked };
}

static int add_site(struct hvp_batch *batch, unsigned long site)
{
	unsigned int noio = memalloc_noio_save();
	int err = batch->nr == batch->max ? batch_grow(batch) : 0;

	memalloc_noio_restore(noio);
	if (!err)
		batch->site[batch->nr++] = site;
	return err;
}

int hvp_batch_add(struct hvp_batch *batch, struct jump_entry *entry, enum jump_label_type type)
{
	return add_site(batch, (unsigned long)entry | type);
}

int hvp_batch_add_poke(struct hvp_batch *batch, const struct hvp_poke *poke)
{
	unsigned int noio = memalloc_noio_save();
	int err = batch->nr_pokes == batch->max_pokes ? pokes_grow(batch) : 0;

	memalloc_noio_restore(noio);
	if (!err)
		err = add_site(batch, (unsigned long)batch->nr_pokes << SITE_BITS | SITE_POKE);
	if (!err)
		batch->poke[batch->nr_pokes++] = *poke;
	return err;
}

bool hvp_batch_waits(const struct hvp_batch *batch)
{
	return smp_load_acquire(&batch->nr); /* pairs with hvp_batch_flush() */
}

bool hvp_batch_holds(const struct hvp_batch *batch, const struct jump_entry *entry)
{
	u32 i;

	for (i = 0; i < batch->nr; i++)
		if (!(batch->site[i] & SITE_POKE) && site_entry(batch->site[i]) == entry)
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

static struct hvpoke_sort_item *batch_sort(struct hvp_batch *batch)
{
	struct text_page page = {};
	u32 i;

	for (i = 0; i < batch->nr; i++) {
		batch->item[i].key = text_gpa(site_addr(batch, batch->site[i]), &page);
		batch->item[i].index = i;
	}
	return hvpoke_sort(batch->item, batch->nr, batch->scratch);
}

/*
 * The next site of the sorted ones. One that was patched more than once in the
 * request is there as often, in that order (the sort is stable): the last one
 * tells what is to be.
 */
static unsigned long next_site(const struct hvp_batch *batch, const struct hvpoke_sort_item *item,
			       u32 *at)
{
	while (*at + 1 < batch->nr && item[*at + 1].key == item[*at].key)
		++*at;
	return batch->site[item[(*at)++].index];
}

/* Bring on the instructions. False: nothing is to be done about this site. */
static bool site_patch(const struct hvp_batch *batch, unsigned long site, struct hvp_patch *patch)
{
	const struct hvp_poke *poke = site_poke(batch, site);
	struct jump_entry *entry;

	if (poke) {
		hvp_patch_poke(patch, poke);
		return patch->len;
	}
	entry = site_entry(site);
	if (hvp_patch_make(patch, entry, site_type(site))) {
		pr_err("%pS holds %5ph, which is no instruction of this jump label; left alone\n",
		       (void *)jump_entry_code(entry), (void *)jump_entry_code(entry));
		return false;
	}
	return patch->len;
}

/* Returns how many there are. With text_mutex held: the text is what it seems. */
static u32 batch_build(struct hvp_batch *batch, const struct hvpoke_sort_item *item)
{
	struct hvpoke_entry *entry = NULL;
	struct text_page page = {};
	struct hvp_patch patch;
	unsigned long addr;
	u32 at = 0, nr = 0;
	u64 gpa;

	while (at < batch->nr) {
		gpa = item[at].key;
		addr = next_site(batch, item, &at);
		if (!site_patch(batch, addr, &patch))
			continue;
		addr = site_addr(batch, addr);
		if (nr % HVPOKE_ENTRIES_PER_PAGE == 0) {
			cond_resched();
			entry = hvp_pages_at(&batch->entries, nr / HVPOKE_ENTRIES_PER_PAGE);
		}
		*entry = (struct hvpoke_entry){ .gpa = gpa, .len = patch.len, .kind = patch.kind };
		if (offset_in_page(gpa) + patch.len > PAGE_SIZE)
			entry->gpa2 = text_gpa((addr + patch.len - 1) & PAGE_MASK, &page);
		memcpy(entry->old_insn, patch.old_insn, sizeof(entry->old_insn));
		memcpy(entry->new_insn, patch.new_insn, sizeof(entry->new_insn));
		hvp_perf_text_poke(addr, &patch);
		entry++;
		nr++;
	}
	return nr;
}

/* The pokes' text must be registered; that of jump labels is, since they were collected. */
static u32 cover_pokes(const struct hvp_batch *batch)
{
	const struct hvp_poke *poke;
	u32 status = HVPOKE_OK;

	for (poke = batch->poke; poke < batch->poke + batch->nr_pokes && !status; poke++)
		status = hvp_ranges_cover(poke->addr, poke->len);
	return status;
}

/* Which one the host does not like. */
static void say_bad(const struct hvp_batch *batch, const struct hvpoke_sort_item *item,
		    const struct hvpoke_batch *cmd)
{
	const struct hvpoke_entry *entry;
	u32 i;

	if (cmd->bad_index >= cmd->nr_entries)
		return;
	entry = hvp_pages_at(&batch->entries, cmd->bad_index / HVPOKE_ENTRIES_PER_PAGE);
	entry += cmd->bad_index % HVPOKE_ENTRIES_PER_PAGE;
	for (i = 0; i < batch->nr; i++) {
		if (item[i].key != entry->gpa)
			continue;
		pr_warn_ratelimited("the host refuses %pS: kind %u, %*ph to be %*ph\n",
				    (void *)site_addr(batch, batch->site[item[i].index]),
				    entry->kind, entry->len, entry->old_insn, entry->len,
				    entry->new_insn);
		return;
	}
}

static u32 batch_send(struct hvp_batch *batch, const struct hvpoke_sort_item *item,
		      struct hvp_result *result)
{
	struct hvpoke_batch cmd = { .bad_index = HVPOKE_NO_INDEX };
	u32 status = cover_pokes(batch);

	if (status == HVPOKE_OK)
		status = hvp_ranges_sync();
	if (status != HVPOKE_OK)
		return status;
	cmd.nr_entries = batch_build(batch, item);
	if (!cmd.nr_entries)
		return HVPOKE_OK;
	status = hvp_host_batch(&cmd, &batch->entries);
	if (status == HVPOKE_OK) {
		result->batches++;
		result->sites += cmd.nr_entries;
	}
	if (status == HVPOKE_NOT_HELLO)
		hvp_ranges_stale();
	else if (status != HVPOKE_OK)
		say_bad(batch, item, &cmd);
	return status;
}

static void sites_native(struct hvp_batch *batch, const struct hvpoke_sort_item *item,
			 struct hvp_result *result)
{
	struct jump_entry *entry;
	struct hvp_patch patch;
	unsigned long site;
	u32 at = 0;

	while (at < batch->nr) {
		site = next_site(batch, item, &at);
		if (site & SITE_POKE || !site_patch(batch, site, &patch))
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

/* In the order of addresses, which the kernel's own queue wants. */
static void pokes_native(struct hvp_batch *batch, const struct hvpoke_sort_item *item,
			 struct hvp_result *result)
{
	const struct hvp_poke *poke;
	struct hvp_patch patch;
	unsigned long site;
	u32 at = 0;

	while (at < batch->nr) {
		site = next_site(batch, item, &at);
		poke = site_poke(batch, site);
		if (!poke || !site_patch(batch, site, &patch))
			continue;
		hvp_native_poke(poke);
		result->sites++;
		result->native_sites++;
	}
	if (batch->nr_pokes)
		hvp_native_poke_finish();
}

/* Once for each reason: it may come back with every request. */
static void say(const struct hvp_batch *batch, u32 status)
{
	static unsigned long said;

	if (!test_and_set_bit(status % BITS_PER_LONG, &said))
		pr_warn("patching %u sites the kernel's own way: %s (said once)\n", batch->nr,
			hvpoke_status_text(status));
}

/* With text_mutex held. What is left for the kernel's own way, if it fails, are the jump labels. */
static u32 flush_locked(struct hvp_batch *batch, const struct hvpoke_sort_item **item,
			struct hvp_result *result)
{
	unsigned int noio = memalloc_noio_save();
	u32 status;

	*item = batch_sort(batch);
	status = batch_send(batch, *item, result);
	/* A host that has been started between the two. */
	if (status == HVPOKE_NOT_HELLO)
		status = batch_send(batch, *item, result);
	if (status != HVPOKE_OK) {
		say(batch, status);
		pokes_native(batch, *item, result);
	}
	hvp_ranges_uncover();
	memalloc_noio_restore(noio);
	return status;
}

u32 hvp_batch_flush(struct hvp_batch *batch, struct hvp_result *result)
{
	const struct hvpoke_sort_item *item = NULL;
	u32 status = HVPOKE_OK;

	if (!batch->text_locked)
		mutex_lock(hvp_symbols.text_mutex);
	lockdep_assert_held(hvp_symbols.text_mutex);
	if (!batch->text_locked)
		hvp_gate_take(batch);
	if (batch->nr)
		status = flush_locked(batch, &item, result);
	if (!batch->text_locked) {
		hvp_gate_taken();
		mutex_unlock(hvp_symbols.text_mutex);
	}
	if (status != HVPOKE_OK && batch->nr > batch->nr_pokes)
		sites_native(batch, item, result);

	batch->nr_pokes = 0;
	/* Whoever sees in hvp_batch_waits() that none wait sees the new text, too. */
	smp_store_release(&batch->nr, 0);
	if (batch->max > KEEP_SITES)
		hvp_batch_free(batch);
	return status;
}
