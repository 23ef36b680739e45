// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sys/mman.h>

#include "arena.h"

int hvp_arena_reserve(struct hvp_arena *arena, uint32_t nr)
{
	const size_t page_slots = HVPOKE_PAGE_SIZE / sizeof(union hvp_slot);
	size_t capacity = (nr + page_slots - 1) / page_slots * page_slots;
	void *mem;

	if (nr <= arena->capacity)
		return 0;
	hvp_arena_release(arena);
	/* Populated at once: cheaper than a fault for each page of the copy. */
	mem = mmap(NULL, capacity * sizeof(union hvp_slot), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	arena->slot = mem;
	arena->capacity = capacity;
	return 0;
}

void hvp_arena_trim(struct hvp_arena *arena)
{
	if (arena->capacity > HVP_ARENA_KEEP)
		hvp_arena_release(arena);
}

void hvp_arena_release(struct hvp_arena *arena)
{
	if (arena->slot)
		munmap(arena->slot, arena->capacity * sizeof(union hvp_slot));
	*arena = (struct hvp_arena){0};
}
