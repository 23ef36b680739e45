// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The log and what undo keeps, each of whose calls fails once: the guest's batch is applied all
 * the same, whatever is not in the log is counted as lost, and what is there is whole.
 */
#include "each_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "../unit/service_fixture.h"
#include "audit.h"

#define NR_REQUESTS 6

static char dir[64], sub[80];

static const struct hvp_origin origin = {.uid = 1, .method = "toggle", .what = "+p"};

/* A directory in one that is not there yet, either. */
static void make_dir(void)
{
	strcpy(dir, "/tmp/hvpoke-audit-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/a/b", dir);
}

static void remove_all(void)
{
	DIR *stream = opendir(sub);
	struct dirent *entry;
	char up[80];

	while (stream && (entry = readdir(stream)))
		if (entry->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(stream), entry->d_name, 0), 0);
	if (stream)
		closedir(stream);
	snprintf(up, sizeof(up), "%s/a", dir);
	rmdir(sub);
	rmdir(up);
	assert_int_equal(rmdir(dir), 0);
}

/* The ids of the records, which rise, up to *@last; their number. */
static size_t check_records(struct hvp_audit *audit, uint64_t *last)
{
	struct json_object *records = hvp_audit_read(audit, HVP_AUDIT_READ_MAX, 0), *id;
	size_t nr;

	assert_non_null(records);
	*last = 0;
	nr = json_object_array_length(records);
	for (size_t i = 0; i < nr; i++) {
		assert_true(json_object_object_get_ex(json_object_array_get_idx(records, i), "id",
						      &id));
		assert_true(json_object_get_uint64(id) > *last);
		*last = json_object_get_uint64(id);
		assert_non_null(
			json_object_object_get(json_object_array_get_idx(records, i), "time"));
	}
	json_object_put(records);
	return nr;
}

/* Their number, when @expected of them are there or lost. A slow disk may take its time. */
static size_t count_records(struct hvp_audit *audit, size_t expected, uint64_t *lost)
{
	struct hvp_audit_state state;
	uint64_t last;
	size_t nr = 0;

	for (int i = 0; i < 600; i++) {
		nr = check_records(audit, &last);
		hvp_audit_state(audit, &state);
		*lost = state.lost;
		if (nr + state.lost >= expected)
			break;
		usleep(10000);
	}
	return nr;
}

static void add_all(struct hvp_audit *audit)
{
	const struct hvp_batch_result done = {.bad_index = HVPOKE_NO_INDEX, .paused = true};
	struct hvp_outcome outcome = {.guest = {.error = 1}};

	strcpy(outcome.guest.message, "why");
	assert_int_not_equal(hvp_audit_batch(audit, &origin, 1, 0, &done), 0);
	assert_int_not_equal(hvp_audit_batch(audit, NULL, 1, 1, &done), 0);
	for (int i = 2; i < NR_REQUESTS - 1; i++)
		assert_int_not_equal(hvp_audit_answered(audit, &origin, &outcome, i & 1), 0);
	assert_int_not_equal(hvp_audit_unanswered(audit, &origin, "lost", "no-agent"), 0);
}

/* Opened, written to until it rotates, read, closed. */
static unsigned int logs_with(const struct hvp_audit_config *config, enum failing_how how,
			      unsigned int nth)
{
	struct hvp_audit *audit;
	unsigned int failed;
	uint64_t lost, none;
	size_t nr;
	int err;

	make_dir();
	failing_begin(how, nth, true);
	err = hvp_audit_open(&audit, config, "vm");
	assert_true(err <= 0);
	if (!err) {
		add_all(audit);
		json_object_put(hvp_audit_read(audit, 10, 0));
		json_object_put(hvp_audit_read(audit, 2, 3));
	}
	failed = failing_end();
	assert_true(failed || !err);
	if (err)
		assert_int_equal(hvp_audit_open(&audit, config, "vm"), 0);
	nr = count_records(audit, err ? 0 : NR_REQUESTS, &lost);
	if (!err)
		assert_int_equal(nr + lost, NR_REQUESTS);
	/* A record is lost for a call that failed, and none for a signal. */
	assert_true(lost <= (how == FAILING_ERROR ? failed : 0));
	add_all(audit);
	assert_int_equal(count_records(audit, nr + lost + NR_REQUESTS, &none), nr + NR_REQUESTS);
	assert_int_equal(none, lost);
	hvp_audit_close(audit);
	assert_int_equal(hvp_audit_open(&audit, config, "vm"), 0);
	assert_int_equal(count_records(audit, 0, &none), nr + NR_REQUESTS);
	hvp_audit_close(audit);
	remove_all();
	return failed;
}

static unsigned int logs(enum failing_how how, unsigned int nth)
{
	const struct hvp_audit_config config = {.dir = sub, .max_bytes = 300, .nr_files = 50};

	return logs_with(&config, how, nth);
}

/* With one file only, which begins anew when it is full: then what was in it is gone. */
static unsigned int logs_to_one_file(enum failing_how how, unsigned int nth)
{
	const struct hvp_audit_config config = {.dir = sub, .max_bytes = 600, .nr_files = 1};
	struct hvp_audit_state state;
	struct hvp_audit *audit;
	unsigned int failed;
	uint64_t last = 0;

	make_dir();
	assert_int_equal(hvp_audit_open(&audit, &config, "vm"), 0);
	failing_begin(how, nth, true);
	add_all(audit);
	json_object_put(hvp_audit_read(audit, 1, 0));
	failed = failing_end();
	assert_true(hvp_audit_unanswered(audit, &origin, "lost", NULL) == NR_REQUESTS + 1);
	for (int i = 0; i < 600 && last != NR_REQUESTS + 1; i++)
		check_records(audit, &last);
	assert_int_equal(last, NR_REQUESTS + 1);
	hvp_audit_state(audit, &state);
	assert_true(state.lost <= (how == FAILING_ERROR ? failed : 0));
	hvp_audit_close(audit);
	remove_all();
	return failed;
}

static void logging(void **state)
{
	(void)state;
	each_call("log, open, 6 records, read", logs);
	each_call("log of one file", logs_to_one_file);
}

/* More than fits comes half: a disk that is full. */
static void limit_files(rlim_t bytes)
{
	const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* What was written of a line is taken back, or, if that fails too, is no part of the next one. */
static unsigned int fills(enum failing_how how, unsigned int nth)
{
	const struct hvp_audit_config config = {.dir = sub};
	struct hvp_audit *audit;
	unsigned int failed;
	uint64_t lost;
	size_t nr;

	make_dir();
	assert_int_equal(hvp_audit_open(&audit, &config, "vm"), 0);
	/* The first record is there, the second one only half. */
	limit_files(260);
	failing_begin(how, nth, true);
	add_all(audit);
	json_object_put(hvp_audit_read(audit, 10, 0));
	failed = failing_end();
	nr = count_records(audit, NR_REQUESTS, &lost);
	limit_files(RLIM_INFINITY);
	assert_true(lost > 0);
	assert_int_equal(nr + lost, NR_REQUESTS);
	add_all(audit);
	assert_int_equal(count_records(audit, 2 * NR_REQUESTS, &lost) + lost, 2 * NR_REQUESTS);
	assert_int_equal(nr + lost, NR_REQUESTS);
	hvp_audit_close(audit);
	remove_all();
	return failed;
}

static void filling(void **state)
{
	(void)state;
	/* Else that is what a file that grows too large comes to. */
	signal(SIGXFSZ, SIG_IGN);
	each_call("log, full disk", fills);
}

/* So many refused batches that they are summed up. */
static unsigned int sums_up(enum failing_how how, unsigned int nth)
{
	const struct hvp_batch_result busy = {.status = HVPOKE_BUSY, .bad_index = HVPOKE_NO_INDEX};
	const struct hvp_audit_config config = {.dir = sub, .sum_ms = 1};
	struct hvp_audit_state state = {.unrecorded = 1};
	struct hvp_audit *audit;
	unsigned int failed;
	uint64_t lost;
	size_t nr;

	make_dir();
	assert_int_equal(hvp_audit_open(&audit, &config, "vm"), 0);
	failing_begin(how, nth, true);
	for (unsigned int i = 0; i < HVP_AUDIT_REFUSED + 2; i++)
		hvp_audit_batch(audit, NULL, 1, 0, &busy);
	for (int i = 0; i < ANSWER_S * 1000 && state.unrecorded; i++) {
		usleep(1000);
		hvp_audit_state(audit, &state);
	}
	assert_int_equal(state.unrecorded, 0);
	json_object_put(hvp_audit_read(audit, 1, 0));
	failed = failing_end();
	/* At least one sum; on a slow machine there may be two. */
	nr = count_records(audit, HVP_AUDIT_REFUSED + 1, &lost);
	assert_true(nr + lost > HVP_AUDIT_REFUSED);
	assert_true(lost <= (how == FAILING_ERROR ? failed : 0));
	hvp_audit_close(audit);
	remove_all();
	return failed;
}

static void summing_up(void **state)
{
	(void)state;
	each_call("log, sum of a flood", sums_up);
}

/* A batch that is applied whatever becomes of its record, and of what undo keeps of it. */
static unsigned int patches(enum failing_how how, unsigned int nth)
{
	const struct hvp_audit_config config = {.dir = sub};
	struct hvpoke_entry entry[3];
	enum hvpoke_status status;
	struct hvp_audit *audit;
	unsigned int failed;
	struct fake fake;

	make_dir();
	fake_init(&fake, FAKE_RAM);
	assert_int_equal(hvp_audit_open(&audit, &config, "vm"), 0);
	hvp_guest_set_audit(fake.guest, audit);
	failing_begin(how, nth, true);
	for (int i = 0; i < 3; i++)
		entry[i] = fake_entry(FAKE_TEXT + 0x10 + 0x20 * (unsigned int)i, FAKE_NOP5,
				      FAKE_JMP5, 0x100);
	entry[2] = fake_entry(FAKE_TEXT + 0xffe, FAKE_NOP5, FAKE_JMP5, 0x300);
	for (int i = 0; i < 3; i++)
		fake_put(&fake, &entry[i], entry[i].old_insn);
	{
		const struct hvpoke_range text = {
			.gpa = FAKE_TEXT, .gva = FAKE_TEXT_GVA, .len = FAKE_TEXT_SIZE};

		status = fake_hello_ranges(&fake, &text, 1);
	}
	if (status != HVPOKE_OK)
		assert_int_equal(status, HVPOKE_HOST_ERROR);
	status = fake_batch(&fake, entry, 3);
	failed = failing_end();
	/* All of it or nothing. */
	for (int i = 0; i < 3; i++)
		assert_true(
			fake_holds(&fake, &entry[i],
				   status == HVPOKE_OK ? entry[i].new_insn : entry[i].old_insn));
	assert_true(status == HVPOKE_OK || failed);
	assert_false(fake.busy);
	fake_hello(&fake);
	for (int i = 0; i < 3; i++)
		fake_put(&fake, &entry[i], entry[i].old_insn);
	fake_applied(&fake, entry, 3);
	hvp_guest_set_audit(fake.guest, NULL);
	fake_free(&fake);
	hvp_audit_close(audit);
	remove_all();
	return failed;
}

static void patching(void **state)
{
	(void)state;
	each_call("engine, hello and a batch of 3 sites, with a log", patches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logging),
		cmocka_unit_test(filling),
		cmocka_unit_test(summing_up),
		cmocka_unit_test(patching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
