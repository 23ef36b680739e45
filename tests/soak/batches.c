// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * BATCHES batches of 2,004 sites (10,000 if nobody says) on 4 vCPUs that run the sites, each
 * of which checks that it sees whole instructions of one state (tests/kvm/torn.h). What the
 * VMM holds must not grow meanwhile.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "../kvm/kvm_test.h"
#include "../kvm/torn.h"
#include "clock.h"
#include "figures.h"
#include "kvm_backend.h"

/* With so little progress something hangs. */
#define STALL_NS (120 * 1000000000ull)

static void wait_for(struct guest *guest, const struct torn_figures *figures, uint32_t value)
{
	struct pollfd end = {.fd = guest->vm.exit_event, .events = POLLIN};
	uint64_t since = hvp_now_ns();
	uint32_t before = 0, done;

	while ((done = atomic_load(&figures->done)) < value) {
		if (done != before)
			since = hvp_now_ns();
		before = done;
		if (hvp_now_ns() - since > STALL_NS)
			fail_msg("no batch for two minutes, after %u", done);
		/* Before the last batch it ends only if a vCPU has seen what it must not. */
		if (poll(&end, 1, 50) == 1)
			return;
	}
}

static double percentile_us(const struct torn_figures *figures, uint64_t nr, double percent)
{
	uint64_t below = 0, wanted = (uint64_t)((double)nr * percent / 100);
	uint32_t at = 0;

	while (at < TORN_LENGTHS - 1 && (below += figures->lengths[at]) <= wanted)
		at++;
	return (double)torn_length_end(at);
}

static void batches_on_vcpus_that_run_the_sites(void **state)
{
	uint32_t nr = (uint32_t)soak_wanted("BATCHES", 10000);
	struct json_object *json = json_object_new_object();
	uint64_t walks = 0, across = 0, start;
	struct torn_figures *figures;
	struct vitals_log log = {};
	struct hvp_stats stats;
	struct guest guest;
	double seconds;
	char at[32];

	(void)state;
	NEED_KVM();
	start = hvp_now_ns();
	figures = torn_start(&guest, nr);
	/* The first batches touch what there is to be touched. */
	wait_for(&guest, figures, nr / 100 + 1);
	vitals_take(&log, getpid(), "the VMM", "begin");
	for (unsigned int tenth = 1; tenth < VITALS_SAMPLES; tenth++) {
		/* The last sample while the vCPUs' threads are still there. */
		wait_for(&guest, figures, tenth < 10 ? nr / 10 * tenth : nr - nr / 100);
		snprintf(at, sizeof(at), "%u%%", tenth * 10);
		vitals_take(&log, getpid(), "the VMM", at);
	}
	guest_finish(&guest, 300);
	seconds = (double)(hvp_now_ns() - start) / 1e9;
	hvp_guest_stats(guest.vm.guest, &stats);
	assert_int_equal(stats.batches, nr);
	for (unsigned int i = 0; i < TORN_VCPUS; i++) {
		assert_true(figures->walks[i] > 0);
		walks += figures->walks[i];
		across += figures->across[i];
	}
	json_object_object_add(json, "kvm",
			       json_object_new_string(guest_kvm_is_played() ? "played"
									    : kvm_backend()));
	soak_count(json, "batches", nr);
	soak_count(json, "vcpus", TORN_VCPUS);
	soak_count(json, "sites_per_batch", TORN_SITES);
	soak_number(json, "seconds", seconds);
	soak_number(json, "batches_per_second", nr / seconds);
	soak_count(json, "walks_checked", walks);
	soak_count(json, "walks_across_a_batch", across);
	soak_number(json, "pause_p50_us", percentile_us(figures, nr, 50));
	soak_number(json, "pause_p99_us", percentile_us(figures, nr, 99));
	soak_number(json, "pause_max_us", (double)figures->longest_ns / 1000);
	soak_vitals(json, "vmm", &log);
	soak_write(json);
	vitals_assert_flat("the VMM", &log);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_on_vcpus_that_run_the_sites),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
