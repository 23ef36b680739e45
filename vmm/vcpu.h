/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_VCPU_H
#define VMM_VCPU_H

#include <linux/kvm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pause.h"

struct vm;

/* One virtual CPU and the thread that runs it. */
struct vcpu {
	struct vm *vm;
	unsigned int id; /* also its APIC id */
	int fd;
	struct kvm_run *run; /* shared with KVM */
	size_t run_size;
	pthread_t thread;
	bool started;		/* thread is valid */
	struct pause_cpu pause; /* its state: pause.h */
	bool exit_pending;	/* KVM completes the last exit at the next KVM_RUN */
	/* Own thread writes, tests read after the VM ended or while it is paused. */
	uint64_t nr_exits;	/* KVM_RUN returns with something to handle */
	uint64_t nr_clock_ctrl; /* KVM_KVMCLOCK_CTRL that the guest's clock took note of */
};

/*
 * Make vCPU @id of @vm->nr_vcpus; @cpuid (cpuid.h) becomes its own and is the
 * caller's again afterwards. 0 or a negative errno. vm_create() does this for
 * all of them.
 */
int vcpu_create(struct vcpu **result, struct vm *vm, unsigned int id, struct kvm_cpuid2 *cpuid);
void vcpu_destroy(struct vcpu *vcpu);

/* Start the thread. 0 or a negative errno. */
int vcpu_start(struct vcpu *vcpu);
/* Wait for the thread to end. */
void vcpu_join(struct vcpu *vcpu);

/*
 * Registers. Before the vCPU starts, on its own thread, or while the VM is
 * paused; KVM makes others wait for the vCPU's next exit. 0 or a negative errno.
 */
int vcpu_get_regs(struct vcpu *vcpu, struct kvm_regs *regs);
int vcpu_set_regs(struct vcpu *vcpu, const struct kvm_regs *regs);
int vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs);
int vcpu_set_sregs(struct vcpu *vcpu, const struct kvm_sregs *sregs);
/* KVM_MP_STATE_*. With an irqchip all but vCPU 0 begin by waiting for INIT. */
int vcpu_set_mp_state(struct vcpu *vcpu, uint32_t state);

#endif /* VMM_VCPU_H */
