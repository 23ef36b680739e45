// SPDX-License-Identifier: GPL-2.0-or-later
/* main.c - hvpoke-vmm: read the configuration, run one VM, say how it ended. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "console.h"
#include "help.h"
#include "loop.h"
#include "machine.h"
#include "message.h"
#include "serial.h"
#include "version.h"
#include "vm_control.h"
#include "vmm_sandbox.h"

/* The whole program, on main's stack: everything hangs off this. */
struct vmm {
	struct config config;
	struct loop loop;
	struct console console;
	struct serial serial;
	struct machine machine;
	struct machine_files files;
	struct vmm_sandbox sandbox;
	struct vm_control control;
	struct loop_watch on_signal, on_exit;
};

static enum vm_exit complain(enum vm_exit code, const struct message *message)
{
	fprintf(stderr, "hvpoke-vmm: %s\n", message->text);
	return code;
}

static void quit(void *ctx)
{
	struct vmm *vmm = ctx;

	vm_control_quit(&vmm->control);
}

static void on_signal(void *ctx, uint32_t events)
{
	struct signalfd_siginfo info;
	struct vmm *vmm = ctx;

	(void)events;
	if (read(vmm->on_signal.fd, &info, sizeof(info)) == sizeof(info))
		quit(vmm);
}

static void on_exit_event(void *ctx, uint32_t events)
{
	struct vmm *vmm = ctx;

	(void)events;
	vmm->loop.stop = true;
}

/* SIGINT, SIGTERM and SIGHUP arrive in the loop; a reader that is gone arrives as EPIPE. */
static int open_signals(struct vmm *vmm)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	vmm->on_signal = (struct loop_watch){
		signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		on_signal,
		vmm,
	};
	if (vmm->on_signal.fd < 0)
		return -errno;
	return loop_add(&vmm->loop, &vmm->on_signal, EPOLLIN);
}

static uint64_t cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The control socket, and then, when all is open, the sandbox. */
static int open_control(struct vmm *vmm, struct message *message)
{
	bool sandbox = SANDBOX_POSSIBLE && vmm->config.sandbox;
	int err = sandbox ? vmm_sandbox_prepare(&vmm->sandbox, message) : 0;

	if (!err)
		err = vm_control_open(&vmm->control, message);
	if (err)
		return err;
	if (vmm->console.pty >= 0)
		fprintf(stderr, "hvpoke-vmm: the serial port is %s\n", vmm->console.pty_path);
	err = sandbox ? vmm_sandbox_enter(&vmm->sandbox, vmm->control.path, message) : 0;
	if (err) {
		size_t len = strlen(message->text);

		vm_control_close(&vmm->control);
		snprintf(message->text + len, sizeof(message->text) - len,
			 "; --no-sandbox runs without");
	}
	return err;
}

/* From a machine that has been made until its vCPUs have ended. */
static enum vm_exit run_machine(struct vmm *vmm)
{
	struct vm *vm = &vmm->machine.vm;
	int err;

	vmm->loop.stop = false;
	vm->vcpu_role = vmm->sandbox.on ? &vmm->sandbox.vcpu : NULL;
	vmm->on_exit = (struct loop_watch){vm->exit_event, on_exit_event, vmm};
	err = loop_add(&vmm->loop, &vmm->on_exit, EPOLLIN);
	if (!vmm->control.start_cpu_us)
		vmm->control.start_cpu_us = cpu_us();
	if (!err)
		err = vm_start(vm); /* prints what went wrong */
	if (err)
		return VM_EXIT_HOST;
	err = loop_run(&vmm->loop);
	if (err) {
		fprintf(stderr, "hvpoke-vmm: the event loop failed: %s\n", strerror(-err));
		vm_request_exit(vm, VM_EXIT_HOST);
	}
	vm_join(vm);
	return atomic_load(&vm->exit);
}

/* One VM, over as many reboots as its guest likes. */
static enum vm_exit run(struct vmm *vmm)
{
	struct message message;
	enum vm_exit code;

	/* First: input typed ahead may already say to quit. */
	vmm->control = (struct vm_control){
		.config = &vmm->config,
		.machine = &vmm->machine,
		.console = &vmm->console,
		.sandbox = &vmm->sandbox,
		.loop = &vmm->loop,
	};
	code = machine_create(&vmm->machine, &vmm->config, &vmm->files, &vmm->serial);
	if (code != VM_EXIT_NONE)
		return code;
	if (open_control(vmm, &message) < 0) {
		machine_destroy(&vmm->machine, &vmm->serial);
		return complain(VM_EXIT_HOST, &message);
	}
	for (;;) {
		bool restart;

		code = run_machine(vmm);
		vm_control_settle(&vmm->control);
		restart = code == VM_EXIT_REBOOT && vmm->config.restart && !vmm->control.quit;
		if (!restart)
			vm_control_close(&vmm->control);
		machine_destroy(&vmm->machine, &vmm->serial);
		if (!restart)
			return code == VM_EXIT_REBOOT ? VM_EXIT_SHUTDOWN : code;
		vmm->control.nr_reboots++;
		code = machine_create(&vmm->machine, &vmm->config, &vmm->files, &vmm->serial);
		if (code != VM_EXIT_NONE) {
			vm_control_close(&vmm->control);
			return code;
		}
		vm_control_machine(&vmm->control, &vmm->machine);
	}
}

static enum vm_exit start(struct vmm *vmm)
{
	struct message message;
	enum vm_exit code;
	int err;

	if (!vmm->config.kernel) {
		message_set(&message, 0,
			    "no kernel to boot: give --kernel FILE, or \"kernel\" in a "
			    "configuration file");
		return complain(VM_EXIT_USAGE, &message);
	}
	if (!vmm->config.sandbox)
		fputs("hvpoke-vmm: without the sandbox: a guest that takes hvpoke-vmm over may do "
		      "whatever the user may who started it\n",
		      stderr);
	err = loop_init(&vmm->loop);
	if (!err)
		err = open_signals(vmm);
	if (err) {
		message_set(&message, 0, "cannot make the event loop: %s", strerror(-err));
		return complain(VM_EXIT_HOST, &message);
	}
	if (console_open(&vmm->console, &vmm->config, &message) < 0)
		return complain(VM_EXIT_USAGE, &message);
	err = serial_init(&vmm->serial, &vmm->console, &vmm->loop, quit, vmm);
	if (err) {
		message_set(&message, 0, "cannot set up the serial port: %s", strerror(-err));
		code = complain(VM_EXIT_HOST, &message);
	} else {
		code = machine_files_open(&vmm->files, &vmm->config);
		if (code == VM_EXIT_NONE) {
			code = run(vmm);
			machine_files_close(&vmm->files);
		}
		serial_release(&vmm->serial);
	}
	vmm_sandbox_release(&vmm->sandbox);
	console_close(&vmm->console);
	loop_release(&vmm->loop);
	close(vmm->on_signal.fd);
	return code;
}

int main(int argc, char **argv)
{
	struct vmm vmm = {};
	struct config_args args;
	struct message message;
	int code;

	if (config_init(&vmm.config) < 0)
		return VM_EXIT_HOST;
	if (config_parse_args(&vmm.config, argc, argv, &args, &message) < 0)
		code = complain(VM_EXIT_USAGE, &message);
	else if (args.help)
		code = help_print();
	else if (args.version)
		code = printf("hvpoke-vmm %s\n", HVP_VERSION) < 0 ? VM_EXIT_HOST : 0;
	else if (args.check)
		code = help_print_config(&vmm.config);
	else
		code = start(&vmm);
	config_release(&vmm.config);
	return code;
}
