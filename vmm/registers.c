// SPDX-License-Identifier: GPL-2.0-or-later
#include "registers.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kvm_backend.h"
#include "vm.h"

/* How long a reader of stderr may keep a report waiting. */
#define PATIENCE_MS 1000

static void print_segment(FILE *out, const char *name, const struct kvm_segment *segment)
{
	fprintf(out, "  %-4s %04x base %016" PRIx64 " limit %08x type %x%s%s%s dpl %u\n", name,
		segment->selector, (uint64_t)segment->base, segment->limit, segment->type,
		segment->present ? " present" : "", segment->l ? " 64-bit" : "",
		segment->db ? " 32-bit" : "", segment->dpl);
}

static void print_sregs(FILE *out, const struct kvm_sregs *sregs)
{
	print_segment(out, "cs", &sregs->cs);
	print_segment(out, "ss", &sregs->ss);
	print_segment(out, "ds", &sregs->ds);
	print_segment(out, "es", &sregs->es);
	print_segment(out, "fs", &sregs->fs);
	print_segment(out, "gs", &sregs->gs);
	print_segment(out, "tr", &sregs->tr);
	fprintf(out, "  gdt  %016" PRIx64 " limit %04x  idt %016" PRIx64 " limit %04x\n",
		(uint64_t)sregs->gdt.base, sregs->gdt.limit, (uint64_t)sregs->idt.base,
		sregs->idt.limit);
	fprintf(out, "  cr0  %016" PRIx64 " cr2 %016" PRIx64 " cr3 %016" PRIx64 "\n",
		(uint64_t)sregs->cr0, (uint64_t)sregs->cr2, (uint64_t)sregs->cr3);
	fprintf(out, "  cr4  %016" PRIx64 " cr8 %016" PRIx64 " efer %" PRIx64 "\n",
		(uint64_t)sregs->cr4, (uint64_t)sregs->cr8, (uint64_t)sregs->efer);
}

static void print_regs(FILE *out, const struct kvm_regs *regs)
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
		fprintf(out, "  %-4s %016" PRIx64 "%s", reg[i].name, reg[i].value,
			i % 3 == 2 ? "\n" : "");
}

static void print_vcpu(FILE *out, struct vcpu *vcpu)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	int err;

	fprintf(out, "vCPU %u:\n", vcpu->id);
	err = vcpu_get_regs(vcpu, &regs);
	if (!err)
		err = vcpu_get_sregs(vcpu, &sregs);
	if (err) {
		fprintf(out, "  its registers cannot be read (error %d)\n", -err);
		return;
	}
	print_regs(out, &regs);
	print_sregs(out, &sregs);
}

static void print_exit(FILE *out, const struct kvm_run *run)
{
	fprintf(out, "KVM's exit reason %u", run->exit_reason);
	switch (run->exit_reason) {
	case KVM_EXIT_INTERNAL_ERROR:
		fprintf(out, " (internal error), suberror %u, data", run->internal.suberror);
		for (uint32_t i = 0; i < run->internal.ndata && i < 16; i++)
			fprintf(out, " %" PRIx64, (uint64_t)run->internal.data[i]);
		if (run->internal.suberror != KVM_INTERNAL_ERROR_EMULATION)
			break;
		if (!(run->emulation_failure.flags &
		      KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES))
			break;
		fprintf(out, "\nthe instruction that it cannot emulate:");
		for (uint32_t i = 0; i < run->emulation_failure.insn_size && i < 15; i++)
			fprintf(out, " %02x", run->emulation_failure.insn_bytes[i]);
		break;
	case KVM_EXIT_FAIL_ENTRY:
		fprintf(out, " (entry failed), hardware reason 0x%" PRIx64,
			(uint64_t)run->fail_entry.hardware_entry_failure_reason);
		break;
	case KVM_EXIT_SHUTDOWN:
		fprintf(out, " (shutdown)");
		/* shutdown_interception() in arch/x86/kvm/svm/svm.c */
		if (!strcmp(kvm_backend(), "svm"))
			fprintf(out,
				"\nKVM has reset this vCPU, as it does with SVM: below are not the "
				"registers of the fault");
		break;
	}
	fprintf(out, "\n");
}

static void print_all(FILE *out, struct vcpu *vcpu, const char *what)
{
	struct vm *vm = vcpu->vm;
	int err = pause_begin(&vm->pause, &vcpu->pause, NULL);

	if (err == -ECANCELED)
		return;
	fprintf(out, "hvpoke-vmm: vCPU %u: %s\n", vcpu->id, what);
	print_exit(out, vcpu->run);
	if (err) {
		/* To ask for the others' registers would be to wait for them. */
		fprintf(out, "the other vCPUs did not stop; this one alone:\n");
		print_vcpu(out, vcpu);
		return;
	}
	for (unsigned int i = 0; i < vm->nr_vcpus; i++)
		print_vcpu(out, vm->vcpus[i]);
	pause_end(&vm->pause, &vcpu->pause, NULL);
}

/*
 * A vCPU's thread must come to its end even if nobody reads stderr. A pipe that
 * is ready takes PIPE_BUF bytes without blocking (pipe(7)).
 */
static void say(const char *text, size_t len)
{
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

	while (len) {
		ssize_t done;

		if (poll(&ready, 1, PATIENCE_MS) <= 0 || !(ready.revents & POLLOUT))
			return;
		done = write(STDERR_FILENO, text, len < PIPE_BUF ? len : PIPE_BUF);
		if (done <= 0)
			return;
		text += done;
		len -= (size_t)done;
	}
}

void registers_report(struct vcpu *vcpu, const char *what)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	print_all(out, vcpu, what);
	if (!fclose(out))
		say(text, len);
	free(text);
}
