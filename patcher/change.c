// SPDX-License-Identifier: GPL-2.0-or-later
#include "change.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query_internal.h"
#include "text.h"

/* Bytes of a name or a glob: more than the kernel's longest symbol with its module. */
#define MAX_NAME 600

static int __attribute__((format(printf, 2, 3)))
fail(struct hvp_query_error *error, const char *fmt, ...)
{
	va_list args;

	memset(error, 0, sizeof(*error));
	va_start(args, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, args);
	va_end(args);
	hvp_text_clean(error->message);
	return -EINVAL;
}

/*
 * What kernels call their symbols, modules and events. No blanks, quotes or
 * control characters: those would be a mistake that nobody sees.
 */
static int check_name(const char *what, const char *name, const char *more,
		      struct hvp_query_error *error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.$-:";
	size_t len = strlen(name), good = 0;
	const char *colon = strchr(name, ':');

	if (!len)
		return fail(error, "there is no name: a %s is expected", what);
	if (len > MAX_NAME)
		return fail(error, "a %s of %zu bytes; at most %d are taken", what, len, MAX_NAME);
	while (name[good] && (strchr(letters, name[good]) || strchr(more, name[good])))
		good++;
	if (good < len)
		return fail(error,
			    "\"%.*s\" cannot stand in a %s: letters, digits and _ . $ - : %s can",
			    (name[good] & 0x80) ? (int)(len - good) : 1, name + good, what, more);
	if (colon && strchr(colon + 1, ':'))
		return fail(error, "\"%.100s\": a %s has one ':' at most", name, what);
	return 0;
}

static int make(const struct query_terms *terms, const char *text, struct hvp_queries *queries,
		struct hvp_query_error *error)
{
	struct slice slice = {text, text ? strlen(text) : 0};

	memset(queries, 0, sizeof(*queries));
	memset(error, 0, sizeof(*error));
	queries->data = malloc(HVPOKE_REQ_DATA);
	if (!queries->data)
		return -ENOMEM;
	/* A name of MAX_NAME bytes fits. */
	queries->len = query_emit(slice, terms, queries->data, HVPOKE_REQ_DATA);
	queries->nr = 1;
	return 0;
}

int hvp_change_key(const char *name, bool on, struct hvp_queries *queries,
		   struct hvp_query_error *error)
{
	const struct query_terms terms = {.kind = HVPOKE_CHANGE_KEY, .op = on ? '+' : '-'};
	const char *colon = strchr(name, ':');

	if (strpbrk(name, "*?["))
		return fail(
			error,
			"\"%.100s\" is a glob, but a key is switched by its whole name; a list of "
			"keys shows the names",
			name);
	if (check_name("key's name", name, "", error))
		return -EINVAL;
	if (colon && (colon == name || !colon[1]))
		return fail(error, "\"%.100s\": a module's key is MODULE:NAME", name);
	return make(&terms, name, queries, error);
}

int hvp_change_events(const char *glob, bool on, struct hvp_queries *queries,
		      struct hvp_query_error *error)
{
	const struct query_terms terms = {.kind = HVPOKE_CHANGE_EVENTS, .op = on ? '+' : '-'};
	const char *colon = strchr(glob, ':');
	char text[MAX_NAME + 4];
	int system;

	if (check_name("glob of events", glob, "*?[]!^", error))
		return -EINVAL;
	system = colon ? (int)(colon - glob) : (int)strlen(glob);
	snprintf(text, sizeof(text), "%.*s:%s", system ? system : 1, system ? glob : "*",
		 colon && colon[1] ? colon + 1 : "*");
	return make(&terms, text, queries, error);
}

int hvp_change_scope(uint32_t scope, struct hvp_queries *queries, struct hvp_query_error *error)
{
	const struct query_terms terms = {.kind = HVPOKE_CHANGE_SCOPE, .first_line = scope};

	return make(&terms, NULL, queries, error);
}

int hvp_change_list_keys(const char *glob, uint32_t skip, struct hvp_queries *queries,
			 struct hvp_query_error *error)
{
	const struct query_terms terms = {.kind = HVPOKE_CHANGE_KEY, .first_line = skip};

	if (check_name("glob of keys", glob, "*?[]!^", error))
		return -EINVAL;
	return make(&terms, glob, queries, error);
}

int hvp_queries_append(struct hvp_queries *queries, const struct hvp_queries *more)
{
	if (!more->len)
		return 0;
	if (more->len > HVPOKE_REQ_DATA - queries->len)
		return -E2BIG;
	if (!queries->data)
		queries->data = malloc(HVPOKE_REQ_DATA);
	if (!queries->data)
		return -ENOMEM;
	memcpy(queries->data + queries->len, more->data, more->len);
	queries->len += more->len;
	queries->nr += more->nr;
	return 0;
}
