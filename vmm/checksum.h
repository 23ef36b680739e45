/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_CHECKSUM_H
#define VMM_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The byte that makes all bytes sum up to 0: MP and ACPI tables. Its own byte must be 0. */
static inline uint8_t table_checksum(const void *table, size_t len)
{
	const uint8_t *byte = table;
	uint8_t sum = 0;

	while (len--)
		sum += *byte++;
	return (uint8_t)-sum;
}

#endif /* VMM_CHECKSUM_H */
