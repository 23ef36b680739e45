// SPDX-License-Identifier: GPL-2.0-or-later
#include "figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t figures_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t figures_percentile(uint64_t *value, uint32_t nr, unsigned int percent)
{
	qsort(value, nr, sizeof(*value), by_value);
	return value[(nr - 1) * percent / 100];
}

/* @unit: how many of the values' units are a microsecond. */
static void print_us(const char *name, uint64_t *value, double unit)
{
	printf("\"%s\": {\"p50\": %.2f, \"p99\": %.2f, \"max\": %.2f}", name,
	       (double)figures_percentile(value, GAP_WINDOWS, 50) / unit,
	       (double)figures_percentile(value, GAP_WINDOWS, 99) / unit,
	       (double)figures_percentile(value, GAP_WINDOWS, 100) / unit);
}

double gap_figures_window_us(const struct gap_figures *figures)
{
	double sum = 0, guest, host;

	for (uint32_t i = 0; i < GAP_WINDOWS; i++) {
		guest = (double)figures->window[i] / figures->tsc_mhz;
		host = (double)figures->pause_ns[i] / 1000;
		sum += guest > host ? guest : host;
	}
	return sum / GAP_WINDOWS;
}

void gap_figures_print(struct gap_figures *figures)
{
	double window_us = gap_figures_window_us(figures);

	printf("{\"vmm\": \"%s\", \"accelerator\": \"%s\", \"vcpus\": 2, \"sites\": %u, "
	       "\"windows\": %u, \"tsc_mhz\": %.3f, \"window_us\": %.1f,\n ",
	       figures->vmm, figures->accelerator, GAP_SITES, GAP_WINDOWS, figures->tsc_mhz,
	       window_us);
	print_us("patched_gap_us", figures->patched, figures->tsc_mhz);
	printf(",\n ");
	print_us("idle_gap_us", figures->idle, figures->tsc_mhz);
	printf(",\n ");
	print_us("host_pause_us", figures->pause_ns, 1000);
	printf("}\n");
}
