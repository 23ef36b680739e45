/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_QUERY_INTERNAL_H
#define HVP_QUERY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query.h"

/*
 * The way of a query: query.c splits the text, query_tokenize.c makes words of
 * one query, query_terms.c finds out what they mean, query_emit.c writes that
 * down for the guest. Nothing is copied before the last step: words and terms
 * are slices of the caller's text.
 */

/* The kernel's MAXWORDS: four terms and the flags. */
#define QUERY_MAX_WORDS 9

struct slice {
	const char *at; /* NULL: there is none */
	size_t len;
};

/* One query among those of a text, and where to complain. */
struct query_source {
	const char *whole;  /* all of the text */
	struct slice query; /* this query, without white space around it */
	char before;	    /* the separator that it follows; '\0': first */
	char after;	    /* the separator that ends it; '\0': last */
	struct hvp_query_error *error;
};

struct query_word {
	struct slice text; /* without quotes */
	bool quoted;
	bool adjacent; /* follows a closing quote without a space */
};

struct query_words {
	size_t nr;
	struct query_word word[QUERY_MAX_WORDS];
};

struct query_terms {
	struct slice func, file, module, format, class_name;
	uint16_t kind;	     /* enum hvpoke_change; change.c has the others than dyndbg's */
	uint32_t negate;     /* HVPOKE_NEG_* */
	uint32_t first_line; /* as the kernel keeps them: 0 is unset, */
	uint32_t last_line;  /* UINT32_MAX an open end */
	char op;
	char flags[15]; /* NUL terminated, each letter once */
};

/* isspace() and isalpha() of the kernel's lib/ctype.c: Latin-1. */
bool query_isspace(char c);
bool query_isalpha(char c);
bool query_slice_is(struct slice slice, const char *word);

/* Fill in the error with @where (its word and column) and a message. Returns -EINVAL. */
int query_fail(const struct query_source *source, struct slice where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Each returns 0, or -EINVAL with the error filled in. */
int query_tokenize(const struct query_source *source, struct query_words *words);
int query_parse_terms(const struct query_source *source, const struct query_words *words,
		      struct query_terms *terms);

/*
 * Write the record of one query to @to, which has room for @room bytes and
 * starts on a multiple of 8. Returns its size; if that is more than @room,
 * nothing was written.
 */
size_t query_emit(struct slice text, const struct query_terms *terms, uint8_t *to, size_t room);

/*
 * Resolve the escapes of a format as the kernel does; @to has room for
 * @from.len + 1 bytes. Returns the length up to the first NUL.
 */
size_t query_unescape(struct slice from, char *to);

#endif /* HVP_QUERY_INTERNAL_H */
