/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_VM_H
#define VMM_VM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bus.h"
#include "guest.h"
#include "memory.h"
#include "pause.h"
#include "sandbox.h"
#include "vcpu.h"

#define VMM_MAX_VCPUS 255

/* Why the VM stopped. The values are hvpoke-vmm's exit codes (hvpoke-vmm(1)). */
enum vm_exit {
	VM_EXIT_NONE = -1,    /* still running */
	VM_EXIT_SHUTDOWN = 0, /* the guest powered off, or was told to quit */
	VM_EXIT_USAGE = 2,    /* bad configuration: never from a running VM */
	VM_EXIT_HOST = 3,     /* the host lacks something or failed */
	VM_EXIT_TRIPLE_FAULT = 4,
	VM_EXIT_KVM_ERROR = 5, /* KVM_RUN failed, internal error, unknown exit */
	VM_EXIT_REBOOT = 6,    /* internal: main restarts, or exits 0 with "on_reboot": "exit" */
	VM_EXIT_SANDBOX = 7,   /* a system call that the sandbox forbids: of the whole process */
};

/* One virtual machine: KVM's handle, its memory, its vCPUs, its devices. */
struct vm {
	int kvm_fd;
	bool owns_kvm_fd;
	int fd;
	struct memory memory;
	struct bus bus;
	unsigned int nr_vcpus;
	struct vcpu **vcpus;
	struct pause_cpu **pause_cpus; /* theirs, as the pause engine wants them */
	struct pause pause;	       /* pause.h: stopping all vCPUs */
	struct hvp_guest *guest;       /* the doorbell's other end */
	atomic_int exit;	       /* enum vm_exit */
	pthread_mutex_t operator_lock; /* operators pause and resume one at a time */
	atomic_bool operator_paused;
	int exit_event;		 /* eventfd: becomes readable when exit is set */
	atomic_ulong int3_patch; /* INT3 exits that were text patching's */
	atomic_ulong int3_other; /* INT3 exits of the agent's probes and others */
	atomic_ulong fwaits;	 /* fwait stepped over */
	bool count_int3;	 /* set before vm_start(): count INT3 on VMX/SVM too */
	/* Set before vm_start(): what the vCPUs' threads enter; NULL for none. */
	const struct sandbox_role *vcpu_role;
};

/*
 * Open /dev/kvm, make the VM with in-kernel irqchip and PIT, @memory bytes of
 * RAM and @nr_vcpus vCPUs with KVM's supported CPUID, hvpoke's leaves and
 * x2APIC ids (the threads are not started), and the doorbell device. On
 * failure prints what was missing and returns a negative errno.
 */
int vm_create(struct vm *vm, unsigned int nr_vcpus, uint64_t memory);
/* The same on a descriptor of /dev/kvm, which is borrowed until vm_destroy(). */
int vm_create_on(struct vm *vm, int kvm_fd, unsigned int nr_vcpus, uint64_t memory);
/* Open /dev/kvm and see that it has what is needed. A descriptor, or a negative errno (printed). */
int vm_open_kvm(void);
/* Start all vCPU threads. Registers must have been set. */
int vm_start(struct vm *vm);
/*
 * Ask for the end: every vCPU thread leaves guest mode and ends. First caller
 * wins. Any thread. A device that blocks a vCPU's thread must watch exit_event
 * too, or vm_join() waits for it.
 */
void vm_request_exit(struct vm *vm, enum vm_exit why);
/* Wait for the vCPU threads to end. */
void vm_join(struct vm *vm);
void vm_destroy(struct vm *vm);

/*
 * The operator's pause: outlasts any batch, whose vCPU waits until the resume.
 * 0; -EALREADY if it is (not) paused already; vm_pause() also -ETIMEDOUT (a
 * vCPU did not stop within a second; all run again) or -ECANCELED (it ends).
 * Not on a vCPU's thread.
 */
int vm_pause(struct vm *vm);
int vm_resume(struct vm *vm);
bool vm_is_paused(struct vm *vm);

/* Set an irqchip line (GSI). Edge: raise, then lower. Any thread. */
int vm_irq_line(struct vm *vm, unsigned int gsi, bool level);

#endif /* VMM_VM_H */
