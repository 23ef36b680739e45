// SPDX-License-Identifier: GPL-2.0-or-later
#include "origin.h"

#include <string.h>

static const char more[] = "...";

void hvp_origin_add(struct hvp_origin *origin, const char *text)
{
	size_t used = strlen(origin->what), len = strlen(text);
	size_t room;

	/* It has been cut off before: nothing may follow. */
	if (used > sizeof(origin->what) - sizeof(more))
		return;
	room = sizeof(origin->what) - sizeof(more) - used;
	if (len <= room) {
		memcpy(origin->what + used, text, len + 1);
		return;
	}
	/* Not in the middle of a character: back to the first byte of the one that is cut. */
	while (room && ((unsigned char)text[room] & 0xc0) == 0x80)
		room--;
	memcpy(origin->what + used, text, room);
	memset(origin->what + used + room, 0, sizeof(origin->what) - used - room);
	memcpy(origin->what + used + room, more, sizeof(more));
}
