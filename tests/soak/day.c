// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A day of requests, as fast as they are answered: HOURS simulated hours (a quarter of one if
 * nobody says), for guests of hvpoked and one of hvpoke-vmm. What comes in an hour, and how
 * often, stands in events[]; which minute it comes in is chance, the same in each run. At
 * the end each server holds what it held at the beginning.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../kvm/kvm_test.h"
#include "clients.h"
#include "clock.h"
#include "figures.h"
#include "guests.h"
#include "orders.h"
#include "undo.h"

#define QEMUS	 2
#define NR_VMS	 (QEMUS + 1)
#define DAWDLERS 8
#define WARM_UP	 2

struct machine {
	const char *name;
	char *path; /* of its control socket */
	pid_t pid;  /* of a QEMU; hvpoke-vmm has vmm */
	bool by_port;
};

static struct day {
	struct host host;
	struct vmm_process vmm;
	struct machine vms[NR_VMS];
	unsigned int nr_vms;
	int dawdler[DAWDLERS]; /* a minute later they catch up */
	unsigned int nr_dawdlers;
	uint64_t random;
	/* What the guests said of their own batches. */
	uint64_t own, own_applied, orders_refused, bad_lines, crowd;
} day;

static uint64_t chance(uint64_t below)
{
	day.random = day.random * 6364136223846793005u + 1442695040888963407u;
	return (day.random >> 33) % below;
}

/* One toggle; what became of the guest's batches is looked at. */
static void order(struct machine *vm, uint32_t number)
{
	struct json_object *params = json_object_new_object(), *result;
	char query[32] = "+p", code[CLIENT_CODE];
	const char *fallback;

	if (number != ORDER_BATCH)
		snprintf(query, sizeof(query), "line %u +p", number);
	json_object_object_add(params, "query", json_object_new_string(query));
	result = client_call(vm->path, "toggle", params, code);
	if (!result)
		fail_msg("%s, order %u: expected a result, got %s", vm->name, number, code);
	day.own += member(result, "matched");
	day.own_applied += member(result, "changed");
	fallback = json_object_get_string(json_object_object_get(result, "fallback"));
	if (number > ORDER_BATCH && number <= ORDER_LAST_BAD) {
		if (!fallback)
			fail_msg("%s: a bad batch was applied, order %u", vm->name, number);
		day.orders_refused++;
	} else if (fallback) {
		fail_msg("%s: an honest batch was refused: %s", vm->name, fallback);
	}
	json_object_put(result);
}

static void a_toggle(struct machine *vm)
{
	order(vm, ORDER_BATCH);
}

static void a_bad_batch(struct machine *vm)
{
	order(vm, ORDER_MISMATCH + (uint32_t)chance(ORDER_LAST_BAD - ORDER_MISMATCH + 1));
}

/*
 * The guest does more than it has answered, and may be away for a moment while it still seems
 * to be there. What it answers next comes behind that.
 */
static void until_it_answers(struct machine *vm)
{
	struct json_object *result = NULL, *params;
	char code[CLIENT_CODE];

	for (unsigned int tries = 0; !result; tries++) {
		client_wait_for_agent(vm->path);
		params = json_object_new_object();
		json_object_object_add(params, "ms", json_object_new_int(1));
		result = client_call(vm->path, "idle", params, code);
		if (!result && strcmp(code, "agent-lost") != 0 && strcmp(code, "no-agent") != 0 &&
		    strcmp(code, "gone") != 0)
			fail_msg("%s: %s where the guest was to be asked again", vm->name, code);
		assert_true(tries < 1000);
	}
	json_object_put(result);
}

static void a_hello(struct machine *vm)
{
	order(vm, ORDER_HELLO);
	until_it_answers(vm);
}

static void a_reload(struct machine *vm)
{
	order(vm, ORDER_RELOAD);
	until_it_answers(vm);
}

static void a_reset(struct machine *vm)
{
	order(vm, ORDER_RESET);
	until_it_answers(vm);
}

static void a_new_monitor(struct machine *vm)
{
	if (vm->by_port)
		return;
	order(vm, ORDER_MONITOR);
	until_it_answers(vm);
}

static void a_new_qemu(struct machine *vm)
{
	int status;

	if (vm->by_port)
		return;
	order(vm, ORDER_AGAIN);
	assert_int_equal(waitpid(vm->pid, &status, 0), vm->pid);
	assert_int_equal(status, 0);
	/* Its socket goes with it, and comes with the next one. */
	WAIT_FOR(access(vm->path, F_OK) != 0, 60000);
	vm->pid = qemu_guest_start(&day.host, vm->name);
	client_wait_for_agent(vm->path);
}

static void a_look(struct machine *vm)
{
	client_look(vm->path);
}

static void a_queue(struct machine *vm)
{
	client_queue(vm->path);
}

static void a_pause(struct machine *vm)
{
	client_pause(vm->path);
}

static void a_hang_up(struct machine *vm)
{
	client_hang_up(vm->path);
	/* Its request is the guest's all the same: this one comes behind it. */
	order(vm, ORDER_BATCH);
}

static void a_babbler(struct machine *vm)
{
	day.bad_lines += client_babble(vm->path);
}

static void a_dawdler(struct machine *vm)
{
	if (day.nr_dawdlers < DAWDLERS)
		day.dawdler[day.nr_dawdlers++] = client_dawdle(vm->path);
}

static void a_crowd(struct machine *vm)
{
	struct json_object *result = NULL;
	char code[CLIENT_CODE] = "";

	day.crowd += client_crowd(vm->path);
	/* Room is there again when their ends have been seen. */
	WAIT_FOR((result = client_call(vm->path, "info", NULL, code)), 60000);
	json_object_put(result);
}

static struct {
	const char *name;
	unsigned int an_hour; /* for each VM, in the mean */
	void (*happens)(struct machine *vm);
	uint64_t count;
} events[] = {
	{"looks (info, stats)", 60, a_look, 0},
	{"toggles", 60, a_toggle, 0},
	{"batches that must be refused", 20, a_bad_batch, 0},
	{"queues", 6, a_queue, 0},
	{"operator's pauses", 4, a_pause, 0},
	{"clients that hang up", 6, a_hang_up, 0},
	{"clients that babble", 4, a_babbler, 0},
	{"clients that do not read", 4, a_dawdler, 0},
	{"crowds of clients", 1, a_crowd, 0},
	{"agents that register again", 6, a_hello, 0},
	{"agents that are loaded anew", 2, a_reload, 0},
	{"resets of the guest", 2, a_reset, 0},
	{"monitors that connect anew", 2, a_new_monitor, 0},
	{"QEMUs that start anew", 1, a_new_qemu, 0},
};
#define NR_EVENTS (sizeof(events) / sizeof(*events))

static void catch_up(void)
{
	while (day.nr_dawdlers)
		client_catch_up(day.dawdler[--day.nr_dawdlers]);
}

static void happen(unsigned int event, struct machine *vm)
{
	events[event].happens(vm);
	events[event].count++;
}

static void minute(void)
{
	const unsigned int begun = day.nr_dawdlers;

	for (unsigned int e = 0; e < NR_EVENTS; e++)
		for (unsigned int i = 0; i < day.nr_vms; i++)
			if (chance(60) < events[e].an_hour)
				happen(e, &day.vms[i]);
	/* Those of a minute ago. */
	if (begun)
		catch_up();
}

/* So that everything has been there before the first sample is taken. */
static void warm_up(void)
{
	for (unsigned int round = 0; round < WARM_UP; round++) {
		for (unsigned int e = 0; e < NR_EVENTS; e++)
			for (unsigned int i = 0; i < day.nr_vms; i++)
				events[e].happens(&day.vms[i]);
		catch_up();
	}
	day.own = day.own_applied = day.orders_refused = day.bad_lines = day.crowd = 0;
}

static char *path_of(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s.sock", day.host.control_dir, name) > 0);
	return path;
}

static void start_qemus(void)
{
	static const char *const names[QEMUS] = {"qemu0", "qemu1"};

	host_init(&day.host);
	host_start(&day.host);
	for (unsigned int i = 0; i < QEMUS; i++) {
		struct machine *vm = &day.vms[day.nr_vms++];

		vm->name = names[i];
		vm->path = path_of(vm->name);
		vm->pid = qemu_guest_start(&day.host, vm->name);
		client_wait_for_agent(vm->path);
	}
}

static void start_vmm(void)
{
	struct machine *vm = &day.vms[day.nr_vms];
	char kernel[96];

	if (!guest_have_kvm()) {
		print_message("# without hvpoke-vmm: there is no KVM\n");
		return;
	}
	snprintf(kernel, sizeof(kernel), "%s/kernel", day.host.dir);
	port_guest_write_kernel(kernel);
	vm->name = "port";
	vm->path = path_of(vm->name);
	vm->by_port = true;
	vmm_start(&day.vmm,
		  (const char *const[]){"--name", "port", "--vcpus", "2", "--memory", "64M",
					"--serial", "null", "--kernel", kernel, NULL},
		  0);
	day.nr_vms++;
	WAIT_FOR(access(vm->path, F_OK) == 0, 60000);
	client_wait_for_agent(vm->path);
}

/*
 * What can be undone is kept until it is HVP_UNDO_SITES, and forgotten with the agent: so that
 * samples can be compared, there is all of it.
 */
static void fill_up(void)
{
	const uint32_t a_toggle_has = (1 + OWN_BATCHES) * ORDER_SITES;

	for (unsigned int i = 0; i < day.nr_vms; i++)
		for (uint32_t sites = 0; sites <= HVP_UNDO_SITES; sites += a_toggle_has)
			order(&day.vms[i], ORDER_BATCH);
}

static void take(struct vitals_log *hvpoked, struct vitals_log *vmm, const char *at)
{
	fill_up();
	vitals_take(hvpoked, day.host.pid, "hvpoked", at);
	if (day.vmm.pid)
		vitals_take(vmm, day.vmm.pid, "hvpoke-vmm", at);
}

static void report(struct json_object *json, double hours, double seconds)
{
	uint64_t requests = 0;

	soak_number(json, "simulated_hours", hours);
	soak_number(json, "seconds", seconds);
	soak_count(json, "guests_of_hvpoked", QEMUS);
	soak_count(json, "guests_of_hvpoke_vmm", day.nr_vms - QEMUS);
	for (unsigned int e = 0; e < NR_EVENTS; e++) {
		soak_count(json, events[e].name, events[e].count);
		requests += events[e].count;
	}
	soak_count(json, "events in all", requests);
	soak_count(json, "batches of the guests' own", day.own);
	soak_count(json, "of these applied", day.own_applied);
	soak_count(json, "bad batches, all refused", day.orders_refused);
	soak_count(json, "bad lines, all answered", day.bad_lines);
	soak_count(json, "connections of crowds", day.crowd);
}

static void end(void)
{
	int status;

	for (unsigned int i = 0; i < QEMUS; i++) {
		kill(day.vms[i].pid, SIGKILL);
		waitpid(day.vms[i].pid, &status, 0);
	}
	if (day.vmm.pid) {
		client_do(day.vms[QEMUS].path, "quit", NULL);
		assert_int_equal(vmm_finish(&day.vmm, 60), 0);
	}
	for (unsigned int i = 0; i < day.nr_vms; i++)
		free(day.vms[i].path);
	host_assert_alive(&day.host);
	host_free(&day.host);
}

static void a_day(void **state)
{
	const double hours = soak_wanted("HOURS", 0.25);
	const uint64_t minutes = (uint64_t)(hours * 60 + 0.5);
	struct json_object *json = json_object_new_object();
	struct vitals_log hvpoked = {}, vmm = {};
	uint64_t start;
	char at[32];

	(void)state;
	start_qemus();
	start_vmm();
	warm_up();
	start = hvp_now_ns();
	take(&hvpoked, &vmm, "begin");
	for (uint64_t i = 0; i < minutes; i++) {
		minute();
		if ((i + 1) * 10 / minutes == i * 10 / minutes)
			continue;
		/* All of them are there, and no client is left. */
		catch_up();
		snprintf(at, sizeof(at), "%.1f h", (double)(i + 1) / 60);
		take(&hvpoked, &vmm, at);
	}
	report(json, hours, (double)(hvp_now_ns() - start) / 1e9);
	soak_vitals(json, "hvpoked", &hvpoked);
	soak_vitals(json, "hvpoke-vmm", &vmm);
	soak_write(json);
	assert_true(day.own_applied > day.own / 2);
	vitals_assert_flat("hvpoked", &hvpoked);
	if (vmm.nr)
		vitals_assert_flat("hvpoke-vmm", &vmm);
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day),
	};

	if (argc == 4 && !strcmp(argv[1], "guest"))
		qemu_guest_main(argv[2], argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
