// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked, a real QEMU under TCG and with KVM, and a guest that runs its sites all the time and
 * tells what they did (tests/qemu/guest).
 */
#include "real_qemu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "client.h"
#include "hvpoke_abi.h"
#include "process.h"
#include "ram.h"

static struct host host;
static struct real_qemu vm;
static bool started;
static char tcg[] = "tcg", kvm[] = "kvm"; /* not const: cmocka's initial states */

static const char *const shared_ram[] = {
	"-object",  "memory-backend-memfd,id=ram,size=64M,share=on",
	"-machine", "memory-backend=ram",
	NULL,
};

/* @state: the accelerator. Without it nothing is started, and the test skips itself. */
static int start(void **state, const char *const *more)
{
	char why[256];

	started = real_qemu_has(*state, why, sizeof(why));
	if (!started)
		return 0;
	host_init(&host);
	host_start(&host);
	real_qemu_start(&vm, &host, *state, more);
	return 0;
}

static int setup(void **state)
{
	return start(state, NULL);
}

static int setup_shared(void **state)
{
	return start(state, shared_ram);
}

static int teardown(void **state)
{
	(void)state;
	if (!started)
		return 0;
	real_qemu_stop(&vm);
	host_assert_alive(&host);
	host_free(&host);
	return 0;
}

static const char *fallback(struct json_object *result)
{
	return json_object_get_string(json_object_object_get(result, "fallback"));
}

static void runs_on(const char *accel)
{
	struct json_object *info = host_call(&host, "tiny", "info", NULL, NULL);

	assert_string_equal(json_object_get_string(json_object_object_get(info, "accelerator")),
			    accel);
	json_object_put(info);
}

static void toggles(void)
{
	struct json_object *result, *stats;

	assert_int_equal(real_qemu_sites(&vm), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(real_qemu_toggle(&vm, "+p", &result), SITES);
		assert_int_equal(member(result, "sites"), SITES);
		assert_int_equal(member(result, "pauses"), 1);
		assert_null(fallback(result));
		json_object_put(result);
		assert_int_equal(real_qemu_toggle(&vm, "-p", NULL), 0);
	}
	assert_true(real_qemu_running(&vm));
	stats = host_call(&host, "tiny", "stats", NULL, NULL);
	assert_int_equal(member(stats, "batches"), 20);
	assert_int_equal(member(stats, "pauses"), 20);
	assert_int_equal(member(stats, "sites"), 20 * SITES);
	json_object_put(stats);
}

static void toggles_private_ram(void **state)
{
	NEED_QEMU(*state);
	toggles();
}

static void toggles_shared_ram(void **state)
{
	NEED_QEMU(*state);
	toggles();
}

static void toggles_kvm_private_ram(void **state)
{
	NEED_QEMU(*state);
	runs_on("kvm");
	toggles();
	assert_false(host_maps(&host, "/memfd:memory-backend-memfd"));
}

static void toggles_kvm_shared_ram(void **state)
{
	NEED_QEMU(*state);
	runs_on("kvm");
	toggles();
	assert_true(host_maps(&host, "/memfd:memory-backend-memfd"));
}

static void refused_batches_change_nothing(void **state)
{
	struct json_object *result;

	NEED_QEMU(*state);
	assert_int_equal(real_qemu_toggle(&vm, "func mismatch +p", &result), 0);
	assert_string_equal(fallback(result), hvpoke_status_text(HVPOKE_MISMATCH));
	json_object_put(result);
	assert_int_equal(real_qemu_toggle(&vm, "func outside +p", &result), 0);
	assert_string_equal(fallback(result), hvpoke_status_text(HVPOKE_BAD_STRADDLE));
	json_object_put(result);
	assert_int_equal(real_qemu_toggle(&vm, "func empty +p", &result), 0);
	assert_null(fallback(result));
	assert_int_equal(member(result, "pauses"), 1);
	json_object_put(result);
	assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
}

/* Batches that the agent takes back at once: written as a whole or not at all. */
static void abandoned_batches(void **state)
{
	struct json_object *result;
	uint64_t sites;

	NEED_QEMU(*state);
	for (int i = 0; i < 20; i++) {
		sites = real_qemu_toggle(&vm, "func abandon +p", &result);
		if (fallback(result)) {
			assert_string_equal(fallback(result), hvpoke_status_text(HVPOKE_BUSY));
			assert_int_equal(sites, 0);
		} else {
			assert_int_equal(sites, SITES);
			assert_int_equal(real_qemu_toggle(&vm, "-p", NULL), 0);
		}
		json_object_put(result);
	}
	assert_true(real_qemu_running(&vm));
}

/* Where the guest's first site is: the page after which the pattern of a NOP stands. */
static uint64_t find_sites(const struct ram *ram, int memory, uint8_t *page)
{
	const struct ram_block *block = ram_find(ram, 0x100000, 0x100000);
	static const uint8_t nop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0x31, 0xc0, 0xc3};
	struct iovec local = {.iov_base = page, .iov_len = 4096}, remote = {.iov_len = 4096};

	assert_non_null(block);
	for (uint64_t gpa = 0x100000; gpa < 0x200000; gpa += 4096) {
		remote.iov_base = (void *)(block->hva + (gpa - block->gpa));
		assert_int_equal(process_read(memory, &local, &remote, 1), 0);
		if (!memcmp(page + 14, nop, sizeof(nop)) && !memcmp(page + 30, nop, sizeof(nop)))
			return (uint64_t)remote.iov_base + 14;
	}
	fail_msg("the guest's sites are not where they should be");
	return 0;
}

/*
 * Why there is a back end of its own for TCG: the very bytes that it writes, written from
 * outside into QEMU's memory, with the guest paused, are there and are not run.
 */
static void a_write_from_outside_is_not_seen(void **state)
{
	static const uint8_t nop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	static const uint8_t jmp[] = {0xe9, 0x03, 0x00, 0x00, 0x00};
	struct iovec local = {.iov_len = sizeof(jmp)}, remote = {.iov_len = sizeof(jmp)};
	int memory = process_memory(vm.pid);
	struct message message;
	struct ram ram = {};
	uint8_t page[4096], there[5];

	NEED_QEMU(*state);
	assert_true(memory >= 0);
	assert_int_equal(ram_learn(&ram, &vm.qmp, vm.pid, &message), 0);
	remote.iov_base = (void *)find_sites(&ram, memory, page);
	assert_int_equal(real_qemu_sites(&vm), 0);

	real_qemu_command(&vm, "stop");
	local.iov_base = (void *)jmp;
	assert_int_equal(process_write(memory, &local, &remote, 1), 0);
	real_qemu_command(&vm, "cont");
	assert_int_equal(real_qemu_sites(&vm), 0);
	local.iov_base = there;
	assert_int_equal(process_read(memory, &local, &remote, 1), 0);
	assert_memory_equal(there, jmp, sizeof(jmp));

	local.iov_base = (void *)nop;
	assert_int_equal(process_write(memory, &local, &remote, 1), 0);
	assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
	ram_forget(&ram);
	close(memory);
}

static void operators_pause_stays(void **state)
{
	struct json_object *error = NULL, *info;

	NEED_QEMU(*state);
	real_qemu_command(&vm, "stop");
	usleep(100000);
	info = host_call(&host, "tiny", "info", NULL, NULL);
	assert_string_equal(json_object_get_string(json_object_object_get(info, "state")),
			    "paused");
	json_object_put(info);
	host_call(&host, "tiny", "toggle", json_tokener_parse("{\"query\":\"+p\"}"), &error);
	assert_string_equal(json_object_get_string(json_object_object_get(error, "code")),
			    "paused");
	json_object_put(error);
	assert_false(real_qemu_running(&vm));
	real_qemu_command(&vm, "cont");
	usleep(100000);
	assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
}

static void reset_guest(void)
{
	unsigned int starts = real_qemu_printed(&vm, "start");
	unsigned int hellos = real_qemu_printed(&vm, "hello");

	real_qemu_command(&vm, "system_reset");
	WAIT_FOR(real_qemu_printed(&vm, "start") > starts, 60000);
	WAIT_FOR(real_qemu_printed(&vm, "hello") > hellos, 60000);
	WAIT_FOR(real_qemu_has_agent(&vm), 10000);
}

static void guest_restarts(void **state)
{
	NEED_QEMU(*state);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
		reset_guest();
		assert_int_equal(real_qemu_sites(&vm), 0);
	}
}

static void host_restarts(void **state)
{
	unsigned int hellos = 1;

	NEED_QEMU(*state);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
		host_stop(&host, i % 2 ? SIGTERM : SIGKILL);
		assert_true(real_qemu_running(&vm));
		host_start(&host);
		hellos++;
		WAIT_FOR(real_qemu_printed(&vm, "hello") == hellos, 30000);
		WAIT_FOR(real_qemu_has_agent(&vm), 10000);
		assert_int_equal(real_qemu_toggle(&vm, "-p", NULL), 0);
	}
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
 * Killed at any moment of a batch: the next hvpoked lets the guest run, with all sites old or all
 * new. test_crash_qemu.c does it at each step.
 */
static void host_killed_in_the_pause(void **state)
{
	struct hvp_client *client;
	unsigned int hellos = 1;
	uint64_t sites;

	NEED_QEMU(*state);
	for (int i = 0; i < 6; i++) {
		client = send_toggle("+p");
		usleep(5000 + i * 5000);
		host_stop(&host, SIGKILL);
		hvp_client_close(client);
		host_start(&host);
		WAIT_FOR(real_qemu_running(&vm), 10000);
		hellos++;
		WAIT_FOR(real_qemu_printed(&vm, "hello") == hellos, 30000);
		WAIT_FOR(real_qemu_has_agent(&vm), 10000);
		sites = real_qemu_sites(&vm);
		assert_true(sites == 0 || sites == SITES);
		if (!sites)
			assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
		assert_int_equal(real_qemu_toggle(&vm, "-p", NULL), 0);
	}
}

static void qemu_dies(void **state)
{
	struct hvp_client *client;
	char path[160];

	NEED_QEMU(*state);
	client = send_toggle("+p");
	usleep(20000);
	kill(vm.pid, SIGKILL);
	waitpid(vm.pid, NULL, 0);
	vm.pid = 0;
	snprintf(path, sizeof(path), "%s/tiny.sock", host.control_dir);
	WAIT_FOR(access(path, F_OK), 10000);
	hvp_client_close(client);
	host_assert_alive(&host);
	/* The next one is served as if nothing had been. */
	unlink(vm.console);
	qmp_close(&vm.qmp);
	snprintf(path, sizeof(path), "%s/operator", host.dir);
	unlink(path);
	real_qemu_start(&vm, &host, "tcg", NULL);
	assert_int_equal(real_qemu_toggle(&vm, "+p", NULL), SITES);
}

#define TEST(name)                                       \
	{                                                \
		"tcg_" #name, name, setup, teardown, tcg \
	}
#define TEST_KVM(name)                                   \
	{                                                \
		"kvm_" #name, name, setup, teardown, kvm \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(toggles_private_ram),
		{"tcg_toggles_shared_ram", toggles_shared_ram, setup_shared, teardown, tcg},
		{"kvm_toggles_private_ram", toggles_kvm_private_ram, setup, teardown, kvm},
		{"kvm_toggles_shared_ram", toggles_kvm_shared_ram, setup_shared, teardown, kvm},
		TEST(refused_batches_change_nothing),
		TEST_KVM(refused_batches_change_nothing),
		TEST(abandoned_batches),
		TEST_KVM(abandoned_batches),
		TEST(a_write_from_outside_is_not_seen),
		TEST(operators_pause_stays),
		TEST_KVM(operators_pause_stays),
		TEST(guest_restarts),
		TEST_KVM(guest_restarts),
		TEST(host_restarts),
		TEST_KVM(host_restarts),
		TEST(host_killed_in_the_pause),
		TEST_KVM(host_killed_in_the_pause),
		TEST(qemu_dies),
	};

	cmocka_set_test_filter(getenv("HVPOKE_TESTS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
