/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_LONGMODE_H
#define VMM_LONGMODE_H

#include <stdint.h>

#include "gpa.h"
#include "memory.h"
#include "vcpu.h"

/*
 * Entering a guest in 64-bit mode, as the Linux boot protocol wants it
 * (Documentation/arch/x86/boot.rst, "64-bit boot protocol"): paging on, the
 * first 4 GiB mapped to themselves, flat segments __BOOT_CS and __BOOT_DS,
 * interrupts off.
 */
#define LONGMODE_CS	     0x10
#define LONGMODE_DS	     0x18
#define LONGMODE_TABLES_SIZE (6 * 4096u) /* PML4, PDPT, 4 page directories of 2 MiB pages */
#define LONGMODE_GDT_SIZE    32u

/* Where they stand in guest memory; both page aligned. */
struct longmode {
	gpa_t tables;
	gpa_t gdt;
};

/* Write page tables and GDT, once for all vCPUs. 0, or -EFAULT if that is no RAM. */
int longmode_write(const struct memory *memory, const struct longmode *longmode);

/*
 * Make @vcpu begin at @rip in 64-bit mode, runnable (no INIT needed), with @rsi
 * and @rsp; the other general registers are 0. 0 or a negative errno.
 */
int longmode_enter(struct vcpu *vcpu, const struct longmode *longmode, uint64_t rip, uint64_t rsi,
		   uint64_t rsp);

#endif /* VMM_LONGMODE_H */
