// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dynamic debug queries: from a text to the records that the guest's agent gets.
 *
 * The kernel carries on after a query that it cannot parse, with the rest of a
 * list; here nothing is sent unless all of the list is good. What the kernel
 * refuses is refused here too, with the word and the column.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query_internal.h"
#include "text.h"

#define SEPARATORS ";\n%"

bool query_isspace(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= '\t' && u <= '\r') || u == ' ' || u == 0xa0;
}

bool query_isalpha(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
	       (u >= 0xc0 && u != 0xd7 && u != 0xf7);
}

bool query_slice_is(struct slice slice, const char *word)
{
	return slice.len == strlen(word) && !memcmp(slice.at, word, slice.len);
}

/* Copy a word for people, shortened between characters if it must be. */
static void copy_word(char *to, size_t room, struct slice word)
{
	size_t len = word.len;

	if (len < room) {
		memcpy(to, word.at, len);
		to[len] = '\0';
	} else {
		len = room - sizeof("...");
		while (len > 0 && ((unsigned char)word.at[len] & 0xc0) == 0x80)
			len--;
		memcpy(to, word.at, len);
		memcpy(to + len, "...", sizeof("..."));
	}
	hvp_text_clean(to);
}

int query_fail(const struct query_source *source, struct slice where, const char *fmt, ...)
{
	struct hvp_query_error *error = source->error;
	size_t len;
	va_list args;

	error->column = (size_t)(where.at - source->whole) + 1;
	copy_word(error->word, sizeof(error->word), where);
	va_start(args, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, args);
	va_end(args);
	/* Few people know that '%' separates; many write formats. */
	len = strlen(error->message);
	if ((source->before == '%' || source->after == '%') && !strchr(error->message, '%'))
		snprintf(error->message + len, sizeof(error->message) - len,
			 " ('%%' separates queries; inside of a format write \\045)");
	hvp_text_clean(error->message);
	return -EINVAL;
}

/* The next query at or after *@at; false if there is none. Moves *@at behind it. */
static bool next_query(struct query_source *source, const char **at)
{
	const char *begin = *at, *end;

	while (*begin) {
		while (query_isspace(*begin) && *begin != '\n')
			begin++;
		end = begin + strcspn(begin, SEPARATORS);
		source->after = *end;
		if (end > begin && *begin != '#') {
			*at = end;
			while (query_isspace(end[-1]))
				end--;
			source->query = (struct slice){begin, (size_t)(end - begin)};
			return true;
		}
		source->before = *end;
		begin = *end ? end + 1 : end;
	}
	return false;
}

static int parse_one(const struct query_source *source, struct hvp_queries *queries)
{
	struct query_terms terms = {0};
	struct query_words words;
	size_t size, room = HVPOKE_REQ_DATA - queries->len;
	int error;

	error = query_tokenize(source, &words);
	if (!error)
		error = query_parse_terms(source, &words, &terms);
	if (error)
		return error;
	size = query_emit(source->query, &terms, queries->data + queries->len, room);
	if (size > room) {
		query_fail(
			source, source->query,
			"this query does not fit: a request holds %u bytes and %zu are left, but "
			"it needs %zu; send fewer queries at a time, or a shorter one",
			HVPOKE_REQ_DATA, room, size);
		return -E2BIG;
	}
	queries->len += size;
	queries->nr++;
	return 0;
}

int hvp_queries_parse(const char *text, struct hvp_queries *queries, struct hvp_query_error *error)
{
	struct query_source source = {.whole = text, .error = error};
	const char *at = text;
	int result = 0;

	memset(queries, 0, sizeof(*queries));
	memset(error, 0, sizeof(*error));
	queries->data = malloc(HVPOKE_REQ_DATA);
	if (!queries->data)
		return -ENOMEM;
	while (!result && next_query(&source, &at)) {
		result = parse_one(&source, queries);
		source.before = *at;
		if (*at)
			at++;
	}
	if (!result && queries->nr == 0) {
		snprintf(error->message, sizeof(error->message),
			 "there is no query; write for example: module usbcore +p");
		result = -EINVAL;
	}
	if (result)
		hvp_queries_free(queries);
	return result;
}

void hvp_queries_free(struct hvp_queries *queries)
{
	free(queries->data);
	memset(queries, 0, sizeof(*queries));
}
