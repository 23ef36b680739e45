// SPDX-License-Identifier: GPL-2.0-or-later
/* The control socket: the same methods as hvpoke-vmm's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "json_build.h"
#include "log.h"
#include "vm.h"

static void add_info(struct hvp_service *service, struct json_object *object)
{
	struct vm *vm = (struct vm *)service;

	/* In the place of hvpoked's own. */
	hvp_json_add(object, "pid", json_object_new_int(vm->pid));
	hvp_json_add(object, "vcpus", json_object_new_int((int)vm->nr_vcpus));
	hvp_json_add(object, "memory", json_object_new_uint64(vm->memory_bytes));
	hvp_json_add(object, "vmm", json_object_new_string("qemu"));
	hvp_json_add(object, "vmm_version", json_object_new_string(vm->version));
	hvp_json_add(object, "accelerator", json_object_new_string(vm->text.kvm ? "kvm" : "tcg"));
	hvp_json_add(object, "monitor", json_object_new_boolean(vm->ready));
	hvp_json_add(object, "sandbox", hvpoked_sandbox_info(vm->sandbox));
}

static bool is_paused(struct hvp_service *service)
{
	return !((struct vm *)service)->running;
}

/* Has @call been answered, because it cannot be done? */
static bool cannot(struct vm *vm, struct hvp_call *call, struct json_object *params)
{
	if (json_object_object_length(params))
		hvp_call_fail(call, "bad-params", NULL, "this method takes no parameters");
	else if (!vm->ready)
		hvp_call_fail(call, "internal", NULL, "QEMU's monitor is not connected");
	else
		return false;
	return true;
}

static void carry_out(struct vm *vm, struct hvp_call *call, const char *command, const char *state)
{
	struct message message;
	struct json_object *result;

	if (vm_operator(vm, command, &message)) {
		hvp_call_fail(call, "internal", NULL, "%s", message.text);
		return;
	}
	result = json_object_new_object();
	hvp_json_add(result, "state", json_object_new_string(state));
	hvp_call_reply(call, result);
}

static void handle_pause(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct vm *vm = ctx;

	if (cannot(vm, call, params))
		return;
	if (!vm->running)
		hvp_call_fail(call, "paused", NULL, "the VM is paused already");
	else
		carry_out(vm, call, "stop", "paused");
}

static void handle_resume(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct vm *vm = ctx;

	if (cannot(vm, call, params))
		return;
	if (vm->running)
		hvp_call_fail(call, "not-paused", NULL, "the VM is not paused");
	else
		carry_out(vm, call, "cont", "running");
}

static void handle_quit(void *ctx, struct hvp_call *call, struct json_object *params)
{
	if (!cannot(ctx, call, params))
		carry_out(ctx, call, "quit", "ending");
}

static const struct hvp_method methods[] = {
	HVP_SERVICE_METHODS,
	{"pause", handle_pause},
	{"resume", handle_resume},
	{"quit", handle_quit},
	{},
};

static void on_control(void *ctx, uint32_t events)
{
	struct vm *vm = ctx;

	(void)events;
	hvp_control_work(vm->control);
	/* As behind a batch: a pause of a client's may have read more than its answer. */
	if (vm->ready)
		vm_monitor_work(vm);
}

/* A log that cannot be had is no reason not to serve the guest. */
static void open_audit(struct vm *vm)
{
	const struct hvp_audit_config none = {};
	int err;

	if (vm->audit)
		return;
	err = hvp_audit_open(&vm->audit, vm->audit_config, vm->name);
	if (err && vm->audit_config->dir) {
		say(LOG_ERR, "%s: nothing is recorded: no log in %s: %s", vm->log_name,
		    vm->audit_config->dir,
		    err == -EPERM ? HVP_AUDIT_NOT_OURS : strerrordesc_np(-err));
		err = hvp_audit_open(&vm->audit, &none, vm->name);
	}
	if (!err)
		hvp_guest_set_audit(vm->guest, vm->audit);
}

int vm_control_open(struct vm *vm)
{
	int err;

	if (vm->control)
		return 0;
	open_audit(vm);
	vm->service = (struct hvp_service){
		.name = vm->name,
		.guest = vm->guest,
		.add_info = add_info,
		.is_paused = is_paused,
	};
	err = hvp_runtime_socket(vm->control_path, sizeof(vm->control_path), vm->name);
	if (!err)
		err = hvp_control_open(&vm->control, vm->control_path, vm->name, methods, vm);
	if (err == -EADDRINUSE) {
		say(LOG_ERR, "%s: a VM of this name runs already (%s); give it another name",
		    vm->log_name, vm->control_path);
		return err;
	}
	if (!err) {
		vm->on_control = (struct loop_watch){
			.fd = hvp_control_fd(vm->control),
			.ready = on_control,
			.ctx = vm,
		};
		err = loop_add(&vm->loop, &vm->on_control, EPOLLIN);
	}
	if (err) {
		say(LOG_ERR, "%s: cannot offer the control socket %s: %s", vm->log_name,
		    vm->control_path, strerrordesc_np(-err));
		vm_control_close(vm);
	}
	return err;
}

void vm_control_close(struct vm *vm)
{
	if (vm->control)
		hvp_control_close(vm->control);
	vm->control = NULL;
	hvp_service_release(&vm->service);
}

void vm_control_state(struct vm *vm, const char *state)
{
	struct json_object *data;

	if (!vm->control)
		return;
	data = json_object_new_object();
	hvp_json_add(data, "state", json_object_new_string(state));
	hvp_control_event(vm->control, "state", data);
}
