// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked killed at every step of a batch (patcher/fault.h) under a real QEMU, whose guest runs
 * its sites all the time and tells what they did (tests/qemu/guest).
 */
#include "real_qemu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "fault.h"

#define BOOT_MS 60000

static struct host host;
static struct real_qemu vm;
static unsigned int hellos;

/* In the test itself: cmocka takes a setup that skips for one that fails. */
static void start(const char *accel, const char *const *more)
{
	NEED_QEMU(accel);
	host_init(&host);
	host_start(&host);
	real_qemu_start(&vm, &host, accel, more);
	hellos = 1;
}

static int teardown(void **state)
{
	(void)state;
	if (!hellos)
		return 0;
	real_qemu_stop(&vm);
	host_assert_alive(&host);
	host_free(&host);
	hellos = 0;
	return 0;
}

/* The agent registers with the hvpoked that was just started. */
static void wait_for_agent(void)
{
	hellos++;
	WAIT_FOR(real_qemu_printed(&vm, "hello") == hellos, BOOT_MS);
	WAIT_FOR(real_qemu_has_agent(&vm), BOOT_MS);
}

/* Send a toggle, and do not wait for what becomes of it. */
static struct hvp_client *send_toggle(const char *query)
{
	struct json_object *params = json_object_new_object();
	struct hvp_client *client;
	char path[160];

	snprintf(path, sizeof(path), "%s/tiny.sock", host.control_dir);
	assert_int_equal(hvp_client_connect(&client, path, 10000), 0);
	json_object_object_add(params, "query", json_object_new_string(query));
	assert_true(hvp_client_send(client, "toggle", params, 10000) > 0);
	return client;
}

/*
 * Killed at @point while it switches the sites on or off (@from: what they do before). What they
 * do after it, with the next hvpoked there.
 */
static uint64_t killed_at(const char *point, unsigned int nth, uint64_t from)
{
	struct hvp_client *client;

	print_message("# killed at %s %u, %s\n", point, nth, from ? "-p" : "+p");
	host_stop(&host, SIGKILL);
	snprintf(host.fault, sizeof(host.fault), "%s %u 0", point, nth);
	host_start(&host);
	wait_for_agent();
	client = send_toggle(from ? "-p" : "+p");
	host_wait_killed(&host);
	hvp_client_close(client);
	host_start(&host);
	WAIT_FOR(real_qemu_running(&vm), BOOT_MS);
	wait_for_agent();
	return real_qemu_sites(&vm);
}

/* Then a batch is like any other again: none of its sites holds what it should not. */
static uint64_t switch_to(uint64_t sites)
{
	struct json_object *result;

	assert_int_equal(real_qemu_toggle(&vm, sites ? "+p" : "-p", &result), sites);
	assert_null(json_object_get_string(json_object_object_get(result, "fallback")));
	json_object_put(result);
	return sites;
}

/* @connected: how many parts the gdbstub has "written" when it is there. */
static void every_step(unsigned int connected)
{
	const struct {
		const char *point;
		unsigned int nth;
		bool written;
	} steps[] = {
		{"copied", 1, false},
		{"checked", 1, false},
		{"journal-begun", 1, false},
		{"stop", 1, false},
		{"paused", 1, false},
		{"verified", 1, false},
		{"part-written", connected + 1, false},
		{"part-written", connected + SITES / 2, false},
		{"part-written", connected + SITES, false},
		{"written", 1, false},
		{"applied", 1, true},
		{"journal-ended", 1, true},
		/* Under TCG the guest is let run once when the gdbstub connects. */
		{"cont", connected + 1, true},
		{"resumed", 1, true},
	};
	uint64_t sites = 0, now;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		now = killed_at(steps[i].point, steps[i].nth, sites);
		assert_int_equal(now, steps[i].written ? SITES - sites : sites);
		sites = switch_to(SITES - now);
	}
	/* Whichever command it is: HELLO, FETCH, a batch, COMPLETE. */
	for (unsigned int nth = 2; nth < 5; nth++) {
		now = killed_at("taken", nth, sites);
		assert_true(now == 0 || now == SITES);
		sites = switch_to(SITES - now);
		now = killed_at("answered", nth, sites);
		assert_true(now == 0 || now == SITES);
		sites = switch_to(SITES - now);
	}
}

static void every_step_tcg(void **state)
{
	(void)state;
	start("tcg", NULL);
	every_step(1);
	/* While the gdbstub connects, which pauses the guest. */
	host_stop(&host, SIGKILL);
	strcpy(host.fault, "part-written 1 0");
	host_start(&host);
	host_wait_killed(&host);
	host_start(&host);
	WAIT_FOR(real_qemu_running(&vm), BOOT_MS);
	wait_for_agent();
	switch_to(SITES - real_qemu_sites(&vm));
}

static void every_step_kvm(void **state)
{
	(void)state;
	start("kvm", NULL);
	every_step(0);
}

static void every_step_kvm_shared(void **state)
{
	static const char *const shared_ram[] = {
		"-object",  "memory-backend-memfd,id=ram,size=64M,share=on",
		"-machine", "memory-backend=ram",
		NULL,
	};

	(void)state;
	start("kvm", shared_ram);
	every_step(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_step_tcg, teardown),
		cmocka_unit_test_teardown(every_step_kvm, teardown),
		cmocka_unit_test_teardown(every_step_kvm_shared, teardown),
	};

	if (!FAULTS_BUILT_IN) {
		puts("1..0 # SKIP this build has no fault points");
		return 0;
	}
	cmocka_set_test_filter(getenv("HVPOKE_TESTS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
