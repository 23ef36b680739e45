// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kprobes that divert three functions of the kernel: one into which every
 * request to dynamic debug comes, and two that it then calls for each site.
 *
 * A pre-handler that sets the instruction pointer and returns 1 sends the task
 * to a function of ours as if the caller had called that: same arguments, same
 * context, it may sleep. To call the original goes through the probe again,
 * which lets the session's owner pass. Each probe has a post-handler: it keeps
 * the kernel from optimizing the probe to a jump, in which the instruction
 * pointer cannot be changed, and makes ftrace know that it is changed
 * (Documentation/trace/kprobes.rst, "Changing Execution Path").
 *
 * ddebug_exec_queries() is static, and its callers may have been compiled in
 * the knowledge of which registers it leaves alone (-fipa-ra). It calls
 * functions of other files, which may use all that the ABI allows, so that
 * knowledge is no more than what holds for any function, ours included.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>

#include "hvpoke.h"

atomic_t hvp_diverted;

static int divert_queries(char *query, const char *modname)
{
	struct hvp_result result;
	int ret;

	hvp_session_begin(modname, true);
	ret = hvp_symbols.exec_queries(query, modname);
	hvp_session_end(&result);
	hvp_result_report("guest", &result);
	/* hvp_hooks_exit() says why nothing that sleeps may follow. */
	atomic_dec(&hvp_diverted);
	return ret;
}

static bool divert_foreign(struct jump_entry *entry, enum jump_label_type type)
{
	bool queued = hvp_session_foreign(entry, type);

	atomic_dec(&hvp_diverted);
	return queued;
}

/* In place of arch_jump_label_transform_queue(), where there is nothing left to be done. */
static bool skip_site(struct jump_entry *entry, enum jump_label_type type)
{
	atomic_dec(&hvp_diverted);
	return true;
}

static int divert(struct pt_regs *regs, unsigned long to)
{
	instruction_pointer_set(regs, to);
	return 1;
}

int hvp_hooks_divert(struct kprobe *kp, struct pt_regs *regs, unsigned long to)
{
	hvp_int3_hit(kp);
	atomic_inc(&hvp_diverted);
	return divert(regs, to);
}

NOKPROBE_SYMBOL(hvp_hooks_divert);

NOKPROBE_SYMBOL(divert);

static int queries_pre(struct kprobe *kp, struct pt_regs *regs)
{
	hvp_int3_hit(kp);
	if (hvp_session_owned())
		return 0;
	atomic_inc(&hvp_diverted);
	return divert(regs, (unsigned long)divert_queries);
}

NOKPROBE_SYMBOL(queries_pre);

static int queue_pre(struct kprobe *kp, struct pt_regs *regs)
{
	hvp_int3_hit(kp);
	if (hvp_native_passes())
		return 0;
	/* Inside of divert_queries(), or a work item that is waited for. */
	if (hvp_session_diverts())
		return divert(regs, (unsigned long)hvp_session_queue);
	/* For the session's own sites, undone or not: these are looked at when it has the locks. */
	if (hvp_session_waits()) {
		if (hvp_session_owned())
			hvp_session_native_site();
		atomic_inc(&hvp_diverted);
		return divert(regs, (unsigned long)divert_foreign);
	}
	if (hvp_undo_stands((void *)regs_get_kernel_argument(regs, 0),
			    regs_get_kernel_argument(regs, 1))) {
		atomic_inc(&hvp_diverted);
		return divert(regs, (unsigned long)skip_site);
	}
	if (hvp_session_owned())
		hvp_session_native_site();
	return 0;
}

NOKPROBE_SYMBOL(queue_pre);

static int apply_pre(struct kprobe *kp, struct pt_regs *regs)
{
	hvp_int3_hit(kp);
	if (hvp_native_passes() || !hvp_session_diverts())
		return 0;
	return divert(regs, (unsigned long)hvp_session_apply);
}

NOKPROBE_SYMBOL(apply_pre);

void hvp_hooks_passed(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	hvp_int3_step(kp);
}

NOKPROBE_SYMBOL(hvp_hooks_passed);

/* The way in comes last: when it is there, the other two are. */
enum { APPLY, QUEUE, QUERIES, NR_PROBES };

static struct kprobe probes[NR_PROBES] = {
	[APPLY] = { .pre_handler = apply_pre, .post_handler = hvp_hooks_passed },
	[QUEUE] = { .pre_handler = queue_pre, .post_handler = hvp_hooks_passed },
	[QUERIES] = { .pre_handler = queries_pre, .post_handler = hvp_hooks_passed },
};

static const char *const names[NR_PROBES] = {
	[APPLY] = "arch_jump_label_transform_apply",
	[QUEUE] = "arch_jump_label_transform_queue",
	[QUERIES] = "ddebug_exec_queries",
};

int hvp_hooks_init(void)
{
	int i, err;

	probes[APPLY].addr = (kprobe_opcode_t *)hvp_symbols.transform_apply;
	probes[QUEUE].addr = (kprobe_opcode_t *)hvp_symbols.transform_queue;
	probes[QUERIES].addr = (kprobe_opcode_t *)hvp_symbols.exec_queries;
	for (i = 0; i < NR_PROBES; i++) {
		err = register_kprobe(&probes[i]);
		if (err) {
			pr_err("cannot divert %s (error %d)\n", names[i], err);
			while (i--)
				unregister_kprobe(&probes[i]);
			return err;
		}
		pr_info("%s is diverted by %s\n", names[i],
			kprobe_ftrace(&probes[i]) ? "ftrace" : "INT3");
	}
	return 0;
}

/*
 * The addresses at which the probes keep an INT3. The hit behind a stepped
 * instruction's copy is outside of the kernel's text and cannot be taken for
 * text patching.
 */
void hvp_hooks_probes(u64 gva[HVPOKE_MAX_PROBES])
{
	int i, nr = 0;

	memset(gva, 0, HVPOKE_MAX_PROBES * sizeof(*gva));
	for (i = 0; i < NR_PROBES; i++)
		if (!kprobe_ftrace(&probes[i]))
			gva[nr++] = (unsigned long)probes[i].addr;
	hvp_event_files_probes(gva + nr);
}

/*
 * First nobody new comes in; then those who are inside finish, with the hooks
 * that they need still there; then the rest goes.
 *
 * A task inside holds no reference to the module, which could not protect the
 * last instructions anyway. Instead it is counted from the pre-handler on.
 * After it has counted itself out it runs to the return without sleeping, so
 * that synchronize_rcu_tasks(), which waits until each task has slept or left
 * the kernel, outlasts it even if it is preempted there. For the same reason it
 * wakes nobody up, which may sleep under PREEMPT_RT: this side polls.
 */
void hvp_hooks_exit(void)
{
	hvp_gate_close();
	unregister_kprobe(&probes[QUERIES]);
	while (atomic_read(&hvp_diverted))
		msleep(20);
	hvp_undo_settle();
	unregister_kprobe(&probes[QUEUE]);
	unregister_kprobe(&probes[APPLY]);
	/* No sites wait any more; those who saw some come out now. */
	while (atomic_read(&hvp_diverted))
		msleep(20);
	synchronize_rcu_tasks();
}
