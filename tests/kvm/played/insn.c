// SPDX-License-Identifier: GPL-2.0-or-later
/* As many instructions as the guests of tests/kvm have. */
#include <string.h>

#include "kvm.h"

#define MSR_KVM_SYSTEM_TIME_NEW 0x4b564d01u

/* By the number that an instruction has for it. */
static const uint8_t reg_of[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				   REG_R12, REG_R13, REG_R14, REG_R15};

static bool leave(struct played_cpu *cpu, enum played_stop stop)
{
	cpu->stop = stop;
	return false;
}

static bool leave_for(struct played_cpu *cpu, uint32_t reason)
{
	cpu->run->exit_reason = reason;
	return leave(cpu, PLAYED_EXIT);
}

/* Guest memory by its virtual address; what is not there reads as zeroes. */
static void fetch(const struct played_cpu *cpu, uint64_t va, uint8_t *bytes, unsigned int nr)
{
	memset(bytes, 0, nr);
	for (unsigned int i = 0; i < nr; i++) {
		const uint8_t *at;
		uint64_t gpa;

		if (!played_translate(cpu, va + i, &gpa))
			return;
		at = played_memory(cpu->vm, gpa);
		if (!at)
			return;
		bytes[i] = __atomic_load_n(at, __ATOMIC_RELAXED);
	}
}

static bool push(struct played_cpu *cpu, uint64_t *rsp, uint64_t value)
{
	uint64_t gpa, *at;

	*rsp -= sizeof(value);
	if (!played_translate(cpu, *rsp, &gpa))
		return false;
	at = played_memory(cpu->vm, gpa);
	if (!at)
		return false;
	*at = value; /* RSP is aligned: in one page */
	return true;
}

bool played_exception(struct played_cpu *cpu, greg_t *regs, unsigned int vector)
{
	uint64_t gate[2], rsp = regs[REG_RSP] & ~15ull;
	uint64_t selectors = regs[REG_CSGSFS];

	fetch(cpu, cpu->sregs.idt.base + vector * sizeof(gate), (uint8_t *)gate, sizeof(gate));
	if (vector * sizeof(gate) + sizeof(gate) - 1 > cpu->sregs.idt.limit || !(gate[0] >> 47 & 1))
		return leave_for(cpu, KVM_EXIT_SHUTDOWN);
	/* The selectors are user mode's, so that IRETQ may load them again. */
	if (!push(cpu, &rsp, selectors >> 48) || !push(cpu, &rsp, regs[REG_RSP]) ||
	    !push(cpu, &rsp, regs[REG_EFL]) || !push(cpu, &rsp, selectors & 0xffff) ||
	    !push(cpu, &rsp, regs[REG_RIP]))
		return leave_for(cpu, KVM_EXIT_SHUTDOWN);
	regs[REG_RSP] = rsp;
	regs[REG_RIP] = (gate[0] & 0xffff) | (gate[0] >> 48 & 0xffff) << 16 | gate[1] << 32;
	return true;
}

static bool port(struct played_cpu *cpu, const greg_t *regs, bool in, uint16_t number, uint8_t size,
		 uint8_t skip)
{
	struct kvm_run *run = cpu->run;

	run->io.direction = in ? KVM_EXIT_IO_IN : KVM_EXIT_IO_OUT;
	run->io.size = size;
	run->io.port = number;
	run->io.count = 1;
	run->io.data_offset = PLAYED_PAGE;
	if (!in)
		memcpy((uint8_t *)run + PLAYED_PAGE, &regs[REG_RAX], size);
	cpu->skip = skip;
	cpu->into = in ? REG_RAX : -1;
	cpu->into_size = size;
	return leave_for(cpu, KVM_EXIT_IO);
}

/* REP OUTSL, as KVM does it: one exit for all that fits in a page. */
static bool string_out(struct played_cpu *cpu, greg_t *regs)
{
	uint64_t count = regs[REG_RCX];
	uint32_t *data = (uint32_t *)((uint8_t *)cpu->run + PLAYED_PAGE);

	if (!count || count > PLAYED_PAGE / sizeof(*data))
		return played_exception(cpu, regs, 13);
	port(cpu, regs, false, regs[REG_RDX], sizeof(*data), 2);
	cpu->run->io.count = count;
	fetch(cpu, regs[REG_RSI], (uint8_t *)data, count * sizeof(*data));
	regs[REG_RSI] += count * sizeof(*data);
	regs[REG_RCX] = 0;
	return false;
}

static bool write_msr(struct played_cpu *cpu, greg_t *regs)
{
	if ((uint32_t)regs[REG_RCX] == MSR_KVM_SYSTEM_TIME_NEW)
		cpu->clock = ((uint64_t)regs[REG_RDX] << 32 | (uint32_t)regs[REG_RAX]) & ~1ull;
	regs[REG_RIP] += 2;
	return true;
}

static bool load_idt(struct played_cpu *cpu, greg_t *regs, const uint8_t *insn)
{
	uint8_t operand[10], rm = insn[2] & 7, len = 3;
	uint64_t at = regs[reg_of[rm]];

	/* [reg], or [rsp + disp8] */
	if (insn[2] >> 6 == 1 && rm == 4 && insn[3] == 0x24) {
		at = regs[REG_RSP] + (int8_t)insn[4];
		len = 5;
	} else if (insn[2] >> 6) {
		return played_exception(cpu, regs, 6);
	}
	fetch(cpu, at, operand, sizeof(operand));
	memcpy(&cpu->sregs.idt.limit, operand, 2);
	memcpy(&cpu->sregs.idt.base, operand + 2, 8);
	regs[REG_RIP] += len;
	return true;
}

bool played_privileged(struct played_cpu *cpu, greg_t *regs)
{
	uint8_t insn[8], *op = insn, size = 4;
	uint16_t dx = regs[REG_RDX];

	fetch(cpu, regs[REG_RIP], insn, sizeof(insn));
	if (*op == 0x66) {
		size = 2;
		op++;
	}
	switch (*op) {
	case 0xec: return port(cpu, regs, true, dx, 1, op - insn + 1);
	case 0xed: return port(cpu, regs, true, dx, size, op - insn + 1);
	case 0xee: return port(cpu, regs, false, dx, 1, op - insn + 1);
	case 0xef: return port(cpu, regs, false, dx, size, op - insn + 1);
	case 0xe4: return port(cpu, regs, true, op[1], 1, op - insn + 2);
	case 0xe6: return port(cpu, regs, false, op[1], 1, op - insn + 2);
	case 0xf3: return op[1] == 0x6f ? string_out(cpu, regs) : played_exception(cpu, regs, 13);
	case 0xfa: /* CLI, STI: there are no interrupts */
	case 0xfb: regs[REG_RIP]++; return true;
	case 0xf4:
		regs[REG_RIP]++;
		cpu->halted = true;
		return leave(cpu, PLAYED_HALT);
	case 0x0f:
		if (op[1] == 0x30)
			return write_msr(cpu, regs);
		if (op[1] == 0x01 && (op[2] >> 3 & 7) == 3)
			return load_idt(cpu, regs, op);
	}
	return played_exception(cpu, regs, 13);
}

/* MOV between a register and [register] of 32 bits. */
bool played_mmio(struct played_cpu *cpu, greg_t *regs, uint64_t gpa)
{
	struct kvm_run *run = cpu->run;
	uint8_t insn[4], *op = insn, rex = 0, reg;

	fetch(cpu, regs[REG_RIP], insn, sizeof(insn));
	if ((*op & 0xf0) == 0x40)
		rex = *op++;
	if ((*op != 0x8b && *op != 0x89) || rex & 8 || op[1] >> 6 || (op[1] & 7) == 4 ||
	    (op[1] & 7) == 5)
		return played_exception(cpu, regs, 14);
	reg = reg_of[(op[1] >> 3 & 7) | (rex & 4) << 1];
	run->mmio.phys_addr = gpa;
	run->mmio.len = 4;
	run->mmio.is_write = *op == 0x89;
	memcpy(run->mmio.data, &regs[reg], 4);
	cpu->skip = op - insn + 2;
	cpu->into = run->mmio.is_write ? -1 : reg;
	cpu->into_size = 4;
	return leave_for(cpu, KVM_EXIT_MMIO);
}

void played_complete(struct played_cpu *cpu)
{
	const void *data = cpu->run->exit_reason == KVM_EXIT_MMIO
				   ? (void *)cpu->run->mmio.data
				   : (void *)((uint8_t *)cpu->run + PLAYED_PAGE);

	if (!cpu->skip)
		return;
	if (cpu->into >= 0) {
		/* 32 bits clear the upper half, fewer leave the rest as it is. */
		if (cpu->into_size == 4)
			cpu->regs[cpu->into] = 0;
		memcpy(&cpu->regs[cpu->into], data, cpu->into_size);
	}
	cpu->regs[REG_RIP] += cpu->skip;
	cpu->skip = 0;
}
