// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own way: the original functions, reached through the hooks.
 *
 * Jump labels go under the session's batch_lock and pokes under text_mutex, so that
 * there is one task at a time that the hooks of each let pass. What it queues is
 * applied at the latest when it, or whoever called it, applies: the kernel's queue
 * is common to all.
 */
#include <linux/bug.h>
#include <linux/sched.h>

#include <asm/text-patching.h>

#include "hvpoke.h"

static struct task_struct *passing; /* the hooks of jump labels */
static bool all_the_way;	    /* and then those of pokes as well */
static struct task_struct *poking;  /* those of pokes only */

bool hvp_native_passes(void)
{
	return READ_ONCE(passing) == current;
}

bool hvp_native_poke_passes(void)
{
	return READ_ONCE(poking) == current || (hvp_native_passes() && all_the_way);
}

void hvp_original_apply(void)
{
	WRITE_ONCE(passing, current);
	hvp_symbols.transform_apply();
	WRITE_ONCE(passing, NULL);
}

bool hvp_original_queue(struct jump_entry *entry, enum jump_label_type type)
{
	bool queued;

	WRITE_ONCE(passing, current);
	queued = hvp_symbols.transform_queue(entry, type);
	WRITE_ONCE(passing, NULL);
	return queued;
}

void hvp_native_apply(void)
{
	all_the_way = true;
	hvp_original_apply();
	all_the_way = false;
}

bool hvp_native_queue(struct jump_entry *entry, enum jump_label_type type)
{
	bool queued;

	all_the_way = true;
	queued = hvp_original_queue(entry, type);
	all_the_way = false;
	return queued;
}

/* As arch_arm_kprobe(), arch_disarm_kprobe(), arch_unoptimize_kprobe(): first byte first. */
static void poke_probe(const struct hvp_poke *poke)
{
	hvp_symbols.text_poke((void *)poke->addr, poke->new_insn, 1);
	hvp_symbols.poke_sync();
	if (poke->len == 1)
		return;
	hvp_symbols.text_poke((void *)(poke->addr + 1), poke->new_insn + 1, poke->len - 1);
	hvp_symbols.poke_sync();
}

void hvp_native_poke(const struct hvp_poke *poke)
{
	if (poke->kind == HVPOKE_SITE_PROBE &&
	    (poke->len == 1 || poke->new_insn[0] == INT3_INSN_OPCODE)) {
		poke_probe(poke);
		return;
	}
	hvp_native_poke_raw((void *)poke->addr, poke->new_insn, poke->len,
			    poke->emulated ? poke->emulate : NULL);
}

void hvp_native_poke_raw(void *addr, const void *opcode, size_t len, const void *emulate)
{
	WRITE_ONCE(poking, current);
	hvp_symbols.poke_queue(addr, opcode, len, emulate);
	WRITE_ONCE(poking, NULL);
}

void hvp_native_poke_finish(void)
{
	WRITE_ONCE(poking, current);
	hvp_symbols.poke_finish();
	WRITE_ONCE(poking, NULL);
}
