/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_SANDBOX_H
#define VMM_SANDBOX_H

#include <limits.h>
#include <stdbool.h>
#include <json-c/json.h>

#include "sandbox.h"

/*
 * What hvpoke-vmm gives up when all that it needs is open: its kernel and initrd, /dev/kvm,
 * the console, the control socket. From then on it opens nothing more, executes nothing and
 * has no capability; a guest that takes it over has its own memory, and what is open.
 */
struct vmm_sandbox {
	bool prepared, on;
	int landlock;		/* version of its ABI; 0: this kernel has none */
	char log_dir[PATH_MAX]; /* "": there is no log */
	struct sandbox_role main, vcpu, log;
};

/* Rules into filters, without entering any. 0, or -errno with @message. */
int vmm_sandbox_prepare(struct vmm_sandbox *sandbox, struct message *message);
/*
 * On the thread that writes the log, which is started before the others (struct
 * hvp_audit_config): it has log_dir. @sandbox: struct vmm_sandbox *. Ends the program on failure.
 */
void vmm_sandbox_confine_log(void *sandbox);
/*
 * Enter: rights, Landlock, the main thread's role. Threads that are started later enter theirs
 * on top (vm->vcpu_role). @control_socket is what is to be unlinked in the end; log_dir is read.
 */
int vmm_sandbox_enter(struct vmm_sandbox *sandbox, const char *control_socket,
		      struct message *message);
void vmm_sandbox_release(struct vmm_sandbox *sandbox);

/* For "info": what holds. */
struct json_object *vmm_sandbox_info(const struct vmm_sandbox *sandbox);

#endif /* VMM_SANDBOX_H */
