// SPDX-License-Identifier: GPL-2.0-or-later
#include "longmode.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define PAGE 4096u

/* Page table entries (SDM vol. 3A, 4.5). */
#define PTE_PRESENT  (1u << 0)
#define PTE_WRITABLE (1u << 1)
#define PTE_ACCESSED (1u << 5)
#define PTE_DIRTY    (1u << 6)
#define PDE_2MIB     (1u << 7)
#define TABLE_BITS   (PTE_PRESENT | PTE_WRITABLE | PTE_ACCESSED)

/* Flat segment descriptors (SDM vol. 3A, 3.4.5): 4 KiB granular, limit 4 GiB, present, accessed. */
#define GDT_CODE64 0x00af9b000000ffffull
#define GDT_DATA   0x00cf93000000ffffull

#define CR0_PE	(1u << 0)
#define CR0_MP	(1u << 1)
#define CR0_ET	(1u << 4)
#define CR0_NE	(1u << 5)
#define CR0_WP	(1u << 16)
#define CR0_AM	(1u << 18)
#define CR0_PG	(1u << 31)
#define CR4_PAE (1u << 5)

#define EFER_LME (1u << 8)
#define EFER_LMA (1u << 10)

#define RFLAGS_FIXED (1u << 1)

int longmode_write(const struct memory *memory, const struct longmode *longmode)
{
	const uint64_t base = longmode->tables.addr;
	uint64_t *table = memory_at(memory, longmode->tables, LONGMODE_TABLES_SIZE);
	uint64_t *gdt = memory_at(memory, longmode->gdt, LONGMODE_GDT_SIZE);
	const size_t per_page = PAGE / sizeof(*table);
	uint64_t *pdpt, *directories;

	if (!table || !gdt)
		return -EFAULT;
	memset(table, 0, LONGMODE_TABLES_SIZE);
	pdpt = table + per_page;
	directories = pdpt + per_page;
	table[0] = (base + PAGE) | TABLE_BITS;
	for (size_t i = 0; i < 4; i++)
		pdpt[i] = (base + (2 + i) * PAGE) | TABLE_BITS;
	for (uint64_t i = 0; i < 4 * per_page; i++)
		directories[i] = i << 21 | TABLE_BITS | PTE_DIRTY | PDE_2MIB;

	memset(gdt, 0, LONGMODE_GDT_SIZE);
	gdt[LONGMODE_CS / 8] = GDT_CODE64;
	gdt[LONGMODE_DS / 8] = GDT_DATA;
	return 0;
}

static void set_segments(struct kvm_sregs *sregs)
{
	const struct kvm_segment code = {
		.selector = LONGMODE_CS,
		.limit = 0xffffffff,
		.type = 11, /* execute, read, accessed */
		.present = 1,
		.s = 1,
		.l = 1,
		.g = 1,
	};
	const struct kvm_segment data = {
		.selector = LONGMODE_DS,
		.limit = 0xffffffff,
		.type = 3, /* read, write, accessed */
		.present = 1,
		.s = 1,
		.db = 1,
		.g = 1,
	};

	sregs->cs = code;
	sregs->ds = data;
	sregs->es = data;
	sregs->fs = data;
	sregs->gs = data;
	sregs->ss = data;
}

int longmode_enter(struct vcpu *vcpu, const struct longmode *longmode, uint64_t rip, uint64_t rsi,
		   uint64_t rsp)
{
	const struct kvm_regs regs = {
		.rip = rip,
		.rsi = rsi,
		.rsp = rsp,
		.rflags = RFLAGS_FIXED,
	};
	struct kvm_sregs sregs;
	int err;

	err = vcpu_get_sregs(vcpu, &sregs);
	if (err)
		return err;
	set_segments(&sregs);
	sregs.gdt.base = longmode->gdt.addr;
	sregs.gdt.limit = LONGMODE_GDT_SIZE - 1;
	sregs.idt.base = 0;
	sregs.idt.limit = 0;
	sregs.cr3 = longmode->tables.addr;
	sregs.cr4 = CR4_PAE;
	sregs.cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_AM | CR0_PG;
	sregs.efer = EFER_LME | EFER_LMA;
	err = vcpu_set_sregs(vcpu, &sregs);
	if (!err)
		err = vcpu_set_regs(vcpu, &regs);
	if (!err)
		err = vcpu_set_mp_state(vcpu, KVM_MP_STATE_RUNNABLE);
	return err;
}
