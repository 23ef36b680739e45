// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The one way of a batch: copy, check, touch, pause, verify, write, resume.
 *
 * Why the guest's CPUs see whole instructions, old or new (SDM volume 3,
 * "Handling Self- and Cross-Modifying Code"):
 *
 * - Nothing is written before pause() has returned. By then every vCPU has left
 *   guest mode at an instruction boundary. A site is one instruction before and
 *   after, so no vCPU stands inside of one, and no return address or saved RIP
 *   of the guest points there. insn.c says so for each form, and what holds in
 *   its place for kprobes that replace several instructions.
 * - What those vCPUs stored before they stopped (their own INT3 patching,
 *   say) happened before pause() returned, by the lock or atomic that the back
 *   end waits on. So verify sees it, and a guest in the middle of its own
 *   patching fails the batch instead of being overwritten (CASES 9).
 * - The writes happen before resume() lets go of the first vCPU, by the same
 *   means. x86 has coherent instruction caches; what the manual asks for beyond
 *   that is a serializing operation on the executing CPU between the write and
 *   the first fetch. No guest instruction is in flight on a CPU that is outside
 *   of guest mode, and the way back through KVM_RUN reloads control registers and
 *   MSRs. The vCPU that rang the doorbell is in the same position: its OUT
 *   retires on that way back.
 */
#include <errno.h>

#include "audit.h"
#include "batch.h"
#include "check.h"
#include "clock.h"
#include "fault.h"
#include "list.h"
#include "poke.h"
#include "touch.h"

static enum hvpoke_status pause_status(int err)
{
	switch (err) {
	case -EBUSY: return HVPOKE_BUSY;
	case -ETIMEDOUT: return HVPOKE_PAUSE_FAILED;
	case -ECANCELED: return HVPOKE_HOST_ERROR; /* the VM ends: nobody will read it */
	default: hvp_host_error("cannot pause the guest", -err); return HVPOKE_HOST_ERROR;
	}
}

/* Verify all, write all. @nr, or the first that does not verify, or a negative errno. */
static int64_t poke(struct hvp_guest *guest, uint32_t nr)
{
	const union hvp_slot *slot = guest->arena.slot;
	uint32_t bad;

	if (guest->backend->text)
		return guest->backend->text->apply(guest->ctx, (const void *)slot, nr);
	bad = hvp_poke_verify(slot, nr);
	fault("verified");
	if (bad == nr)
		hvp_poke_write(slot, nr);
	fault("written");
	return bad;
}

static enum hvpoke_status poke_status(int64_t done, uint32_t nr, struct hvp_batch_result *result)
{
	if (done == -ECANCELED)
		return HVPOKE_BUSY;
	if (done < 0) {
		hvp_host_error("cannot write to the guest's text", -(int)done);
		return HVPOKE_HOST_ERROR;
	}
	if (done < nr) {
		result->bad_index = done;
		return HVPOKE_MISMATCH;
	}
	result->written = nr;
	return HVPOKE_OK;
}

static enum hvpoke_status apply(struct hvp_guest *guest, uint32_t nr,
				struct hvp_batch_result *result)
{
	uint64_t stopped, applied;
	int64_t done;
	int err;

	err = guest->backend->pause(guest->ctx, &result->times);
	if (err) {
		/* Most of the vCPUs stood still for it all the same. */
		if (err == -ETIMEDOUT)
			hvp_rates_paused(&guest->rates, result->times.kick_ns);
		return pause_status(err);
	}
	stopped = hvp_now_ns();
	fault("paused");
	done = poke(guest, nr);
	applied = hvp_now_ns();
	guest->backend->resume(guest->ctx, &result->times);
	fault("resumed");
	/* From the first kick on: waiting for another's pause to end is not this one's cost. */
	result->pause_ns = result->times.kick_ns + (hvp_now_ns() - stopped);
	result->apply_ns = applied - stopped;
	result->paused = true;
	hvp_rates_paused(&guest->rates, result->pause_ns);
	return poke_status(done, nr, result);
}

/* Everything that makes the pause short. */
static enum hvpoke_status prepare_text(struct hvp_guest *guest, uint32_t nr, uint32_t *bad_index)
{
	union hvp_slot *slot = guest->arena.slot;
	int err;

	fault("checked");
	if (guest->backend->text)
		err = guest->backend->text->prepare(guest->ctx, &slot->entry, nr);
	else
		err = hvp_touch(guest, slot, nr);
	if (err) {
		hvp_host_error("cannot write to the guest's text", -err);
		return HVPOKE_HOST_ERROR;
	}
	if (guest->backend->text || hvp_poke_prepare(guest, slot, nr, bad_index))
		return HVPOKE_OK;
	return HVPOKE_BAD_GPA;
}

/* The batch in hand, as far as it is not in the guest's arena. */
struct work {
	const struct hvpoke_batch *batch;
	const struct hvp_undo_batch *undoes; /* with HVPOKE_BATCH_UNDO */
	uint32_t nr;
	struct hvp_undo_batch *note; /* of what is written, for an undo; NULL: there is none */
};

static enum hvpoke_status fill(struct hvp_guest *guest, const struct work *work,
			       uint32_t *bad_index)
{
	if (work->undoes)
		return hvp_undo_fill(guest, work->undoes, guest->arena.slot, bad_index);
	return hvp_list_copy(guest->backend, guest->ctx, gpa(work->batch->entries_gpa), work->nr,
			     guest->arena.slot, bad_index);
}

/* All that can fail or take long, outside of the pause. */
static enum hvpoke_status prepare(struct hvp_guest *guest, struct work *work, uint32_t *bad_index)
{
	enum hvpoke_status status;
	int err;

	err = hvp_arena_reserve(&guest->arena, work->nr);
	if (err) {
		hvp_host_error("no memory for the copy of a batch", -err);
		return HVPOKE_HOST_ERROR;
	}
	status = fill(guest, work, bad_index);
	fault("copied");
	if (status == HVPOKE_OK)
		status = hvp_check(guest, guest->arena.slot, work->nr, bad_index);
	if (status != HVPOKE_OK)
		return status;
	/* Now, as long as the entries are what they were. */
	if (guest->audit)
		work->note = hvp_undo_note(guest, guest->arena.slot, work->nr);
	return prepare_text(guest, work->nr, bad_index);
}

static bool agent_present(struct hvp_guest *guest)
{
	bool present;

	pthread_mutex_lock(&guest->lock);
	present = guest->agent.present;
	pthread_mutex_unlock(&guest->lock);
	return present;
}

/* How many sites there are, and from where. */
static enum hvpoke_status begin(struct hvp_guest *guest, struct work *work)
{
	const struct hvpoke_batch *batch = work->batch;

	if (batch->flags & ~HVPOKE_BATCH_UNDO ||
	    (batch->flags && (batch->nr_entries || batch->entries_gpa)))
		return HVPOKE_BAD_HEADER;
	if (batch->nr_entries > guest->limits.max_sites)
		return HVPOKE_TOO_LARGE;
	if (!agent_present(guest))
		return HVPOKE_NOT_HELLO;
	/* Before any work: a batch that turns out to be a bad one has cost some, too. */
	if (!hvp_rates_allow(&guest->rates, hvp_now_ns()))
		return HVPOKE_RATE;
	work->nr = batch->nr_entries;
	if (!batch->flags)
		return HVPOKE_OK;
	work->undoes = hvp_request_undoes(guest);
	if (!work->undoes)
		return HVPOKE_NO_REQUEST;
	work->nr = work->undoes->nr;
	return HVPOKE_OK;
}

static enum hvpoke_status run(struct hvp_guest *guest, struct work *work,
			      struct hvp_batch_result *result)
{
	enum hvpoke_status status = begin(guest, work);

	if (status != HVPOKE_OK)
		return status;
	if (work->nr)
		status = prepare(guest, work, &result->bad_index);
	if (status == HVPOKE_OK)
		status = apply(guest, work->nr, result);
	hvp_arena_trim(&guest->arena);
	return status;
}

/* For the log, and for an undo of it. With guest->owner, unless it was refused for lack of it. */
static void record(struct hvp_guest *guest, const struct work *work,
		   struct hvp_batch_result *result)
{
	struct hvp_origin origin;
	bool by_client;

	if (!guest->audit)
		return;
	by_client = hvp_request_origin(guest, &origin);
	result->id = hvp_audit_batch(guest->audit, by_client ? &origin : NULL, work->nr,
				     work->undoes ? work->undoes->id : 0, result);
	if (work->batch->flags & HVPOKE_BATCH_UNDO)
		hvp_request_undone(guest, work->undoes, result);
}

void hvp_batch(struct hvp_guest *guest, const struct hvpoke_batch *batch,
	       struct hvp_batch_result *result)
{
	struct work work = {.batch = batch, .nr = batch->nr_entries};

	*result = (struct hvp_batch_result){.bad_index = HVPOKE_NO_INDEX};
	if (pthread_mutex_trylock(&guest->owner)) {
		result->status = HVPOKE_BUSY;
		record(guest, &work, result);
	} else {
		result->status = run(guest, &work, result);
		record(guest, &work, result);
		hvp_undo_keep(guest, work.note, result->status == HVPOKE_OK ? result->id : 0);
		pthread_mutex_unlock(&guest->owner);
	}
	pthread_mutex_lock(&guest->lock);
	hvp_counters_add(&guest->counters, result);
	pthread_mutex_unlock(&guest->lock);
}
