// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The query parser. Each row is a text, and what the guest gets for it or what
 * the user is told. The expectations are those of lib/dynamic_debug.c of Linux
 * 6.1, and for `!` those of patcher/query_terms.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "query.h"

static const struct hvpoke_query *record_of(const struct hvp_queries *queries, size_t index)
{
	const uint8_t *at = queries->data;

	while (index--)
		at += ((const struct hvpoke_query *)(const void *)at)->size;
	return (const void *)at;
}

/* A term's string, or NULL. */
static const char *term(const struct hvpoke_query *query, uint16_t offset)
{
	return offset ? (const char *)query + offset : NULL;
}

static void assert_term(const struct hvpoke_query *query, uint16_t offset, const char *expected,
			const char *what, const char *text)
{
	const char *got = term(query, offset);

	if ((got == NULL) == (expected == NULL) && (!got || !strcmp(got, expected)))
		return;
	fail_msg("%s of <%s>: expected <%s>, got <%s>", what, text, expected ? expected : "(none)",
		 got ? got : "(none)");
}

static void parse_good(const char *text, size_t nr, struct hvp_queries *queries)
{
	struct hvp_query_error error;
	int result = hvp_queries_parse(text, queries, &error);

	if (result)
		fail_msg("<%s>: %d, column %zu <%s>: %s", text, result, error.column, error.word,
			 error.message);
	if (queries->nr != nr)
		fail_msg("<%s>: %zu queries, expected %zu", text, queries->nr, nr);
}

/* One query, parsed. */
static const struct {
	const char *text;
	const char *flags; /* with the operation */
	const char *func, *file, *module, *format, *class_name;
	uint32_t first, last, negate;
} good[] = {
	/* Flags. */
	{"+p", .flags = "+p"},
	{"-p", .flags = "-p"},
	{"=_", .flags = "=_"},
	{"=", .flags = "="},
	{"+", .flags = "+"},
	{"=pmflt", .flags = "=pmflt"},
	{"+s", .flags = "+s"},
	{"+d", .flags = "+d"},
	{"+pppppppppppppppppppppmmmmm", .flags = "+pm"},
	{"\"+p\"", .flags = "+p"},
	/* Each keyword. */
	{"func usb_* +p", .flags = "+p", .func = "usb_*"},
	{"file init/main.c +p", .flags = "+p", .file = "init/main.c"},
	{"module usbcore -p", .flags = "-p", .module = "usbcore"},
	{"format hello =p", .flags = "=p", .format = "hello"},
	{"class DRM_UT_CORE +p", .flags = "+p", .class_name = "DRM_UT_CORE"},
	{"func a file b module c format d +p", .flags = "+p", .func = "a", .file = "b",
	 .module = "c", .format = "d"},
	{"func \"\" +p", .flags = "+p", .func = ""},
	/* Quotes, white space, comments. */
	{"  func\ta \f\v +p \r", .flags = "+p", .func = "a"},
	{"func 'a b' +p", .flags = "+p", .func = "a b"},
	{"format \"it's\" +p", .flags = "+p", .format = "it's"},
	{"format 'say \"x\"' +p", .flags = "+p", .format = "say \"x\""},
	{"format \"a\"+p", .flags = "+p", .format = "a"},
	{"\"func\"'a'\"+p\"", .flags = "+p", .func = "a"},
	{"func it's +p", .flags = "+p", .func = "it's"},
	{"func a +p # module b", .flags = "+p", .func = "a"},
	{"func a +p #", .flags = "+p", .func = "a"},
	{"func a#b +p", .flags = "+p", .func = "a#b"},
	{"func \"#a\" +p", .flags = "+p", .func = "#a"},
	{"func\xa0x\xa0+p", .flags = "+p", .func = "x"},
	/* Escapes: in formats only. */
	{"format \"a\\040b\\tc\\n\" +p", .flags = "+p", .format = "a b\tc\n"},
	{"format \\045d +p", .flags = "+p", .format = "%d"},
	{"format \\r\\v\\f\\a\\e\\\\\\\" +p", .flags = "+p", .format = "\r\v\f\a\033\\\""},
	{"format \\q\\x41\\ +p", .flags = "+p", .format = "\\q\\x41\\"},
	{"format \\1\\12\\1234\\777 +p", .flags = "+p",
	 .format = "\1\n\123"
		   "4\77"
		   "7"},
	{"format a\\0b +p", .flags = "+p", .format = "a"},
	{"format ^start +p", .flags = "+p", .format = "^start"},
	{"func a\\tb +p", .flags = "+p", .func = "a\\tb"},
	/* Lines. */
	{"line 10 +p", .flags = "+p", .first = 10, .last = 10},
	{"line 10-20 +p", .flags = "+p", .first = 10, .last = 20},
	{"line 10- +p", .flags = "+p", .first = 10},
	{"line -20 +p", .flags = "+p", .last = 20},
	{"line - +p", .flags = "+p"},
	{"line 0 +p", .flags = "+p"},
	{"line 7-0 +p", .flags = "+p", .first = 7},
	{"line +5 +p", .flags = "+p", .first = 5, .last = 5},
	{"line \"\" line 5 +p", .flags = "+p", .first = 5, .last = 5},
	{"line 4294967295 +p", .flags = "+p", .first = 4294967295u},
	/* A file's tail. */
	{"file a.c:10-20 +p", .flags = "+p", .file = "a.c", .first = 10, .last = 20},
	{"file a.c:7 +p", .flags = "+p", .file = "a.c", .first = 7, .last = 7},
	{"file a.c:-9 +p", .flags = "+p", .file = "a.c", .last = 9},
	{"file a.c:open_* +p", .flags = "+p", .file = "a.c", .func = "open_*"},
	{"file a.c:*open +p", .flags = "+p", .file = "a.c", .func = "*open"},
	{"file a.c:?x +p", .flags = "+p", .file = "a.c", .func = "?x"},
	{"file a.c: +p", .flags = "+p", .file = "a.c"},
	{"file :f +p", .flags = "+p", .file = "", .func = "f"},
	{"file a.c:f:g +p", .flags = "+p", .file = "a.c", .func = "f:g"},
	{"file a.c:\xe4 +p", .flags = "+p", .file = "a.c", .func = "\xe4"},
	/* Negation. */
	{"!func a +p", .flags = "+p", .func = "a", .negate = HVPOKE_NEG_FUNC},
	{"!file a +p", .flags = "+p", .file = "a", .negate = HVPOKE_NEG_FILE},
	{"!module virtio* +p", .flags = "+p", .module = "virtio*", .negate = HVPOKE_NEG_MODULE},
	{"!format a +p", .flags = "+p", .format = "a", .negate = HVPOKE_NEG_FORMAT},
	{"!format \"!a\" +p", .flags = "+p", .format = "!a", .negate = HVPOKE_NEG_FORMAT},
	{"format \"!a\" +p", .flags = "+p", .format = "!a"},
	{"\"!module\" a +p", .flags = "+p", .module = "a", .negate = HVPOKE_NEG_MODULE},
	{"module a !func b +p", .flags = "+p", .module = "a", .func = "b",
	 .negate = HVPOKE_NEG_FUNC},
	{"!module a !func b !file c !format d +p", .flags = "+p", "b", "c", "a", "d",
	 .negate = HVPOKE_NEG_FUNC | HVPOKE_NEG_FILE | HVPOKE_NEG_MODULE | HVPOKE_NEG_FORMAT},
	/* The tail of a file is not inverted with it. */
	{"!file a.c:f +p", .flags = "+p", .file = "a.c", .func = "f", .negate = HVPOKE_NEG_FILE},
	{"!file a.c:1-2 +p", .flags = "+p", .file = "a.c", .first = 1, .last = 2,
	 .negate = HVPOKE_NEG_FILE},
	{"!module a line 5- +p", .flags = "+p", .module = "a", .first = 5,
	 .negate = HVPOKE_NEG_MODULE},
};

static void test_good(void **state)
{
	struct hvp_queries queries;
	char flags[32];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *text = good[i].text;
		const struct hvpoke_query *query;

		parse_good(text, 1, &queries);
		query = record_of(&queries, 0);
		assert_int_equal(query->size, queries.len);
		assert_int_equal(query->size % 8, 0);
		snprintf(flags, sizeof(flags), "%c%s", query->op, query->flags);
		assert_string_equal(flags, good[i].flags);
		assert_term(query, query->func, good[i].func, "func", text);
		assert_term(query, query->file, good[i].file, "file", text);
		assert_term(query, query->module, good[i].module, "module", text);
		assert_term(query, query->format, good[i].format, "format", text);
		assert_term(query, query->class_name, good[i].class_name, "class", text);
		if (query->first_line != good[i].first ||
		    query->last_line != (good[i].last == UINT32_MAX ? 0 : good[i].last))
			fail_msg("<%s>: lines %u-%u", text, query->first_line, query->last_line);
		if (query->negate != good[i].negate)
			fail_msg("<%s>: negate %u", text, query->negate);
		hvp_queries_free(&queries);
	}
}

/* Several queries in a text; the text of each, as the kernel is to get it. */
static const struct {
	const char *text;
	const char *query[4];
} lists[] = {
	{"+p", {"+p"}},
	{"-p; module a +p", {"-p", "module a +p"}},
	{"-p\nmodule a +p\n", {"-p", "module a +p"}},
	{"-p%module a +p", {"-p", "module a +p"}},
	{";; -p ;\n % ; +m;", {"-p", "+m"}},
	{"# all off\n-p # now\n  # some on; +p", {"-p # now", "+p"}},
	{"\t func  'a b'   +p  ", {"func  'a b'   +p"}},
	{"!module a +p;module b -p", {"!module a +p", "module b -p"}},
};

static void test_lists(void **state)
{
	struct hvp_queries queries;

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t nr = 0;

		while (nr < 4 && lists[i].query[nr])
			nr++;
		parse_good(lists[i].text, nr, &queries);
		for (size_t q = 0; q < nr; q++) {
			const struct hvpoke_query *query = record_of(&queries, q);

			assert_term(query, query->text, lists[i].query[q], "text", lists[i].text);
		}
		hvp_queries_free(&queries);
	}
}

/* What is refused: column, word, and a part of the message. */
static const struct {
	const char *text;
	size_t column;
	const char *word, *message;
} bad[] = {
	/* Nothing there. */
	{"", 0, "", "there is no query"},
	{" \n;% ", 0, "", "there is no query"},
	{"# +p", 0, "", "there is no query"},
	/* Flags. */
	{"p", 1, "p", "must be flags"},
	{"module a", 8, "a", "must be flags"},
	{"+p module a", 11, "a", "must be flags"},
	{"module a \"\"", 11, "", "must be flags"},
	{"+px", 1, "+px", "unknown flag 'x'"},
	{"module a +p+", 10, "+p+", "unknown flag '+'"},
	/* Keywords. */
	{"modul a +p", 1, "modul", "unknown keyword \"modul\""},
	{"MODULE a +p", 1, "MODULE", "unknown keyword"},
	{"module a b +p", 10, "b", "unknown keyword"},
	{"module +p", 1, "module", "needs a value"},
	{"module a func +p", 10, "func", "needs a value"},
	{"+p;\n  modul a +p", 7, "modul", "unknown keyword"},
	{"format \"a\\\"b\" +p", 12, "b\"", "cannot be escaped"},
	/* Too many. */
	{"func a file b module c format d line 5 +p", 38, "5", "too many words"},
	{"module a module b +p", 17, "b", "given twice"},
	{"module a !module b +p", 18, "b", "given twice"},
	{"func a file b:c +p", 15, "c", "func is given twice"},
	{"line 5 file b:7 +p", 15, "7", "lines are given twice"},
	{"line 1-2 line 3 +p", 15, "3", "lines are given twice"},
	/* Lines. */
	{"line x +p", 6, "x", "expected a line"},
	{"line 0x10 +p", 6, "0x10", "expected a line"},
	{"line 1-2-3 +p", 6, "1-2-3", "expected a line"},
	{"line 20-10 +p", 6, "20-10", "10, is before the first, 20"},
	{"line 4294967296 +p", 6, "4294967296", "expected a line"},
	{"line + +p", 6, "+", "expected a line"},
	{"line ' 5' +p", 7, " 5", "expected a line"},
	{"file a.c:_f +p", 10, "_f", "expected a line"},
	/* Quotes. */
	{"func \"a +p", 6, "\"a +p", "not closed"},
	{"func a '", 8, "'", "not closed"},
	{"format \"a;b\" +p", 8, "\"a", "cut by the ';' at column 10"},
	{"format \"a;b\" +p", 8, "\"a", "\\073"},
	{"format \"%d\" +p", 8, "\"", "cut by the '%' at column 9"},
	{"format \"%d\" +p", 8, "\"", "\\045"},
	{"format \"a \nb\" +p", 8, "\"a", "cut by the newline at column 11"},
	{"format 100%done +p", 8, "100", "\\045"},
	{"+p # 100% sure", 11, "sure", "\\045"},
	/* Negation in the wrong place. */
	{"!line 5 +p", 1, "!line", "'!' cannot stand before line"},
	{"!class x +p", 1, "!class", "'!' cannot stand before class"},
	{"! module a +p", 1, "!", "right before its keyword"},
	{"!modul a +p", 1, "!modul", "unknown keyword \"modul\""},
	{"!!module a +p", 1, "!!module", "unknown keyword"},
	{"!+p", 1, "!+p", "must be flags"},
	{"module !virtio* +p", 8, "!virtio*", "!module virtio*"},
	{"file \"!a.c\" +p", 7, "!a.c", "!file a.c"},
	{"func !f +p", 6, "!f", "!func f"},
	{"format !x +p", 8, "!x", "or quote the format"},
	{"line !5 +p", 6, "!5", "line cannot be inverted"},
	{"class !x +p", 7, "!x", "class cannot be inverted"},
	{"file a.c:!f +p", 10, "!f", "expected a line"},
	/* One bad query in a list: all of it is refused, at the first. */
	{"+p; module a; -p", 12, "a", "must be flags"},
	{"+p; func x +q; line x +p", 12, "+q", "unknown flag 'q'"},
};

static void test_bad(void **state)
{
	struct hvp_query_error error;
	struct hvp_queries queries;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (hvp_queries_parse(bad[i].text, &queries, &error) != -EINVAL)
			fail_msg("<%s> was not refused", bad[i].text);
		assert_null(queries.data);
		if (error.column != bad[i].column || strcmp(error.word, bad[i].word) ||
		    !strstr(error.message, bad[i].message))
			fail_msg("<%s>: column %zu <%s>: %s", bad[i].text, error.column, error.word,
				 error.message);
	}
}

static void append(char *text, size_t room, const char *more)
{
	size_t len = strlen(text);

	assert_true(len + strlen(more) < room);
	memcpy(text + len, more, strlen(more) + 1);
}

/* A word that is longer than its room is cut between characters, and cleaned. */
static void test_long_word(void **state)
{
	struct hvp_query_error error;
	struct hvp_queries queries;
	char text[512] = "module a x";

	(void)state;
	for (size_t i = 0; i < 100; i++)
		append(text, sizeof(text), "\xc3\xa9");
	append(text, sizeof(text), " +p");
	assert_int_equal(hvp_queries_parse(text, &queries, &error), -EINVAL);
	assert_int_equal(error.column, 10);
	assert_int_equal(strlen(error.word), sizeof(error.word) - 2);
	assert_string_equal(error.word + 57, "\xc3\xa9...");

	assert_int_equal(hvp_queries_parse("\x1b[2J\xff x +p", &queries, &error), -EINVAL);
	assert_string_equal(error.word, "?[2J?");
	assert_null(strchr(error.message, '\x1b'));
}

static void test_too_big(void **state)
{
	struct hvp_query_error error;
	struct hvp_queries queries;
	char text[2 * HVPOKE_REQ_DATA] = "+p; ";

	(void)state;
	/* Many small ones: 48 + 3 bytes, rounded up, each. */
	for (size_t i = 1; i < HVPOKE_REQ_DATA / 56; i++)
		append(text, sizeof(text), "+p;");
	parse_good(text, HVPOKE_REQ_DATA / 56, &queries);
	hvp_queries_free(&queries);
	append(text, sizeof(text), " +m");
	assert_int_equal(hvp_queries_parse(text, &queries, &error), -E2BIG);
	assert_int_equal(error.column, strlen(text) - 1);
	assert_string_equal(error.word, "+m");
	assert_non_null(strstr(error.message, "does not fit"));
	assert_null(queries.data);

	/* A large one. */
	snprintf(text, sizeof(text), "format %0*d +p", (int)HVPOKE_REQ_DATA, 0);
	assert_int_equal(hvp_queries_parse(text, &queries, &error), -E2BIG);
	assert_int_equal(error.column, 1);
}

/* Whatever the text, the records are whole and in bounds, and an error says where. */
static void check_outcome(const char *text)
{
	struct hvp_query_error error;
	struct hvp_queries queries;
	int result = hvp_queries_parse(text, &queries, &error);
	size_t at = 0;

	if (result) {
		assert_true(result == -EINVAL || result == -E2BIG);
		assert_true(error.message[0] && error.column <= strlen(text) + 1);
		assert_null(queries.data);
		return;
	}
	assert_true(queries.nr > 0 && queries.len <= HVPOKE_REQ_DATA);
	for (size_t i = 0; i < queries.nr; i++) {
		const struct hvpoke_query *query = (const void *)(queries.data + at);
		const uint16_t terms[] = {query->text,	 query->func,	query->file,
					  query->module, query->format, query->class_name};

		assert_true(query->size >= sizeof(*query) && query->size <= queries.len - at);
		assert_true(query->text != 0 && strchr("+-=", query->op));
		for (size_t t = 0; t < sizeof(terms) / sizeof(terms[0]); t++) {
			if (!terms[t])
				continue;
			assert_in_range(terms[t], sizeof(*query), query->size - 1);
			assert_non_null(memchr((const char *)query + terms[t], '\0',
					       query->size - terms[t]));
		}
		at += query->size;
	}
	assert_int_equal(at, queries.len);
	hvp_queries_free(&queries);
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33);
}

/* Mutations of the rows above, for a second, always the same ones. */
static void test_mutations(void **state)
{
	static const char bytes[] = "+-=!;%\n\"'\\# :*^pm019\xa0\xe4";
	const size_t nr = sizeof(good) / sizeof(good[0]);
	const clock_t end = clock() + CLOCKS_PER_SEC;
	uint64_t seed = 20250611, rounds = 0;
	char text[256];

	(void)state;
	while (clock() < end) {
		size_t len;

		snprintf(text, sizeof(text), "%s%s%s", good[next_random(&seed) % nr].text,
			 next_random(&seed) % 2 ? ";" : " ", bad[next_random(&seed) % 40].text);
		len = strlen(text);
		for (uint32_t n = next_random(&seed) % 4; n > 0; n--)
			text[next_random(&seed) % len] =
				bytes[next_random(&seed) % (sizeof(bytes) - 1)];
		if (next_random(&seed) % 8 == 0)
			text[next_random(&seed) % len] = '\0';
		check_outcome(text);
		rounds++;
	}
	print_message("%llu mutated texts\n", (unsigned long long)rounds);
	assert_true(rounds > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	cmocka_unit_test(test_lists),
		cmocka_unit_test(test_bad),	cmocka_unit_test(test_long_word),
		cmocka_unit_test(test_too_big), cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
