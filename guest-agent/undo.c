// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches that the host puts back: the text of their sites becomes what it was, and the
 * keys stay as they are. The kernel knows nothing of that, and BUG()s where it is about to
 * patch a jump label whose text is not the opposite of what it is to be
 * (__jump_label_patch() in arch/x86/kernel/jump_label.c). So:
 *
 * - The host writes while jump_label_mutex and text_mutex are held here. The first is held
 *   from any flip of a key until its text is written, so nobody is between the kernel's
 *   look at a site and its write.
 * - From then on a site whose text is already as it is to be is left out, whoever flips its
 *   key: hooks.c asks for each before the kernel looks, with jump_label_mutex held. In a
 *   session that is so anyway (hvp_patch_make()).
 * - Before the agent goes, the text of all sites is made what the keys say.
 *
 * Only jump labels are put back, the host sees to that. It has the list of the sites, and
 * knows from the ranges' serials whether their text is still the one that they were in; a
 * module does not go in the middle of it, since its notifier waits for the session.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/mutex.h>

#include "hvpoke.h"

#define SETTLE_TRIES 500 /* of 20 ms: as long as a module takes to come or go */

/* There may be sites whose text is not what the kernel expects. For good. */
static bool undone;

bool hvp_undo_stands(const struct jump_entry *entry, enum jump_label_type type)
{
	struct hvp_patch patch;

	return READ_ONCE(undone) && !hvp_patch_make(&patch, entry, type) && !patch.len;
}

NOKPROBE_SYMBOL(hvp_undo_stands);

static u32 send(struct hvp_result *result)
{
	struct hvpoke_batch batch;
	u32 status;

	status = hvp_ranges_sync();
	if (status != HVPOKE_OK)
		return status;
	/* Before jump_label_mutex: who has it after us sees this. */
	WRITE_ONCE(undone, true);
	hvp_symbols.jump_lock();
	mutex_lock(hvp_symbols.text_mutex);
	hvp_gate_flush();
	status = hvp_host_undo(&batch);
	mutex_unlock(hvp_symbols.text_mutex);
	hvp_symbols.jump_unlock();
	if (status == HVPOKE_OK) {
		result->batches = 1;
		result->sites = batch.written;
	}
	return status;
}

int hvp_undo(struct hvp_result *result, struct hvp_change *change)
{
	struct hvp_result ours = {};
	u32 status;

	/* Else there would be no way to make up for it at the end. */
	if (!hvp_keys_covered()) {
		hvp_change_refuse(change,
				  "this kernel does not show its jump table and modules, so nothing is put back");
		return -EOPNOTSUPP;
	}
	hvp_session_begin(NULL, true);
	status = send(&ours);
	hvp_session_end(result);
	result->sites += ours.sites;
	result->batches += ours.batches;
	if (status == HVPOKE_OK)
		return 0;
	hvp_change_refuse(change, "%s", hvpoke_status_text(status));
	return -EIO;
}

/* As jump_label_type() in kernel/jump_label.c. */
static enum jump_label_type expected(const struct jump_entry *entry)
{
	return static_key_enabled(jump_entry_key(entry)) ^ jump_entry_is_branch(entry);
}

static void settle_site(struct jump_entry *entry)
{
	enum jump_label_type type = expected(entry);
	struct hvp_patch patch;

	if (jump_entry_is_init(entry) || hvp_patch_make(&patch, entry, type) || !patch.len)
		return;
	if (!hvp_session_queue(entry, type)) {
		hvp_session_apply();
		WARN_ON_ONCE(!hvp_session_queue(entry, type));
	}
	hvp_session_apply();
}

void hvp_undo_settle(void)
{
	struct hvp_change change = {};
	struct hvp_result result;
	int err, tries = 0;

	if (!READ_ONCE(undone))
		return;
	do {
		if (tries)
			msleep(20);
		hvp_session_begin(NULL, true);
		err = hvp_keys_walk(settle_site, &change);
		hvp_session_end(&result);
		if (result.sites)
			pr_info("%u sites that the host had put back are as the kernel expects them\n",
				result.sites);
	} while (err && ++tries < SETTLE_TRIES);
	if (err)
		pr_warn("text that the host has put back may be left, which the kernel does not expect (error %d)\n",
			err);
}
