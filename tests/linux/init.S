/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PID 1, and the load on each CPU, of the small guest: spins in user mode.
 * Where KVM's back end emulates the guest's kernel mode no system call reaches
 * the guest kernel, so a program can do nothing else, and must not end.
 * PAUSE is left out: some hypervisors exit on it, and this is meant to be a
 * CPU that never leaves guest mode by itself.
 */
	.globl	_start
	.text
_start:
	jmp	_start
