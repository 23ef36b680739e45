// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * acpi.c - the tables that a stock kernel needs to find its CPUs, to power off
 * and to reset: written by hand, without a compiler for them. Not "hardware
 * reduced": PIC, PIT and ISA interrupts are there, as a PC's kernel expects.
 */
#include <string.h>

#include "acpi.h"
#include "acpi_pm.h"
#include "acpi_tables.h"
#include "checksum.h"
#include "interrupts.h"
#include "layout.h"
#include "mc146818.h"

/* The tables while they are laid out, one behind the other. */
struct acpi_writer {
	uint8_t *buf;
	uint32_t base;
	uint32_t used;
};

static void *reserve(struct acpi_writer *writer, uint32_t len, uint32_t align)
{
	void *at;

	writer->used = (writer->used + align - 1) & ~(align - 1);
	at = writer->buf + writer->used;
	memset(at, 0, len);
	writer->used += len;
	return at;
}

static uint32_t address(const struct acpi_writer *writer, const void *table)
{
	return writer->base + (uint32_t)((const uint8_t *)table - writer->buf);
}

static void *add_table(struct acpi_writer *writer, const char *signature, uint8_t revision,
		       uint32_t len)
{
	struct acpi_header *header = reserve(writer, len, 16);

	memcpy(header->signature, signature, 4);
	header->length = len;
	header->revision = revision;
	memcpy(header->oem_id, "HVPOKE", 6);
	memcpy(header->oem_table_id, "HVPOKEVM", 8);
	header->oem_revision = 1;
	memcpy(header->creator_id, "HVPK", 4);
	header->creator_revision = 1;
	return header;
}

static void seal(void *table)
{
	struct acpi_header *header = table;

	header->checksum = table_checksum(table, header->length);
}

static struct acpi_gas io_port(uint64_t port, uint8_t bytes)
{
	return (struct acpi_gas){
		.space = ACPI_SPACE_IO,
		.bit_width = bytes * 8,
		.access = bytes, /* 1: byte, 2: word */
		.address = port,
	};
}

/* AML: Name (\_S5, Package (4) { 5, 5, 0, 0 }) - SLP_TYP for PM1a and PM1b, reserved. */
/* clang-format off */
static const uint8_t dsdt_aml[] = {
	0x08, '_', 'S', '5', '_',		/* NameOp, NameSeg */
	0x12, 0x08, 0x04,			/* PackageOp, length, elements */
	0x0a, ACPI_SLEEP_S5,			/* BytePrefix, value */
	0x0a, ACPI_SLEEP_S5, 0x00, 0x00,	/* ZeroOp, ZeroOp */
};
/* clang-format on */

static void *add_dsdt(struct acpi_writer *writer)
{
	struct acpi_header *dsdt = add_table(writer, "DSDT", 2, sizeof(*dsdt) + sizeof(dsdt_aml));

	memcpy(dsdt + 1, dsdt_aml, sizeof(dsdt_aml));
	seal(dsdt);
	return dsdt;
}

static void *add_facs(struct acpi_writer *writer)
{
	struct acpi_facs *facs = reserve(writer, sizeof(*facs), 64);

	memcpy(facs->signature, "FACS", 4);
	facs->length = sizeof(*facs);
	facs->version = 1;
	return facs;
}

static void *add_fadt(struct acpi_writer *writer, uint32_t facs, uint32_t dsdt)
{
	struct acpi_fadt *fadt = add_table(writer, "FACP", 3, sizeof(*fadt));

	fadt->facs = facs;
	fadt->dsdt = dsdt;
	fadt->x_dsdt = dsdt;
	fadt->sci_interrupt = LAYOUT_IRQ_SCI;
	/* No SMI command: ACPI mode is on from the start. */
	fadt->pm1a_event = ACPI_PM1_EVENT;
	fadt->pm1a_control = ACPI_PM1_CONTROL;
	fadt->pm1_event_len = 4;
	fadt->pm1_control_len = 2;
	fadt->x_pm1a_event = io_port(ACPI_PM1_EVENT, 4);
	fadt->x_pm1a_event.access = 2; /* two registers of 16 bits */
	fadt->x_pm1a_control = io_port(ACPI_PM1_CONTROL, 2);
	fadt->c2_latency = ACPI_NO_C2;
	fadt->c3_latency = ACPI_NO_C3;
	fadt->century = MC146818_CENTURY;
	fadt->boot_arch = ACPI_BOOT_LEGACY_DEVICES | ACPI_BOOT_NO_VGA;
	fadt->flags = ACPI_FADT_WBINVD | ACPI_FADT_C1 | ACPI_FADT_NO_POWER_BUTTON |
		      ACPI_FADT_NO_SLEEP_BUTTON | ACPI_FADT_NO_FIXED_RTC | ACPI_FADT_RESET;
	fadt->reset = io_port(ACPI_RESET, 1);
	fadt->reset_value = ACPI_RESET_VALUE;
	seal(fadt);
	return fadt;
}

static uint32_t madt_size(unsigned int nr_cpus)
{
	return sizeof(struct acpi_madt) + nr_cpus * sizeof(struct acpi_madt_lapic) +
	       sizeof(struct acpi_madt_ioapic) + sizeof(struct acpi_madt_override) +
	       sizeof(struct acpi_madt_lapic_nmi);
}

static void *add_madt(struct acpi_writer *writer, unsigned int nr_cpus)
{
	struct acpi_madt *madt = add_table(writer, "APIC", 4, madt_size(nr_cpus));
	struct acpi_madt_lapic *lapic = (void *)(madt + 1);
	struct acpi_madt_ioapic *ioapic = (void *)(lapic + nr_cpus);
	struct acpi_madt_override *sci = (void *)(ioapic + 1);
	struct acpi_madt_lapic_nmi *nmi = (void *)(sci + 1);

	madt->lapic = LAPIC_ADDR;
	madt->flags = ACPI_MADT_PCAT_COMPAT;
	/* Ids below 255 must use these; x2APIC entries are for the others (ACPI 6.5, 5.2.12.12). */
	for (unsigned int i = 0; i < nr_cpus; i++)
		lapic[i] = (struct acpi_madt_lapic){
			.type = ACPI_MADT_LAPIC,
			.length = sizeof(*lapic),
			.processor = (uint8_t)i,
			.apic_id = (uint8_t)i,
			.flags = ACPI_MADT_ENABLED,
		};
	*ioapic = (struct acpi_madt_ioapic){
		.type = ACPI_MADT_IOAPIC,
		.length = sizeof(*ioapic),
		.id = IOAPIC_ID,
		.address = IOAPIC_ADDR,
	};
	/* ISA interrupts are edge, active high and one to one; only the SCI is another kind. */
	*sci = (struct acpi_madt_override){
		.type = ACPI_MADT_OVERRIDE,
		.length = sizeof(*sci),
		.irq = LAYOUT_IRQ_SCI,
		.gsi = isa_irq_pin(LAYOUT_IRQ_SCI),
		.flags = ACPI_MADT_HIGH | ACPI_MADT_LEVEL,
	};
	*nmi = (struct acpi_madt_lapic_nmi){
		.type = ACPI_MADT_LAPIC_NMI,
		.length = sizeof(*nmi),
		.processor = 0xff, /* all */
		.lint = 1,
	};
	seal(madt);
	return madt;
}

static void add_xsdt(struct acpi_writer *writer, struct acpi_rsdp *rsdp, uint32_t fadt,
		     uint32_t madt)
{
	struct acpi_xsdt *xsdt = add_table(writer, "XSDT", 1, sizeof(*xsdt));

	xsdt->tables[0] = fadt;
	xsdt->tables[1] = madt;
	seal(xsdt);

	memcpy(rsdp->signature, "RSD PTR ", 8);
	memcpy(rsdp->oem_id, "HVPOKE", 6);
	rsdp->revision = 2;
	rsdp->length = sizeof(*rsdp);
	rsdp->xsdt = address(writer, xsdt);
	rsdp->checksum = table_checksum(rsdp, ACPI_RSDP_V1_LENGTH);
	rsdp->ext_checksum = table_checksum(rsdp, sizeof(*rsdp));
}

/* Behind each table at most 63 bytes are lost to alignment. */
#define MAX_PADDING (6 * 63)

size_t acpi_build(void *buf, size_t len, uint32_t base, unsigned int nr_cpus)
{
	struct acpi_writer writer = {.buf = buf, .base = base};
	struct acpi_rsdp *rsdp;
	void *facs, *dsdt, *fadt, *madt;

	if (len < sizeof(struct acpi_rsdp) + sizeof(struct acpi_xsdt) + sizeof(struct acpi_fadt) +
			  sizeof(struct acpi_facs) + sizeof(struct acpi_header) + sizeof(dsdt_aml) +
			  madt_size(nr_cpus) + MAX_PADDING)
		return 0;
	rsdp = reserve(&writer, sizeof(*rsdp), 16);
	facs = add_facs(&writer);
	dsdt = add_dsdt(&writer);
	fadt = add_fadt(&writer, address(&writer, facs), address(&writer, dsdt));
	madt = add_madt(&writer, nr_cpus);
	add_xsdt(&writer, rsdp, address(&writer, fadt), address(&writer, madt));
	return writer.used;
}
