/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_GPA_H
#define HVP_GPA_H

#include <stdint.h>

/*
 * A guest physical address. A type of its own, so that it can neither be
 * dereferenced nor mixed up with a host address or a length.
 */
typedef struct {
	uint64_t addr;
} gpa_t;

static inline gpa_t gpa(uint64_t addr)
{
	return (gpa_t){.addr = addr};
}

#endif /* HVP_GPA_H */
