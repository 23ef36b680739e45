// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A query's words, as ddebug_tokenize() of the kernel's lib/dynamic_debug.c
 * finds them: separated by white space, or in quotes of either kind (with no
 * way to escape a quote inside); '#' where a word would begin ends the query.
 */
#include <string.h>

#include "query_internal.h"

static struct slice between(const char *begin, const char *end)
{
	return (struct slice){begin, (size_t)(end - begin)};
}

/* A query ended inside of a quote. The likely reason is a separator there. */
static int fail_unclosed(const struct query_source *source, struct slice quote)
{
	const char *name = "';'", *escape = "\\073";
	size_t column = (size_t)(quote.at + quote.len - source->whole) + 1;

	switch (source->after) {
	case '\0': return query_fail(source, quote, "the quote that starts here is not closed");
	case '\n':
		name = "newline";
		escape = "\\012";
		break;
	case '%':
		name = "'%'";
		escape = "\\045";
		break;
	}
	/* Blanks before the separator are not part of the query any more. */
	column += strcspn(quote.at + quote.len, ";\n%");
	return query_fail(
		source, quote,
		"the quote that starts here is cut by the %s at column %zu, which separates "
		"queries even inside of quotes; in a format write %s for it",
		name, column, escape);
}

int query_tokenize(const struct query_source *source, struct query_words *words)
{
	const char *at = source->query.at, *end = at + source->query.len, *begin;
	bool after_quote = false;

	words->nr = 0;
	while (at < end) {
		struct query_word word = {.adjacent = after_quote};

		if (query_isspace(*at)) {
			after_quote = false;
			at++;
			continue;
		}
		if (*at == '#')
			break;
		begin = at;
		word.quoted = *at == '"' || *at == '\'';
		if (word.quoted) {
			at = memchr(begin + 1, *begin, (size_t)(end - begin - 1));
			if (!at)
				return fail_unclosed(source, between(begin, end));
			word.text = between(begin + 1, at++);
		} else {
			while (at < end && !query_isspace(*at))
				at++;
			word.text = between(begin, at);
		}
		after_quote = word.quoted;
		if (words->nr == QUERY_MAX_WORDS)
			return query_fail(
				source, between(begin, at),
				"too many words: the kernel takes %d in a query, four terms "
				"and the flags",
				QUERY_MAX_WORDS);
		words->word[words->nr++] = word;
	}
	return 0;
}
