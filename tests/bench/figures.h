/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_FIGURES_H
#define TESTS_BENCH_FIGURES_H

#include <stdint.h>

#include "gap.h"

uint64_t figures_now_ns(void);

/* The value below which @percent of the @nr (at least 1) values are. Sorts them. */
uint64_t figures_percentile(uint64_t *value, uint32_t nr, unsigned int percent);

/* What a guest has seen (gap.h). */
struct gap_figures {
	const char *vmm;
	const char *accelerator;
	double tsc_mhz;			/* measured: ticks of the guest's clock a microsecond */
	uint64_t patched[GAP_WINDOWS];	/* ticks */
	uint64_t pause_ns[GAP_WINDOWS]; /* as the host sees it */
	uint64_t window[GAP_WINDOWS];	/* ticks from before the batch until behind it */
	uint64_t idle[GAP_WINDOWS];	/* ticks */
};

/*
 * How long a window with a batch in it is, the mean, microseconds: so long are those
 * without. By the host's clock where the guest's stands still during a pause.
 */
double gap_figures_window_us(const struct gap_figures *figures);
/* A JSON object on stdout. Sorts the arrays. */
void gap_figures_print(struct gap_figures *figures);

#endif /* TESTS_BENCH_FIGURES_H */
