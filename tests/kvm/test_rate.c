// SPDX-License-Identifier: GPL-2.0-or-later
/* A guest that rings without end has as many pauses as its host allows, and an answer each time. */

#include "kvm_test.h"

#define ALLOWED 5
#define RINGS	200

struct shared {
	uint32_t pfn;
	uint32_t applied, rated, other;
};

GUEST_CODE static void ring_often(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	volatile struct hvpoke_cmd *cmd = (struct hvpoke_cmd *)(uintptr_t)((uint64_t)s->pfn * 4096);

	(void)cpu;
	for (int i = 0; i < RINGS; i++) {
		cmd->status = HVPOKE_HOST_ERROR;
		guest_ring(s->pfn);
		if (cmd->status == HVPOKE_OK)
			s->applied++;
		else if (cmd->status == HVPOKE_RATE && cmd->batch.written == 0)
			s->rated++;
		else
			s->other++;
	}
	guest_done();
}

GUEST_CODE static void halt_on(uint64_t cpu, void *shared)
{
	(void)cpu;
	(void)shared;
	for (;;)
		guest_halt();
}

static void test_guest_that_rings_without_end(void **state)
{
	/* A day, so that none comes back while the test runs. */
	const struct hvp_limits limits = {
		.max_sites = HVPOKE_MAX_SITES,
		.max_requests = 1,
		.max_pauses = ALLOWED,
		.seconds = 86400,
	};
	struct hvp_stats stats;
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 2, 16 << 20);
	hvp_guest_limit(guest.vm.guest, &limits);
	shared = guest.shared;
	shared->pfn = guest_batch(&guest, NULL, 0);
	guest_hello(&guest, guest_alloc(&guest, 4096), 4096);
	guest_enter(&guest, 0, ring_often);
	guest_enter(&guest, 1, halt_on);
	guest_start(&guest);
	guest_finish(&guest, 120);
	assert_int_equal(shared->applied, ALLOWED);
	assert_int_equal(shared->rated, RINGS - ALLOWED);
	assert_int_equal(shared->other, 0);
	hvp_guest_stats(guest.vm.guest, &stats);
	assert_int_equal(stats.pauses, ALLOWED);
	assert_int_equal(stats.rated, RINGS - ALLOWED);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guest_that_rings_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
