// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CASES 2: an access that is half done when the pause comes. The device holds
 * its `in` until the pause has begun, so that every single one straddles it.
 */
#include <time.h>

#include "kvm_test.h"

#define VALUE_PORT 0x0e20
#define ROUNDS	   500

struct shared {
	uint32_t value[ROUNDS];
	atomic_uint reads;
	uint64_t after_in; /* address of the instruction after the `in` */
};

static struct {
	atomic_uint entered; /* `in` exits so far */
	atomic_bool hold;    /* hold the next until a pause has begun */
} device;

static uint32_t value_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	unsigned int round = atomic_fetch_add(&device.entered, 1) + 1;

	(void)dev;
	(void)offset;
	(void)size;
	while (atomic_load(&device.hold) && !atomic_load(&vcpu->vm->pause.gate))
		;
	return 0xabc00000u + round;
}

static void value_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		      uint32_t value)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	(void)value;
}

static const struct port_ops value_ops = {.in = value_in, .out = value_out};

GUEST_CODE static void read_values(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	uint32_t value;
	uint64_t rip;

	(void)cpu;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		__asm__ volatile("lea 1f(%%rip), %1\n"
				 "mov %1, %2\n"
				 "inl %3, %0\n"
				 "1:"
				 : "=&a"(value), "=&r"(rip), "=m"(s->after_in)
				 : "d"((uint16_t)VALUE_PORT)
				 : "memory");
		s->value[i] = value;
		atomic_store(&s->reads, i + 1);
	}
	guest_done();
}

static void test_case_2_in_straddles_a_pause(void **state)
{
	struct shared *shared;
	struct kvm_regs regs;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 1, 16 << 20);
	assert_int_equal(bus_add(&guest.vm.bus, VALUE_PORT, 4, &value_ops, NULL), 0);
	shared = guest.shared;
	guest_enter(&guest, 0, read_values);
	atomic_store(&device.hold, true);
	guest_start(&guest);
	for (unsigned int i = 1; i < ROUNDS; i++) {
		guest_wait_for(&guest, &device.entered, i, 10);
		assert_int_equal(vm_pause(&guest.vm), 0);
		/* Not yet stored, but the `in` itself is over and done. */
		assert_int_equal(shared->reads, i - 1);
		assert_int_equal(vcpu_get_regs(guest.vm.vcpus[0], &regs), 0);
		assert_int_equal(regs.rax, 0xabc00000u + i);
		assert_int_equal(regs.rip, shared->after_in);
		assert_int_equal(vm_resume(&guest.vm), 0);
	}
	atomic_store(&device.hold, false);
	guest_finish(&guest, 10);
	/* Each value once, and the device asked once for each. */
	assert_int_equal(device.entered, ROUNDS);
	for (unsigned int i = 0; i < ROUNDS; i++)
		assert_int_equal(shared->value[i], 0xabc00001u + i);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_case_2_in_straddles_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
