// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a hvpoked that was killed in the middle of a batch has left: sites of which some are
 * old and some new, and a guest that stands still.
 *
 * Which way to go is told by the mailbox, the one word that both sides change:
 *
 *   RUNNING	the agent still waits and knows of nothing. Its batch is rolled back, and
 *		then fails, so that its kernel does it itself, for which the old bytes must
 *		stand. (To finish it would do as well, but the checks that the bytes have passed
 *		were made with what a former hvpoked knew of the agent.)
 *   APPLIED	every site is written: there is nothing to do. All that follows likewise.
 *   ABANDONED	the guest has run since, because somebody else let it, and the agent has taken
 *		its batch back. Its kernel writes the same sites now or has written them, and
 *		it leaves those that hold what they should. To put old bytes there now would
 *		break what it believes; so nothing is done.
 *
 * A sequence number, or an agent, that is not the journal's means that the guest has gone on
 * likewise. A reset leaves the mailbox as it is until there is another agent; what tells it is
 * the text. If one single site holds neither its old nor its new bytes, the text is not the
 * one that the batch was for, and none is touched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "journal.h"
#include "log.h"
#include "vm.h"

/* Does the agent still wait for the batch of the journal? */
static bool is_open(const struct vm *vm)
{
	return shm_is_wanted(&vm->shm, vm->record->journal.word) &&
	       shm_agent_session(&vm->shm) == vm->record->journal.session;
}

static int roll_back_entries(struct vm *vm, const struct hvpoke_entry *entry)
{
	int err = vm_learn_ram(vm);

	if (!err)
		err = text_prepare(&vm->text, entry, vm->record->journal.nr);
	if (!err)
		err = text_roll_back(&vm->text);
	text_done(&vm->text);
	return err;
}

/* The guest stands still. 0, also if the text is better left alone; or -errno. */
static int roll_back(struct vm *vm)
{
	struct hvpoke_entry *entry = journal_read(vm->record, vm->record_file);
	int err = entry ? 0 : -errno;

	if (!err)
		err = roll_back_entries(vm, entry);
	free(entry);
	if (!err)
		say(LOG_WARNING, "%s: a batch of %u sites that a former hvpoked began is undone",
		    vm->log_name, vm->record->journal.nr);
	/* -EFAULT: there is no such RAM any more. */
	if (err != -EILSEQ && err != -EFAULT)
		return err;
	say(LOG_WARNING,
	    "%s: a batch that a former hvpoked began is left as it is: its text or its journal is "
	    "not what it was",
	    vm->log_name);
	return 0;
}

int vm_repair(struct vm *vm)
{
	int err = 0;

	if (!vm->record->journal.word)
		return 0;
	fault("repair-begun");
	/* Somebody may have let it run. Under TCG the gdbstub has stopped it. */
	if (is_open(vm) && vm->text.kvm && vm->running)
		err = vm_pause(vm);
	if (!err && is_open(vm))
		err = roll_back(vm);
	if (err) {
		say(LOG_ERR, "%s: a batch that was begun cannot be undone yet: %s", vm->log_name,
		    strerrordesc_np(-err));
		return err;
	}
	fault("repaired");
	journal_end(vm->record, vm->record_file);
	return 0;
}
