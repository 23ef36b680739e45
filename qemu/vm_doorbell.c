// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent's commands, and what the engine needs of this kind of guest. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "journal.h"
#include "log.h"
#include "process.h"
#include "vm.h"

void vm_ring(struct vm *vm)
{
	uint64_t one = 1;

	/* A counter that is full has rung already. */
	if (write(vm->irq, &one, sizeof(one)) < 0 && errno != EAGAIN)
		say(LOG_ERR, "%s: cannot interrupt the guest: %s", vm->log_name,
		    strerrordesc_np(errno));
}

/* The command page and the lists: offsets in the shared memory, nothing else. */
static void *translate(void *ctx, gpa_t addr, uint64_t len)
{
	struct vm *vm = ctx;

	return shm_at(&vm->shm, addr.addr, len);
}

int vm_learn_ram(struct vm *vm)
{
	struct message message;
	int err;

	if (!vm->ram_stale)
		return 0;
	/*
	 * The memory that we have open is that of the program that has mapped what we gave to it.
	 * One that has more rights, and was executed between its connecting and our opening,
	 * has not.
	 */
	if (!process_has_memfd(vm->pid, vm->shm.ino))
		err = message_set(&message, -EPERM,
				  "the process that connected has not mapped our memory, or runs "
				  "another program now");
	else
		err = ram_learn(&vm->text.ram, &vm->qmp, vm->pid, &message);
	if (err)
		say(LOG_ERR, "%s: %s", vm->log_name, message.text);
	else
		vm->ram_stale = false;
	return err;
}

static bool is_ram(void *ctx, gpa_t addr, uint64_t len)
{
	struct vm *vm = ctx;

	return !vm_learn_ram(vm) && ram_find(&vm->text.ram, addr.addr, len);
}

/* The gdbstub's connecting pauses the guest; it runs on until the batch wants it paused. */
static int connect_gdbstub(struct vm *vm)
{
	struct message message;
	int err = vm_gdbstub(vm, &message);

	if (err)
		say(LOG_ERR, "%s: %s", vm->log_name, message.text);
	vm_resume(vm);
	return err;
}

static int begin_journal(struct vm *vm, const struct hvpoke_entry *entry, uint32_t nr)
{
	int err =
		journal_begin(vm->record, vm->record_file, vm->word, vm->agent_session, entry, nr);

	if (err && !vm->journal_failed)
		say(LOG_ERR, "%s: no batch is written while there is no journal of it in %s: %s",
		    vm->log_name, vm->state_dir, strerrordesc_np(-err));
	vm->journal_failed = err;
	fault("journal-begun");
	return err;
}

static int prepare(void *ctx, const struct hvpoke_entry *entry, uint32_t nr)
{
	struct vm *vm = ctx;
	int err = vm_learn_ram(vm);

	if (!err)
		err = connect_gdbstub(vm);
	if (!err)
		err = text_prepare(&vm->text, entry, nr);
	/* The gdbstub hung up since the last batch: once more, with a new one. */
	if (err == -ECONNRESET) {
		gdbstub_close(&vm->text.gdb);
		err = connect_gdbstub(vm);
		if (!err)
			err = text_prepare(&vm->text, entry, nr);
	}
	return err ? err : begin_journal(vm, entry, nr);
}

static int64_t apply(void *ctx, const struct hvpoke_entry *entry, uint32_t nr)
{
	struct vm *vm = ctx;
	int64_t done;
	int err;

	(void)entry;
	/* The guest stands still: it cannot change its mind any more. */
	if (!shm_is_wanted(&vm->shm, vm->word))
		return -ECANCELED;
	done = text_verify(&vm->text);
	if (done < nr)
		return done;
	fault("verified");
	err = text_write(&vm->text, &vm->half);
	if (err) {
		gdbstub_abort(&vm->text.gdb, &vm->qmp);
		return err;
	}
	fault("written");
	shm_applied(&vm->shm, vm->word);
	fault("applied");
	journal_end(vm->record, vm->record_file);
	fault("journal-ended");
	return nr;
}

/*
 * QEMU has no better clock for us than its answers: the guest stands still somewhere before
 * "stop" is answered, and runs somewhere after "cont" is sent.
 */
static int pause_all(void *ctx, struct hvp_pause_times *times)
{
	uint64_t start = hvp_now_ns();
	int err = vm_pause(ctx);

	times->kick_ns = hvp_now_ns() - start;
	return err;
}

static void resume_all(void *ctx, struct hvp_pause_times *times)
{
	uint64_t start = hvp_now_ns();

	vm_resume(ctx);
	times->wake_ns = hvp_now_ns() - start;
}

static int notify(void *ctx)
{
	struct vm *vm = ctx;

	shm_announce_request(&vm->shm);
	vm_ring(vm);
	return 0;
}

static const struct hvp_text_ops text_ops = {
	.is_ram = is_ram,
	.prepare = prepare,
	.apply = apply,
};

static const struct hvp_backend backend = {
	.translate = translate,
	.text = &text_ops,
	.pause = pause_all,
	.resume = resume_all,
	.notify = notify,
};

int vm_guest_create(struct vm *vm, const struct hvp_limits *limits)
{
	vm->guest = hvp_guest_new(&backend, vm);
	if (!vm->guest)
		return -ENOMEM;
	hvp_guest_limit(vm->guest, limits);
	return 0;
}

/* Is it another agent that says hello? Then the former one is no more. */
static void before_hello(struct vm *vm)
{
	uint64_t session = shm_agent_session(&vm->shm);

	if (session != vm->agent_session)
		hvp_guest_reset(vm->guest);
	vm->agent_session = session;
	vm->ram_stale = true;
}

/*
 * Some sites are written, and others can be neither written nor put back. The guest stands
 * still, and its agent has no answer; it is repaired as after a crash of ours, when QEMU's
 * monitor connects again (vm_repair.c).
 */
static void leave_half(struct vm *vm)
{
	vm->half = false;
	say(LOG_ERR, "%s: a batch failed half way; the guest is paused until that is repaired",
	    vm->log_name);
	shutdown(vm->qmp.fd, SHUT_RDWR);
}

void vm_serve(struct vm *vm)
{
	const struct hvpoke_cmd *cmd = shm_at(&vm->shm, HVPOKE_SHM_CMD, sizeof(*cmd));

	if (!shm_take(&vm->shm, &vm->word))
		return;
	fault("taken");
	if (__atomic_load_n(&cmd->cmd, __ATOMIC_RELAXED) == HVPOKE_CMD_HELLO)
		before_hello(vm);
	hvp_guest_command(vm->guest, gpa(HVPOKE_SHM_CMD));
	text_done(&vm->text);
	if (vm->half) {
		leave_half(vm);
		return;
	}
	if (vm->record->journal.word)
		journal_end(vm->record, vm->record_file);
	shm_finish(&vm->shm, vm->word);
	fault("answered");
	vm_ring(vm);
	vm_monitor_settle(vm);
}
