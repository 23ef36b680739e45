// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text that is registered with the host: the kernel's own in one piece, and
 * that of each module that had sites to be patched, page by page since its
 * pages lie anywhere in memory. Text of neither (trampolines of ftrace, programs of
 * BPF) may be freed and become data without anybody being told, so it is registered
 * for one batch only.
 *
 * Its lock is taken under the session's and under text_mutex, and holds off that a
 * module's memory is freed, of which hvp_ranges_forget() is told before.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/utsname.h>

#include "compat.h"
#include "hvpoke.h"

struct hvp_text {
	struct list_head link;
	struct module *mod; /* NULL: for one batch */
	unsigned long addr, len;
	u64 serial; /* never the same again */
};

static DEFINE_MUTEX(lock);
static LIST_HEAD(texts);
static bool stale = true;
static u64 last_serial; /* the kernel's own text has 0 */
static struct hvp_pages list;

static int add(struct module *mod, unsigned long addr, unsigned long len)
{
	struct hvp_text *text = kmalloc(sizeof(*text), GFP_HVP);

	if (!text)
		return -ENOMEM;
	*text = (struct hvp_text){ .mod = mod, .addr = addr, .len = len, .serial = ++last_serial };
	list_add(&text->link, &texts);
	stale = true;
	return 0;
}

static int add_module(struct module *mod)
{
	unsigned long addr, len;
	struct hvp_text *text;

	list_for_each_entry(text, &texts, link)
		if (text->mod == mod)
			return 0;
	addr = hvp_module_text(mod, &len);
	return add(mod, addr, len);
}

/* batch.c says why no IO may be started by whoever has the lock. */
static unsigned int lock_ranges(void)
{
	mutex_lock(&lock);
	return memalloc_noio_save();
}

static void unlock_ranges(unsigned int noio)
{
	memalloc_noio_restore(noio);
	mutex_unlock(&lock);
}

int hvp_ranges_add(struct module *mod)
{
	unsigned int noio = lock_ranges();
	int err = add_module(mod);

	unlock_ranges(noio);
	return err;
}

/* NULL: those for one batch. */
static void forget(struct module *mod)
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

void hvp_ranges_forget(struct module *mod)
{
	mutex_lock(&lock);
	forget(mod);
	mutex_unlock(&lock);
}

static bool covered(unsigned long addr, unsigned long len)
{
	const struct hvp_text *text;

	list_for_each_entry(text, &texts, link)
		if (addr - text->addr < text->len && len <= text->len - (addr - text->addr))
			return true;
	return hvp_core_text(addr);
}

static int cover(unsigned long addr, unsigned long len)
{
	unsigned long page = addr & PAGE_MASK, text, text_len;
	struct module *mod;
	int err;

	if (covered(addr, len))
		return 0;
	preempt_disable();
	mod = hvp_symbols.module_address(addr);
	preempt_enable();
	/* One that comes may fail and one that goes is gone soon, both after we were told. */
	if (mod && READ_ONCE(mod->state) == MODULE_STATE_LIVE) {
		text = hvp_module_text(mod, &text_len);
		if (addr - text < text_len)
			return add_module(mod);
	}
	for (; page < addr + len; page += PAGE_SIZE) {
		err = covered(page, 1) ? 0 : add(NULL, page, PAGE_SIZE);
		if (err)
			return err;
	}
	return 0;
}

u32 hvp_ranges_cover(unsigned long addr, unsigned long len)
{
	unsigned int noio = lock_ranges();
	int err = cover(addr, len);

	unlock_ranges(noio);
	return err ? HVPOKE_NO_MEMORY : HVPOKE_OK;
}

void hvp_ranges_uncover(void)
{
	hvp_ranges_forget(NULL);
}

void hvp_ranges_stale(void)
{
	mutex_lock(&lock);
	stale = true;
	mutex_unlock(&lock);
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
				.serial = text->serial,
			};
	}
	return nr;
}

static u32 merge(struct hvpoke_range *range, u32 nr)
{
	u32 i, last = 0;

	for (i = 1; i < nr; i++) {
		if (range[i].gpa == range[last].gpa + range[last].len &&
		    range[i].gva == range[last].gva + range[last].len &&
		    range[i].serial == range[last].serial)
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

static u32 sync(void)
{
	struct hvpoke_hello hello = { .scope = hvp_gate_scope() };
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

u32 hvp_ranges_sync(void)
{
	unsigned int noio = lock_ranges();
	u32 status = sync();

	unlock_ranges(noio);
	return status;
}
