// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/mman.h>

#include "kvm.h"

#define PRESENT	 (1u << 0)
#define LARGE	 (1u << 7)
#define ADDRESS	 0x000ffffffffff000ull
#define HIGH_MIN (1ull << 32)

void *played_memory(const struct played_vm *vm, uint64_t gpa)
{
	for (unsigned int i = 0; i < PLAYED_SLOTS; i++) {
		const struct kvm_userspace_memory_region *slot = &vm->slot[i];

		if (gpa >= slot->guest_phys_addr && gpa - slot->guest_phys_addr < slot->memory_size)
			return (void *)(uintptr_t)(slot->userspace_addr + gpa -
						   slot->guest_phys_addr);
	}
	return NULL;
}

bool played_translate(const struct played_cpu *cpu, uint64_t va, uint64_t *gpa)
{
	uint64_t table = cpu->sregs.cr3 & ADDRESS, entry;

	for (int shift = 39; shift >= 12; shift -= 9) {
		const uint64_t *at = played_memory(cpu->vm, table + (va >> shift) % 512 * 8);

		if (!at)
			return false;
		entry = __atomic_load_n(at, __ATOMIC_RELAXED);
		if (!(entry & PRESENT))
			return false;
		if (shift == 12 || (shift < 39 && entry & LARGE)) {
			uint64_t offset = va & ((1ull << shift) - 1);

			*gpa = (entry & ADDRESS & ~((1ull << shift) - 1)) + offset;
			return true;
		}
		table = entry & ADDRESS;
	}
	return false;
}

static void note(struct played_vm *vm, uint64_t page)
{
	unsigned int half = page >= HIGH_MIN;
	uint64_t seen = vm->first[half];

	while ((!seen || page < seen) &&
	       !atomic_compare_exchange_weak(&vm->first[half], &seen, page))
		;
	seen = vm->last[half];
	while (page > seen && !atomic_compare_exchange_weak(&vm->last[half], &seen, page))
		;
}

bool played_map(struct played_cpu *cpu, uint64_t va)
{
	uint64_t page = va & ~(uint64_t)(PLAYED_PAGE - 1), gpa;
	void *from, *to = (void *)(uintptr_t)page;

	if (!page || !played_translate(cpu, page, &gpa))
		return false;
	from = played_memory(cpu->vm, gpa);
	if (!from)
		return false;
	note(cpu->vm, page);
	/* A size of 0 makes a second mapping of what is shared (mremap(2)). */
	if (mremap(from, 0, PLAYED_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return false;
	return !mprotect(to, PLAYED_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}

void played_unmap_all(struct played_vm *vm)
{
	for (unsigned int half = 0; half < 2; half++)
		if (vm->first[half])
			munmap((void *)(uintptr_t)vm->first[half],
			       vm->last[half] - vm->first[half] + PLAYED_PAGE);
}
