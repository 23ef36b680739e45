// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What one guest may have of its host: batches and paused time over a time. A batch that
 * would be more gets RATE, with no pause and not a byte written, and may come again later.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_backend.h"
#include "guest_limits.h"

#define S	  1000000000ull
#define MS	  1000000ull
#define HOUR	  3600u
#define PATIENT_S 60 /* for what must happen some time */

/* Buckets, with a clock of our own. */

static void bucket_holds_so_many(void **state)
{
	struct hvp_bucket bucket;

	(void)state;
	hvp_bucket_init(&bucket, 3, 10 * S, 1000);
	for (int i = 0; i < 3; i++) {
		assert_true(hvp_bucket_has(&bucket, 1, 1000));
		hvp_bucket_take(&bucket, 1);
	}
	assert_false(hvp_bucket_has(&bucket, 1, 1000));
	/* A third of it is back after a third of the time, and not a moment before. */
	assert_false(hvp_bucket_has(&bucket, 1, 1000 + 10 * S / 3 - 2));
	assert_true(hvp_bucket_has(&bucket, 1, 1000 + 10 * S / 3 + 2));
	assert_false(hvp_bucket_has(&bucket, 2, 1000 + 10 * S / 3 + 2));
}

static void bucket_is_never_fuller_than_full(void **state)
{
	struct hvp_bucket bucket;

	(void)state;
	hvp_bucket_init(&bucket, 2, 10 * S, 0);
	assert_true(hvp_bucket_has(&bucket, 2, 1000000 * S));
	assert_false(hvp_bucket_has(&bucket, 3, 1000000 * S));
	hvp_bucket_take(&bucket, 2);
	assert_false(hvp_bucket_has(&bucket, 1, 1000000 * S));
	assert_true(hvp_bucket_has(&bucket, 2, UINT64_MAX));
}

static void bucket_carries_debt(void **state)
{
	struct hvp_bucket bucket;

	(void)state;
	/* 10 ms in a second; one pause of 15. */
	hvp_bucket_init(&bucket, 10 * MS, S, 0);
	hvp_bucket_take(&bucket, 15 * MS);
	assert_false(hvp_bucket_has(&bucket, 1, S / 2));
	assert_true(hvp_bucket_has(&bucket, 1, S / 2 + 1000));
	/* One that took for ever is forgiven after the time from there to full, twice that. */
	hvp_bucket_take(&bucket, UINT64_MAX);
	assert_false(hvp_bucket_has(&bucket, 1, S / 2 + 1000 + S));
	assert_true(hvp_bucket_has(&bucket, 1, S / 2 + 1000 + S + 1000));
}

static void bucket_of_nothing_bounds_nothing(void **state)
{
	struct hvp_bucket bucket;

	(void)state;
	hvp_bucket_init(&bucket, 0, S, 0);
	for (int i = 0; i < 1000; i++) {
		assert_true(hvp_bucket_has(&bucket, UINT64_MAX, 0));
		hvp_bucket_take(&bucket, UINT64_MAX);
	}
}

/* The largest and the smallest that a configuration can say. */
static void bucket_takes_all_limits(void **state)
{
	struct hvp_bucket bucket;
	const uint64_t day = HVP_MOST_LIMIT_SECONDS * S;

	(void)state;
	hvp_bucket_init(&bucket, HVP_MOST_PAUSED_MS * MS, day, 0);
	hvp_bucket_take(&bucket, day);
	assert_false(hvp_bucket_has(&bucket, 1, 0));
	assert_true(hvp_bucket_has(&bucket, day, day));
	hvp_bucket_init(&bucket, HVP_MOST_PAUSES, S, 0);
	for (int i = 0; i < 1000; i++)
		hvp_bucket_take(&bucket, 1);
	assert_false(hvp_bucket_has(&bucket, HVP_MOST_PAUSES, 0));
	assert_true(hvp_bucket_has(&bucket, HVP_MOST_PAUSES - 1000, 0));
}

/* The engine. Hours, so that nothing comes back while the test runs. */

static void limit(struct fake *fake, uint64_t max_pauses, uint64_t max_paused_ms, uint64_t seconds)
{
	const struct hvp_limits limits = {
		.max_sites = HVPOKE_MAX_SITES,
		.max_requests = 2,
		.max_pauses = max_pauses,
		.max_paused_ms = max_paused_ms,
		.seconds = seconds,
	};

	fake_init(fake, FAKE_RAM);
	hvp_guest_limit(fake->guest, &limits);
	fake_hello(fake);
}

/* Switch a site of the text on or off. */
static struct hvpoke_entry flip(struct fake *fake, bool on)
{
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT + 0x40, on ? FAKE_NOP5 : FAKE_JMP5,
					       on ? FAKE_JMP5 : FAKE_NOP5, 0x1234);

	fake_put(fake, &entry, entry.old_insn);
	return entry;
}

static uint64_t rated(struct fake *fake)
{
	struct hvp_stats stats;

	hvp_guest_stats(fake->guest, &stats);
	assert_true(stats.rated <= stats.refused);
	return stats.rated;
}

static void batches_are_bounded(void **state)
{
	struct hvpoke_entry entry;
	struct fake fake;

	(void)state;
	limit(&fake, 3, 0, HOUR);
	for (int i = 0; i < 3; i++) {
		entry = flip(&fake, i % 2);
		fake_applied(&fake, &entry, 1);
	}
	entry = flip(&fake, true);
	fake_refused(&fake, &entry, 1, HVPOKE_RATE, HVPOKE_NO_INDEX);
	/* An empty batch is a pause, too. */
	fake_refused(&fake, NULL, 0, HVPOKE_RATE, HVPOKE_NO_INDEX);
	assert_int_equal(rated(&fake), 2);
	/* Another agent, or the same anew, has no more of it. */
	hvp_guest_reset(fake.guest);
	fake_hello(&fake);
	fake_refused(&fake, &entry, 1, HVPOKE_RATE, HVPOKE_NO_INDEX);
	fake_free(&fake);
}

/* A batch that is refused after it was looked at has cost the host the work. */
static void bad_batches_count(void **state)
{
	struct hvpoke_entry entry;
	struct fake fake;

	(void)state;
	limit(&fake, 3, 0, HOUR);
	entry = flip(&fake, true);
	entry.new_insn[0] = 0xcc;
	for (int i = 0; i < 3; i++)
		fake_refused(&fake, &entry, 1, HVPOKE_BAD_OPCODE, 0);
	fake_refused(&fake, &entry, 1, HVPOKE_RATE, HVPOKE_NO_INDEX);
	assert_int_equal(rated(&fake), 1);
	fake_free(&fake);
}

static void take_5_ms(struct fake *fake)
{
	(void)fake;
	usleep(5000);
}

static void paused_time_is_bounded(void **state)
{
	struct hvpoke_entry entry;
	struct fake fake;

	(void)state;
	limit(&fake, 0, 1, HOUR);
	fake.at_resume = take_5_ms;
	entry = flip(&fake, true);
	fake_applied(&fake, &entry, 1);
	/* More than it had is owed. */
	entry = flip(&fake, false);
	fake_refused(&fake, &entry, 1, HVPOKE_RATE, HVPOKE_NO_INDEX);
	assert_int_equal(rated(&fake), 1);
	fake_free(&fake);
}

/* vCPUs have stood still for a pause that failed. The fake says 1 us for each. */
static void failed_pauses_count(void **state)
{
	struct hvpoke_entry entry;
	struct fake fake;
	int failed = 0;

	(void)state;
	limit(&fake, 0, 1, HOUR);
	fake.pause_err = -ETIMEDOUT;
	entry = flip(&fake, true);
	while (failed < 2000 && fake_batch(&fake, &entry, 1) == HVPOKE_PAUSE_FAILED)
		failed++;
	/* 1 ms of them; some more if the hour's millisecond comes back meanwhile. */
	assert_in_range(failed, 1000, 1100);
	assert_int_equal(rated(&fake), 1);
	fake_free(&fake);
}

static void comes_back_with_time(void **state)
{
	struct hvpoke_entry entry;
	time_t start = time(NULL);
	struct fake fake;

	(void)state;
	limit(&fake, 1, 0, 1);
	entry = flip(&fake, true);
	fake_applied(&fake, &entry, 1);
	entry = flip(&fake, false);
	while (fake_batch(&fake, &entry, 1) == HVPOKE_RATE) {
		assert_true(time(NULL) - start < PATIENT_S);
		usleep(10000);
	}
	assert_true(fake_holds(&fake, &entry, entry.new_insn));
	fake_free(&fake);
}

/* Which is what tests, benches and fuzzers have. */
static void without_limits_there_are_none(void **state)
{
	struct hvpoke_entry entry;
	struct fake fake;

	(void)state;
	fake_init(&fake, FAKE_RAM);
	fake_hello(&fake);
	for (int i = 0; i < 20000; i++) {
		entry = flip(&fake, i % 2);
		assert_int_equal(fake_batch(&fake, &entry, 1), HVPOKE_OK);
	}
	assert_int_equal(rated(&fake), 0);
	fake_free(&fake);
}

static void done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	(void)id;
	assert_true(outcome->lost);
	++*(int *)arg;
}

static void requests_are_bounded(void **state)
{
	struct fake fake;
	int lost = 0;

	(void)state;
	limit(&fake, 0, 0, HOUR);
	for (int i = 0; i < 2; i++)
		assert_true(hvp_guest_submit(fake.guest, HVPOKE_REQ_COUNT_IDLE, 1, NULL, done,
					     &lost) > 0);
	assert_int_equal(hvp_guest_submit(fake.guest, HVPOKE_REQ_COUNT_IDLE, 1, NULL, done, &lost),
			 -EBUSY);
	hvp_guest_reset(fake.guest);
	assert_int_equal(lost, 2);
	fake_free(&fake);
}

/* What an agent of another version makes of a status that it does not know. */
static void unknown_status_has_words(void **state)
{
	(void)state;
	assert_string_not_equal(hvpoke_status_text(HVPOKE_RATE), hvpoke_status_text(0xffff));
	assert_string_equal(hvpoke_status_text(0xffff), "unknown status");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket_holds_so_many),
		cmocka_unit_test(bucket_is_never_fuller_than_full),
		cmocka_unit_test(bucket_carries_debt),
		cmocka_unit_test(bucket_of_nothing_bounds_nothing),
		cmocka_unit_test(bucket_takes_all_limits),
		cmocka_unit_test(batches_are_bounded),
		cmocka_unit_test(bad_batches_count),
		cmocka_unit_test(paused_time_is_bounded),
		cmocka_unit_test(failed_pauses_count),
		cmocka_unit_test(comes_back_with_time),
		cmocka_unit_test(without_limits_there_are_none),
		cmocka_unit_test(requests_are_bounded),
		cmocka_unit_test(unknown_status_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
