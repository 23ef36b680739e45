// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "string_in.h"

void hvp_string_in(char *dst, const char *src, size_t len)
{
	size_t i;

	for (i = 0; i < len && src[i]; i++)
		dst[i] = src[i] >= ' ' && src[i] <= '~' ? src[i] : '?';
	memset(dst + i, 0, len + 1 - i);
}
