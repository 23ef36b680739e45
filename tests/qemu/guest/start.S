/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest for QEMU's -kernel (Multiboot 1): 32 bits, flat, no paging, so that guest
 * physical and virtual addresses are the same.
 */
#define MAGIC	0x1badb002
#define FLAGS	0

	.section .multiboot, "a"
	.balign 4
	.long MAGIC, FLAGS, -(MAGIC + FLAGS)

	.text
	.globl _start
_start:
	cli
	mov	$stack_top, %esp
	call	guest_main
1:	hlt
	jmp	1b

/*
 * A second CPU begins in real mode, at the start of a page below 1 MiB, where
 * ap_start is copied to.
 */
	.globl ap_start, ap_end
	.code16
ap_start:
	cli
	lgdtl	%cs:(ap_gdt_pointer - ap_start)
	mov	%cr0, %eax
	and	$~0x60000000, %eax	/* caches on */
	or	$1, %eax
	mov	%eax, %cr0
	ljmpl	$8, $ap_flat
	.balign 4
ap_gdt_pointer:
	.word	23
	.long	ap_gdt
ap_end:
	.code32
ap_flat:
	mov	$16, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	mov	$ap_stack_top, %esp
	call	ap_main

	.balign 8
ap_gdt:
	.quad	0, 0x00cf9b000000ffff, 0x00cf93000000ffff	/* flat code, flat data */

	.bss
	.balign 16
	.skip	16384
stack_top:
	.skip	4096
ap_stack_top:

/*
 * The sites: SITES functions of 16 bytes, each begins with a 5-byte NOP and returns 0; with a
 * JMP to its second half in place of the NOP it returns 1. 14 bytes behind a page's
 * start: one in 256 has two of its bytes at the end of a page and three on the next.
 */
	.section .sites, "ax"
	.balign 4096
	.globl sites_page, sites, sites_end
sites_page:
	.skip	14
sites:
	.rept	SITES
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	xor	%eax, %eax
	ret
	mov	$1, %eax
	ret
	.skip	2
	.endr
	.balign 4096
sites_end:

	.section .note.GNU-stack, "", @progbits
