// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What KVM's instruction emulator does not know. With VMX and SVM the
 * processor executes these itself; a software back end emulates all of guest
 * kernel mode and leaves int3 and fwait to us.
 */
#include "emulate.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "vm.h"

#define OP_INT3	 0xcc
#define OP_FWAIT 0x9b

#define VECTOR_BP 3
#define VECTOR_UD 6

/* The agent's own probes stand in kernel text too, but are not text patching. */
static bool is_probe(struct vm *vm, uint64_t rip)
{
	struct hvp_agent_info agent;

	hvp_guest_agent(vm->guest, &agent);
	for (unsigned int i = 0; i < HVPOKE_MAX_PROBES; i++)
		if (agent.probe_gva[i] == rip)
			return true;
	return false;
}

static void count_int3(struct vcpu *vcpu, uint64_t rip)
{
	struct vm *vm = vcpu->vm;
	bool is_patch = hvp_guest_is_text_gva(vm->guest, rip) && !is_probe(vm, rip);

	atomic_fetch_add(is_patch ? &vm->int3_patch : &vm->int3_other, 1);
}

/* The guest's handler for @vector (without error code) runs next. */
static int inject(struct vcpu *vcpu, uint8_t vector)
{
	struct kvm_vcpu_events events;

	if (ioctl(vcpu->fd, KVM_GET_VCPU_EVENTS, &events))
		return -errno;
	/* Not what others may have changed since: pending NMIs, SIPI vector. */
	events.flags = 0;
	events.exception.injected = 1;
	events.exception.nr = vector;
	events.exception.has_error_code = 0;
	return ioctl(vcpu->fd, KVM_SET_VCPU_EVENTS, &events) ? -errno : 0;
}

/* Go on @len bytes further. */
static bool step_over(struct vcpu *vcpu, struct kvm_regs *regs, unsigned int len)
{
	regs->rip += len;
	return !vcpu_set_regs(vcpu, regs);
}

static bool in_user_mode(struct vcpu *vcpu)
{
	struct kvm_sregs sregs;

	return !vcpu_get_sregs(vcpu, &sregs) && (sregs.cs.selector & 3) == 3;
}

/*
 * Another vCPU may have written the real instruction while KVM was failing on
 * the one before it: then all it takes is to try again.
 */
static bool memory_differs(struct vcpu *vcpu, uint64_t rip, const uint8_t *insn, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++) {
		struct kvm_translation translation = {.linear_address = rip + i};
		const uint8_t *byte;

		if (ioctl(vcpu->fd, KVM_TRANSLATE, &translation) || !translation.valid)
			return false;
		byte = memory_at(&vcpu->vm->memory, gpa(translation.physical_address), 1);
		if (!byte)
			return false;
		if (__atomic_load_n(byte, __ATOMIC_RELAXED) != insn[i])
			return true;
	}
	return false;
}

static bool emulate_insn(struct vcpu *vcpu, const uint8_t *insn, unsigned int size)
{
	struct kvm_regs regs;

	if (!size || vcpu_get_regs(vcpu, &regs))
		return false;
	switch (insn[0]) {
	case OP_INT3:
		count_int3(vcpu, regs.rip);
		return step_over(vcpu, &regs, 1) && !inject(vcpu, VECTOR_BP);
	case OP_FWAIT:
		/* No x87 exception can be pending: the emulator runs no x87 instruction. */
		atomic_fetch_add(&vcpu->vm->fwaits, 1);
		return step_over(vcpu, &regs, 1);
	}
	if (memory_differs(vcpu, regs.rip, insn, size))
		return true;
	/* A program in the guest must not be able to stop the guest. */
	return in_user_mode(vcpu) && !inject(vcpu, VECTOR_UD);
}

bool emulate_failure(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	const uint64_t has_bytes = KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES;
	uint8_t insn[sizeof(run->emulation_failure.insn_bytes)];
	unsigned int size;

	if (run->internal.suberror != KVM_INTERNAL_ERROR_EMULATION)
		return false;
	/*
	 * The bytes are what KVM decoded. Memory may hold something else by now.
	 * They come with KVM_CAP_EXIT_ON_EMULATION_FAILURE; ndata counts the
	 * 64-bit fields from flags on: it, and two with size and bytes.
	 */
	if (run->emulation_failure.ndata < 3 || !(run->emulation_failure.flags & has_bytes))
		return in_user_mode(vcpu) && !inject(vcpu, VECTOR_UD);
	size = run->emulation_failure.insn_size;
	if (size > sizeof(insn))
		size = sizeof(insn);
	memcpy(insn, run->emulation_failure.insn_bytes, size);
	return emulate_insn(vcpu, insn, size);
}

bool emulate_breakpoint(struct vcpu *vcpu)
{
	const struct kvm_debug_exit_arch *debug = &vcpu->run->debug.arch;

	if (!vcpu->vm->count_int3 || debug->exception != VECTOR_BP)
		return false;
	count_int3(vcpu, debug->pc);
	/*
	 * RIP stands at the int3 and stays there: KVM remembers its length and
	 * adds it when it delivers the exception.
	 */
	return !inject(vcpu, VECTOR_BP);
}

int emulate_want_breakpoints(struct vcpu *vcpu)
{
	const struct kvm_guest_debug debug = {
		.control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP,
	};

	return ioctl(vcpu->fd, KVM_SET_GUEST_DEBUG, &debug) ? -errno : 0;
}
