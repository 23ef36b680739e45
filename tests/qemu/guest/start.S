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

	.bss
	.balign 16
	.skip	16384
stack_top:

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
