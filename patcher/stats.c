// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "engine.h"

void hvp_counters_add(struct hvp_counters *counters, const struct hvp_batch_result *result)
{
	struct hvp_stats *stats = &counters->stats;

	stats->last_status = result->status;
	if (result->status == HVPOKE_OK)
		stats->batches++;
	else
		stats->refused++;
	if (result->status == HVPOKE_RATE)
		stats->rated++;
	stats->sites += result->written;
	if (!result->paused)
		return;
	counters->sample[stats->pauses++ % HVP_PAUSE_SAMPLES] = result->pause_ns;
	counters->total_apply_ns += result->apply_ns;
	stats->total_pause_ns += result->pause_ns;
	if (result->pause_ns > stats->max_pause_ns)
		stats->max_pause_ns = result->pause_ns;
	stats->last_pause_ns = result->pause_ns;
	stats->last_apply_ns = result->apply_ns;
	stats->last_kick_ns = result->times.kick_ns;
	stats->last_wake_ns = result->times.wake_ns;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Nearest rank: the smallest sample that at least @percent of them do not exceed. */
static uint64_t percentile(const uint64_t *sorted, size_t nr, unsigned int percent)
{
	return sorted[(nr * percent + 99) / 100 - 1];
}

void hvp_guest_stats(struct hvp_guest *guest, struct hvp_stats *stats)
{
	uint64_t sample[HVP_PAUSE_SAMPLES];
	size_t nr;

	pthread_mutex_lock(&guest->lock);
	*stats = guest->counters.stats;
	memcpy(sample, guest->counters.sample, sizeof(sample));
	pthread_mutex_unlock(&guest->lock);

	nr = stats->pauses < HVP_PAUSE_SAMPLES ? stats->pauses : HVP_PAUSE_SAMPLES;
	if (!nr)
		return;
	qsort(sample, nr, sizeof(*sample), compare_u64);
	stats->pause_p50_ns = percentile(sample, nr, 50);
	stats->pause_p99_ns = percentile(sample, nr, 99);
}
