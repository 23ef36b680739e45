// SPDX-License-Identifier: GPL-2.0-or-later
/* How a VM ends, or does not although one of its vCPUs hangs in a device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kvm_backend.h"
#include "kvm_test.h"

#define STUCK_PORT 0x0e20

struct shared {
	uint32_t pfn;
	uint32_t status[3];
	atomic_uint arrived, stuck_returns;
};

GUEST_CODE static void spin_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	atomic_fetch_add(&s->arrived, 1);
	for (;;)
		;
}

/* No handler for #UD, none for #DF: the processor shuts down. */
GUEST_CODE static void triple_fault(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	while (!atomic_load(&s->arrived))
		;
	__asm__ volatile("mov $0x600df00d, %%eax\n"
			 "ud2"
			 :
			 :
			 : "eax");
	for (;;)
		;
}

/* stderr goes to a file meanwhile; returns its text, to be freed. */
static char *run_and_catch_stderr(struct guest *guest)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	char *text = calloc(1, 65536);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(saved >= 0);
	fflush(stderr);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	guest_start(guest);
	vm_join(&guest->vm);
	fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(file);
	assert_true(fread(text, 1, 65535, file) > 0);
	fclose(file);
	return text;
}

static void test_triple_fault_is_reported(void **state)
{
	struct guest guest;
	char *text;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 3, 16 << 20);
	guest_enter(&guest, 0, spin_on);
	guest_enter(&guest, 1, triple_fault);
	/* vCPU 2 waits for INIT: its registers are asked for too. */
	text = run_and_catch_stderr(&guest);
	assert_int_equal(guest.vm.exit, VM_EXIT_TRIPLE_FAULT);
	assert_non_null(strstr(text, "vCPU 1: triple fault"));
	assert_non_null(strstr(text, "vCPU 0:\n"));
	assert_non_null(strstr(text, "vCPU 1:\n"));
	assert_non_null(strstr(text, "vCPU 2:\n"));
	assert_non_null(strstr(text, strcmp(kvm_backend(), "svm") ? "00000000600df00d"
								  : "has reset this vCPU"));
	free(text);
	guest_destroy(&guest);
}

/* The device's `out` returns when the test lets it. */
static atomic_bool release, entered;

static void stuck_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		      uint32_t value)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	(void)value;
	atomic_store(&entered, true);
	while (!atomic_load(&release))
		nanosleep(&nap, NULL);
}

static uint32_t no_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return 0;
}

/* Where vCPU 0 tells the test that its batch has failed. */
static void release_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			uint32_t value)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	if (!value)
		while (!atomic_load(&entered))
			;
	else
		atomic_store(&release, true);
}

static const struct port_ops stuck_ops = {.in = no_in, .out = stuck_out};
static const struct port_ops release_ops = {.in = no_in, .out = release_out};

GUEST_CODE static void get_stuck(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	guest_out32(STUCK_PORT, 0);
	for (;;)
		atomic_fetch_add(&s->stuck_returns, 1);
}

GUEST_CODE static void ring_meanwhile(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	const volatile struct hvpoke_cmd *cmd =
		(const struct hvpoke_cmd *)(uintptr_t)(s->pfn * 4096ull);

	(void)cpu;
	guest_out32(STUCK_PORT + 4, 0); /* the other is in the device now */
	guest_ring(s->pfn);
	s->status[0] = cmd->status;
	guest_ring(s->pfn);
	s->status[1] = cmd->status;
	guest_out32(STUCK_PORT + 4, 1); /* let it go */
	while (!atomic_load(&s->stuck_returns))
		;
	guest_ring(s->pfn);
	s->status[2] = cmd->status;
	guest_done();
}

/* Output to a pipe that nobody reads, say. The batch fails, in time; later ones work. */
static void test_vcpu_stuck_in_a_device(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 3, 16 << 20);
	assert_int_equal(bus_add(&guest.vm.bus, STUCK_PORT, 4, &stuck_ops, NULL), 0);
	assert_int_equal(bus_add(&guest.vm.bus, STUCK_PORT + 4, 4, &release_ops, NULL), 0);
	guest.vm.pause.timeout_ns = 50000000;
	shared = guest.shared;
	guest_hello(&guest, guest_alloc(&guest, 4096), 4096);
	shared->pfn = guest_batch(&guest, NULL, 0);
	guest_enter(&guest, 0, ring_meanwhile);
	guest_enter(&guest, 1, get_stuck);
	guest_enter(&guest, 2, spin_on);
	guest_start(&guest);
	while (!atomic_load(&entered))
		;
	guest_finish(&guest, 30);
	assert_int_equal(shared->status[0], HVPOKE_PAUSE_FAILED);
	assert_int_equal(shared->status[1], HVPOKE_PAUSE_FAILED);
	assert_int_equal(shared->status[2], HVPOKE_OK);
	guest_destroy(&guest);
}

GUEST_CODE static void ring_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	for (;;)
		guest_ring(s->pfn);
}

/* The end may come at any point of any pause. */
static void test_end_at_any_time(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	for (unsigned int i = 0; i < 100; i++) {
		const struct timespec nap = {.tv_nsec = i * 20000};

		guest_create(&guest, 3, 16 << 20);
		shared = guest.shared;
		guest_hello(&guest, guest_alloc(&guest, 4096), 4096);
		shared->pfn = guest_batch(&guest, NULL, 0);
		guest_enter_all(&guest, ring_on);
		guest_enter(&guest, 2, spin_on);
		guest_start(&guest);
		nanosleep(&nap, NULL);
		if (i % 2)
			assert_int_equal(vm_pause(&guest.vm), 0);
		guest_stop(&guest);
		assert_int_equal(vm_pause(&guest.vm), i % 2 ? -EALREADY : -ECANCELED);
		guest_destroy(&guest);
	}
}

static void test_impossible_vms(void **state)
{
	struct vm vm;

	(void)state;
	NEED_KVM();
	assert_int_equal(vm_create(&vm, 0, 16 << 20), -EINVAL);
	assert_int_equal(vm_create(&vm, VMM_MAX_VCPUS + 1, 16 << 20), -EINVAL);
	assert_int_equal(vm_create(&vm, 1, 0), -EINVAL);
	assert_int_equal(vm_create(&vm, 1, 4097), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_triple_fault_is_reported),
		cmocka_unit_test(test_vcpu_stuck_in_a_device),
		cmocka_unit_test(test_end_at_any_time),
		cmocka_unit_test(test_impossible_vms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
