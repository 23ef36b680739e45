// SPDX-License-Identifier: GPL-2.0-or-later
/* What a guest may do to the doorbell: anything. It gets an answer, or nothing, and goes on. */
#include <string.h>

#include "kvm_test.h"

#define MEMORY	   (16u << 20)
#define NR_GARBAGE 10
#define MARK_PORT  0x0e10

struct shared {
	uint32_t garbage[NR_GARBAGE]; /* what is no page frame number of a command */
	uint32_t good;		      /* of an empty batch */
};

GUEST_CODE static void misuse(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	uint64_t count = 4;
	const void *from = s->garbage;

	(void)cpu;
	for (uint32_t i = 0; i < NR_GARBAGE; i++)
		guest_ring(s->garbage[i]);
	/* A good number by an access of a wrong size or at a wrong place rings nothing. */
	__asm__ volatile("outb %%al, %1" : : "a"(s->good), "d"((uint16_t)HVPOKE_PORT));
	__asm__ volatile("outw %%ax, %1" : : "a"(s->good), "d"((uint16_t)HVPOKE_PORT));
	for (uint16_t offset = 1; offset < 4; offset++) {
		guest_out32(HVPOKE_PORT + offset, s->good);
		GUEST_ASSERT(guest_in32(HVPOKE_PORT + offset) == UINT32_MAX);
	}
	/* A string instruction rings once for each item. */
	__asm__ volatile("rep outsl"
			 : "+S"(from), "+c"(count)
			 : "d"((uint16_t)HVPOKE_PORT)
			 : "memory");
	GUEST_ASSERT(count == 0);
	GUEST_ASSERT(guest_in32(HVPOKE_PORT) == HVPOKE_PORT_MAGIC);
	guest_out32(MARK_PORT, 0);
	guest_ring(s->good);
	guest_done();
}

/* Before the one good ring. */
static uint64_t batches_at_mark;

static void mark(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size, uint32_t value)
{
	struct hvp_stats stats;

	(void)dev;
	(void)offset;
	(void)size;
	(void)value;
	hvp_guest_stats(vcpu->vm->guest, &stats);
	batches_at_mark = stats.batches + stats.pauses;
}

static uint32_t no_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return 0;
}

static const struct port_ops mark_ops = {.in = no_in, .out = mark};

static void test_misuse(void **state)
{
	const uint32_t garbage[NR_GARBAGE] = {
		0, /* page 0: no command there, but memory */
		UINT32_MAX,
		0x80000000,
		MEMORY / 4096, /* the first page behind memory */
		VMM_HOLE_START / 4096,
		0xfee00, /* the local APIC */
		0xfffbd, /* KVM's own page */
		VMM_HOLE_END / 4096,
		0x12345678,
		1, /* the GDT */
	};
	struct hvp_stats stats;
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 1, MEMORY);
	assert_int_equal(bus_add(&guest.vm.bus, MARK_PORT, 4, &mark_ops, NULL), 0);
	shared = guest.shared;
	memcpy(shared->garbage, garbage, sizeof(garbage));
	guest_hello(&guest, guest_alloc(&guest, 4096), 4096);
	shared->good = guest_batch(&guest, NULL, 0);
	guest_enter(&guest, 0, misuse);
	guest_start(&guest);
	guest_finish(&guest, 10);
	hvp_guest_stats(guest.vm.guest, &stats);
	assert_int_equal(batches_at_mark, 0);
	assert_int_equal(stats.batches, 1);
	assert_int_equal(guest_cmd(&guest, shared->good)->status, HVPOKE_OK);
	/* Where there was memory, the answer stands. */
	assert_int_equal(guest_cmd(&guest, 0)->status, HVPOKE_BAD_VERSION);
	guest_destroy(&guest);
}

#define NR_RANDOM 20000

struct noise {
	uint32_t pfn;
	uint32_t seed;
};

/* Pages full of noise as commands: the version is right, and little else. */
GUEST_CODE static void ring_noise(uint64_t cpu, void *shared)
{
	struct noise *noise = shared;
	uint32_t *page = (uint32_t *)(uintptr_t)((uint64_t)noise->pfn * 4096);
	uint32_t x = noise->seed;

	(void)cpu;
	for (uint32_t i = 0; i < NR_RANDOM; i++) {
		page[0] = HVPOKE_ABI_VERSION;
		page[1] = 1 + i % 5;
		page[3] = 0;
		for (uint32_t word = 4; word < 12; word++) {
			x = x * 1664525 + 1013904223;
			page[word] = i & 1 ? x : x >> 20;
		}
		guest_ring(noise->pfn);
	}
	guest_done();
}

static void test_noise(void **state)
{
	struct noise *noise;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 1, MEMORY);
	noise = guest.shared;
	noise->pfn = (uint32_t)(guest_alloc(&guest, 4096) / 4096);
	noise->seed = 1;
	guest_enter(&guest, 0, ring_noise);
	guest_start(&guest);
	guest_finish(&guest, 120);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
