// SPDX-License-Identifier: GPL-2.0-or-later
/* Text that others wrote: is it UTF-8, and can it be shown? */
#include "text.h"

#include <string.h>

/*
 * Bytes of the UTF-8 sequence at @text, 0 if it is none. The second byte's
 * range depends on the first (Unicode, table 3-7): that is what excludes
 * overlong forms, surrogates and what lies past U+10FFFF.
 */
static size_t sequence(const unsigned char *text, size_t len)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t need, i;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	need = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	if (text[0] == 0xe0)
		low = 0xa0;
	else if (text[0] == 0xed)
		high = 0x9f;
	else if (text[0] == 0xf0)
		low = 0x90;
	else if (text[0] == 0xf4)
		high = 0x8f;
	if (len < need || text[1] < low || text[1] > high)
		return 0;
	for (i = 2; i < need; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return need;
}

bool hvp_utf8_valid(const char *text, size_t len)
{
	size_t at = 0, step;

	for (; at < len; at += step) {
		step = sequence((const unsigned char *)text + at, len - at);
		if (!step)
			return false;
	}
	return true;
}

void hvp_text_clean(char *text)
{
	unsigned char *at = (unsigned char *)text;
	size_t left = strlen(text), step;

	for (; left; at += step, left -= step) {
		step = sequence(at, left);
		if (!step) {
			*at = '?';
			step = 1;
		} else if (at[0] < 0x20 || at[0] == 0x7f) {
			*at = '?';
		} else if (at[0] == 0xc2 && at[1] < 0xa0) {
			/* C1: a terminal takes U+009B for the start of an escape sequence. */
			at[0] = '?';
			at[1] = '?';
		}
	}
}
