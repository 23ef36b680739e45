// SPDX-License-Identifier: GPL-2.0-or-later
/* How an agent finds its host: CPUID, then the port (proto/hvpoke_abi.h, step 1). */
#include "kvm_test.h"

struct discovery {
	uint32_t base; /* leaf at which the signature was found; 0: nowhere */
	uint32_t version, features, port, irq;
	uint32_t magic;
	uint32_t misread8, misread16, misplaced;
};

GUEST_INLINE void cpuid(uint32_t leaf, uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
	__asm__ volatile("cpuid"
			 : "=a"(*eax), "=b"(*ebx), "=c"(*ecx), "=d"(*edx)
			 : "a"(leaf), "c"(0));
}

GUEST_CODE static void discover(uint64_t cpu, void *shared)
{
	struct discovery *found = shared;
	uint32_t leaf, eax, ebx, ecx, edx;
	uint16_t word;
	uint8_t byte;

	(void)cpu;
	for (leaf = HVPOKE_CPUID_FIRST; leaf < HVPOKE_CPUID_LAST; leaf += HVPOKE_CPUID_STEP) {
		cpuid(leaf, &eax, &ebx, &ecx, &edx);
		if (ebx == HVPOKE_CPUID_EBX && ecx == HVPOKE_CPUID_ECX && edx == HVPOKE_CPUID_EDX &&
		    eax == leaf + 1) {
			found->base = leaf;
			break;
		}
	}
	GUEST_ASSERT(found->base);
	cpuid(leaf + 1, &found->version, &found->features, &found->port, &found->irq);
	found->magic = guest_in32((uint16_t)found->port);
	__asm__ volatile("inb %1, %0" : "=a"(byte) : "d"((uint16_t)found->port));
	__asm__ volatile("inw %1, %0" : "=a"(word) : "d"((uint16_t)found->port));
	found->misread8 = byte;
	found->misread16 = word;
	found->misplaced = guest_in32((uint16_t)(found->port + 1));
	guest_done();
}

static void test_cpuid_and_port(void **state)
{
	struct discovery *found;
	struct guest guest;

	(void)state;
	NEED_REAL_KVM();
	guest_create(&guest, 1, 16 << 20);
	found = guest.shared;
	guest_enter(&guest, 0, discover);
	guest_start(&guest);
	guest_finish(&guest, 10);
	assert_int_equal(found->base, 0x40000100);
	assert_int_equal(found->version, HVPOKE_ABI_VERSION);
	assert_int_equal(found->features, HVPOKE_FEATURES);
	assert_int_equal(found->port, HVPOKE_PORT);
	assert_int_equal(found->irq, HVPOKE_IRQ);
	assert_int_equal(found->magic, HVPOKE_PORT_MAGIC);
	/* Any other access reads as if nothing were there. */
	assert_int_equal(found->misread8, 0xff);
	assert_int_equal(found->misread16, 0xffff);
	assert_int_equal(found->misplaced, 0xffffffff);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpuid_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
