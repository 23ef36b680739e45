/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_SANDBOX_H
#define VMM_SANDBOX_H

#include <stdbool.h>
#include <json-c/json.h>

#include "sandbox.h"

/*
 * What hvpoke-vmm gives up when all that it needs is open: its kernel and initrd, /dev/kvm,
 * the console, the control socket. From then on it opens nothing more, executes nothing and
 * has no capability; a guest that takes it over has its own memory, and what is open.
 */
struct vmm_sandbox {
	bool on;
	int landlock; /* version of its ABI; 0: this kernel has none */
	struct sandbox_role main, vcpu;
};

/* Rules into filters, without entering any. 0, or -errno with @message. */
int vmm_sandbox_prepare(struct vmm_sandbox *sandbox, struct message *message);
/*
 * Enter: rights, Landlock, the main thread's role. Threads that are started later enter theirs
 * on top (vm->vcpu_role). @control_socket is what is to be unlinked in the end.
 */
int vmm_sandbox_enter(struct vmm_sandbox *sandbox, const char *control_socket,
		      struct message *message);
void vmm_sandbox_release(struct vmm_sandbox *sandbox);

/* For "info": what holds. */
struct json_object *vmm_sandbox_info(const struct vmm_sandbox *sandbox);

#endif /* VMM_SANDBOX_H */
