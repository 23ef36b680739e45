// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a query's words mean: ddebug_parse_flags() and ddebug_parse_query() of
 * the kernel's lib/dynamic_debug.c, and `!` before a keyword.
 *
 * `!` inverts the one term whose keyword it stands before. In
 * "!file a.c:func" that is the file: the tail sets the function, or the lines,
 * as it does without the `!`, so that the query means the sites of functions
 * of that name in all other files.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "query_internal.h"

/* Of all kernels: 6.1 has no s, 6.12 no d. The guest's own says what it does not know. */
#define FLAG_LETTERS "pmfltsd_"

static int parse_flags(const struct query_source *source, struct slice word,
		       struct query_terms *terms)
{
	size_t nr = 0;

	if (word.len == 0 || !strchr("+-=", word.at[0]))
		return query_fail(source, word,
				  "the last word of a query must be flags, such as +p, -p or =pmf, "
				  "not \"%.*s\"",
				  (int)word.len, word.at);
	terms->op = word.at[0];
	for (size_t i = 1; i < word.len; i++) {
		if (!strchr(FLAG_LETTERS, word.at[i]))
			return query_fail(source, word, "unknown flag '%c'; a flag is one of %s",
					  word.at[i], FLAG_LETTERS);
		/* Twice is the same as once; so the letters always fit. */
		if (!strchr(terms->flags, word.at[i]))
			terms->flags[nr++] = word.at[i];
	}
	return 0;
}

/* kstrtouint(, 10, ), and nothing at all is 0. */
static bool parse_number(struct slice text, uint32_t *value)
{
	uint64_t sum = 0;
	size_t i = 0;

	if (text.len > 1 && text.at[0] == '+')
		i++;
	for (; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		sum = sum * 10 + (uint64_t)(text.at[i] - '0');
		if (sum > UINT32_MAX)
			return false;
	}
	*value = (uint32_t)sum;
	return true;
}

/* parse_linerange(): N, N-M, N-, -M. As in the kernel "line 0" sets nothing. */
static int parse_lines(const struct query_source *source, struct slice range,
		       struct query_terms *terms)
{
	const char *dash = memchr(range.at, '-', range.len);
	struct slice first = range, last;

	if (terms->first_line || terms->last_line)
		return query_fail(source, range, "the lines are given twice in one query");
	if (dash)
		first.len = (size_t)(dash - range.at);
	if (!parse_number(first, &terms->first_line))
		goto bad;
	terms->last_line = terms->first_line;
	if (!dash)
		return 0;

	last.at = dash + 1;
	last.len = range.len - first.len - 1;
	if (!parse_number(last, &terms->last_line))
		goto bad;
	if (terms->last_line == 0)
		terms->last_line = UINT32_MAX;
	if (terms->last_line < terms->first_line)
		return query_fail(source, range, "the last line, %u, is before the first, %u",
				  terms->last_line, terms->first_line);
	return 0;
bad:
	return query_fail(source, range,
			  "expected a line or a range, such as 10, 10-20, 10- or -20, not \"%.*s\"",
			  (int)range.len, range.at);
}

/* check_set(): a term may be given once, inverted or not. */
static int set_term(const struct query_source *source, const char *name, struct slice value,
		    struct slice *term)
{
	if (term->at)
		return query_fail(source, value, "%s is given twice in one query", name);
	*term = value;
	return 0;
}

static int set_file(const struct query_source *source, struct slice value,
		    struct query_terms *terms)
{
	const char *colon = memchr(value.at, ':', value.len);
	struct slice file = value, tail;
	int error;

	if (colon)
		file.len = (size_t)(colon - value.at);
	error = set_term(source, "file", file, &terms->file);
	if (error || !colon)
		return error;
	tail.at = colon + 1;
	tail.len = value.len - file.len - 1;
	if (tail.len > 0 && (query_isalpha(*tail.at) || *tail.at == '*' || *tail.at == '?'))
		return set_term(source, "func", tail, &terms->func);
	return parse_lines(source, tail, terms);
}

static const struct keyword {
	const char *name;
	uint32_t negate; /* HVPOKE_NEG_*; 0: cannot be inverted */
} keywords[] = {
	{"func", HVPOKE_NEG_FUNC},
	{"file", HVPOKE_NEG_FILE},
	{"module", HVPOKE_NEG_MODULE},
	{"format", HVPOKE_NEG_FORMAT},
	{"line", 0},
	{"class", 0},
};

/* The keyword that @word is, or NULL with the error filled in. */
static const struct keyword *find_keyword(const struct query_source *source,
					  const struct query_word *word, bool *negated)
{
	struct slice name = word->text;

	*negated = name.len > 0 && name.at[0] == '!';
	if (*negated) {
		name.at++;
		name.len--;
		if (name.len == 0) {
			query_fail(source, word->text,
				   "put the '!' right before its keyword, with no space: "
				   "!module virtio*");
			return NULL;
		}
	}
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (!query_slice_is(name, keywords[i].name))
			continue;
		if (!*negated || keywords[i].negate)
			return &keywords[i];
		query_fail(source, word->text,
			   "'!' cannot stand before %s: only func, file, module and format can be "
			   "inverted",
			   keywords[i].name);
		return NULL;
	}
	query_fail(source, word->text,
		   "unknown keyword \"%.*s\"; expected func, file, module, format, line or class%s",
		   (int)name.len, name.at,
		   word->adjacent ? " (a quote cannot be escaped: in a format write \\042)" : "");
	return NULL;
}

/*
 * "module !virtio* +p": the kernel would look for a module of that very name.
 * No module, file or function is called so, and a format that begins with a
 * '!' can be quoted; so it is a mistake, and one that would go unnoticed.
 */
static int check_value(const struct query_source *source, const struct keyword *keyword,
		       const struct query_word *value)
{
	struct slice text = value->text;
	bool is_format = keyword->negate == HVPOKE_NEG_FORMAT;

	if (text.len == 0 || text.at[0] != '!' || (is_format && value->quoted))
		return 0;
	if (!keyword->negate)
		return query_fail(source, text, "%s cannot be inverted by '!'", keyword->name);
	return query_fail(source, text, "the '!' belongs before the keyword: !%s %.*s%s",
			  keyword->name, (int)text.len - 1, text.at + 1,
			  is_format ? " (or quote the format, if its text begins with a '!')" : "");
}

static int set_by_keyword(const struct query_source *source, const struct keyword *keyword,
			  struct slice value, struct query_terms *terms)
{
	switch (keyword->negate) {
	case HVPOKE_NEG_FUNC: return set_term(source, keyword->name, value, &terms->func);
	case HVPOKE_NEG_FILE: return set_file(source, value, terms);
	case HVPOKE_NEG_MODULE: return set_term(source, keyword->name, value, &terms->module);
	case HVPOKE_NEG_FORMAT: return set_term(source, keyword->name, value, &terms->format);
	}
	if (!strcmp(keyword->name, "line"))
		return parse_lines(source, value, terms);
	return set_term(source, keyword->name, value, &terms->class_name);
}

int query_parse_terms(const struct query_source *source, const struct query_words *words,
		      struct query_terms *terms)
{
	const struct keyword *keyword;
	size_t nr = words->nr - 1;
	bool negated;
	int error;

	error = parse_flags(source, words->word[nr].text, terms);
	for (size_t i = 0; !error && i < nr; i += 2) {
		const struct query_word *word = &words->word[i];

		keyword = find_keyword(source, word, &negated);
		if (!keyword)
			return -EINVAL;
		if (i + 1 == nr)
			return query_fail(source, word->text,
					  "\"%s\" needs a value before the flags", keyword->name);
		error = check_value(source, keyword, word + 1);
		if (!error)
			error = set_by_keyword(source, keyword, word[1].text, terms);
		if (negated)
			terms->negate |= keyword->negate;
	}
	return error;
}
