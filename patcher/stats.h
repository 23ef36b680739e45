/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_STATS_H
#define HVP_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"

/* What became of one batch. All times in nanoseconds of CLOCK_MONOTONIC. */
struct hvp_batch_result {
	enum hvpoke_status status;
	uint32_t bad_index; /* or HVPOKE_NO_INDEX */
	uint32_t written;
	uint64_t id; /* of its record in the log; 0: it has none */
	bool paused; /* the times below are valid */
	struct hvp_pause_times times;
	uint64_t pause_ns; /* pause() called until resume() returned */
	uint64_t apply_ns; /* verify and write */
};

#define HVP_PAUSE_SAMPLES 1024

/* The counters of one guest. Callers hold guest->lock. */
struct hvp_counters {
	struct hvp_stats stats; /* without the percentiles */
	uint64_t total_apply_ns;
	uint64_t sample[HVP_PAUSE_SAMPLES]; /* pause_ns, a ring; stats.pauses is its head */
};

void hvp_counters_add(struct hvp_counters *counters, const struct hvp_batch_result *result);

#endif /* HVP_STATS_H */
