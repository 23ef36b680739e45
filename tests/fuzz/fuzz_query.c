// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texts that people and programs write to say what is to change. The first byte says what the
 * rest is: 'q' dynamic debug queries, 'k' the name of a key, 'e' and 'l' globs of
 * events and of keys, 't' any text that is to be shown.
 *
 * What is accepted makes good records. A query whose terms are written down once more, in
 * another way, is accepted again and means the same. What is refused gets a message
 * that can be shown.
 */
#include <errno.h>
#include <string.h>

#include "change.h"
#include "fuzz.h"
#include "text.h"

static bool can_be_shown(const char *text)
{
	if (!hvp_utf8_valid(text, strlen(text)))
		return false;
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void check_error(int err, const char *text, const struct hvp_query_error *error)
{
	CHECK(err == -EINVAL || err == -E2BIG);
	CHECK(error->message[0] && can_be_shown(error->message));
	CHECK(can_be_shown(error->word));
	CHECK(error->column <= strlen(text) + 1);
}

/* A string of @record, NULL if it has none. It ends inside of the record. */
static const char *string_of(const struct hvpoke_query *record, uint16_t offset)
{
	if (!offset)
		return NULL;
	CHECK(offset >= sizeof(*record) && offset < record->size);
	CHECK(memchr((const char *)record + offset, '\0', record->size - offset));
	return (const char *)record + offset;
}

static void check_record(const struct hvpoke_query *record, size_t left)
{
	const uint16_t offsets[] = {record->text,   record->func,   record->file,
				    record->module, record->format, record->class_name};

	CHECK(record->size >= sizeof(*record) && record->size <= left && record->size % 8 == 0);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		string_of(record, offsets[i]);
	CHECK(memchr(record->flags, '\0', sizeof(record->flags)));
	CHECK(strspn(record->flags, "pmfltsd_") == strlen(record->flags));
	CHECK(record->negate < 16 && !record->reserved);
	CHECK(!record->last_line || record->first_line <= record->last_line);
}

/* The next one, from memory that is aligned. NULL at the end. */
static const struct hvpoke_query *next_record(const struct hvp_queries *queries, size_t *at)
{
	const struct hvpoke_query *record = (const void *)(queries->data + *at);

	if (*at == queries->len)
		return NULL;
	CHECK(queries->len - *at >= sizeof(*record));
	check_record(record, queries->len - *at);
	*at += record->size;
	return record;
}

static void print_term(FILE *to, const char *name, bool negated, const char *value)
{
	if (value)
		fprintf(to, "%s%s %c%s%c ", negated ? "!" : "", name,
			strchr(value, '"') ? '\'' : '"', value, strchr(value, '"') ? '\'' : '"');
}

static void print_format(FILE *to, bool negated, const char *format)
{
	if (!format)
		return;
	fprintf(to, "%sformat \"", negated ? "!" : "");
	for (; *format; format++)
		fprintf(to, "\\%03o", (unsigned char)*format);
	fputs("\" ", to);
}

/* No quote can be written in a word that is quoted by it. */
static bool can_be_quoted(const char *value)
{
	return !value || !strchr(value, '"') || !strchr(value, '\'');
}

/* The record as a query, in other words than it came in. NULL if there are none. */
static char *print_record(const struct hvpoke_query *record)
{
	const char *func = string_of(record, record->func), *file = string_of(record, record->file);
	const char *module = string_of(record, record->module);
	const char *format = string_of(record, record->format);
	const char *class_name = string_of(record, record->class_name);
	bool lines = record->first_line || record->last_line;
	char *text = NULL;
	size_t len;
	FILE *to;

	/* More terms than a query has words for come from "file NAME:FUNCTION". */
	if (!!func + !!file + !!module + !!format + !!class_name + lines > 4 ||
	    !can_be_quoted(func) || !can_be_quoted(file) || !can_be_quoted(module) ||
	    !can_be_quoted(class_name))
		return NULL;
	to = open_memstream(&text, &len);
	CHECK(to);
	if (lines && record->last_line)
		fprintf(to, "line %u-%u ", record->first_line, record->last_line);
	else if (lines)
		fprintf(to, "line %u- ", record->first_line);
	print_term(to, "class", false, class_name);
	print_format(to, record->negate & HVPOKE_NEG_FORMAT, format);
	print_term(to, "module", record->negate & HVPOKE_NEG_MODULE, module);
	print_term(to, "func", record->negate & HVPOKE_NEG_FUNC, func);
	print_term(to, "file", record->negate & HVPOKE_NEG_FILE, file);
	fprintf(to, "%c%s", record->op, record->flags);
	fclose(to);
	return text;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* But for the text. */
static void check_same(const struct hvpoke_query *a, const struct hvpoke_query *b)
{
	CHECK(a->negate == b->negate && a->op == b->op && !strcmp(a->flags, b->flags));
	CHECK(a->first_line == b->first_line && a->last_line == b->last_line);
	CHECK(same(string_of(a, a->func), string_of(b, b->func)));
	CHECK(same(string_of(a, a->file), string_of(b, b->file)));
	CHECK(same(string_of(a, a->module), string_of(b, b->module)));
	CHECK(same(string_of(a, a->format), string_of(b, b->format)));
	CHECK(same(string_of(a, a->class_name), string_of(b, b->class_name)));
}

/* @text means @record and nothing else. */
static void check_means(const char *text, const struct hvpoke_query *record)
{
	struct hvp_query_error error;
	struct hvp_queries again;
	size_t at = 0;
	int err = hvp_queries_parse(text, &again, &error);

	/* Written with all its escapes it may not fit any more. */
	if (err == -E2BIG)
		return;
	CHECK(!err && again.nr == 1);
	check_same(record, next_record(&again, &at));
	hvp_queries_free(&again);
}

static void check_query(const struct hvpoke_query *record)
{
	char *text = print_record(record);

	CHECK(record->kind == HVPOKE_CHANGE_DYNDBG && strchr("+-=", record->op) && record->op);
	CHECK(record->text);
	check_means(string_of(record, record->text), record);
	if (text)
		check_means(text, record);
	free(text);
}

static void queries(const char *text)
{
	const struct hvpoke_query *record;
	struct hvp_query_error error;
	struct hvp_queries parsed;
	size_t at = 0, nr = 0;
	int err = hvp_queries_parse(text, &parsed, &error);

	if (err) {
		check_error(err, text, &error);
		CHECK(!parsed.data);
		return;
	}
	CHECK(parsed.len <= HVPOKE_REQ_DATA && parsed.nr);
	while ((record = next_record(&parsed, &at))) {
		check_query(record);
		nr++;
	}
	CHECK(nr == parsed.nr);
	hvp_queries_free(&parsed);
}

/* A name or a glob, which @make made one record of. */
static void check_change(int err, const char *text, struct hvp_queries *made,
			 const struct hvp_query_error *error, uint16_t kind)
{
	const struct hvpoke_query *record;
	const char *name;
	size_t at = 0;

	if (err) {
		check_error(err, text, error);
		return;
	}
	CHECK(made->nr == 1);
	record = next_record(made, &at);
	CHECK(record && at == made->len && record->kind == kind);
	name = string_of(record, record->text);
	CHECK(name && *name && can_be_shown(name) && !strpbrk(name, " \"'\\;%"));
	if (kind == HVPOKE_CHANGE_EVENTS) {
		const char *colon = strchr(name, ':');

		CHECK(colon && colon != name && colon[1] && !strchr(colon + 1, ':'));
	} else {
		CHECK(!strcmp(name, text));
	}
	hvp_queries_free(made);
}

static void shown_text(char *text)
{
	bool fine = can_be_shown(text);
	char *before = strdup(text), *once;

	CHECK(before);
	hvp_text_clean(text);
	CHECK(can_be_shown(text) && strlen(text) == strlen(before));
	once = strdup(text);
	CHECK(once);
	hvp_text_clean(text);
	CHECK(!strcmp(once, text));
	/* C1 is UTF-8 and cannot be shown. */
	CHECK(!fine || strstr(before, "\xc2") || !strcmp(before, text));
	free(before);
	free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hvp_query_error error = {0};
	struct hvp_queries made = {0};
	char *text;

	if (!size)
		return 0;
	text = fuzz_string(data + 1, size - 1);
	switch (data[0]) {
	case 'q': queries(text); break;
	case 'k':
		check_change(hvp_change_key(text, true, &made, &error), text, &made, &error,
			     HVPOKE_CHANGE_KEY);
		break;
	case 'e':
		check_change(hvp_change_events(text, true, &made, &error), text, &made, &error,
			     HVPOKE_CHANGE_EVENTS);
		break;
	case 'l':
		check_change(hvp_change_list_keys(text, 0, &made, &error), text, &made, &error,
			     HVPOKE_CHANGE_KEY);
		break;
	case 't': shown_text(text); break;
	default: break;
	}
	free(text);
	return 0;
}
