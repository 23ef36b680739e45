// SPDX-License-Identifier: GPL-2.0-or-later
/* Every kind of vCPU stops, every time, and goes on afterwards. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "kvm_test.h"

#define SAMPLE_PORT 0x0e10
#define SIT_PORT    0x0e20

#define MSR_KVM_SYSTEM_TIME_NEW	 0x4b564d01u
#define KVM_CPUID_FEATURES	 0x40000001u
#define KVM_FEATURE_CLOCKSOURCE2 (1u << 3)
#define PVCLOCK_FLAGS		 29 /* offset in struct pvclock_vcpu_time_info */
#define PVCLOCK_GUEST_STOPPED	 (1u << 1)

struct shared {
	/* The guest's clock writes here: on a line of its own. */
	_Alignas(64) volatile uint8_t pvclock[32];
	atomic_uint stopped_seen; /* pauses that the clock told of */
	uint32_t pfn;		  /* of an empty batch */
	uint32_t pauses;	  /* that vCPU 0 is to make */
	uint32_t nr_vcpus;
	uint32_t wrong_value; /* what a sitting vCPU read, if not what it should */
	atomic_uint arrived;
	atomic_uint turns[VMM_MAX_VCPUS];
	uint32_t apic_id[VMM_MAX_VCPUS];
};

/* What became of the pauses that vCPU 0 made. */
static struct {
	uint32_t pauses, bad_status;
	/* Duration of those that found every other vCPU in the guest. */
	uint32_t nr;
	uint64_t ns[10000];
} sample;

static bool all_in_guest(const struct vm *vm)
{
	for (unsigned int i = 1; i < vm->nr_vcpus; i++)
		if (atomic_load(&vm->vcpus[i]->pause.state) != VCPU_GUEST)
			return false;
	return true;
}

static void take_sample(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			uint32_t value)
{
	const struct timespec nap = {.tv_nsec = 20000};
	const struct hvpoke_cmd *cmd = guest_cmd(dev, value);
	static bool waited;

	(void)offset;
	(void)size;
	if (cmd->status != HVPOKE_OK)
		sample.bad_status = cmd->status;
	if (waited && sample.nr < sizeof(sample.ns) / sizeof(sample.ns[0]))
		sample.ns[sample.nr++] = cmd->batch.pause_ns;
	/*
	 * Every other pause comes while the other vCPUs are on their way back
	 * from the one before: anywhere between the gate and KVM_RUN.
	 */
	waited = ++sample.pauses % 2;
	for (unsigned int i = 0; waited && i < 5000 && !all_in_guest(vcpu->vm); i++)
		if (i > 100)
			nanosleep(&nap, NULL);
}

static uint32_t sit_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return 0x12345678;
}

static void sit_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		    uint32_t value)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	(void)value;
}

static const struct port_ops sample_ops = {.in = sit_in, .out = take_sample};
static const struct port_ops sit_ops = {.in = sit_in, .out = sit_out};

/* vCPU 0: pauses, at ever different distances from the one before. */
GUEST_CODE static void ring_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	while (atomic_load(&s->arrived) + 1 < s->nr_vcpus)
		;
	for (uint32_t i = 0; i < s->pauses; i++) {
		for (volatile uint32_t delay = i % 32; delay; delay--)
			;
		guest_ring(s->pfn);
		guest_out32(SAMPLE_PORT, s->pfn);
	}
	guest_done();
}

GUEST_CODE static void halt_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	atomic_fetch_add(&s->arrived, 1);
	/* Interrupts are off: nothing ever wakes it but the kick, and that only into the VMM. */
	for (;;)
		guest_halt();
}

GUEST_CODE static void spin_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	atomic_fetch_add(&s->arrived, 1);
	for (;;)
		atomic_fetch_add_explicit(&s->turns[cpu], 1, memory_order_relaxed);
}

GUEST_CODE static void sit_in_ports(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	/* In the hole under 4 GiB, where no memory is. */
	volatile uint32_t *nothing = (volatile uint32_t *)(uintptr_t)VMM_HOLE_START;
	uint32_t value;

	atomic_fetch_add(&s->arrived, 1);
	for (;;) {
		value = guest_in32(SIT_PORT);
		if (value != 0x12345678)
			s->wrong_value = value;
		guest_out32(SIT_PORT, value);
		value = *nothing;
		if (value != UINT32_MAX)
			s->wrong_value = value;
		atomic_fetch_add_explicit(&s->turns[cpu], 1, memory_order_relaxed);
	}
}

static void set_up(struct guest *guest, unsigned int nr_vcpus, uint32_t pauses)
{
	struct shared *shared;

	guest_create(guest, nr_vcpus, 16 << 20);
	assert_int_equal(bus_add(&guest->vm.bus, SAMPLE_PORT, 4, &sample_ops, guest), 0);
	assert_int_equal(bus_add(&guest->vm.bus, SIT_PORT, 4, &sit_ops, guest), 0);
	shared = guest->shared;
	shared->pfn = guest_batch(guest, NULL, 0);
	shared->pauses = pauses;
	shared->nr_vcpus = nr_vcpus;
	guest_hello(guest, guest_alloc(guest, 4096), 4096);
	guest_enter(guest, 0, ring_on);
	sample.nr = 0;
	sample.pauses = 0;
	sample.bad_status = HVPOKE_OK;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Run it; all pauses must have worked. The median, in ns; the figures go to the log. */
static uint64_t run(struct guest *guest, const char *what, unsigned int seconds)
{
	const struct shared *shared = guest->shared;
	uint64_t median, percent99, longest;

	guest_start(guest);
	guest_finish(guest, seconds);
	assert_int_equal(sample.bad_status, HVPOKE_OK);
	assert_int_equal(sample.pauses, shared->pauses);
	assert_true(sample.nr >= sample.pauses / 2 - 1);
	assert_int_equal(shared->wrong_value, 0);
	qsort(sample.ns, sample.nr, sizeof(sample.ns[0]), by_value);
	median = sample.ns[sample.nr / 2];
	percent99 = sample.ns[sample.nr * 99 / 100];
	longest = sample.ns[sample.nr - 1];
	print_message("# %u pauses, %u vCPUs, %s: median %.1f us, 99%% %.1f us, longest %.1f us\n",
		      sample.pauses, guest->vm.nr_vcpus, what, (double)median / 1000,
		      (double)percent99 / 1000, (double)longest / 1000);
	return median;
}

static uint64_t pause_against(guest_fn fn, unsigned int nr_vcpus, uint32_t pauses, const char *what)
{
	struct guest guest;
	uint64_t median;

	set_up(&guest, nr_vcpus, pauses);
	for (unsigned int i = 1; i < nr_vcpus; i++)
		guest_enter(&guest, i, fn);
	median = run(&guest, what, 120);
	guest_destroy(&guest);
	return median;
}

/*
 * CASES 1. A kick that is lost shows as HVPOKE_PAUSE_FAILED after the pause's bound:
 * nothing else ever gets such a vCPU out of HLT. And halted vCPUs are no slower
 * to stop than spinning ones, give or take what a busy machine does (the fault
 * was a factor of 100,000).
 */
static void test_case_1_halting_as_fast_as_spinning(void **state)
{
	uint64_t halting, spinning;

	(void)state;
	NEED_KVM();
	halting = pause_against(halt_on, 2, 10000, "halting");
	spinning = pause_against(spin_on, 2, 10000, "spinning");
	assert_true(halting < 10 * spinning + 1000000);
	assert_true(spinning < 10 * halting + 1000000);
}

/*
 * CASES 1 once more, at the door: the kick comes as soon as the vCPU has said
 * that it is about to enter the guest. (The few nanoseconds until it is in
 * KVM_RUN are stretched in tests/unit/test_pause.c.)
 */
static void test_case_1_kick_at_the_door(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 1, 16 << 20);
	shared = guest.shared;
	guest_enter(&guest, 0, halt_on);
	guest_start(&guest);
	guest_wait_for(&guest, &shared->arrived, 1, 10);
	for (unsigned int i = 0; i < 10000; i++) {
		while (atomic_load(&guest.vm.vcpus[0]->pause.state) != VCPU_GUEST)
			;
		for (unsigned int spin = i % 64; spin; spin--)
			__builtin_ia32_pause();
		assert_int_equal(vm_pause(&guest.vm), 0);
		assert_int_equal(vm_resume(&guest.vm), 0);
	}
	guest_stop(&guest);
	guest_destroy(&guest);
}

static void test_vcpus_in_port_and_mmio_accesses(void **state)
{
	(void)state;
	NEED_KVM();
	pause_against(sit_in_ports, 2, 10000, "in port and MMIO accesses");
}

/* CASES 10, and of each kind some. */
static void test_case_10_more_vcpus_than_cores(void **state)
{
	struct guest guest;

	(void)state;
	NEED_KVM();
	set_up(&guest, 8, 500);
	for (unsigned int i = 1; i < 8; i++)
		guest_enter(&guest, i, i % 3 == 0 ? halt_on : i % 3 == 1 ? spin_on : sit_in_ports);
	run(&guest, "halting, spinning, in accesses", 120);
	guest_destroy(&guest);
}

GUEST_CODE static void say_id_and_halt(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	uint32_t eax = 0xb, ebx, ecx = 0, edx;

	__asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
	s->apic_id[cpu] = edx;
	atomic_fetch_add(&s->arrived, 1);
	for (;;)
		guest_halt();
}

/* CASES 10: as many as there can be. */
static void test_case_10_all_255_vcpus(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	set_up(&guest, VMM_MAX_VCPUS, 50);
	shared = guest.shared;
	for (unsigned int i = 1; i < VMM_MAX_VCPUS; i++)
		guest_enter(&guest, i, say_id_and_halt);
	run(&guest, "halting", 120);
	/* CPUID is the processor's own where KVM is played. */
	for (unsigned int i = 1; i < VMM_MAX_VCPUS && !guest_kvm_is_played(); i++)
		assert_int_equal(shared->apic_id[i], i);
	guest_destroy(&guest);
}

/* Linux's other CPUs before it starts them: KVM_RUN blocks, waiting for INIT and SIPI. */
static void test_vcpus_that_wait_for_init(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	set_up(&guest, 4, 1000);
	shared = guest.shared;
	shared->nr_vcpus = 1; /* so many arrive */
	run(&guest, "waiting for INIT", 60);
	guest_destroy(&guest);
}

GUEST_INLINE void use_clock(struct shared *s)
{
	uint64_t clock = (uintptr_t)s->pvclock | 1;

	__asm__ volatile("wrmsr"
			 :
			 : "c"(MSR_KVM_SYSTEM_TIME_NEW), "a"((uint32_t)clock),
			   "d"((uint32_t)(clock >> 32))
			 : "memory");
}

/* CASES 3: the guest's own clock says that it was stopped. */
GUEST_CODE static void watch_clock(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	use_clock(s);
	atomic_fetch_add(&s->arrived, 1);
	for (;;) {
		if (s->pvclock[PVCLOCK_FLAGS] & PVCLOCK_GUEST_STOPPED) {
			s->pvclock[PVCLOCK_FLAGS] = 0;
			atomic_fetch_add(&s->stopped_seen, 1);
		}
	}
}

static void test_case_3_guest_clock_is_told(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 2, 16 << 20);
	shared = guest.shared;
	guest_enter(&guest, 0, watch_clock);
	guest_enter(&guest, 1, spin_on); /* has no clock: that is fine too */
	guest_start(&guest);
	guest_wait_for(&guest, &shared->arrived, 2, 10);
	for (unsigned int i = 1; i <= 20; i++) {
		assert_int_equal(vm_pause(&guest.vm), 0);
		assert_int_equal(vm_resume(&guest.vm), 0);
		guest_wait_for(&guest, &shared->stopped_seen, i, 10);
	}
	guest_stop(&guest);
	assert_int_equal(guest.vm.vcpus[0]->nr_clock_ctrl, 20);
	assert_int_equal(guest.vm.vcpus[1]->nr_clock_ctrl, 0);
	guest_destroy(&guest);
}

GUEST_CODE static void ring_and_look(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	use_clock(s);
	for (uint32_t i = 0; i < 20; i++) {
		s->pvclock[PVCLOCK_FLAGS] = 0;
		guest_ring(s->pfn);
		if (s->pvclock[PVCLOCK_FLAGS] & PVCLOCK_GUEST_STOPPED)
			atomic_fetch_add(&s->stopped_seen, 1);
	}
	guest_done();
}

/* CASES 3: so does the clock of the vCPU that stood still at the doorbell. */
static void test_case_3_clock_of_the_one_that_rings(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 2, 16 << 20);
	shared = guest.shared;
	shared->pfn = guest_batch(&guest, NULL, 0);
	guest_hello(&guest, guest_alloc(&guest, 4096), 4096);
	guest_enter(&guest, 0, ring_and_look);
	guest_enter(&guest, 1, spin_on);
	guest_start(&guest);
	guest_finish(&guest, 60);
	assert_int_equal(shared->stopped_seen, 20);
	guest_destroy(&guest);
}

/* The operator's pause: nothing moves, a batch waits, and all goes on. */
static void test_operator_pause(void **state)
{
	const struct timespec nap = {.tv_nsec = 20000000};
	struct shared *shared;
	struct guest guest;
	unsigned int turns;
	uint32_t pauses;

	(void)state;
	NEED_KVM();
	set_up(&guest, 2, UINT32_MAX);
	guest_enter(&guest, 1, spin_on);
	shared = guest.shared;
	guest_start(&guest);
	for (unsigned int i = 0; i < 10; i++) {
		guest_wait_for(&guest, &shared->turns[1], shared->turns[1] + 1, 10);
		assert_int_equal(vm_resume(&guest.vm), -EALREADY);
		assert_false(vm_is_paused(&guest.vm));
		assert_int_equal(vm_pause(&guest.vm), 0);
		assert_true(vm_is_paused(&guest.vm));
		assert_int_equal(vm_pause(&guest.vm), -EALREADY);
		turns = shared->turns[1];
		pauses = sample.pauses;
		nanosleep(&nap, NULL);
		assert_int_equal(shared->turns[1], turns);
		assert_int_equal(sample.pauses, pauses);
		assert_int_equal(vm_resume(&guest.vm), 0);
	}
	guest_stop(&guest);
	assert_int_equal(sample.bad_status, HVPOKE_OK);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_case_1_halting_as_fast_as_spinning),
		cmocka_unit_test(test_case_1_kick_at_the_door),
		cmocka_unit_test(test_case_3_guest_clock_is_told),
		cmocka_unit_test(test_case_3_clock_of_the_one_that_rings),
		cmocka_unit_test(test_case_10_more_vcpus_than_cores),
		cmocka_unit_test(test_case_10_all_255_vcpus),
		cmocka_unit_test(test_vcpus_in_port_and_mmio_accesses),
		cmocka_unit_test(test_vcpus_that_wait_for_init),
		cmocka_unit_test(test_operator_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
