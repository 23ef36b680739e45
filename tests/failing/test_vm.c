// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A VM of hvpoke-vmm, each of whose calls fails once: made, started, rung from its guest,
 * paused, resumed, ended. It is made or not, with a reason; what runs is never left
 * paused; a batch is written whole or not at all.
 */
#include "each_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../kvm/guest.h"

#define MEMORY (16u << 20)
#define RINGS  4

struct shared {
	atomic_uint rings;    /* how often the guest has rung */
	atomic_uint most;     /* and may */
	uint32_t doorbell[2]; /* the page frame numbers to ring with */
};

static struct guest guest;

/* The first vCPU rings as often as it may, the others run. */
GUEST_CODE static void ring_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	for (;;) {
		if (cpu || atomic_load(&s->rings) >= atomic_load(&s->most))
			continue;
		guest_ring(s->doorbell[atomic_load(&s->rings) % 2]);
		atomic_store(&s->rings, atomic_load(&s->rings) + 1);
	}
}

/* Made, or a reason and nothing left of it. */
static unsigned int creates(enum failing_how how, unsigned int nth)
{
	unsigned int failed;
	int err;

	failing_begin(how, nth, true);
	err = vm_create(&guest.vm, 2, MEMORY);
	failed = failing_end();
	assert_true(err <= 0);
	if (how == FAILING_ERROR)
		assert_true(failed || !err);
	else
		assert_true(!err || err == -EINTR);
	if (!err)
		vm_destroy(&guest.vm);
	return failed;
}

static const uint8_t nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jmp[5] = {0xe9, 0x10, 0x00, 0x00, 0x00};
static uint8_t *site;

static uint32_t batch(uint64_t text, const uint8_t *from, const uint8_t *to)
{
	struct hvpoke_entry entry = {.gpa = text, .len = 5};

	memcpy(entry.old_insn, from, 5);
	memcpy(entry.new_insn, to, 5);
	return guest_batch(&guest, &entry, 1);
}

/* A site that is switched on and off. */
static void make_guest(void)
{
	struct shared *s;
	uint64_t text;

	guest_create(&guest, 2, MEMORY);
	text = guest_alloc(&guest, 4096);
	guest_hello(&guest, text, 4096);
	site = guest_at(&guest, text, 5);
	memcpy(site, nop, 5);
	s = guest.shared;
	s->doorbell[0] = batch(text, nop, jmp);
	s->doorbell[1] = batch(text, jmp, nop);
	guest_enter_all(&guest, ring_on);
}

/* All vCPUs go on: the guest rings again and again. */
static void expect_running(void)
{
	struct shared *s = guest.shared;

	atomic_store(&s->most, atomic_load(&s->rings) + RINGS);
	guest_wait_for(&guest, &s->rings, atomic_load(&s->most), 60);
}

/* Started, rung, paused and resumed; whatever fails, the guest runs in the end. */
static unsigned int runs(enum failing_how how, unsigned int nth)
{
	unsigned int failed;
	struct shared *s;
	int started, err;

	make_guest();
	s = guest.shared;
	atomic_store(&s->most, RINGS);
	failing_begin(how, nth, true);
	started = vm_start(&guest.vm);
	if (!started) {
		while (atomic_load(&s->rings) < RINGS &&
		       atomic_load(&guest.vm.exit) == VM_EXIT_NONE)
			usleep(100);
		for (int i = 0; i < 3; i++) {
			err = vm_pause(&guest.vm);
			if (!err)
				assert_int_equal(vm_resume(&guest.vm), 0);
			else
				assert_true(atomic_load(&guest.vm.exit) != VM_EXIT_NONE);
		}
	}
	failed = failing_end();
	assert_true(started <= 0);
	if (how != FAILING_ERROR)
		assert_int_equal(started, 0);
	if (!started && atomic_load(&guest.vm.exit) == VM_EXIT_NONE) {
		assert_false(vm_is_paused(&guest.vm));
		expect_running();
		assert_int_equal(vm_pause(&guest.vm), 0);
		assert_int_equal(vm_resume(&guest.vm), 0);
		expect_running();
		vm_request_exit(&guest.vm, VM_EXIT_SHUTDOWN);
	} else {
		/* KVM_RUN failed, or no thread could be had: then the VM ends, and says so. */
		assert_int_equal(how, FAILING_ERROR);
	}
	vm_join(&guest.vm);
	assert_true(!memcmp(site, nop, 5) || !memcmp(site, jmp, 5));
	guest_destroy(&guest);
	return failed;
}

static void creating(void **state)
{
	(void)state;
	if (!guest_have_kvm())
		skip();
	each_call("hvpoke-vmm, a VM is made", creates);
}

static void running(void **state)
{
	(void)state;
	if (!guest_have_kvm())
		skip();
	each_call("hvpoke-vmm, a VM starts, rings, is paused and resumed", runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creating),
		cmocka_unit_test(running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
