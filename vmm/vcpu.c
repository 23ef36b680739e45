// SPDX-License-Identifier: GPL-2.0-or-later
#include "vcpu.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "cpuid.h"
#include "emulate.h"
#include "registers.h"
#include "vm.h"

int vcpu_create(struct vcpu **result, struct vm *vm, unsigned int id, struct kvm_cpuid2 *cpuid)
{
	struct vcpu *vcpu;
	void *run;
	int size, err;

	vcpu = calloc(1, sizeof(*vcpu));
	if (!vcpu)
		return -ENOMEM;
	vcpu->vm = vm;
	vcpu->id = id;
	vcpu->fd = ioctl(vm->fd, KVM_CREATE_VCPU, (unsigned long)id);
	if (vcpu->fd < 0)
		goto failed;
	size = ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (size < 0)
		goto failed;
	run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
	if (run == MAP_FAILED)
		goto failed;
	vcpu->run = run;
	vcpu->run_size = (size_t)size;
	vcpu->pause.immediate_exit = &vcpu->run->immediate_exit;

	cpuid_for_vcpu(cpuid, id, vm->nr_vcpus);
	if (ioctl(vcpu->fd, KVM_SET_CPUID2, cpuid))
		goto failed;
	*result = vcpu;
	return 0;
failed:
	err = -errno;
	vcpu_destroy(vcpu);
	return err;
}

void vcpu_destroy(struct vcpu *vcpu)
{
	if (!vcpu)
		return;
	if (vcpu->run)
		munmap(vcpu->run, vcpu->run_size);
	if (vcpu->fd >= 0)
		close(vcpu->fd);
	free(vcpu);
}

int vcpu_get_regs(struct vcpu *vcpu, struct kvm_regs *regs)
{
	return ioctl(vcpu->fd, KVM_GET_REGS, regs) ? -errno : 0;
}

int vcpu_set_regs(struct vcpu *vcpu, const struct kvm_regs *regs)
{
	return ioctl(vcpu->fd, KVM_SET_REGS, regs) ? -errno : 0;
}

int vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs)
{
	return ioctl(vcpu->fd, KVM_GET_SREGS, sregs) ? -errno : 0;
}

int vcpu_set_sregs(struct vcpu *vcpu, const struct kvm_sregs *sregs)
{
	return ioctl(vcpu->fd, KVM_SET_SREGS, sregs) ? -errno : 0;
}

int vcpu_set_mp_state(struct vcpu *vcpu, uint32_t state)
{
	const struct kvm_mp_state mp_state = {.mp_state = state};

	return ioctl(vcpu->fd, KVM_SET_MP_STATE, &mp_state) ? -errno : 0;
}

/*
 * Tell the guest's clock that time went by while it stood still, so that its
 * watchdogs do not take that for a lockup. EINVAL: it does not use KVM's clock.
 */
static void clock_stood_still(struct vcpu *vcpu)
{
	if (!ioctl(vcpu->fd, KVM_KVMCLOCK_CTRL))
		vcpu->nr_clock_ctrl++;
}

static void port_access(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	uint8_t *data = (uint8_t *)run + run->io.data_offset;

	for (uint32_t i = 0; i < run->io.count; i++, data += run->io.size) {
		uint32_t value = 0;

		if (run->io.direction == KVM_EXIT_IO_IN) {
			value = bus_in(&vcpu->vm->bus, vcpu, run->io.port, run->io.size);
			memcpy(data, &value, run->io.size);
		} else {
			memcpy(&value, data, run->io.size);
			bus_out(&vcpu->vm->bus, vcpu, run->io.port, run->io.size, value);
		}
	}
}

static void stop_vm(struct vcpu *vcpu, enum vm_exit why, const char *what)
{
	registers_report(vcpu, what);
	vm_request_exit(vcpu->vm, why);
}

static void handle_exit(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;

	vcpu->nr_exits++;
	switch (run->exit_reason) {
	case KVM_EXIT_IO: port_access(vcpu); break;
	case KVM_EXIT_MMIO:
		/* Nothing is there: reads as all ones, ignores writes. */
		if (!run->mmio.is_write)
			memset(run->mmio.data, 0xff, sizeof(run->mmio.data));
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		if (!emulate_failure(vcpu))
			stop_vm(vcpu, VM_EXIT_KVM_ERROR, "KVM cannot go on with the guest");
		break;
	case KVM_EXIT_DEBUG:
		if (!emulate_breakpoint(vcpu))
			stop_vm(vcpu, VM_EXIT_KVM_ERROR, "a debug exit that nobody asked for");
		break;
	case KVM_EXIT_SHUTDOWN: stop_vm(vcpu, VM_EXIT_TRIPLE_FAULT, "triple fault"); break;
	case KVM_EXIT_SYSTEM_EVENT:
		vm_request_exit(vcpu->vm, run->system_event.type == KVM_SYSTEM_EVENT_RESET
						  ? VM_EXIT_REBOOT
						  : VM_EXIT_SHUTDOWN);
		break;
	case KVM_EXIT_INTR:
	case KVM_EXIT_IRQ_WINDOW_OPEN: break;
	case KVM_EXIT_FAIL_ENTRY:
		stop_vm(vcpu, VM_EXIT_KVM_ERROR, "the processor refuses to enter the guest");
		break;
	default: stop_vm(vcpu, VM_EXIT_KVM_ERROR, "an exit that this VMM does not know"); break;
	}
}

/* After KVM_RUN returned @err, outside of guest mode. */
static void after_run(struct vcpu *vcpu, int err)
{
	switch (err) {
	case 0:
		vcpu->exit_pending = true;
		handle_exit(vcpu);
		break;
	case EINTR: /* kicked */
	case EAGAIN: /* got INIT or SIPI */ vcpu->exit_pending = false; break;
	default: stop_vm(vcpu, VM_EXIT_KVM_ERROR, strerror(err)); break;
	}
}

static int kvm_run(struct vcpu *vcpu)
{
	return ioctl(vcpu->fd, KVM_RUN, 0) ? errno : 0;
}

/*
 * KVM completes a port or MMIO access (the value of an IN arrives in its
 * register, RIP moves on) at the KVM_RUN after it, and with immediate_exit
 * does only that. An access in several parts exits again.
 */
static void complete_exit(struct vcpu *vcpu)
{
	__atomic_store_n(&vcpu->run->immediate_exit, 1, __ATOMIC_RELAXED);
	after_run(vcpu, kvm_run(vcpu));
}

/* Without its sandbox it does not run: the loop below ends at once. */
static void enter_sandbox(struct vcpu *vcpu)
{
	struct vm *vm = vcpu->vm;
	int err = vm->vcpu_role ? sandbox_role_enter(vm->vcpu_role) : 0;

	if (!err)
		return;
	fprintf(stderr, "hvpoke-vmm: vCPU %u: its thread cannot enter the sandbox: %s\n", vcpu->id,
		strerror(-err));
	vm_request_exit(vm, VM_EXIT_HOST);
}

static void *vcpu_thread(void *arg)
{
	struct vcpu *vcpu = arg;
	struct pause *pause = &vcpu->vm->pause;
	struct pause_cpu *self = &vcpu->pause;

	pause_cpu_start(pause, self);
	enter_sandbox(vcpu);
	for (;;) {
		if (self->stood_still) {
			self->stood_still = false;
			clock_stood_still(vcpu);
		}
		if (pause_cpu_enter(pause, self)) {
			int err = kvm_run(vcpu);

			pause_cpu_leave(self);
			after_run(vcpu, err);
			continue;
		}
		if (atomic_load(&vcpu->vm->exit) != VM_EXIT_NONE)
			break;
		if (vcpu->exit_pending) {
			complete_exit(vcpu);
			continue;
		}
		pause_cpu_stop(pause, self);
		/* Nobody waits for this any more, so that it costs the pause nothing. */
		clock_stood_still(vcpu);
		if (!pause_cpu_wait(pause, self))
			break;
	}
	pause_cpu_end(pause, self);
	return NULL;
}

int vcpu_start(struct vcpu *vcpu)
{
	sigset_t mask, before;
	int err;

	/* What is meant for the program is the main thread's. */
	sigfillset(&mask);
	sigdelset(&mask, PAUSE_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	err = pthread_create(&vcpu->thread, NULL, vcpu_thread, vcpu);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	vcpu->started = true;
	return 0;
}

/* The gate is closed for good, but it may sleep somewhere in a system call. */
#define JOIN_AGAIN_NS 100000000

static int join_for(struct vcpu *vcpu, uint64_t ns)
{
	const uint64_t end = hvp_now_ns() + ns;
	const struct timespec deadline = {
		.tv_sec = (time_t)(end / 1000000000),
		.tv_nsec = (long)(end % 1000000000),
	};

	return pthread_clockjoin_np(vcpu->thread, NULL, CLOCK_MONOTONIC, &deadline);
}

void vcpu_join(struct vcpu *vcpu)
{
	if (!vcpu->started)
		return;
	while (join_for(vcpu, JOIN_AGAIN_NS) == ETIMEDOUT)
		pause_kick_again(&vcpu->vm->pause);
	vcpu->started = false;
}
