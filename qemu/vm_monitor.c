// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's monitor. Who paused the guest is told apart like this: QEMU sends a STOP event
 * when a running guest stops, before it answers the "stop" that did it. A "stop" of ours
 * without one found the guest stopped already: it is somebody else's pause, and
 * stays. (A stop of an operator's that comes while ours is on, a matter of
 * milliseconds, does nothing in QEMU and makes no event: it is lost, as it is between
 * any two clients of a monitor.)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "vm.h"

#define PAUSE_MS 2000

static void on_event(void *ctx, const char *event, struct json_object *data)
{
	struct vm *vm = ctx;

	(void)data;
	if (!strcmp(event, "STOP")) {
		if (vm->own)
			vm->stopped = true;
		else
			vm->running = false;
	} else if (!strcmp(event, "RESUME")) {
		if (!vm->own)
			vm->running = true;
	} else if (!strcmp(event, "RESET")) {
		vm->was_reset = true;
	} else if (!strcmp(event, "DEVICE_DELETED")) {
		vm->ram_stale = true;
	}
}

void vm_monitor_settle(struct vm *vm)
{
	if (!vm->was_reset)
		return;
	vm->was_reset = false;
	vm->agent_session = 0;
	vm->ram_stale = true;
	hvp_guest_reset(vm->guest);
	say(LOG_INFO, "%s: the guest was reset", vm->log_name);
}

void vm_monitor_lost(struct vm *vm)
{
	if (vm->qmp.fd >= 0)
		loop_remove(&vm->loop, &vm->on_qmp);
	qmp_close(&vm->qmp);
	gdbstub_close(&vm->text.gdb);
	if (!vm->ready)
		return;
	vm->ready = false;
	vm->agent_session = 0;
	shm_session_end(&vm->shm);
	hvp_guest_reset(vm->guest);
	vm_ring(vm);
}

void vm_monitor_work(struct vm *vm)
{
	bool was_running = vm->running;
	int err = qmp_work(&vm->qmp);

	if (err) {
		say(LOG_WARNING, "%s: its monitor is gone: %s", vm->log_name,
		    err == -ECONNRESET ? "QEMU closed it" : strerrordesc_np(-err));
		vm_monitor_lost(vm);
		return;
	}
	if (vm->running != was_running)
		vm_control_state(vm, vm->running ? "running" : "paused");
	vm_monitor_settle(vm);
}

static void on_qmp(void *ctx, uint32_t events)
{
	(void)events;
	vm_monitor_work(ctx);
}

/* A connection that is of no more use: the loop is to find it closed. */
static void give_up(struct vm *vm, int err)
{
	if (err == -ECONNRESET || err == -EPROTO)
		shutdown(vm->qmp.fd, SHUT_RDWR);
}

/* A command of ours that stops or starts the guest; its events are not an operator's. */
static int own_call(struct vm *vm, const char *command, int timeout_ms, struct message *message)
{
	int err;

	vm->own = true;
	vm->stopped = false;
	err = qmp_call(&vm->qmp, command, NULL, timeout_ms, NULL, message);
	vm->own = false;
	give_up(vm, err);
	return err;
}

int vm_pause(struct vm *vm)
{
	struct message message;
	int err;

	/* Before it is true: if we die in between, the next hvpoked lets the guest run. */
	vm->record->paused = vm->running;
	err = own_call(vm, "stop", PAUSE_MS, &message);
	if (!err) {
		vm->record->paused = vm->stopped;
		return 0;
	}
	say(LOG_ERR, "%s: cannot pause the guest: %s", vm->log_name, message.text);
	/* It may yet stop, after we have looked away; and what comes behind that lets it run. */
	if (vm->record->paused && !qmp_post(&vm->qmp, "cont"))
		vm->record->paused = false;
	return err == -ETIMEDOUT ? err : -EIO;
}

void vm_resume(struct vm *vm)
{
	struct message message;
	int err;

	/* Not with half a batch: vm_repair.c does that first. */
	if (!vm->record->paused || vm->half)
		return;
	err = own_call(vm, "cont", QMP_TIMEOUT_MS, &message);
	/* Not in time, but it has been asked: QEMU does things in order. */
	if (!err || err == -ETIMEDOUT)
		vm->record->paused = false;
	if (err)
		say(LOG_ERR, "%s: cannot resume the guest%s: %s", vm->log_name,
		    vm->record->paused ? "; it is tried again when the monitor is back" : "",
		    message.text);
}

int vm_operator(struct vm *vm, const char *command, struct message *message)
{
	bool was_running = vm->running;
	int err = qmp_call(&vm->qmp, command, NULL, QMP_TIMEOUT_MS, NULL, message);

	give_up(vm, err);
	if (vm->running != was_running)
		vm_control_state(vm, vm->running ? "running" : "paused");
	return err;
}

int vm_gdbstub(struct vm *vm, struct message *message)
{
	int err;

	if (vm->text.kvm || vm->text.gdb.fd >= 0)
		return 0;
	/* It pauses the guest when it connects. */
	vm->record->paused |= vm->running;
	vm->own = true;
	err = gdbstub_open(&vm->text.gdb, &vm->qmp, vm->pid, vm->text.gdb_path, message);
	vm->own = false;
	give_up(vm, err);
	return err;
}

static struct json_object *ask(struct vm *vm, const char *command, int *err,
			       struct message *message)
{
	struct json_object *result = NULL;

	if (!*err)
		*err = qmp_call(&vm->qmp, command, NULL, QMP_TIMEOUT_MS, &result, message);
	return result;
}

static const char *string_of(struct json_object *object, const char *key)
{
	struct json_object *value = json_object_object_get(object, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

/* What does not change while QEMU lives. */
static int ask_identity(struct vm *vm, struct message *message)
{
	struct json_object *name, *uuid, *version, *qemu;
	int err = 0;

	name = ask(vm, "query-name", &err, message);
	uuid = ask(vm, "query-uuid", &err, message);
	version = ask(vm, "query-version", &err, message);
	if (!err) {
		/* libvirt allows names that a socket cannot have: then it is the UUID. */
		snprintf(vm->name, sizeof(vm->name), "%s", string_of(name, "name"));
		if (!hvp_name_valid(vm->name) || strlen(string_of(name, "name")) > HVP_NAME_MAX)
			snprintf(vm->name, sizeof(vm->name), "%s", string_of(uuid, "UUID"));
		if (!hvp_name_valid(vm->name) || !strncmp(vm->name, "00000000-0000-0000", 18))
			snprintf(vm->name, sizeof(vm->name), "qemu-%d", (int)vm->pid);
		snprintf(vm->log_name, sizeof(vm->log_name), "%s (QEMU %d)", vm->name,
			 (int)vm->pid);
		qemu = json_object_object_get(version, "qemu");
		snprintf(vm->version, sizeof(vm->version), "%d.%d.%d",
			 json_object_get_int(json_object_object_get(qemu, "major")),
			 json_object_get_int(json_object_object_get(qemu, "minor")),
			 json_object_get_int(json_object_object_get(qemu, "micro")));
	}
	json_object_put(name);
	json_object_put(uuid);
	json_object_put(version);
	return err;
}

/*
 * A pause of a former hvpoked's is over if the guest runs now, or stands still for a reason
 * that is not a stop (an I/O error, a panic): it has run since.
 */
static int ask_machine(struct vm *vm, struct message *message)
{
	struct json_object *kvm, *status, *cpus, *memory;
	int err = 0;

	kvm = ask(vm, "query-kvm", &err, message);
	cpus = ask(vm, "query-cpus-fast", &err, message);
	memory = ask(vm, "query-memory-size-summary", &err, message);
	status = ask(vm, "query-status", &err, message);
	if (!err) {
		vm->text.kvm = json_object_get_boolean(json_object_object_get(kvm, "enabled"));
		vm->nr_vcpus = json_object_is_type(cpus, json_type_array)
				       ? json_object_array_length(cpus)
				       : 0;
		vm->memory_bytes =
			json_object_get_uint64(json_object_object_get(memory, "base-memory")) +
			json_object_get_uint64(json_object_object_get(memory, "plugged-memory"));
		vm->running = json_object_get_boolean(json_object_object_get(status, "running"));
		if (vm->running || strcmp(string_of(status, "status"), "paused") != 0)
			vm->record->paused = false;
	}
	json_object_put(kvm);
	json_object_put(cpus);
	json_object_put(memory);
	json_object_put(status);
	return err;
}

/*
 * What a former hvpoked, or a former connection, did not get to end: its batch, then its pause.
 * With TCG the new gdbstub has ended what was left in the former one: not before, since that must
 * not be done to a guest that runs. Without a gdbstub nothing can be repaired.
 *
 * The pause may be an operator's by now, who let the guest run and stopped it again while
 * nobody was here: QEMU does not tell the one from the other.
 */
static int take_up(struct vm *vm)
{
	bool left_paused = vm->record->paused;
	struct message message = {};
	int err = vm_gdbstub(vm, &message);

	if (err)
		say(LOG_ERR, "%s: %s", vm->log_name, message.text);
	if (err && vm->record->journal.word)
		return err;
	err = vm_repair(vm);
	if (err || !vm->record->paused)
		return err;
	err = own_call(vm, "cont", QMP_TIMEOUT_MS, &message);
	if (err) {
		say(LOG_ERR, "%s: cannot resume the guest: %s", vm->log_name, message.text);
		return err;
	}
	vm->record->paused = false;
	if (!left_paused)
		return 0;
	vm->running = true;
	say(LOG_WARNING, "%s: it was left paused in the middle of a batch, and runs again",
	    vm->log_name);
	return 0;
}

int vm_monitor_open(struct vm *vm, int fd)
{
	struct message message;
	int err;

	vm->qmp.on_event = on_event;
	vm->qmp.ctx = vm;
	err = qmp_open(&vm->qmp, fd, &message);
	if (!err)
		err = ask_identity(vm, &message);
	if (!err)
		err = ask_machine(vm, &message);
	if (err) {
		say(LOG_ERR, "%s: %s", vm->log_name, message.text);
		qmp_close(&vm->qmp);
		return err;
	}
	vm->ram_stale = true;
	err = take_up(vm);
	if (err) {
		/* QEMU connects again, in a second: once more, then. */
		qmp_close(&vm->qmp);
		gdbstub_close(&vm->text.gdb);
		return err;
	}
	vm->on_qmp = (struct loop_watch){.fd = vm->qmp.fd, .ready = on_qmp, .ctx = vm};
	err = loop_add(&vm->loop, &vm->on_qmp, EPOLLIN);
	if (!err)
		err = vm_control_open(vm);
	if (err) {
		vm_monitor_lost(vm);
		return err;
	}
	vm->ready = true;
	shm_session_begin(&vm->shm);
	vm_ring(vm);
	say(LOG_INFO, "%s: ready, %u vCPUs on %s, QEMU %s", vm->log_name, vm->nr_vcpus,
	    vm->text.kvm ? "KVM" : "TCG", vm->version);
	vm_serve(vm);
	/* What came while we were asking wakes nobody any more. */
	vm_monitor_work(vm);
	return 0;
}
