/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_GUEST_H
#define TESTS_KVM_GUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../proto/hvpoke_abi.h"
#include "vm.h"

/*
 * Guests of our own: their code is C, in the same file as the host code that
 * checks it, and runs in 64-bit mode on hvpoke's real VM, pause engine and
 * doorbell.
 *
 * The section guest_code of the program is copied into guest memory as it is.
 * So guest functions may call each other, but nothing else of the program: no
 * string constants, no globals, no library. All of guest memory up to 4 GiB is
 * mapped at its physical address, writable and executable.
 *
 * Guest physical memory:
 *   0x001000  GDT, page tables, IDT
 *   0x010000  the struct that guest and host share (GUEST_SHARED_SIZE)
 *   0x100000  stacks, 4 KiB for each vCPU
 *   0x200000  the code
 *   0x400000  what guest_alloc() gives out
 */
#define GUEST_SHARED_SIZE 0x10000u

/* Before each guest function. Where KVM emulates, it knows the plain integer instructions only. */
#define GUEST_ATTRS                                                                    \
	__attribute__((target("general-regs-only"),                                    \
		       optimize("no-jump-tables", "no-tree-loop-distribute-patterns"), \
		       no_sanitize("address", "undefined", "thread")))
#define GUEST_CODE   __attribute__((section("guest_code"), noinline, used)) GUEST_ATTRS
#define GUEST_INLINE static inline __attribute__((always_inline, unused)) GUEST_ATTRS

struct guest {
	struct vm vm;
	uint64_t heap;		 /* next free GPA */
	void *shared;		 /* host's view of the shared struct */
	atomic_uint failed_line; /* of the first guest_fail() */
	atomic_uint failed_cpu;
};

/* A guest's entry. @cpu is the vCPU's number. It must not return. */
typedef void (*guest_fn)(uint64_t cpu, void *shared);

/*
 * Host side. What fails where a test cannot go on ends the program, with a
 * message that says what was expected.
 */

/* Whether /dev/kvm can be used; if not, a line on stderr says why. */
bool guest_have_kvm(void);
/* Whether it is played/kvm.h's: guest code runs in user mode then. */
bool guest_kvm_is_played(void);

void guest_create(struct guest *guest, unsigned int nr_vcpus, uint64_t memory);
void guest_enter(struct guest *guest, unsigned int cpu, guest_fn fn);
void guest_enter_all(struct guest *guest, guest_fn fn);
/* @fn becomes the handler of interrupt or exception @vector, interrupts off. Naked, ends in iretq. */
void guest_set_handler(struct guest *guest, uint8_t vector, void (*fn)(void));
void guest_start(struct guest *guest);
/* Wait for guest_done() on any vCPU; fails on guest_fail() and after @seconds. Ends all vCPUs. */
void guest_finish(struct guest *guest, unsigned int seconds);
/* End the guest, whatever it does. */
void guest_stop(struct guest *guest);
void guest_destroy(struct guest *guest);

/* Guest address of a guest function. */
uint64_t guest_code_gpa(const void *fn);
/* @size bytes, page aligned and zero. Its guest address; guest_at() gives the host's. */
uint64_t guest_alloc(struct guest *guest, uint64_t size);
void *guest_at(struct guest *guest, uint64_t addr, uint64_t size);

/*
 * Map @nr pages, from GUEST_MAP_VA on, to the pages at @addr[], which need not be
 * next to each other. Once for each guest; at most 512.
 */
#define GUEST_MAP_VA 0x8000000000ull
void guest_map(struct guest *guest, const uint64_t *addr, unsigned int nr);

/* Register an agent with @nr ranges of text (one page of them at most), as its HELLO would. */
void guest_hello_ranges(struct guest *guest, const struct hvpoke_range *range, uint32_t nr);
/* The same with one range, mapped at its physical address. */
void guest_hello(struct guest *guest, uint64_t text, uint64_t len);
/* The same, from an agent with @scope (enum hvpoke_scope). */
void guest_hello_scope(struct guest *guest, uint64_t text, uint64_t len, uint32_t scope);
/* A command page with a batch of @nr entries (copied): its page frame number, for the doorbell. */
uint32_t guest_batch(struct guest *guest, const struct hvpoke_entry *entry, uint32_t nr);
struct hvpoke_cmd *guest_cmd(struct guest *guest, uint32_t pfn);

/* Sleep on the host until @counter has reached @value; fails after @seconds. */
void guest_wait_for(struct guest *guest, const atomic_uint *counter, unsigned int value,
		    unsigned int seconds);

/* Guest side. */
#define GUEST_PORT 0x0e00 /* 0: done; else the line of a failure */

GUEST_INLINE void guest_out32(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "d"(port) : "memory");
}

GUEST_INLINE uint32_t guest_in32(uint16_t port)
{
	uint32_t value;

	__asm__ volatile("inl %1, %0" : "=a"(value) : "d"(port) : "memory");
	return value;
}

GUEST_INLINE void guest_halt(void)
{
	__asm__ volatile("hlt" : : : "memory");
}

/* Neither returns. */
GUEST_INLINE void guest_done(void)
{
	for (;;)
		guest_out32(GUEST_PORT, 0);
}

GUEST_INLINE void guest_fail(uint32_t line)
{
	for (;;)
		guest_out32(GUEST_PORT, line);
}

#define GUEST_ASSERT(cond)                    \
	do {                                  \
		if (!(cond))                  \
			guest_fail(__LINE__); \
	} while (0)

GUEST_INLINE void guest_ring(uint32_t pfn)
{
	guest_out32(HVPOKE_PORT, pfn);
}

#endif /* TESTS_KVM_GUEST_H */
