// SPDX-License-Identifier: GPL-2.0-or-later
/* Where in a query the error is. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

/* Characters, not bytes: continuation bytes of UTF-8 take no column. */
static size_t width_of(const char *text, size_t len)
{
	size_t width = 0, i;

	for (i = 0; i < len; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

void print_caret(FILE *to, const char *text, size_t column, const char *word)
{
	size_t at = column - 1, start, end, marks, word_len = strlen(word);
	char *line;

	if (!column || at > strlen(text))
		return;
	for (start = at; start && text[start - 1] != '\n'; start--)
		;
	for (end = at; text[end] && text[end] != '\n'; end++)
		;
	line = strndup(text + start, end - start);
	if (!line)
		return;
	/* Tabs and the like become one '?' each, so that the mark stands where it should. */
	hvp_text_clean(line);
	/* A word that was shortened does not stand there as it is: then mark its start only. */
	marks = 1;
	if (word_len && word_len <= end - at && !strncmp(text + at, word, word_len))
		marks = width_of(word, word_len);
	fprintf(to, "  %s\n  %*s^", line, (int)width_of(line, at - start), "");
	while (--marks)
		fputc('~', to);
	fputc('\n', to);
	free(line);
}
