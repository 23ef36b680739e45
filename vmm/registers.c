// SPDX-License-Identifier: GPL-2.0-or-later
#include "registers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "vm.h"

static void print_segment(const char *name, const struct kvm_segment *segment)
{
	fprintf(stderr, "  %-4s %04x base %016" PRIx64 " limit %08x type %x%s%s%s dpl %u\n", name,
		segment->selector, (uint64_t)segment->base, segment->limit, segment->type,
		segment->present ? " present" : "", segment->l ? " 64-bit" : "",
		segment->db ? " 32-bit" : "", segment->dpl);
}

static void print_sregs(const struct kvm_sregs *sregs)
{
	print_segment("cs", &sregs->cs);
	print_segment("ss", &sregs->ss);
	print_segment("ds", &sregs->ds);
	print_segment("es", &sregs->es);
	print_segment("fs", &sregs->fs);
	print_segment("gs", &sregs->gs);
	print_segment("tr", &sregs->tr);
	fprintf(stderr, "  gdt  %016" PRIx64 " limit %04x  idt %016" PRIx64 " limit %04x\n",
		(uint64_t)sregs->gdt.base, sregs->gdt.limit, (uint64_t)sregs->idt.base,
		sregs->idt.limit);
	fprintf(stderr, "  cr0  %016" PRIx64 " cr2 %016" PRIx64 " cr3 %016" PRIx64 "\n",
		(uint64_t)sregs->cr0, (uint64_t)sregs->cr2, (uint64_t)sregs->cr3);
	fprintf(stderr, "  cr4  %016" PRIx64 " cr8 %016" PRIx64 " efer %" PRIx64 "\n",
		(uint64_t)sregs->cr4, (uint64_t)sregs->cr8, (uint64_t)sregs->efer);
}

static void print_regs(const struct kvm_regs *regs)
{
	const struct {
		const char *name;
		uint64_t value;
	} reg[] = {
		{"rip", regs->rip}, {"rsp", regs->rsp}, {"rfl", regs->rflags}, {"rax", regs->rax},
		{"rbx", regs->rbx}, {"rcx", regs->rcx}, {"rdx", regs->rdx},    {"rsi", regs->rsi},
		{"rdi", regs->rdi}, {"rbp", regs->rbp}, {"r8", regs->r8},      {"r9", regs->r9},
		{"r10", regs->r10}, {"r11", regs->r11}, {"r12", regs->r12},    {"r13", regs->r13},
		{"r14", regs->r14}, {"r15", regs->r15},
	};

	for (unsigned int i = 0; i < sizeof(reg) / sizeof(reg[0]); i++)
		fprintf(stderr, "  %-4s %016" PRIx64 "%s", reg[i].name, reg[i].value,
			i % 3 == 2 ? "\n" : "");
}

static void print_vcpu(struct vcpu *vcpu)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	int err;

	fprintf(stderr, "vCPU %u:\n", vcpu->id);
	err = vcpu_get_regs(vcpu, &regs);
	if (!err)
		err = vcpu_get_sregs(vcpu, &sregs);
	if (err) {
		fprintf(stderr, "  its registers cannot be read (error %d)\n", -err);
		return;
	}
	print_regs(&regs);
	print_sregs(&sregs);
}

static void print_exit(const struct kvm_run *run)
{
	fprintf(stderr, "KVM's exit reason %u", run->exit_reason);
	switch (run->exit_reason) {
	case KVM_EXIT_INTERNAL_ERROR:
		fprintf(stderr, " (internal error), suberror %u, data", run->internal.suberror);
		for (uint32_t i = 0; i < run->internal.ndata && i < 16; i++)
			fprintf(stderr, " %" PRIx64, (uint64_t)run->internal.data[i]);
		if (run->internal.suberror != KVM_INTERNAL_ERROR_EMULATION)
			break;
		if (!(run->emulation_failure.flags &
		      KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES))
			break;
		fprintf(stderr, "\nthe instruction that it cannot emulate:");
		for (uint32_t i = 0; i < run->emulation_failure.insn_size && i < 15; i++)
			fprintf(stderr, " %02x", run->emulation_failure.insn_bytes[i]);
		break;
	case KVM_EXIT_FAIL_ENTRY:
		fprintf(stderr, " (entry failed), hardware reason 0x%" PRIx64,
			(uint64_t)run->fail_entry.hardware_entry_failure_reason);
		break;
	case KVM_EXIT_SHUTDOWN: fprintf(stderr, " (shutdown)"); break;
	}
	fprintf(stderr, "\n");
}

void registers_report(struct vcpu *vcpu, const char *what)
{
	struct vm *vm = vcpu->vm;
	int err = pause_begin(&vm->pause, &vcpu->pause, NULL);

	if (err == -ECANCELED)
		return;
	fprintf(stderr, "hvpoke-vmm: vCPU %u: %s\n", vcpu->id, what);
	print_exit(vcpu->run);
	if (err) {
		/* To ask for the others' registers would be to wait for them. */
		fprintf(stderr, "the other vCPUs did not stop; this one alone:\n");
		print_vcpu(vcpu);
		return;
	}
	for (unsigned int i = 0; i < vm->nr_vcpus; i++)
		print_vcpu(vm->vcpus[i]);
	pause_end(&vm->pause, &vcpu->pause, NULL);
}
