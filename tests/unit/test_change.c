// SPDX-License-Identifier: GPL-2.0-or-later
/* Changes of keys, events and the scope as records, and the guest's list of keys. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "change.h"
#include "fake_backend.h"
#include "key_list.h"
#include "scope.h"

static const struct hvpoke_query *only_record(const struct hvp_queries *queries)
{
	const struct hvpoke_query *query = (const void *)queries->data;

	assert_int_equal(queries->nr, 1);
	assert_int_equal(queries->len, query->size);
	assert_int_equal(query->size % 8, 0);
	assert_int_equal(query->reserved, 0);
	assert_int_equal(query->negate | query->last_line | query->func | query->file |
				 query->module | query->format | query->class_name,
			 0);
	return query;
}

static const char *text_of(const struct hvpoke_query *query)
{
	assert_in_range(query->text, sizeof(*query), query->size - 1);
	assert_non_null(memchr((const char *)query + query->text, '\0', query->size - query->text));
	return (const char *)query + query->text;
}

static void keys_are_named(void **state)
{
	static const char *const good[] = {"sched_schedstats", "kvm:kvm_has_noapic_vcpu", "a",
					   "__tracepoint_x.key", "bpf_stats_enabled_key.0"};
	const struct hvpoke_query *query;
	struct hvp_query_error error;
	struct hvp_queries queries;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		for (int on = 0; on < 2; on++) {
			assert_int_equal(hvp_change_key(good[i], on, &queries, &error), 0);
			query = only_record(&queries);
			assert_int_equal(query->kind, HVPOKE_CHANGE_KEY);
			assert_int_equal(query->op, on ? '+' : '-');
			assert_int_equal(query->first_line, 0);
			assert_string_equal(text_of(query), good[i]);
			hvp_queries_free(&queries);
		}
	}
}

static void bad_names_are_refused(void **state)
{
	static const struct {
		const char *name, *message;
	} bad[] = {
		{"", "no name"},
		{"a b", "\" \" cannot stand"},
		{" a", "cannot stand"},
		{"a\n", "cannot stand"},
		{"a\x1b(B", "\"?\" cannot stand"},
		{"\xc3\xa4", "cannot stand"},
		{"a;b", "\";\" cannot stand"},
		{"a\"", "cannot stand"},
		{"sched_*", "by its whole name"},
		{"sched_?", "by its whole name"},
		{"[ab]", "by its whole name"},
		{":a", "MODULE:NAME"},
		{"a:", "MODULE:NAME"},
		{"a:b:c", "one ':' at most"},
	};
	struct hvp_query_error error;
	struct hvp_queries queries;
	char longest[700];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(hvp_change_key(bad[i].name, true, &queries, &error), -EINVAL);
		if (!strstr(error.message, bad[i].message))
			fail_msg("\"%s\": %s", bad[i].name, error.message);
		assert_int_equal(error.column, 0);
	}
	memset(longest, 'a', sizeof(longest));
	longest[601] = '\0';
	assert_int_equal(hvp_change_key(longest, true, &queries, &error), -EINVAL);
	longest[600] = '\0';
	assert_int_equal(hvp_change_key(longest, true, &queries, &error), 0);
	assert_string_equal(text_of(only_record(&queries)), longest);
	hvp_queries_free(&queries);
	assert_int_equal(hvp_change_events("a b", true, &queries, &error), -EINVAL);
	assert_int_equal(hvp_change_events("a:b:c", true, &queries, &error), -EINVAL);
	assert_int_equal(hvp_change_events("", true, &queries, &error), -EINVAL);
	assert_int_equal(hvp_change_list_keys("", 0, &queries, &error), -EINVAL);
	assert_int_equal(hvp_change_list_keys("a b", 0, &queries, &error), -EINVAL);
}

/* A system alone is all of its events; what is left out is '*'. */
static void events_are_systems_and_names(void **state)
{
	static const char *const globs[][2] = {
		{"sched:sched_switch", "sched:sched_switch"},
		{"sched:*", "sched:*"},
		{"sched", "sched:*"},
		{"sched:", "sched:*"},
		{":sched_switch", "*:sched_switch"},
		{"*:sched_*", "*:sched_*"},
		{"*", "*:*"},
		{":", "*:*"},
		{"[!a]*:x?", "[!a]*:x?"},
		{"raw_syscalls:sys_enter", "raw_syscalls:sys_enter"},
	};
	const struct hvpoke_query *query;
	struct hvp_query_error error;
	struct hvp_queries queries;

	(void)state;
	for (size_t i = 0; i < sizeof(globs) / sizeof(*globs); i++) {
		assert_int_equal(hvp_change_events(globs[i][0], i % 2, &queries, &error), 0);
		query = only_record(&queries);
		assert_int_equal(query->kind, HVPOKE_CHANGE_EVENTS);
		assert_int_equal(query->op, i % 2 ? '+' : '-');
		assert_string_equal(text_of(query), globs[i][1]);
		hvp_queries_free(&queries);
	}
}

static void scopes_and_lists_are_numbers(void **state)
{
	const struct hvpoke_query *query;
	struct hvp_query_error error;
	struct hvp_queries queries;
	uint32_t scope, other;

	(void)state;
	for (scope = 0; scope <= HVPOKE_SCOPE_ALL; scope++) {
		assert_true(hvp_scope_parse(hvp_scope_name(scope), &other));
		assert_int_equal(other, scope);
		assert_non_null(strstr(HVP_SCOPE_NAMES, hvp_scope_name(scope)));
		assert_int_equal(hvp_change_scope(scope, &queries, &error), 0);
		query = only_record(&queries);
		assert_int_equal(query->kind, HVPOKE_CHANGE_SCOPE);
		assert_int_equal(query->first_line, scope);
		assert_int_equal(query->text, 0);
		hvp_queries_free(&queries);
	}
	assert_string_equal(hvp_scope_name(scope), "unknown");
	assert_false(hvp_scope_parse("unknown", &other));
	assert_false(hvp_scope_parse("", &other));
	assert_int_equal(hvp_change_list_keys("kvm:*", 77, &queries, &error), 0);
	query = only_record(&queries);
	assert_int_equal(query->kind, HVPOKE_CHANGE_KEY);
	assert_int_equal(query->first_line, 77);
	assert_string_equal(text_of(query), "kvm:*");
	hvp_queries_free(&queries);
}

static void lists_of_changes_are_bounded(void **state)
{
	static uint8_t before[HVPOKE_REQ_DATA];
	struct hvp_queries all = {0}, one;
	struct hvp_query_error error;
	size_t nr = 0, len;
	int err;

	(void)state;
	assert_int_equal(hvp_queries_parse("module a +p; module b +p", &one, &error), 0);
	len = one.len;
	for (;;) {
		memcpy(before, all.data ? all.data : before, all.len);
		err = hvp_queries_append(&all, &one);
		if (err)
			break;
		nr++;
		assert_int_equal(all.nr, 2 * nr);
		assert_int_equal(all.len, nr * len);
		assert_memory_equal(all.data, before, all.len - len);
		assert_memory_equal(all.data + all.len - len, one.data, len);
	}
	assert_int_equal(err, -E2BIG);
	assert_int_equal(nr, HVPOKE_REQ_DATA / len);
	assert_int_equal(all.len, nr * len);
	assert_memory_equal(all.data, before, all.len);
	hvp_queries_free(&one);
	hvp_queries_free(&all);
}

static void two_keys(struct hvpoke_complete *answer)
{
	memset(answer, 0, sizeof(*answer));
	fake_add_key(answer, "sched_schedstats", true, 12);
	fake_add_key(answer, "kvm:abc", false, 0xffffffff); /* fills its record to the last byte */
}

static void lists_of_keys_are_read(void **state)
{
	static struct hvpoke_complete answer;
	struct hvp_key key;
	uint32_t at = 0, nr = 0;

	(void)state;
	assert_int_equal(hvp_key_next(&answer, &at, &key), 0);
	two_keys(&answer);
	assert_int_equal(hvp_key_next(&answer, &at, &key), 1);
	assert_string_equal(key.name, "sched_schedstats");
	assert_true(key.enabled);
	assert_int_equal(key.sites, 12);
	assert_int_equal(hvp_key_next(&answer, &at, &key), 1);
	assert_string_equal(key.name, "kvm:abc");
	assert_false(key.enabled);
	assert_int_equal(key.sites, 0xffffffff);
	assert_int_equal(hvp_key_next(&answer, &at, &key), 0);
	/* As many as there is room for. */
	memset(&answer, 0, sizeof(answer));
	while (fake_add_key(&answer, "1234567", nr % 2, 1))
		nr++;
	for (at = 0; hvp_key_next(&answer, &at, &key) == 1; nr--)
		assert_string_equal(key.name, "1234567");
	assert_int_equal(nr, 0);
	assert_int_equal(at, HVPOKE_REQ_DATA);
}

static void wrong_lists_of_keys_are_refused(void **state)
{
	/* The second record begins at 28: size, enabled, reserved, sites, "kvm:abc". */
	static const struct {
		uint32_t at;
		uint8_t value;
	} bad[] = {
		{28, 0},  {28, 8},    {28, 14},	  {28, 20},  {28, 255},	 {29, 0x80},
		{30, 2},  {30, 0xff}, {31, 1},	  {36, 0},   {36, ' '},	 {37, 0x1b},
		{38, 10}, {39, 0x7f}, {40, 0xc3}, {43, 'x'}, {42, '\t'},
	};
	static struct hvpoke_complete answer;
	struct hvp_key key;
	uint32_t at;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		two_keys(&answer);
		assert_int_equal(answer.data_len, 44);
		answer.data[bad[i].at] = bad[i].value;
		at = 0;
		assert_int_equal(hvp_key_next(&answer, &at, &key), 1);
		if (hvp_key_next(&answer, &at, &key) != -EPROTO)
			fail_msg("byte %u was taken as %#x", bad[i].at, bad[i].value);
		assert_int_equal(at, 28);
	}
	two_keys(&answer);
	for (answer.data_len = 43; answer.data_len > 28; answer.data_len--) {
		at = 28;
		assert_int_equal(hvp_key_next(&answer, &at, &key), -EPROTO);
	}
	at = 0;
	answer.data_len = HVPOKE_REQ_DATA + 1;
	assert_int_equal(hvp_key_next(&answer, &at, &key), -EPROTO);
	answer.data_len = UINT32_MAX;
	assert_int_equal(hvp_key_next(&answer, &at, &key), -EPROTO);
}

/* Noise, for a second, always the same: whatever is taken lies inside of the data (ASan looks). */
static void noise_is_no_list_of_keys(void **state)
{
	static struct hvpoke_complete answer;
	const clock_t end = clock() + CLOCKS_PER_SEC;
	uint64_t seed = 4711, taken = 0, refused = 0;
	struct hvp_key key;
	uint32_t at;
	int found;

	(void)state;
	while (clock() < end) {
		two_keys(&answer);
		fake_add_key(&answer, "another", true, 3);
		for (int i = 0; i < 3; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			answer.data[(seed >> 33) % answer.data_len] = (uint8_t)(seed >> 50);
		}
		if (seed >> 63)
			answer.data_len = (seed >> 40) % (HVPOKE_REQ_DATA + 8);
		for (at = 0; (found = hvp_key_next(&answer, &at, &key)) == 1;) {
			assert_true(strlen(key.name) > 0);
			taken++;
		}
		assert_true(found == 0 || found == -EPROTO);
		refused += found < 0;
	}
	assert_true(taken > 1000 && refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_named),
		cmocka_unit_test(bad_names_are_refused),
		cmocka_unit_test(events_are_systems_and_names),
		cmocka_unit_test(scopes_and_lists_are_numbers),
		cmocka_unit_test(lists_of_changes_are_bounded),
		cmocka_unit_test(lists_of_keys_are_read),
		cmocka_unit_test(wrong_lists_of_keys_are_refused),
		cmocka_unit_test(noise_is_no_list_of_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
