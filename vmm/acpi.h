/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_ACPI_H
#define VMM_ACPI_H

#include <stddef.h>
#include <stdint.h>

/*
 * Build the ACPI tables (ACPI 6.5, chapter 5) in @buf, which will stand at
 * guest address @base (64-byte aligned, below 4 GiB): RSDP first, then XSDT,
 * FADT, FACS, DSDT, MADT. CPUs have the APIC ids 0 to @nr_cpus - 1, at most
 * 255 of them. Returns the bytes used, or 0 if @len is too small.
 */
size_t acpi_build(void *buf, size_t len, uint32_t base, unsigned int nr_cpus);

#endif /* VMM_ACPI_H */
