// SPDX-License-Identifier: GPL-2.0-only
/*
 * One request from its begin to its end.
 *
 * The session's owner is the task that holds session_lock. What it would patch
 * is collected instead, with no text changed yet: dynamic debug's flags and the
 * static keys' counts are already the new ones, and at the end the host writes
 * the text to match. What any other task patches meanwhile is none of the
 * session's and goes the kernel's own way. Both side by side is safe:
 *
 * - All patching in the kernel is done under text_mutex, which is held from
 *   reading the old text until the host has written the new one. No INT3 of the
 *   kernel's own stands anywhere at that time.
 * - Should another task flip a key that the session has flipped, it would find
 *   text that the kernel does not expect and BUG(). Keys of dynamic debug change
 *   in ddebug_exec_queries() and nowhere else, but a task may have been inside
 *   of that since before it was diverted, or enter it when it no longer is. So
 *   as long as sites wait, everybody's arch_jump_label_transform_queue() is
 *   diverted, and if it is for one of them, the batch is sent first.
 *
 * Lock order
 * ----------
 *   session_lock
 *     ddebug_lock               the query runs
 *       cpu_hotplug_lock        a key is flipped
 *         jump_label_mutex        -> hvp_session_queue(), hvp_session_apply(),
 *           batch_lock               hvp_session_foreign()
 *             text_mutex          -> hvp_gate_*(), hvp_probe*()
 *               ranges' lock
 *                 init_mm.mmap_lock (read)   the page of a text
 *                 door.lock     the command page
 *                   shm.lock    the device may go away
 *     event_mutex               trace events are switched
 *       tracepoints_mutex
 *         update_lock           a tracepoint's call is changed
 *         cpu_hotplug_lock
 *           static_call_mutex   -> hvp_static_call_transform()
 *             batch_lock
 *               text_mutex
 *         (and a key is flipped, as above)
 *     batch_lock                at the end, with the ones of the query released
 *   module_notify_list.rwsem (read)
 *     session_lock              hvp_session_module()
 *   kernel_param_lock           a parameter of class dyndbg_classes is set
 *     session_lock
 *   kernel_param_lock           the parameter "scope" is set
 *     scope_lock                or the host sets the scope, before its request's session
 *       session_lock            what waits in a session needs the diversions
 *         kprobe_mutex, ftrace_lock   which come or go
 *           text_mutex
 *
 * A session registers no notifier, sets no parameter and loads no module, so no
 * lock of the lower part is ever taken inside of one. load_module() holds none
 * of them when it calls parse_args(), which runs a dyndbg= parameter:
 * module_mutex is taken and released before, and both notifier chains (COMING
 * before, LIVE after it) are done or not yet begun. Memory is allocated under
 * jump_label_mutex; so does the kernel in jump_label_add_module().
 *
 * batch_lock is over the batch, the static calls that wait, and the result. As long
 * as anything waits the session is open, and what session_lock guards stays as it is
 * for others, too. What the gate writes for the owner is counted apart, since it
 * comes with text_mutex held.
 *
 * Modules that go away
 * --------------------
 * A collected site must still be there when the batch is sent. A site is
 * collected if its module is LIVE, or COMING and the session is the one of its
 * own dyndbg= parameter. Every way to free such a module's text goes through
 * the notifier chain with MODULE_STATE_GOING, with mod->state set to that
 * before, and hvp_session_module() is the first in the chain. It takes
 * session_lock and releases it. So a session that saw the module LIVE or COMING
 * is waited for, and one that begins later sees GOING. A module that is COMING
 * in any other session is left alone because of one path that calls the chain
 * with the state still COMING: another notifier refused the module.
 * Its own parameter is safe there, since it runs only when none has.
 *
 * Text of __init functions is freed without the chain and is never collected.
 * What is not collected is patched at once, the kernel's own way.
 *
 * Somebody who turns kprobes or ftrace off (debugfs, sysctl) makes requests go
 * the kernel's own way. Done in the middle of a request, it would let others
 * find the text of waiting sites behind their keys.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include "compat.h"
#include "hvpoke.h"

static DEFINE_MUTEX(session_lock);
static DEFINE_MUTEX(batch_lock);

/* Written under session_lock; @owner is also read without it, by its owner to some purpose. */
static struct {
	struct task_struct *owner;
	bool divert;
	bool traces;	    /* switches trace events */
	bool updating;	    /* is in __static_call_update() */
	bool holds_calls;   /* and what that does is to wait */
	bool native_queued; /* since the last apply */
	const char *modname;
	struct module *mod; /* of the last site, with its text */
	unsigned long text, len;
	ktime_t begin;
	u64 int3_before;
	struct hvp_result result;
	struct hvp_result gate; /* the owner's alone */
} session;

static struct hvp_batch batch;
static struct task_struct *replaying; /* written under batch_lock */

bool hvp_session_owned(void)
{
	return READ_ONCE(session.owner) == current;
}

bool hvp_session_diverts(void)
{
	return hvp_session_owned() && session.divert;
}

bool hvp_session_traces(void)
{
	return hvp_session_diverts() && session.traces;
}

bool hvp_session_updates(void)
{
	return hvp_session_diverts() && !session.updating;
}

bool hvp_session_holds(enum hvp_hold what)
{
	switch (what) {
	case HVP_HOLD_PROBES: return hvp_session_traces();
	case HVP_HOLD_TRANSFORMS: return hvp_session_diverts() && session.holds_calls;
	case HVP_HOLD_CALLS: return READ_ONCE(replaying) == current;
	}
	return false;
}

struct hvp_result *hvp_session_gate_result(void)
{
	return hvp_session_owned() ? &session.gate : NULL;
}

void hvp_session_native_site(void)
{
	session.result.sites++;
	session.result.native_sites++;
}

void hvp_session_begin(const char *modname, bool divert)
{
	mutex_lock(&session_lock);
	session.divert = divert;
	session.modname = modname;
	session.mod = NULL;
	session.traces = false;
	memset(&session.result, 0, sizeof(session.result));
	memset(&session.gate, 0, sizeof(session.gate));
	session.int3_before = hvp_count_int3();
	session.result.ipis_before = hvp_count_ipis();
	session.begin = ktime_get();
	WRITE_ONCE(session.owner, current);
}

void hvp_session_trace(bool trace)
{
	session.traces = trace;
}

void hvp_session_shut_out(void)
{
	mutex_lock(&session_lock);
}

void hvp_session_let_in(void)
{
	mutex_unlock(&session_lock);
}

static void flush(void)
{
	u32 status;

	lockdep_assert_held(&batch_lock);
	if (hvp_static_calls_wait()) {
		WRITE_ONCE(replaying, current);
		hvp_static_calls_replay();
		WRITE_ONCE(replaying, NULL);
	}
	if (batch.nr || hvp_gate_waits()) {
		status = hvp_batch_flush(&batch, &session.result);
		if (status != HVPOKE_OK)
			session.result.fallback = status;
	}
	hvp_static_calls_done();
}

void hvp_session_flush(void)
{
	mutex_lock(&batch_lock);
	flush();
	mutex_unlock(&batch_lock);
}

void hvp_session_end(struct hvp_result *result)
{
	hvp_session_flush();
	WRITE_ONCE(session.owner, NULL);
	session.result.ns = ktime_to_ns(ktime_sub(ktime_get(), session.begin));
	session.result.ipis_after = hvp_count_ipis();
	session.result.int3 = hvp_count_int3() - session.int3_before;
	session.result.sites += session.gate.sites;
	session.result.native_sites += session.gate.native_sites;
	session.result.batches += session.gate.batches;
	if (!session.result.fallback)
		session.result.fallback = session.gate.fallback;
	*result = session.result;
	mutex_unlock(&session_lock);
}

static bool module_stays(const struct module *mod)
{
	enum module_state state = READ_ONCE(mod->state);

	return state == MODULE_STATE_LIVE ||
	       (state == MODULE_STATE_COMING && session.modname == mod->name);
}

/* Is @addr in the text of a module that stays until the session ends? */
static bool collectable_module(unsigned long addr)
{
	struct module *mod;

	if (session.mod && addr - session.text < session.len)
		return module_stays(session.mod);

	preempt_disable();
	mod = hvp_symbols.module_address(addr);
	if (mod && !module_stays(mod))
		mod = NULL;
	preempt_enable();
	if (!mod)
		return false;
	session.text = hvp_module_text(mod, &session.len);
	session.mod = NULL;
	if (addr - session.text >= session.len || hvp_ranges_add(mod))
		return false;
	session.mod = mod;
	return true;
}

bool hvp_session_text_stays(unsigned long addr)
{
	return hvp_core_text(addr) || collectable_module(addr);
}

static bool collectable(struct jump_entry *entry)
{
	unsigned long addr = jump_entry_code(entry);

	if (session.traces && !hvp_tracepoint_key(jump_entry_key(entry)))
		return false;
	if (jump_entry_is_init(entry))
		return false;
	return hvp_session_text_stays(addr);
}

/*
 * The kernel's own way expects the text that the last flip should have left, and
 * BUG()s if it is not there. If the batch holds the site, it is sent first. And
 * in 6.1 a flip may have left none: dynamic debug knows a module's sites a moment
 * before jump labels do (load_module()), and +p at that moment only counts.
 */
static bool queue_native(struct jump_entry *entry, enum jump_label_type type)
{
	struct hvp_patch patch;

	lockdep_assert_held(&batch_lock);
	if (hvp_batch_holds(&batch, entry))
		flush();
	if (!hvp_patch_make(&patch, entry, type) && !patch.len)
		return true;
	/* Not to the host with the request, but perhaps at the gate. */
	return hvp_original_queue(entry, type);
}

/*
 * In place of arch_jump_label_transform_queue(), for the session's owner. A
 * batch that can take no more is sent, and the next one begins. What cannot be
 * collected goes natively at once.
 */
bool hvp_session_queue(struct jump_entry *entry, enum jump_label_type type)
{
	bool collect = collectable(entry), queued = true;

	mutex_lock(&batch_lock);
	if (collect && hvp_batch_add(&batch, entry, type)) {
		flush();
		collect = !hvp_batch_add(&batch, entry, type);
		if (!collect)
			session.result.fallback = HVPOKE_NO_MEMORY;
	}
	if (!collect) {
		queued = queue_native(entry, type);
		session.native_queued = true;
		if (hvp_gate_scope() == HVPOKE_SCOPE_DYNDBG)
			hvp_session_native_site();
	}
	mutex_unlock(&batch_lock);
	return queued;
}

/* In place of arch_jump_label_transform_apply(), for the session's owner. */
void hvp_session_apply(void)
{
	if (!session.native_queued)
		return;
	mutex_lock(&batch_lock);
	hvp_original_apply();
	mutex_unlock(&batch_lock);
	session.native_queued = false;
}

bool hvp_session_waits(void)
{
	return hvp_batch_waits(&batch);
}

bool hvp_session_collected(const struct jump_entry *entry)
{
	bool collected;

	mutex_lock(&batch_lock);
	collected = hvp_batch_holds(&batch, entry);
	mutex_unlock(&batch_lock);
	return collected;
}

/* Call the original. What it would do to the text waits. */
void hvp_session_update_call(struct static_call_key *key, void *tramp, void *func)
{
	session.updating = true;
	session.holds_calls = true;
	__static_call_update(key, tramp, func);
	session.holds_calls = false;
	session.updating = false;
}

/*
 * In place of arch_static_call_transform(): for the owner, if it is to wait, and for
 * anybody else while any waits. A site in a module that comes or goes, or in text of
 * __init, may be gone by the end of the session. A trampoline is the kernel's own.
 */
void hvp_static_call_transform(void *site, void *tramp, void *func, bool tail)
{
	bool hold = hvp_session_holds(HVP_HOLD_TRANSFORMS), stays = true;
	int err = -EBUSY;

	if (site && hold)
		stays = hvp_session_text_stays((unsigned long)site);
	mutex_lock(&batch_lock);
	if (hold && stays)
		err = hvp_static_calls_add(site, tramp, func, tail);
	if (err)
		flush();
	mutex_unlock(&batch_lock);
	if (!err)
		return;
	if (hold)
		session.holds_calls = false;
	arch_static_call_transform(site, tramp, func, tail);
	if (hold)
		session.holds_calls = true;
}

/* In place of arch_jump_label_transform_queue(), for anybody else, while sites wait. */
bool hvp_session_foreign(struct jump_entry *entry, enum jump_label_type type)
{
	bool queued;

	mutex_lock(&batch_lock);
	queued = queue_native(entry, type);
	mutex_unlock(&batch_lock);
	return queued;
}

static int hvp_session_module(struct notifier_block *nb, unsigned long state, void *data)
{
	if (state == MODULE_STATE_GOING) {
		mutex_lock(&session_lock);
		hvp_ranges_forget(data);
		mutex_unlock(&session_lock);
	}
	return NOTIFY_DONE;
}

static struct notifier_block module_nb = {
	.notifier_call = hvp_session_module,
	.priority = INT_MAX,
};

/* Before the hooks: no session may miss that a module goes away. */
int hvp_session_init(void)
{
	return register_module_notifier(&module_nb);
}

/* After the hooks: the host wants to know where they are. */
u32 hvp_session_hello(void)
{
	u32 status;

	mutex_lock(&session_lock);
	status = hvp_ranges_sync();
	mutex_unlock(&session_lock);
	return status;
}

/* After the hooks. */
void hvp_session_exit(void)
{
	unregister_module_notifier(&module_nb);
	hvp_batch_free(&batch);
	hvp_gate_exit();
	hvp_tracing_exit();
	hvp_ranges_free();
}
