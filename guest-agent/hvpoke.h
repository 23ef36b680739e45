/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HVPOKE_H
#define HVPOKE_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "../proto/hvpoke_abi.h"

struct kprobe;
struct mm_struct;
struct module;
struct optimized_kprobe;
struct pt_regs;
struct static_call_key;
struct trace_array;
struct trace_event_file;

#define HVP_VERSION "0.1"

/* Where memory lacks there is always the kernel's own way: no warning, no OOM killer. */
#define GFP_HVP (GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/* symbols.c - what the agent needs of the kernel and the kernel does not export. */
struct hvp_symbols {
	/* needed */
	int (*exec_queries)(char *query, const char *modname);
	bool (*transform_queue)(struct jump_entry *entry, enum jump_label_type type);
	unsigned long transform_queue_len;
	void (*transform_apply)(void);
	struct module *(*module_address)(unsigned long addr);
	struct mutex *text_mutex; /* over all changes of kernel text */
	struct mm_struct *init_mm;
	unsigned long stext, etext;
	/* needed for more than dynamic debug; hvp_symbols_find_gate() */
	void (*poke_queue)(void *addr, const void *opcode, size_t len, const void *emulate);
	void (*poke_finish)(void);
	void *(*text_poke)(void *addr, const void *opcode, size_t len);
	void (*poke_sync)(void);
	/* optional: NULL if this kernel does not show them */
	struct mutex *ddebug_lock; /* over the tables and what they lead to */
	struct list_head *ddebug_tables;
	struct _ddebug *ddebug_start, *ddebug_stop;
	void (*perf_text_poke)(const void *addr, const void *old_bytes, size_t old_len,
			       const void *new_bytes, size_t new_len);
	atomic_t *nr_text_poke_events; /* is anybody listening? */
	void (*jump_lock)(void);       /* over the jump table */
	void (*jump_unlock)(void);
	struct jump_entry *jump_start, *jump_stop;
	struct list_head *modules;
	unsigned long init_begin, init_end, end; /* of the kernel's image */
	struct mutex *event_mutex;		 /* over trace events */
	int (*event_switch)(struct trace_event_file *file, int enable, int soft_disable);
	int (*trace_buffers_expand)(struct trace_array *tr);
};

extern struct hvp_symbols hvp_symbols;

int hvp_symbols_init(void);
/* What the gate needs: 0, or -EOPNOTSUPP, having said what there is not. */
int hvp_symbols_find_gate(void);
/* The address of what has this name, in the kernel or ("MODULE:NAME") in a module, or NULL. */
void *hvp_symbols_find(const char *name);

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
/* The batch that the host keeps for its request in progress. */
u32 hvp_host_undo(struct hvpoke_batch *batch);
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
/*
 * From here on the owner switches trace events: of static keys only tracepoints' are
 * collected. Others may be switched off to free something that their text uses; a
 * tracepoint's text looks first whether there is anybody to call.
 */
void hvp_session_trace(bool trace);
/* Have the host write what was collected; @result is filled in. */
void hvp_session_end(struct hvp_result *result);
/* No request runs between these two. */
void hvp_session_shut_out(void);
void hvp_session_let_in(void);
/* May be asked anywhere: is there a request of this task? Is it collecting? */
bool hvp_session_owned(void);
bool hvp_session_diverts(void);
bool hvp_session_traces(void);
/* And not in hvp_session_update_call() already? */
bool hvp_session_updates(void);

/* Things of this task's request that may wait at the gate until it ends. */
enum hvp_hold {
	HVP_HOLD_PROBES,     /* kprobes, in a request that switches trace events */
	HVP_HOLD_TRANSFORMS, /* a tracepoint's static calls, not even made yet */
	HVP_HOLD_CALLS,	     /* what they come to, while they are made */
};

bool hvp_session_holds(enum hvp_hold what);
/* For the owner: is the text at @addr still there when its request ends? */
bool hvp_session_text_stays(unsigned long addr);
/* Where to count what the gate has written for this task's request, or NULL. */
struct hvp_result *hvp_session_gate_result(void);
/* Send what waits. Without text_mutex. */
void hvp_session_flush(void);
bool hvp_session_waits(void);
bool hvp_session_collected(const struct jump_entry *entry);
void hvp_session_update_call(struct static_call_key *key, void *tramp, void *func);
void hvp_static_call_transform(void *site, void *tramp, void *func, bool tail);
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

/* patch.c - one site as it stands in memory and as it is to be. */
struct hvp_patch {
	u8 len;	 /* 0: already as it is to be */
	u8 kind; /* HVPOKE_SITE_* */
	u8 old_insn[HVPOKE_MAX_INSN];
	u8 new_insn[HVPOKE_MAX_INSN];
};

/* One write that the kernel's text_poke functions were asked for. */
struct hvp_poke {
	unsigned long addr;
	u8 len, kind;
	bool emulated; /* @emulate is not what is written */
	u8 new_insn[HVPOKE_MAX_INSN];
	u8 emulate[HVPOKE_MAX_INSN];
};

/* 0 or -EILSEQ: what stands there is none of this site's two instructions. */
int hvp_patch_make(struct hvp_patch *patch, const struct jump_entry *entry,
		   enum jump_label_type type);
/* With text_mutex held. */
void hvp_patch_poke(struct hvp_patch *patch, const struct hvp_poke *poke);
/* Tell perf, if anybody records text pokes. */
void hvp_perf_text_poke(unsigned long addr, const struct hvp_patch *patch);

/* batch.c - the sites collected. Its users have the locks. */
struct hvp_batch {
	bool text_locked; /* whoever flushes it holds text_mutex; it has pokes only */
	unsigned long *site;
	struct hvpoke_sort_item *item;
	void *scratch; /* for hvpoke_sort() */
	u32 nr, max;
	struct hvp_poke *poke;
	u32 nr_pokes, max_pokes;
	struct hvp_pages entries;
};

/* 0, or -ENOMEM: no room and no memory for more. */
int hvp_batch_add(struct hvp_batch *batch, struct jump_entry *entry, enum jump_label_type type);
int hvp_batch_add_poke(struct hvp_batch *batch, const struct hvp_poke *poke);
/* May be asked anywhere: has it any sites? */
bool hvp_batch_waits(const struct hvp_batch *batch);
bool hvp_batch_holds(const struct hvp_batch *batch, const struct jump_entry *entry);
/*
 * Have the host write it all; at the end the batch is empty. Returns the
 * status: if it is not HVPOKE_OK, the sites have gone the kernel's own way.
 */
u32 hvp_batch_flush(struct hvp_batch *batch, struct hvp_result *result);
void hvp_batch_free(struct hvp_batch *batch);

/*
 * native.c - the kernel's own way. Jump labels under the session's batch_lock, pokes under
 * text_mutex; what asks who passes may be called anywhere.
 */
bool hvp_native_passes(void);
bool hvp_native_queue(struct jump_entry *entry, enum jump_label_type type);
void hvp_native_apply(void);
bool hvp_native_poke_passes(void);
void hvp_native_poke(const struct hvp_poke *poke);
/* The original function itself. */
void hvp_native_poke_raw(void *addr, const void *opcode, size_t len, const void *emulate);
void hvp_native_poke_finish(void);
/* The original functions, whose pokes the gate may still take. */
bool hvp_original_queue(struct jump_entry *entry, enum jump_label_type type);
void hvp_original_apply(void);

/* ranges.c - the text that is registered with the host. */

/* @mod, which stays for the moment, has sites to be patched. 0 or -ENOMEM. */
int hvp_ranges_add(struct module *mod);
void hvp_ranges_forget(struct module *mod);
/*
 * See that [@addr, @addr + @len) is registered from the next sync on: a module's text for
 * good, any other text until hvp_ranges_uncover(). With text_mutex held, by which that text
 * stays. HVPOKE_OK or HVPOKE_NO_MEMORY.
 */
u32 hvp_ranges_cover(unsigned long addr, unsigned long len);
void hvp_ranges_uncover(void);
/* Tell the host, if anything changed since the last time. */
u32 hvp_ranges_sync(void);
void hvp_ranges_stale(void);
void hvp_ranges_free(void);

/* gate.c - the kernel's text_poke functions, whoever calls them. With text_mutex held. */
void hvp_gate_queue(void *addr, const void *opcode, size_t len, const void *emulate);
void hvp_gate_finish(void);
void hvp_gate_single(void *addr, const void *opcode, size_t len, const void *emulate);
/* Have @poke written with the next flush, at once if there is no room for it. */
void hvp_gate_put(const struct hvp_poke *poke);
void hvp_gate_flush(void);
/* May be asked anywhere: do pokes wait? */
bool hvp_gate_waits(void);
/* Have the pokes that wait in @batch, too. They wait until hvp_gate_taken() says it is sent. */
void hvp_gate_take(struct hvp_batch *batch);
void hvp_gate_taken(void);
u32 hvp_gate_scope(void);
/* @scope is an enum hvpoke_scope. Without text_mutex. 0 or a negative errno, having said why. */
int hvp_scope_set(u32 scope);
u64 hvp_gate_noisy(void);
/* The scope that was asked for before the agent was up. */
int hvp_gate_init(void);
void hvp_gate_close(void);
void hvp_gate_exit(void);

/* noise.c - does the kernel flip this site by itself, and too often? With text_mutex held. */
bool hvp_noise(unsigned long addr);

/* probes.c - in place of the kernel's arch_*_kprobe(). With text_mutex held. */
void hvp_probe_arm(struct kprobe *kp);
void hvp_probe_disarm(struct kprobe *kp);
/* Without text_mutex, this one. */
int hvp_probe_unregister(struct kprobe *kp, int (*original)(struct kprobe *kp));
void hvp_probes_optimize(struct list_head *list);
void hvp_probes_unoptimize(struct list_head *list, struct list_head *done);
void hvp_probe_unoptimize(struct optimized_kprobe *op);

/* diversions.c - the functions that ftrace diverts. */
int hvp_diversions_enable(u32 scope);
void hvp_diversions_disable(void);
void hvp_diversions_exit(void);
/* If not, no kprobe may wait to be disarmed. */
bool hvp_unregister_diverted(void);

/* tracing.c - trace events and what they patch. */
/* Is @key a tracepoint's of the kernel? May be asked anywhere. */
bool hvp_tracepoint_key(const struct static_key *key);
int hvp_tracing_init(void);
void hvp_tracing_exit(void);
/* In place of __static_call_update(). */
void hvp_static_call_update(struct static_call_key *key, void *tramp, void *func);
/* Is this task in there, with what is poked to be written at its end? */
bool hvp_static_call_updating(void);
/* Under batch_lock. 0 or -ENOMEM. */
int hvp_static_calls_add(void *site, void *tramp, void *func, bool tail);
/* Make the static calls' changes that wait; their pokes wait at the gate then. */
void hvp_static_calls_replay(void);
/* And those are written. */
void hvp_static_calls_done(void);
bool hvp_static_calls_wait(void);

/* hooks.c - the kprobes. */
/* Tasks that were sent to a function of ours that calls the original, and have not left it. */
extern atomic_t hvp_diverted;
int hvp_hooks_init(void);
void hvp_hooks_exit(void);
void hvp_hooks_probes(u64 gva[HVPOKE_MAX_PROBES]);
/* For kprobes' handlers. Send the task to @to, a function that counts it out again. */
int hvp_hooks_divert(struct kprobe *kp, struct pt_regs *regs, unsigned long to);
void hvp_hooks_passed(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);

/* event_files.c - files of tracefs that switch many trace events. */
void hvp_event_files_divert(void);
void hvp_event_files_release(void);
/* The addresses of its INT3s, four at most; returns how many. */
int hvp_event_files_probes(u64 *gva);

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

/* What came of one change that the host asked for. */
struct hvp_change {
	u64 matched;   /* keys or events that were meant */
	u64 changed;   /* of these, those that are different now */
	char why[128]; /* with an error, for a person */
};

/* Say why it was not made (request.c). */
__printf(2, 3) void hvp_change_refuse(struct hvp_change *change, const char *format, ...);

/* keys.c - static keys by name. */
void hvp_keys_init(void);
/*
 * Switch the key of the symbol @name ("MODULE:NAME" for a module's). Inside of a
 * session. 0, or a negative errno and why in @change.
 */
int hvp_key_switch(const char *name, bool on, struct hvp_change *change);
/*
 * Append the keys that match @glob, but the first @skip of them, to the data of
 * @complete until it is full, and count the others in @complete->more. Returns as
 * hvp_key_switch() does.
 */
int hvp_keys_list(const char *glob, u32 skip, struct hvpoke_complete *complete,
		  struct hvp_change *change);

/*
 * Call @each for every site of every key, with jump_label_mutex held. 0, or a negative errno and
 * why; -EAGAIN: a module comes or goes just now, whose sites are not among them.
 */
int hvp_keys_walk(void (*each)(struct jump_entry *entry), struct hvp_change *change);
/* Would that find them all? */
bool hvp_keys_covered(void);

/* undo.c - text that the host has put back, and that the kernel does not expect. */
/* Have the batch of the host's request put back. 0, or a negative errno and why. */
int hvp_undo(struct hvp_result *result, struct hvp_change *change);
/* From a kprobe's handlers: is there such text, and is this site already as it is to be? */
bool hvp_undo_stands(const struct jump_entry *entry, enum jump_label_type type);
/* Make all text what the kernel expects. No request of the host's comes any more. */
void hvp_undo_settle(void);

/* events.c - trace events by name. */
#ifdef CONFIG_EVENT_TRACING
void hvp_events_init(void);
/* Switch those that match @glob, "SYSTEM:EVENT". Otherwise as hvp_key_switch(). */
int hvp_events_switch(const char *glob, bool on, struct hvp_change *change);
#else
static inline void hvp_events_init(void)
{
}

static inline int hvp_events_switch(const char *glob, bool on, struct hvp_change *change)
{
	hvp_change_refuse(change, "this kernel has no trace events (CONFIG_EVENT_TRACING)");
	return -EOPNOTSUPP;
}
#endif

/* request.c - requests of the host. */
int hvp_requests_init(void);
/* In any context: look whether the host is a new one, or has a request. */
void hvp_requests_wake(void);
void hvp_requests_exit(void);

#endif /* HVPOKE_H */
