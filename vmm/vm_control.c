// SPDX-License-Identifier: GPL-2.0-or-later
/* vm_control.c - the VM's control socket and its methods. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "audit.h"
#include "json_build.h"
#include "kvm_backend.h"
#include "runtime.h"
#include "vm_control.h"

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
	hvp_json_add(object, key, json_object_new_uint64(value));
}

static struct vm *vm_of(struct hvp_service *service)
{
	return &((struct vm_control *)service)->machine->vm;
}

static void add_info(struct hvp_service *service, struct json_object *object)
{
	struct vm_control *control = (struct vm_control *)service;

	hvp_json_add(object, "kvm_backend", json_object_new_string(kvm_backend()));
	add_u64(object, "vcpus", vm_of(service)->nr_vcpus);
	add_u64(object, "memory", vm_of(service)->memory.size);
	hvp_json_add(object, "kernel_file", json_object_new_string(control->config->kernel));
	hvp_json_add(object, "sandbox", vmm_sandbox_info(control->sandbox));
	if (control->console->pty >= 0)
		hvp_json_add(object, "serial_pty",
			     json_object_new_string(control->console->pty_path));
}

/* KVM's software back end hands us every INT3, VMX and SVM only if asked to. */
static bool int3_counted(const struct vm *vm)
{
	return vm->count_int3 || !strcmp(kvm_backend(), "pvm");
}

static void add_stats(struct hvp_service *service, struct json_object *object)
{
	struct vm_control *control = (struct vm_control *)service;
	struct vm *vm = vm_of(service);

	add_u64(object, "int3_patch", atomic_load(&vm->int3_patch));
	add_u64(object, "int3_other", atomic_load(&vm->int3_other));
	hvp_json_add(object, "int3_counted", json_object_new_boolean(int3_counted(vm)));
	add_u64(object, "fwaits", atomic_load(&vm->fwaits));
	add_u64(object, "serial_lost", ns8250_lost(&control->machine->uart));
	add_u64(object, "reboots", control->nr_reboots);
	add_u64(object, "start_cpu_us", control->start_cpu_us);
}

static uint64_t int3_hits(struct hvp_service *service)
{
	return atomic_load(&vm_of(service)->int3_patch);
}

static bool is_paused(struct hvp_service *service)
{
	return vm_is_paused(vm_of(service));
}

static bool no_params(struct hvp_call *call, struct json_object *params)
{
	if (json_object_object_length(params) == 0)
		return true;
	hvp_call_fail(call, "bad-params", NULL, "this method takes no parameters");
	return false;
}

static struct json_object *state_object(const char *state)
{
	struct json_object *object = json_object_new_object();

	hvp_json_add(object, "state", json_object_new_string(state));
	return object;
}

/* The VM's state has changed: tell who asked for it, and who subscribed. */
static void reply_state(struct vm_control *control, struct hvp_call *call, const char *state)
{
	hvp_call_reply(call, state_object(state));
	hvp_control_event(control->server, "state", state_object(state));
}

static void handle_pause(void *ctx, struct hvp_call *call, struct json_object *params)
{
	int err;

	if (!no_params(call, params))
		return;
	err = vm_pause(vm_of(ctx));
	if (!err)
		reply_state(ctx, call, "paused");
	else if (err == -EALREADY)
		hvp_call_fail(call, "paused", NULL, "the VM is paused already");
	else if (err == -ECANCELED)
		hvp_call_fail(call, "ending", NULL, "the VM is about to end");
	else
		hvp_call_fail(call, "timeout", NULL,
			      "a vCPU did not stop in time; the VM runs on (%s)", strerror(-err));
}

static void handle_resume(void *ctx, struct hvp_call *call, struct json_object *params)
{
	if (!no_params(call, params))
		return;
	if (vm_resume(vm_of(ctx)) < 0)
		hvp_call_fail(call, "not-paused", NULL, "the VM is not paused");
	else
		reply_state(ctx, call, "running");
}

void vm_control_quit(struct vm_control *control)
{
	control->quit = true;
	vm_request_exit(&control->machine->vm, VM_EXIT_SHUTDOWN);
}

static void handle_quit(void *ctx, struct hvp_call *call, struct json_object *params)
{
	if (!no_params(call, params))
		return;
	vm_control_quit(ctx);
	reply_state(ctx, call, "ending");
}

static const struct hvp_method methods[] = {
	HVP_SERVICE_METHODS,
	{"pause", handle_pause},
	{"resume", handle_resume},
	{"quit", handle_quit},
	{},
};

static void ready(void *ctx, uint32_t events)
{
	struct vm_control *control = ctx;

	(void)events;
	hvp_control_work(control->server);
}

/* Where to listen, into control->path. */
static int choose_path(struct vm_control *control, struct message *message)
{
	const struct config *config = control->config;
	char dir[sizeof(control->path)] = "";
	int err;

	if (config->control) {
		snprintf(control->path, sizeof(control->path), "%s", config->control);
		return 0;
	}
	err = hvp_runtime_dir(dir, sizeof(dir));
	if (err)
		return message_set(message, err,
				   "no place for the control socket (%s): set HVPOKE_RUNTIME_DIR "
				   "or XDG_RUNTIME_DIR, or give --control SOCKET",
				   strerror(-err));
	err = hvp_runtime_make_dir();
	if (err)
		return message_set(message, err,
				   "cannot use the runtime directory %s: %s: it must be ours, with "
				   "mode 0700",
				   dir, strerror(-err));
	err = hvp_runtime_socket(control->path, sizeof(control->path), config->name);
	if (err)
		return message_set(message, err,
				   "the control socket's path in %s is too long: give --control "
				   "SOCKET",
				   dir);
	return 0;
}

/*
 * A log that was asked for must be there. The one that is there by itself is not worth a VM that
 * does not start: it says so, and batches have their ids all the same.
 */
static int open_audit(struct vm_control *control, struct message *message)
{
	const struct config *config = control->config;
	struct hvp_audit_config audit = {
		.max_bytes = config->audit_size,
		.nr_files = (unsigned int)config->audit_files,
	};
	char dir[PATH_MAX];
	int err = 0;

	if (!config->audit)
		err = hvp_runtime_log_dir(dir, sizeof(dir));
	else
		snprintf(dir, sizeof(dir), "%s", config->audit);
	if (!err && strcmp(dir, "none") != 0)
		audit.dir = dir;
	if (audit.dir && control->sandbox->prepared) {
		snprintf(control->sandbox->log_dir, sizeof(control->sandbox->log_dir), "%s", dir);
		audit.confine = vmm_sandbox_confine_log;
		audit.confine_ctx = control->sandbox;
	}
	if (!err)
		err = hvp_audit_open(&control->audit, &audit, config->name);
	if (!err)
		return 0;
	control->sandbox->log_dir[0] = '\0';
	if (config->audit)
		return message_set(message, err, "cannot write a log in %s: %s", dir,
				   err == -EPERM ? HVP_AUDIT_NOT_OURS : strerror(-err));
	fprintf(stderr, "hvpoke-vmm: nothing is recorded: no log in %s: %s; --audit DIR or none\n",
		err == -ENOENT ? "any directory" : dir,
		err == -EPERM ? HVP_AUDIT_NOT_OURS : strerror(-err));
	audit.dir = NULL;
	return hvp_audit_open(&control->audit, &audit, config->name);
}

static int open_server(struct vm_control *control, struct message *message)
{
	const char *name = control->config->name;
	int err = hvp_control_open(&control->server, control->path, name, methods, control);

	if (err == -EADDRINUSE)
		return message_set(message, err,
				   "a VM named %s runs already (%s): choose another --name", name,
				   control->path);
	if (err)
		return message_set(message, err, "cannot listen at %s: %s", control->path,
				   strerror(-err));
	return 0;
}

static int watch_server(struct vm_control *control, struct message *message)
{
	int err;

	control->watch = (struct loop_watch){hvp_control_fd(control->server), ready, control};
	err = loop_add(control->loop, &control->watch, EPOLLIN);
	if (err)
		message_set(message, err, "cannot watch %s: %s", control->path, strerror(-err));
	return err;
}

/* The log comes after the socket: before that the name may be another VM's, and so the log. */
int vm_control_open(struct vm_control *control, struct message *message)
{
	int err = choose_path(control, message);

	if (!err)
		err = open_server(control, message);
	if (!err)
		err = open_audit(control, message);
	if (err) {
		vm_control_close(control);
		return err;
	}
	vm_control_machine(control, control->machine);
	control->service.name = control->config->name;
	control->service.add_info = add_info;
	control->service.add_stats = add_stats;
	control->service.is_paused = is_paused;
	err = watch_server(control, message);
	if (err) {
		/* The machine outlives the log that would be closed here. */
		hvp_guest_set_audit(control->service.guest, NULL);
		vm_control_close(control);
	}
	return err;
}

void vm_control_close(struct vm_control *control)
{
	if (control->server)
		hvp_control_close(control->server);
	control->server = NULL;
	hvp_service_release(&control->service);
	hvp_audit_close(control->audit);
	control->audit = NULL;
}

void vm_control_settle(struct vm_control *control)
{
	hvp_guest_reset(control->service.guest);
	/* Deliver, so that no call is left that knows the guest. */
	hvp_control_work(control->server);
	hvp_guest_set_audit(control->service.guest, NULL);
}

void vm_control_machine(struct vm_control *control, struct machine *machine)
{
	control->machine = machine;
	control->service.guest = machine->vm.guest;
	hvp_guest_set_audit(machine->vm.guest, control->audit);
	/* Without it "int3" is null in results: not counted is not 0. */
	control->service.int3_hits = int3_counted(&machine->vm) ? int3_hits : NULL;
}
