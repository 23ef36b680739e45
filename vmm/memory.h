/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_MEMORY_H
#define VMM_MEMORY_H

#include <stdint.h>

#include "gpa.h"

/*
 * Guest RAM: one shared memfd, mapped once, and given to KVM in up to two
 * slots: below the hole under 4 GiB, and from 4 GiB on.
 */
#define VMM_HOLE_START 0xc0000000ull /* 3 GiB: above it PCI, IOAPIC, local APIC, KVM's pages */
#define VMM_HOLE_END   0x100000000ull
#define VMM_MIN_MEMORY (64ull << 20)

struct memory {
	int fd;	       /* the memfd; -1 before memory_init() */
	uint8_t *base; /* host mapping of all of it */
	uint64_t size; /* bytes in all */
	uint64_t low;  /* bytes at GPA 0 */
	uint64_t high; /* bytes at GPA 4 GiB */
};

/*
 * Make @size bytes (a multiple of 4 KiB, at least one page: tests use little)
 * and register the slots with KVM. 0 or a negative errno.
 */
int memory_init(struct memory *memory, int vm_fd, uint64_t size);
void memory_release(struct memory *memory);

/*
 * The one function that turns a guest range into a host pointer: NULL unless
 * all of it is RAM in one slot. @len 0 is treated as 1. No overflow possible.
 */
void *memory_at(const struct memory *memory, gpa_t addr, uint64_t len);

#endif /* VMM_MEMORY_H */
