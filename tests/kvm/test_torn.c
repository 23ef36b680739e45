// SPDX-License-Identifier: GPL-2.0-or-later
/* CASES 8: four vCPUs run the patched sites while 100,000 batches rewrite them (torn.h). */
#include "kvm_test.h"
#include "torn.h"

#define NR_BATCHES 100000

static void test_case_8_no_torn_instruction_no_mix(void **state)
{
	struct torn_figures *figures;
	struct hvp_stats stats;
	struct guest guest;

	(void)state;
	NEED_KVM();
	figures = torn_start(&guest, NR_BATCHES);
	guest_finish(&guest, 1500);

	hvp_guest_stats(guest.vm.guest, &stats);
	assert_int_equal(stats.batches, NR_BATCHES);
	for (unsigned int i = 0; i < TORN_VCPUS; i++) {
		print_message("# vCPU %u: %lu walks, %lu across a batch\n", i, figures->walks[i],
			      figures->across[i]);
		assert_true(figures->walks[i] > 100);
	}
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_case_8_no_torn_instruction_no_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
