// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own way: the original functions, reached through the hooks.
 *
 * Under the session's batch_lock, so that there is one task at a time that the
 * hooks let pass. What it queues is applied at the latest when it, or whoever
 * called it, applies: the kernel's queue is common to all.
 */
#include <linux/bug.h>
#include <linux/sched.h>

#include "hvpoke.h"

static struct task_struct *passing;

bool hvp_native_passes(void)
{
	return READ_ONCE(passing) == current;
}

void hvp_native_apply(void)
{
	WRITE_ONCE(passing, current);
	hvp_symbols.transform_apply();
	WRITE_ONCE(passing, NULL);
}

bool hvp_native_queue(struct jump_entry *entry, enum jump_label_type type)
{
	bool queued;

	WRITE_ONCE(passing, current);
	queued = hvp_symbols.transform_queue(entry, type);
	WRITE_ONCE(passing, NULL);
	return queued;
}
