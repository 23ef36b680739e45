/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_VM_CONTROL_H
#define VMM_VM_CONTROL_H

#include <stdint.h>

#include "config.h"
#include "control.h"
#include "loop.h"
#include "machine.h"
#include "message.h"
#include "service.h"
#include "vmm_sandbox.h"

/*
 * The VM's control socket: the methods that all VMMs have (service.h), and
 * pause, resume and quit. Runs in the main loop.
 */
struct vm_control {
	struct hvp_service service; /* first: the shared methods take it as their ctx */
	const struct config *config;
	struct machine *machine;
	const struct console *console;
	struct vmm_sandbox *sandbox;
	struct hvp_control *server; /* NULL before vm_control_open() */
	struct hvp_audit *audit;    /* likewise; stays over reboots */
	struct loop *loop;
	struct loop_watch watch;
	uint64_t start_cpu_us; /* CPU time of this process up to the first vm_start() */
	unsigned int nr_reboots;
	bool quit; /* somebody wants the end: a reboot that comes first must not undo that */
	char path[108];
};

/*
 * Listen at config->control or in the runtime directory, which is made if need
 * be. Everything in @control but server, watch and path has been set. 0, or a
 * negative errno with @message set.
 */
int vm_control_open(struct vm_control *control, struct message *message);
void vm_control_close(struct vm_control *control);
/*
 * The machine's vCPUs have ended, and it is about to be destroyed: requests that
 * wait for its agent get their answer. After this, until vm_control_machine(),
 * the loop must not run.
 */
void vm_control_settle(struct vm_control *control);
/* End the VM, for good. */
void vm_control_quit(struct vm_control *control);
/* The machine has been made anew. */
void vm_control_machine(struct vm_control *control, struct machine *machine);

#endif /* VMM_VM_CONTROL_H */
