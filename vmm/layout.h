/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_LAYOUT_H
#define VMM_LAYOUT_H

/*
 * The first MiB as a PC's firmware would leave it, and what the loaders put
 * there. Guest physical addresses.
 */
#define LAYOUT_STACK_TOP   0x7000u  /* grows down; the kernel soon brings its own */
#define LAYOUT_ZERO_PAGE   0x7000u  /* struct boot_params */
#define LAYOUT_GDT	   0x8000u  /* longmode.h */
#define LAYOUT_PAGE_TABLES 0x9000u  /* longmode.h, LONGMODE_TABLES_SIZE */
#define LAYOUT_CMDLINE	   0x20000u /* NUL terminated */
#define LAYOUT_CMDLINE_LEN 0x10000u /* room for it, with the NUL */
#define LAYOUT_LOW_RAM_END 0x9fc00u /* 639 KiB, the usual top of base memory */
#define LAYOUT_ACPI	   0xe0000u /* RSDP first: found by its address and by the scan */
#define LAYOUT_ACPI_LEN	   0x10000u
#define LAYOUT_MPTABLE	   0xf0000u /* floating pointer first, where the scan begins */
#define LAYOUT_MPTABLE_LEN 0x10000u
#define LAYOUT_KERNEL_MIN  0x100000u /* kernels live above the first MiB */

/* ISA interrupt lines. */
#define LAYOUT_IRQ_COM1 4
#define LAYOUT_IRQ_SCI	9

#endif /* VMM_LAYOUT_H */
