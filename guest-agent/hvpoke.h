/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HVPOKE_H
#define HVPOKE_H

#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "../proto/hvpoke_abi.h"

struct kprobe;
struct mm_struct;
struct module;

#define HVP_VERSION "0.1"

/* Where memory lacks there is always the kernel's own way: no warning, no OOM killer. */
#define GFP_HVP (GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/* symbols.c - what the agent needs of the kernel and the kernel does not export. */
struct hvp_symbols {
	/* needed */
	int (*exec_queries)(char *query, const char *modname);
	bool (*transform_queue)(struct jump_entry *entry, enum jump_label_type type);
	void (*transform_apply)(void);
	struct module *(*module_address)(unsigned long addr);
	struct mutex *text_mutex; /* over all changes of kernel text */
	struct mm_struct *init_mm;
	unsigned long stext, etext;
	/* optional: NULL if this kernel does not show them */
	struct mutex *ddebug_lock; /* over the tables and what they lead to */
	struct list_head *ddebug_tables;
	struct _ddebug *ddebug_start, *ddebug_stop;
};

extern struct hvp_symbols hvp_symbols;

int hvp_symbols_init(void);

static inline bool hvp_core_text(unsigned long addr)
{
	return addr >= hvp_symbols.stext && addr < hvp_symbols.etext;
}

/* pages.c - a list of pages as the host reads it (struct hvpoke_page_list). */
struct hvp_pages {
	struct hvpoke_page_list *first;
	unsigned int nr;
};

/* Have at least @nr pages. 0 or -ENOMEM; what was there stays. */
int hvp_pages_grow(struct hvp_pages *pages, unsigned int nr);
void hvp_pages_free(struct hvp_pages *pages);
/* The address of page @index, which is below pages->nr. */
void *hvp_pages_at(const struct hvp_pages *pages, unsigned int index);
u64 hvp_pages_gpa(const struct hvp_pages *pages);

/*
 * host.c - commands to the host. Those that return u32 return enum
 * hvpoke_status. The page list of each is filled in from its last argument.
 */
int hvp_host_find(void);
/* May the next command do without a HELLO? */
bool hvp_host_greeted(void);
/* Have hvp_requests_wake() called if the host wants something. */
int hvp_host_listen(void);
void hvp_host_deafen(void);
u32 hvp_host_hello(struct hvpoke_hello *hello, const struct hvp_pages *ranges);
u32 hvp_host_batch(struct hvpoke_batch *batch, const struct hvp_pages *entries);
u32 hvp_host_fetch(struct hvpoke_fetch *fetch);
u32 hvp_host_complete(const struct hvpoke_complete *complete);
void hvp_host_bye(void);

/* counters.c */
u64 hvp_count_ipis(void);
u64 hvp_count_int3(void);
/* From a kprobe's handlers. */
void hvp_int3_hit(const struct kprobe *kp);
void hvp_int3_step(const struct kprobe *kp);

/* What became of one request. */
struct hvp_result {
	u64 ns;		 /* how long it took */
	u64 ipis_before; /* function-call interrupts of all CPUs since boot */
	u64 ipis_after;
	u64 int3;	  /* INT3 hits of the agent's own kprobes */
	u32 sites;	  /* instructions patched, by whichever way */
	u32 native_sites; /* of these, the kernel's own way */
	u32 batches;	  /* that the host applied */
	u32 fallback;	  /* 0, or the status that sent it the kernel's own way */
};

void hvp_result_report(const char *who, const struct hvp_result *result);

/* session.c - one request from its begin to its end. */

/*
 * Collect from here on what this task patches (@divert), or only count it.
 * Waits for the request of anybody else. @modname is dynamic debug's: the name
 * of the module that is loading with a dyndbg= parameter, or NULL.
 */
void hvp_session_begin(const char *modname, bool divert);
/* Have the host write what was collected; @result is filled in. */
void hvp_session_end(struct hvp_result *result);
/* May be asked anywhere: is there a request of this task? Is it collecting? */
bool hvp_session_owned(void);
bool hvp_session_diverts(void);
/* The owner, not diverted, is about to patch a site. */
void hvp_session_native_site(void);
/* What the hooks divert to. */
bool hvp_session_queue(struct jump_entry *entry, enum jump_label_type type);
void hvp_session_apply(void);
bool hvp_session_foreign(struct jump_entry *entry, enum jump_label_type type);
int hvp_session_init(void);
/* Register with the host that is there, unless that is done. Returns the status. */
u32 hvp_session_hello(void);
void hvp_session_exit(void);

/* batch.c - the sites collected. session.c has the locks. */

/* 0, or -ENOMEM: no room and no memory for more. */
int hvp_batch_add(struct jump_entry *entry, enum jump_label_type type);
/* May be asked anywhere: has it any sites? */
bool hvp_batch_waits(void);
bool hvp_batch_holds(const struct jump_entry *entry);
/*
 * Have the host write it all; at the end the batch is empty. Returns the
 * status: if it is not HVPOKE_OK, the sites have gone the kernel's own way.
 */
u32 hvp_batch_flush(struct hvp_result *result);
void hvp_batch_free(void);

/* patch.c - one site as it stands in memory and as it is to be. */
struct hvp_patch {
	u8 len; /* 0: already as it is to be; -> hvp_patch_make() */
	u8 old_insn[HVPOKE_MAX_INSN];
	u8 new_insn[HVPOKE_MAX_INSN];
};

/* 0 or -EILSEQ: what stands there is none of this site's two instructions. */
int hvp_patch_make(struct hvp_patch *patch, const struct jump_entry *entry,
		   enum jump_label_type type);

/* native.c - the kernel's own way. Under batch_lock, but the first, which may be asked anywhere. */
bool hvp_native_passes(void);
bool hvp_native_queue(struct jump_entry *entry, enum jump_label_type type);
void hvp_native_apply(void);

/* ranges.c - the text that is registered with the host. Under the session's lock. */

/* @mod has sites to be patched. 0 or -ENOMEM. */
int hvp_ranges_add(struct module *mod);
void hvp_ranges_forget(struct module *mod);
/* Tell the host, if anything changed since the last time. */
u32 hvp_ranges_sync(void);
void hvp_ranges_stale(void);
void hvp_ranges_free(void);

/* hooks.c - the kprobes. */
int hvp_hooks_init(void);
void hvp_hooks_exit(void);
void hvp_hooks_probes(u64 gva[HVPOKE_MAX_PROBES]);

/* dyndbg.c - the kernel's descriptors. */
void hvp_dyndbg_init(void);
bool hvp_dyndbg_known(void);
/* Run @query, terms negated and all. The number of matches, or a negative errno. */
int hvp_dyndbg_change(const struct hvpoke_query *query, const char **why);

/* snapshot.c - how many descriptors' flags a request changed. */
struct hvp_snapshot;
/* NULL: unknown, for lack of memory or because the layout is not known. */
struct hvp_snapshot *hvp_snapshot_take(void);
/* Frees @snapshot (may be NULL). */
u64 hvp_snapshot_changed(struct hvp_snapshot *snapshot);

/* request.c - requests of the host. */
int hvp_requests_init(void);
/* In any context: look whether the host is a new one, or has a request. */
void hvp_requests_wake(void);
void hvp_requests_exit(void);

#endif /* HVPOKE_H */
