// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest_limits.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

void hvp_bucket_init(struct hvp_bucket *bucket, uint64_t tokens, uint64_t period_ns, uint64_t now)
{
	*bucket = (struct hvp_bucket){
		.period_ns = tokens ? (int64_t)period_ns : 0,
		.level_ns = (int64_t)period_ns,
		.filled_ns = now,
		.tokens = tokens,
	};
}

/* What @tokens are worth in time: never nothing, at most two periods. */
static int64_t price(const struct hvp_bucket *bucket, uint64_t tokens)
{
	const uint64_t most = 2 * (uint64_t)bucket->period_ns;
	unsigned __int128 ns = (unsigned __int128)tokens * (uint64_t)bucket->period_ns;

	ns /= bucket->tokens;
	if (!ns)
		return 1;
	return (int64_t)(ns < most ? (uint64_t)ns : most);
}

static void fill(struct hvp_bucket *bucket, uint64_t now)
{
	uint64_t passed = now - bucket->filled_ns;
	uint64_t missing = (uint64_t)(bucket->period_ns - bucket->level_ns);

	bucket->level_ns += (int64_t)(passed < missing ? passed : missing);
	bucket->filled_ns = now;
}

bool hvp_bucket_has(struct hvp_bucket *bucket, uint64_t tokens, uint64_t now)
{
	if (!bucket->period_ns)
		return true;
	fill(bucket, now);
	return bucket->level_ns >= price(bucket, tokens);
}

void hvp_bucket_take(struct hvp_bucket *bucket, uint64_t tokens)
{
	if (!bucket->period_ns)
		return;
	bucket->level_ns -= price(bucket, tokens);
	/* One pause that took for ever must not bar the guest for ever. */
	if (bucket->level_ns < -bucket->period_ns)
		bucket->level_ns = -bucket->period_ns;
}

void hvp_rates_init(struct hvp_rates *rates, const struct hvp_limits *limits, uint64_t now)
{
	const uint64_t period = limits->seconds * NS_PER_S;

	hvp_bucket_init(&rates->pauses, limits->max_pauses, period, now);
	hvp_bucket_init(&rates->paused, limits->max_paused_ms * NS_PER_MS, period, now);
}

bool hvp_rates_allow(struct hvp_rates *rates, uint64_t now)
{
	if (!hvp_bucket_has(&rates->paused, 1, now) || !hvp_bucket_has(&rates->pauses, 1, now))
		return false;
	hvp_bucket_take(&rates->pauses, 1);
	return true;
}

void hvp_rates_paused(struct hvp_rates *rates, uint64_t ns)
{
	hvp_bucket_take(&rates->paused, ns);
}
