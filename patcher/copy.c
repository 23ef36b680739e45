// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "copy.h"

void hvp_copy_in(void *dst, const void *src, size_t len)
{
	const uint64_t *from = src;
	uint8_t *to = dst;
	uint64_t word;

	for (size_t i = 0; i < len / sizeof(word); i++) {
		word = __atomic_load_n(from + i, __ATOMIC_RELAXED);
		memcpy(to + i * sizeof(word), &word, sizeof(word));
	}
}

void hvp_copy_out(void *dst, const void *src, size_t len)
{
	uint32_t *to = dst;
	const uint8_t *from = src;
	uint32_t word;

	for (size_t i = 0; i < len / sizeof(word); i++) {
		memcpy(&word, from + i * sizeof(word), sizeof(word));
		__atomic_store_n(to + i, word, __ATOMIC_RELAXED);
	}
}
