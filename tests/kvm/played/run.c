// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In and out of the guest. In: an UD2 whose handler puts the guest's registers in the
 * place of the program's, so that the kernel's return from the signal loads them, with
 * the signal that stops vCPUs allowed in the same step: one that is pending comes
 * at the guest's first instruction, and none is lost. Out: the handler of whatever stops
 * the guest puts the program's registers back.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../vmm/pause.h"
#include "kvm.h"

#define TRAP_GP 13
#define TRAP_PF 14

struct sigaction played_action;

static __thread struct played_cpu *current;

static void enter(struct played_cpu *cpu, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	greg_t flags = regs[REG_EFL], selectors = regs[REG_CSGSFS];

	memcpy(cpu->host, regs, sizeof(cpu->host));
	cpu->host[REG_RIP] += 2; /* behind the UD2 */
	cpu->host_mask = context->uc_sigmask;
	memcpy(regs, cpu->regs, sizeof(cpu->regs));
	regs[REG_CSGSFS] = selectors;
	/* Arithmetic flags only are the guest's: not the trap flag, nor the I/O privilege level. */
	regs[REG_EFL] = (flags & ~0xcd5) | (cpu->regs[REG_EFL] & 0xcd5);
	sigdelset(&context->uc_sigmask, PAUSE_SIGNAL);
	cpu->entering = false;
	cpu->in_guest = true;
}

static void leave(struct played_cpu *cpu, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;

	memcpy(cpu->regs, regs, sizeof(cpu->regs));
	memcpy(regs, cpu->host, sizeof(cpu->host));
	context->uc_sigmask = cpu->host_mask;
	cpu->in_guest = false;
}

/* A fault of the program's own: as if nobody had caught it. */
static void not_the_guest(int signal)
{
	const struct sigaction as_ever = {.sa_handler = SIG_DFL};

	sigaction(signal, &as_ever, NULL);
}

static bool page_fault(struct played_cpu *cpu, greg_t *regs, uint64_t va)
{
	uint64_t gpa;

	if (played_map(cpu, va))
		return true;
	if (!played_translate(cpu, va, &gpa))
		return played_exception(cpu, regs, TRAP_PF);
	return played_mmio(cpu, regs, gpa);
}

static void on_fault(int signal, siginfo_t *info, void *arg)
{
	struct played_cpu *cpu = current;
	ucontext_t *context = arg;
	greg_t *regs = context->uc_mcontext.gregs;
	int saved = errno;
	bool go_on;

	if (cpu && cpu->entering && signal == SIGILL) {
		enter(cpu, context);
		return;
	}
	if (!cpu || !cpu->in_guest) {
		not_the_guest(signal);
		return;
	}
	if (signal == SIGSEGV && regs[REG_TRAPNO] == TRAP_PF)
		go_on = page_fault(cpu, regs, (uintptr_t)info->si_addr);
	else if (signal == SIGSEGV && regs[REG_TRAPNO] == TRAP_GP)
		go_on = played_privileged(cpu, regs);
	else
		go_on = played_exception(cpu, regs, regs[REG_TRAPNO]);
	if (!go_on)
		leave(cpu, context);
	errno = saved;
}

void played_signal(int signal, siginfo_t *info, void *context)
{
	struct played_cpu *cpu = current;
	int saved = errno;

	(void)info;
	if (played_action.sa_handler != SIG_IGN && played_action.sa_handler != SIG_DFL)
		played_action.sa_handler(signal);
	if (cpu && cpu->in_guest) {
		cpu->stop = PLAYED_SIGNAL;
		leave(cpu, context);
	}
	errno = saved;
}

static int set_up(struct played_cpu *cpu)
{
	static const int fault[] = {SIGSEGV, SIGILL, SIGTRAP, SIGFPE, SIGBUS};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = PLAYED_STACK};
	sigset_t faults;

	cpu->stack = malloc(PLAYED_STACK);
	if (!cpu->stack)
		return ENOMEM;
	stack.ss_sp = cpu->stack;
	sigfillset(&action.sa_mask);
	sigemptyset(&faults);
	for (unsigned int i = 0; i < sizeof(fault) / sizeof(*fault); i++) {
		sigaddset(&faults, fault[i]);
		if (sigaction(fault[i], &action, NULL))
			return errno;
	}
	if (sigaltstack(&stack, NULL))
		return errno;
	cpu->set_up = true;
	return pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

/* HLT, and the wait for INIT: until a signal comes. @mask lets it in. */
static int sleep_on(const sigset_t *mask)
{
	ppoll(NULL, 0, NULL, mask);
	return EINTR;
}

static int run_guest(struct played_cpu *cpu)
{
	cpu->entering = true;
	__asm__ volatile("ud2" : : : "memory", "cc");
	if (cpu->stop == PLAYED_SIGNAL)
		return EINTR;
	return 0;
}

int played_run(struct played_cpu *cpu)
{
	sigset_t stop, before, let_in;
	int err = cpu->set_up ? 0 : set_up(cpu);

	if (err)
		return err;
	current = cpu;
	sigemptyset(&stop);
	sigaddset(&stop, PAUSE_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &stop, &before);
	let_in = before;
	sigdelset(&let_in, PAUSE_SIGNAL);
	played_complete(cpu);
	if (__atomic_load_n(&cpu->run->immediate_exit, __ATOMIC_SEQ_CST))
		err = EINTR;
	else if (cpu->mp_state != KVM_MP_STATE_RUNNABLE || cpu->halted)
		err = sleep_on(&let_in);
	else
		err = run_guest(cpu);
	if (!err && cpu->stop == PLAYED_HALT)
		err = sleep_on(&let_in);
	current = NULL;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		cpu->run->exit_reason = KVM_EXIT_INTR;
	return err;
}
