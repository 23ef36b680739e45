// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kprobes, in place of arch/x86/kernel/kprobes/core.c and opt.c.
 *
 * The INT3 of a kprobe is meant: it is written, but without the interrupts by which
 * the kernel makes every CPU see it.
 *
 * An optimized kprobe's JMP replaces several instructions. That no virtual CPU runs
 * while it is written is not enough: a task may have been preempted, or a CPU
 * interrupted, behind the first of them, and would go on in the middle of the JMP.
 * The kernel's own rule is kept: the kprobe's INT3 has stood there, so that nobody
 * could come in, since before synchronize_rcu_tasks() has let everybody out
 * (kprobe_optimizer()). Only an INT3 that was held back breaks it, and is then written
 * first, and waited for once more. The other way round there is just the JMP to stand
 * before or behind.
 *
 * An optimized kprobe that is switched off, too, gets its first byte back in a second
 * batch, and not in one each: arch_disarm_kprobe() finds it there already.
 */
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/rcupdate.h>

#include <asm/text-patching.h>

#include "hvpoke.h"

static void put(const void *addr, const u8 *insn, u8 len)
{
	struct hvp_poke poke = {
		.addr = (unsigned long)addr,
		.len = len,
		.kind = HVPOKE_SITE_PROBE,
	};

	memcpy(poke.new_insn, insn, len);
	hvp_gate_put(&poke);
}

static void put_one(const void *addr, u8 byte)
{
	put(addr, &byte, 1);
	if (!hvp_session_holds(HVP_HOLD_PROBES) || !hvp_unregister_diverted() ||
	    !hvp_session_text_stays((unsigned long)addr))
		hvp_gate_flush();
}

void hvp_probe_arm(struct kprobe *kp)
{
	put_one(kp->addr, INT3_INSN_OPCODE);
}

void hvp_probe_disarm(struct kprobe *kp)
{
	put_one(kp->addr, kp->opcode);
}

/*
 * In place of __unregister_kprobe_top(), which forgets a kprobe that has been disabled
 * before: nobody would know the INT3 whose removal waits. kprobe_mutex is held, so it
 * does not come back.
 */
int hvp_probe_unregister(struct kprobe *kp, int (*original)(struct kprobe *kp))
{
	mutex_lock(hvp_symbols.text_mutex);
	hvp_gate_flush();
	mutex_unlock(hvp_symbols.text_mutex);
	return original(kp);
}

#ifdef CONFIG_OPTPROBES
void hvp_probes_optimize(struct list_head *list)
{
	struct optimized_kprobe *op, *next;
	u8 jmp[JMP32_INSN_SIZE] = { JMP32_INSN_OPCODE };
	s32 rel;

	if (hvp_gate_waits()) {
		hvp_gate_flush();
		synchronize_rcu_tasks();
	}
	list_for_each_entry_safe(op, next, list, list) {
		memcpy(op->optinsn.copied_insn, op->kp.addr + INT3_INSN_SIZE, DISP32_SIZE);
		rel = (long)op->optinsn.insn - ((long)op->kp.addr + JMP32_INSN_SIZE);
		memcpy(jmp + 1, &rel, DISP32_SIZE);
		put(op->kp.addr, jmp, sizeof(jmp));
		list_del_init(&op->list);
	}
	hvp_gate_flush();
}

/* Back to the INT3, and behind it the bytes that stood there. */
static void put_int3(const struct optimized_kprobe *op)
{
	u8 insn[JMP32_INSN_SIZE] = { INT3_INSN_OPCODE };

	memcpy(insn + INT3_INSN_SIZE, op->optinsn.copied_insn, DISP32_SIZE);
	put(op->kp.addr, insn, sizeof(insn));
}

void hvp_probe_unoptimize(struct optimized_kprobe *op)
{
	hvp_gate_flush();
	put_int3(op);
	hvp_gate_flush();
}

void hvp_probes_unoptimize(struct list_head *list, struct list_head *done)
{
	struct optimized_kprobe *op, *next;

	hvp_gate_flush();
	list_for_each_entry(op, list, list)
		put_int3(op);
	hvp_gate_flush();
	list_for_each_entry_safe(op, next, list, list) {
		/* do_unoptimize_kprobes() will disarm just these. */
		if (kprobe_disabled(&op->kp) && !kprobe_gone(&op->kp))
			put(op->kp.addr, &op->kp.opcode, 1);
		list_move(&op->list, done);
	}
	hvp_gate_flush();
}
#endif
