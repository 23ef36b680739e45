// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A change's record (struct hvpoke_query). Of a dynamic debug query: the text for a
 * kernel that parses it itself, and the terms for the agent. Of others (change.c) the
 * text, if any, is all.
 */
#include <stdlib.h>
#include <string.h>

#include "query_internal.h"

static bool octal(char c)
{
	return c >= '0' && c <= '7';
}

/*
 * string_unescape() of the kernel's lib/string_helpers.c with UNESCAPE_SPACE,
 * UNESCAPE_OCTAL and UNESCAPE_SPECIAL: \n \r \t \v \f \a \e \\ \" and up to
 * three octal digits while the value is below 256; any other backslash stays.
 */
size_t query_unescape(struct slice from, char *to)
{
	static const char letters[] = "nrtvfae\\\"", values[] = "\n\r\t\v\f\a\033\\\"";
	const char *at = from.at, *end = at + from.len, *letter;
	char *out = to;

	while (at < end) {
		if (*at != '\\' || at + 1 == end) {
			*out++ = *at++;
			continue;
		}
		at++;
		if (octal(*at)) {
			unsigned int value = 0;

			for (int digits = 0; digits < 3 && at < end && octal(*at) && value < 32;
			     digits++)
				value = value * 8 + (unsigned int)(*at++ - '0');
			*out++ = (char)value;
			continue;
		}
		letter = strchr(letters, *at);
		if (letter) {
			*out++ = values[letter - letters];
			at++;
		} else {
			/* The letter too, even if it is another backslash's. */
			*out++ = '\\';
			*out++ = *at++;
		}
	}
	*out = '\0';
	return strlen(to);
}

/* Append a term's string; its offset in the record goes to @field. */
static size_t append(uint8_t *record, size_t at, struct slice string, __u16 *field)
{
	if (!string.at)
		return at;
	*field = (__u16)at;
	memcpy(record + at, string.at, string.len);
	record[at + string.len] = '\0';
	return at + string.len + 1;
}

static size_t room_for(struct slice string)
{
	return string.at ? string.len + 1 : 0;
}

size_t query_emit(struct slice text, const struct query_terms *terms, uint8_t *to, size_t room)
{
	struct hvpoke_query query = {
		.negate = terms->negate,
		.first_line = terms->first_line,
		.last_line = terms->last_line == UINT32_MAX ? 0 : terms->last_line,
		.op = terms->op,
		.kind = terms->kind,
	};
	size_t at = sizeof(query), size;
	char unescaped[HVPOKE_REQ_DATA + 1];
	struct slice format = terms->format;

	size = sizeof(query) + room_for(text) + room_for(terms->func) + room_for(terms->file) +
	       room_for(terms->module) + room_for(format) + room_for(terms->class_name);
	size = (size + 7) & ~(size_t)7;
	if (size > room)
		return size;

	if (format.at) {
		format.len = query_unescape(format, unescaped);
		format.at = unescaped;
	}
	memset(to, 0, size);
	memcpy(query.flags, terms->flags, sizeof(query.flags));
	at = append(to, at, text, &query.text);
	at = append(to, at, terms->func, &query.func);
	at = append(to, at, terms->file, &query.file);
	at = append(to, at, terms->module, &query.module);
	at = append(to, at, format, &query.format);
	append(to, at, terms->class_name, &query.class_name);
	query.size = (__u32)size;
	memcpy(to, &query, sizeof(query));
	return size;
}
