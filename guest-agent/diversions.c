// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions that ftrace diverts, for the scopes beyond dynamic debug.
 *
 * One ftrace_ops for all of them: they are switched on and off together, under
 * text_mutex, so that there is no moment at which a poke is queued here and finished
 * in the kernel. Its callback sets the instruction pointer, as a livepatch does, and the
 * task goes on in a function of ours as if the caller had called that: same arguments,
 * same context, it may sleep. To call the original goes through the callback again,
 * which lets it pass.
 *
 * The callback is not protected against recursion: it calls nothing that is diverted, and
 * what it does call makes no difference whether it is traced by others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/sched.h>

#include "compat.h"
#include "hvpoke.h"

static bool from_static_key(unsigned long caller)
{
	return caller - (unsigned long)hvp_symbols.transform_queue <
	       hvp_symbols.transform_queue_len;
}

/*
 * A request that is to go the kernel's own way does; what it patches besides jump labels,
 * which the probe on those has counted, is counted here.
 */
static bool poke_diverts(unsigned long caller)
{
	if (hvp_native_poke_passes())
		return false;
	if (!hvp_session_owned() || hvp_session_diverts())
		return true;
	if (!from_static_key(caller))
		hvp_session_native_site();
	return false;
}

static bool queue_wanted(unsigned long caller)
{
	return (hvp_gate_scope() == HVPOKE_SCOPE_ALL || from_static_key(caller)) &&
	       poke_diverts(caller);
}

static bool finish_wanted(unsigned long caller)
{
	return !hvp_native_poke_passes();
}

/* The original is called again. */
static bool call_update_wanted(unsigned long caller)
{
	if (hvp_static_call_updating())
		return false;
	return !hvp_session_owned() || hvp_session_updates();
}

static bool call_transform_wanted(unsigned long caller)
{
	if (hvp_session_holds(HVP_HOLD_CALLS))
		return false; /* this is what sends them */
	return hvp_session_owned() ? hvp_session_holds(HVP_HOLD_TRANSFORMS)
				   : hvp_static_calls_wait();
}

/* The original is called again, and passes unless somebody's pokes wait once more. */
static bool unregister_wanted(unsigned long caller)
{
	return hvp_gate_waits();
}

/* hvp_hooks_exit() says why nothing that sleeps may follow. */
#define LEAVE() atomic_dec(&hvp_diverted)

static void poke_queue(void *addr, const void *opcode, size_t len, const void *emulate)
{
	hvp_gate_queue(addr, opcode, len, emulate);
	LEAVE();
}

static void poke_finish(void)
{
	hvp_gate_finish();
	LEAVE();
}

static void poke_single(void *addr, const void *opcode, size_t len, const void *emulate)
{
	hvp_gate_single(addr, opcode, len, emulate);
	LEAVE();
}

static void arm_kprobe(struct kprobe *kp)
{
	hvp_probe_arm(kp);
	LEAVE();
}

static void disarm_kprobe(struct kprobe *kp)
{
	hvp_probe_disarm(kp);
	LEAVE();
}

static void optimize_kprobes(struct list_head *list)
{
	hvp_probes_optimize(list);
	LEAVE();
}

static void unoptimize_kprobes(struct list_head *list, struct list_head *done)
{
	hvp_probes_unoptimize(list, done);
	LEAVE();
}

static void unoptimize_kprobe(struct optimized_kprobe *op)
{
	hvp_probe_unoptimize(op);
	LEAVE();
}

static void static_call_update(struct static_call_key *key, void *tramp, void *func)
{
	hvp_static_call_update(key, tramp, func);
	LEAVE();
}

static void static_call_transform(void *site, void *tramp, void *func, bool tail)
{
	hvp_static_call_transform(site, tramp, func, tail);
	LEAVE();
}

enum {
	POKE_QUEUE,
	POKE_FINISH,
	POKE_SINGLE,
	ARM_KPROBE,
	DISARM_KPROBE,
	UNREGISTER_KPROBE,
	OPTIMIZE_KPROBES,
	UNOPTIMIZE_KPROBES,
	UNOPTIMIZE_KPROBE,
	STATIC_CALL_UPDATE,
	STATIC_CALL_TRANSFORM,
	NR_DIVERSIONS
};

/* Once found they stay: a task may still be on its way to the original. */
static unsigned long address[NR_DIVERSIONS];
static bool unregister_diverted;

bool hvp_unregister_diverted(void)
{
	return READ_ONCE(unregister_diverted);
}

static int unregister_kprobe_top(struct kprobe *kp)
{
	int ret = hvp_probe_unregister(kp, (void *)address[UNREGISTER_KPROBE]);

	LEAVE();
	return ret;
}

static const struct diversion {
	const char *name[2]; /* the second: since 6.16 */
	void *to;
	bool (*wanted)(unsigned long caller);
	u32 scope;	       /* from this one on */
	const char *uncovered; /* what is, if there is no such function; NULL: needed */
} diversions[NR_DIVERSIONS] = {
	[POKE_QUEUE] = { { "text_poke_queue", "smp_text_poke_batch_add" },
			 poke_queue,
			 queue_wanted,
			 HVPOKE_SCOPE_STATIC_KEYS },
	[POKE_FINISH] = { { "text_poke_finish", "smp_text_poke_batch_finish" },
			  poke_finish,
			  finish_wanted,
			  HVPOKE_SCOPE_STATIC_KEYS },
	[POKE_SINGLE] = { { "text_poke_bp", "smp_text_poke_single" },
			  poke_single,
			  poke_diverts,
			  HVPOKE_SCOPE_ALL },
	/* All of these or none: what is armed here must not be disarmed there while it waits. */
	[ARM_KPROBE] = { { "arch_arm_kprobe" }, arm_kprobe, poke_diverts, HVPOKE_SCOPE_ALL },
	[DISARM_KPROBE] = { { "arch_disarm_kprobe" },
			    disarm_kprobe,
			    poke_diverts,
			    HVPOKE_SCOPE_ALL },
	[UNREGISTER_KPROBE] = { { "__unregister_kprobe_top" },
				unregister_kprobe_top,
				unregister_wanted,
				HVPOKE_SCOPE_ALL,
				"one pause for many kprobes" },
#ifdef CONFIG_OPTPROBES
	[OPTIMIZE_KPROBES] = { { "arch_optimize_kprobes" },
			       optimize_kprobes,
			       poke_diverts,
			       HVPOKE_SCOPE_ALL },
	[UNOPTIMIZE_KPROBES] = { { "arch_unoptimize_kprobes" },
				 unoptimize_kprobes,
				 poke_diverts,
				 HVPOKE_SCOPE_ALL },
	[UNOPTIMIZE_KPROBE] = { { "arch_unoptimize_kprobe" },
				unoptimize_kprobe,
				poke_diverts,
				HVPOKE_SCOPE_ALL },
#endif
	[STATIC_CALL_UPDATE] = { { "__static_call_update" },
				 static_call_update,
				 call_update_wanted,
				 HVPOKE_SCOPE_ALL,
				 "one pause for many trace events" },
	[STATIC_CALL_TRANSFORM] = { { "arch_static_call_transform" },
				    static_call_transform,
				    call_transform_wanted,
				    HVPOKE_SCOPE_ALL,
				    "one pause for many trace events" },
};

/* An ENDBR before the call of ftrace's is not part of the function's own instructions. */
#define MAX_OFFSET 16

static void divert(unsigned long ip, unsigned long caller, struct ftrace_ops *ops,
		   struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	int i;

	for (i = 0; i < NR_DIVERSIONS; i++)
		if (address[i] && ip - address[i] < MAX_OFFSET)
			break;
	if (i == NR_DIVERSIONS || !regs || !diversions[i].wanted(caller))
		return;
	atomic_inc(&hvp_diverted);
	regs->ip = (unsigned long)diversions[i].to;
}

/*
 * Permanent: while it is registered, ftrace cannot be switched off (kernel.ftrace_enabled).
 * In the middle of a request that would let others find text that still waits.
 */
static struct ftrace_ops ops = {
	.func = divert,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

static bool enabled;

static void *find(const struct diversion *diversion)
{
	void *addr = hvp_symbols_find(diversion->name[0]);

	return addr || !diversion->name[1] ? addr : hvp_symbols_find(diversion->name[1]);
}

/* @first: in place of those that were there before. */
static int add(int i, bool first)
{
	const struct diversion *diversion = &diversions[i];
	int err;

	if (!address[i])
		WRITE_ONCE(address[i], (unsigned long)find(diversion));
	err = address[i] ? ftrace_set_filter_ip(&ops, address[i], 0, first) : -ENOENT;
	if (i == UNREGISTER_KPROBE)
		WRITE_ONCE(unregister_diverted, !err);
	if (!err)
		return 0;
	if (diversion->uncovered) {
		pr_warn("cannot divert %s (error %d); not covered: %s\n", diversion->name[0], err,
			diversion->uncovered);
		return 0;
	}
	pr_err("cannot divert %s (error %d), without which the scope stays dyndbg\n",
	       diversion->name[0], err);
	return err;
}

int hvp_diversions_enable(u32 scope)
{
	int i, err = 0;

	if (scope == HVPOKE_SCOPE_DYNDBG)
		return 0;
	/* The first one is needed: without it, the filter would be empty and mean everything. */
	for (i = 0; i < NR_DIVERSIONS && !err; i++)
		if (diversions[i].to && scope >= diversions[i].scope)
			err = add(i, !i);
	if (err)
		return err;
	err = register_ftrace_function(&ops);
	if (err) {
		pr_err("ftrace does not take the diversions (error %d)\n", err);
		return err;
	}
	enabled = true;
	return 0;
}

void hvp_diversions_disable(void)
{
	if (!enabled)
		return;
	unregister_ftrace_function(&ops);
	enabled = false;
}

/* Once: before 6.2 the filter cannot be used any more after this. */
void hvp_diversions_exit(void)
{
	ftrace_free_filter(&ops);
}
