/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_GUEST_LIMITS_H
#define HVP_GUEST_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"

/*
 * What one guest may have of its host. The rates are over @seconds: in any such time a
 * guest that did nothing before may have all of it at once, and no more than that in
 * the long run. 0 of a rate: no bound.
 */
struct hvp_limits {
	uint64_t max_sites;	/* of one batch: TOO_LARGE */
	uint64_t max_requests;	/* host requests that wait for the guest: -EBUSY */
	uint64_t max_pauses;	/* in @seconds: RATE. Each batch that is looked into counts */
	uint64_t max_paused_ms; /* in @seconds: RATE */
	uint64_t seconds;
};

#define HVP_MAX_REQUESTS       64   /* max_requests, unless somebody says otherwise */
#define HVP_MOST_REQUESTS      1024 /* ... and the most that he can say */
#define HVP_MOST_PAUSES	       1000000000u
#define HVP_MOST_LIMIT_SECONDS 86400u
#define HVP_MOST_PAUSED_MS     (HVP_MOST_LIMIT_SECONDS * 1000u)

/* What the VMMs begin with: docs/decisions.md says why these. */
/* clang-format off */
#define HVP_LIMITS_DEFAULT { \
	.max_sites = HVPOKE_MAX_SITES, \
	.max_requests = HVP_MAX_REQUESTS, \
	.max_pauses = 10000, \
	.max_paused_ms = 9000, \
	.seconds = 10, \
}
/* clang-format on */

/*
 * A token bucket that fills in a time, kept as that time: taking a token of N in all takes
 * an Nth of it away. All times in nanoseconds of CLOCK_MONOTONIC.
 */
struct hvp_bucket {
	int64_t period_ns; /* from empty to full; 0: not bounded */
	int64_t level_ns;  /* at most the period; less than 0: debt, at most a period of it */
	uint64_t filled_ns;
	uint64_t tokens; /* when it is full */
};

/* Full. @tokens 0: not bounded. */
void hvp_bucket_init(struct hvp_bucket *bucket, uint64_t tokens, uint64_t period_ns, uint64_t now);
/* Are there @tokens (at least 1: an empty bucket has none)? */
bool hvp_bucket_has(struct hvp_bucket *bucket, uint64_t tokens, uint64_t now);
/* Take @tokens, whether they are there or not: what lacks is owed. */
void hvp_bucket_take(struct hvp_bucket *bucket, uint64_t tokens);

/* How much a guest may still have of its rates. */
struct hvp_rates {
	struct hvp_bucket pauses;
	struct hvp_bucket paused; /* tokens are nanoseconds */
};

void hvp_rates_init(struct hvp_rates *rates, const struct hvp_limits *limits, uint64_t now);
/* One more batch: true, and it is counted, or false. */
bool hvp_rates_allow(struct hvp_rates *rates, uint64_t now);
/* It has kept vCPUs from running for @ns: known only afterwards, so it may end in debt. */
void hvp_rates_paused(struct hvp_rates *rates, uint64_t ns);

#endif /* HVP_GUEST_LIMITS_H */
