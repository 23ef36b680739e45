/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_PLAYED_KVM_H
#define TESTS_KVM_PLAYED_KVM_H

#include <linux/kvm.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * KVM, played by a library that is loaded before libc (LD_PRELOAD), for machines
 * without /dev/kvm. A vCPU's guest code runs in user mode on the vCPU's own thread, on
 * the processor itself, until it does something that user mode may not (a port, HLT,
 * an address where nothing is mapped yet) or a signal comes: then KVM_RUN returns, as
 * KVM's does. So it is good for guests of tests/kvm, which have one address space
 * and nothing of a kernel; neither for interrupts nor for a real kernel.
 *
 * What it keeps of KVM's promises is what the pause engine is built on: a signal gets a
 * vCPU out of the guest at an instruction's boundary wherever it stands, HLT included;
 * none that comes between the last check and the guest is lost; immediate_exit
 * completes an access and does nothing else.
 */

#define PLAYED_PAGE	4096u
#define PLAYED_SLOTS	4
#define PLAYED_RUN_SIZE (2 * PLAYED_PAGE) /* struct kvm_run, and the data of port accesses */
#define PLAYED_STACK	(64u << 10)	  /* of the signal handlers */

struct played_vm {
	struct kvm_userspace_memory_region slot[PLAYED_SLOTS];
	/* Guest addresses that are mapped in this process: low half and the one above 4 GiB. */
	_Atomic uint64_t first[2], last[2];
};

/* What the guest has done that KVM_RUN must look at. */
enum played_stop {
	PLAYED_SIGNAL,
	PLAYED_EXIT, /* struct kvm_run says what */
	PLAYED_HALT,
};

struct played_cpu {
	struct played_vm *vm;
	struct kvm_run *run;
	gregset_t regs; /* the guest's, while it does not run */
	struct kvm_sregs sregs;
	uint32_t mp_state;
	bool halted;
	bool set_up;	   /* the thread's signals */
	uint64_t clock;	   /* KVM's clock in guest memory, 0: none */
	uint8_t skip;	   /* bytes of the instruction whose access is to be completed, or 0 */
	int8_t into;	   /* register (REG_*) that the access loads, or -1 */
	uint8_t into_size; /* so many bytes of it */

	/* Own thread and its signal handlers only. */
	volatile bool entering, in_guest;
	enum played_stop stop;
	gregset_t host; /* where KVM_RUN goes on */
	sigset_t host_mask;
	uint8_t *stack;
};

/* memory.c */
/* The host's pointer to the guest's physical address, NULL if no slot has it. */
void *played_memory(const struct played_vm *vm, uint64_t gpa);
/* By the guest's page tables. False if nothing is there. */
bool played_translate(const struct played_cpu *cpu, uint64_t va, uint64_t *gpa);
/* Have the page of @va in this process, too. False if it is no memory. */
bool played_map(struct played_cpu *cpu, uint64_t va);
void played_unmap_all(struct played_vm *vm);

/* insn.c - the instruction at RIP that user mode may not execute, or that touches no memory. */
/* True: go on in the guest. False: leave it, cpu->stop says why. */
bool played_privileged(struct played_cpu *cpu, greg_t *regs);
bool played_mmio(struct played_cpu *cpu, greg_t *regs, uint64_t gpa);
/* The guest's handler of exception @vector runs next; without one the guest shuts down. */
bool played_exception(struct played_cpu *cpu, greg_t *regs, unsigned int vector);
void played_complete(struct played_cpu *cpu);

/* run.c */
/* The program's own handler of the signal that stops vCPUs. */
extern struct sigaction played_action;
/* The handler that stands in for it. */
void played_signal(int signal, siginfo_t *info, void *context);
/* KVM_RUN: 0 or an errno. */
int played_run(struct played_cpu *cpu);

#endif /* TESTS_KVM_PLAYED_KVM_H */
