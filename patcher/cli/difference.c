// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What changes between two texts, for a person to agree to. One is made from the other by
 * adding lines and, now and then, changing one: so walking along both is enough.
 */
#include <stdlib.h>
#include <string.h>

#include "libvirt.h"

#define CONTEXT 2

static size_t line_len(const char *line)
{
	return strcspn(line, "\n");
}

static const char *next_line(const char *line)
{
	line += line_len(line);
	return *line ? line + 1 : line;
}

static bool same_line(const char *a, const char *b)
{
	return line_len(a) == line_len(b) && !memcmp(a, b, line_len(a));
}

static bool stands_in(const char *line, const char *text)
{
	for (; *text; text = next_line(text))
		if (same_line(line, text))
			return true;
	return false;
}

static void print_line(FILE *to, char mark, const char *line)
{
	fprintf(to, "%c%.*s\n", mark, (int)line_len(line), line);
}

/* The few lines of @text before @at that are not yet shown. */
static void print_before(FILE *to, const char *text, const char *at, int unshown)
{
	const char *recent[CONTEXT] = {NULL};
	int nr = 0, show;

	for (; text < at; text = next_line(text))
		recent[nr++ % CONTEXT] = text;
	show = nr < CONTEXT ? nr : CONTEXT;
	if (show > unshown)
		show = unshown;
	else if (unshown > CONTEXT)
		fputs(" ...\n", to);
	for (; show > 0; show--)
		print_line(to, ' ', recent[(nr - show) % CONTEXT]);
}

void print_difference(FILE *to, const char *before, const char *after)
{
	const char *old = before, *new_text = after;
	int unshown = 0, follow = 0;

	while (*old || *new_text) {
		if (*old && *new_text && same_line(old, new_text)) {
			if (follow > 0) {
				print_line(to, ' ', old);
				follow--;
			} else {
				unshown++;
			}
			old = next_line(old);
			new_text = next_line(new_text);
			continue;
		}
		if (unshown)
			print_before(to, before, old, unshown);
		unshown = 0;
		follow = CONTEXT;
		if (*old && (!*new_text || !stands_in(old, new_text))) {
			print_line(to, '-', old);
			old = next_line(old);
		} else {
			print_line(to, '+', new_text);
			new_text = next_line(new_text);
		}
	}
}
