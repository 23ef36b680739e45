// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pause as a guest of QEMU's sees it (gap.h): hvpoked, a QEMU of its own, and the guest of
 * tests/qemu/guest. gap_vmm.c is the same under hvpoke-vmm. Prints a JSON object.
 *
 *   gap_qemu tcg|kvm
 */
#include "../qemu/real_qemu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "figures.h"

_Static_assert(SITES == GAP_SITES, "both guests have the same sites");

#define CALIBRATE_US 1000000
#define TRIES	     20

static struct host host;
static struct real_qemu vm;

/* A guest's clock and the host's at about the same moment. */
struct moment {
	double guest_ticks, host_us;
};

static double host_us(void)
{
	return (double)figures_now_ns() / 1000;
}

/* The best of some tries: the guest's answer lies between question and answer. */
static struct moment take_moment(void)
{
	struct json_object *params, *answer;
	double start, took, best = 1e9;
	struct moment moment = {};

	for (int i = 0; i < TRIES; i++) {
		params = json_tokener_parse("{\"ms\": 1}");
		start = host_us();
		answer = host_call(&host, "tiny", "idle", params, NULL);
		took = host_us() - start;
		if (took < best) {
			best = took;
			moment.host_us = start + took / 2;
			moment.guest_ticks =
				1000 *
				json_object_get_double(json_object_object_get(answer, "guest_us"));
		}
		json_object_put(answer);
	}
	return moment;
}

static double measure_tsc_mhz(void)
{
	struct moment start = take_moment(), end;

	usleep(CALIBRATE_US);
	end = take_moment();
	return (end.guest_ticks - start.guest_ticks) / (end.host_us - start.host_us);
}

/* The lines that begin with @name: of the numbers in each, one into each array. */
static void read_console(const char *name, uint64_t *first, uint64_t *second, uint64_t *third)
{
	FILE *console = fopen(vm.console, "re");
	uint64_t none[GAP_WINDOWS], *array[3];
	char line[128], format[64];
	uint32_t nr = 0;
	int wanted;

	assert_non_null(console);
	wanted = 1 + !!second + !!third;
	array[0] = first;
	array[1] = second ? second : none;
	array[2] = third ? third : none;
	snprintf(format, sizeof(format), "%s %%" SCNu64 " %%" SCNu64 " %%" SCNu64, name);
	while (nr < GAP_WINDOWS && fgets(line, sizeof(line), console))
		nr += sscanf(line, format, &array[0][nr], &array[1][nr], &array[2][nr]) == wanted;
	fclose(console);
	if (nr != GAP_WINDOWS)
		fail_msg("%u lines of \"%s\" from the guest, expected %u", nr, name, GAP_WINDOWS);
}

/* As many requests to the guest as all windows are. */
static void request(const char *query)
{
	struct json_object *result, *fallback;

	for (uint32_t i = 0; i < GAP_WINDOWS / GAP_ROUND; i++) {
		real_qemu_toggle(&vm, query, &result);
		fallback = json_object_object_get(result, "fallback");
		if (fallback)
			fail_msg("\"%s\": %s", query, json_object_get_string(fallback));
		json_object_put(result);
	}
}

static void measure(struct gap_figures *figures)
{
	char query[64];

	figures->tsc_mhz = measure_tsc_mhz();
	request("func gaps +p");
	read_console("gap", figures->patched, figures->pause_ns, figures->window);
	snprintf(query, sizeof(query), "func quiet line %.0f +p",
		 gap_figures_window_us(figures) * figures->tsc_mhz);
	request(query);
	read_console("quiet", figures->idle, NULL, NULL);
}

int main(int argc, char **argv)
{
	static struct gap_figures figures;
	struct json_object *info;
	char name[64], why[256];

	if (argc != 2) {
		fprintf(stderr, "usage: gap_qemu tcg|kvm\n");
		return 2;
	}
	if (!real_qemu_has(argv[1], why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	host_init(&host);
	host_start(&host);
	real_qemu_start(&vm, &host, argv[1], NULL);
	info = host_call(&host, "tiny", "info", NULL, NULL);
	snprintf(name, sizeof(name), "QEMU %s",
		 json_object_get_string(json_object_object_get(info, "vmm_version")));
	figures.vmm = name;
	figures.accelerator = json_object_get_string(json_object_object_get(info, "accelerator"));
	measure(&figures);
	real_qemu_stop(&vm);
	host_free(&host);
	gap_figures_print(&figures);
	json_object_put(info);
	return 0;
}
