/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_MPTABLE_H
#define VMM_MPTABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Build a table by the MultiProcessor Specification 1.4 in @buf, which will
 * stand at guest address @base (16-byte aligned, below 4 GiB): the floating
 * pointer first, the configuration table behind it. CPUs have the APIC ids
 * 0 to @nr_cpus - 1. Returns the bytes used, or 0 if @len is too small.
 */
size_t mptable_build(void *buf, size_t len, uint32_t base, unsigned int nr_cpus);

#endif /* VMM_MPTABLE_H */
