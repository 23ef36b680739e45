// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mptable.c - CPUs and interrupt lines for kernels without ACPI, by the
 * MultiProcessor Specification 1.4, chapter 4.
 */
#include <string.h>

#include "checksum.h"
#include "interrupts.h"
#include "mptable.h"

struct mp_floating {
	char signature[4];
	uint32_t table;
	uint8_t length; /* in 16 bytes */
	uint8_t spec_rev;
	uint8_t checksum;
	uint8_t default_config; /* 0: there is a table */
	uint8_t features2;	/* bit 7: PIC mode and IMCR; we are in virtual wire mode */
	uint8_t reserved[3];
};

struct mp_header {
	char signature[4];
	uint16_t length;
	uint8_t spec_rev;
	uint8_t checksum;
	char oem[8];
	char product[12];
	uint32_t oem_table;
	uint16_t oem_size;
	uint16_t nr_entries;
	uint32_t lapic;
	uint16_t ext_length;
	uint8_t ext_checksum;
	uint8_t reserved;
};

#define MP_PROCESSOR 0
struct mp_processor {
	uint8_t type;
	uint8_t apic_id;
	uint8_t apic_version;
	uint8_t flags; /* bit 0: enabled, bit 1: boot CPU */
	uint32_t signature;
	uint32_t features;
	uint32_t reserved[2];
};

#define MP_BUS 1
struct mp_bus {
	uint8_t type;
	uint8_t id;
	char name[6];
};

#define MP_IOAPIC 2
struct mp_ioapic {
	uint8_t type;
	uint8_t id;
	uint8_t version;
	uint8_t flags; /* bit 0: enabled */
	uint32_t addr;
};

#define MP_IO_INTERRUPT	   3
#define MP_LOCAL_INTERRUPT 4
#define MP_INT		   0
#define MP_NMI		   1
#define MP_EXTINT	   3
struct mp_interrupt {
	uint8_t type;
	uint8_t kind;
	uint16_t flags; /* 0: as the bus has it; ISA: edge, active high */
	uint8_t bus;
	uint8_t bus_irq;
	uint8_t apic; /* 0xff: all local APICs */
	uint8_t pin;
};

#define ISA_BUS 0

_Static_assert(sizeof(struct mp_floating) == 16, "MP 1.4, table 4-1");
_Static_assert(sizeof(struct mp_header) == 44, "MP 1.4, table 4-2");
_Static_assert(sizeof(struct mp_processor) == 20, "MP 1.4, table 4-4");
_Static_assert(sizeof(struct mp_bus) == 8, "MP 1.4, table 4-6");
_Static_assert(sizeof(struct mp_ioapic) == 8, "MP 1.4, table 4-8");
_Static_assert(sizeof(struct mp_interrupt) == 8, "MP 1.4, table 4-10");

/* The table while it grows. */
struct mp_writer {
	uint8_t *at;
	uint16_t nr_entries;
};

static void put(struct mp_writer *writer, const void *entry, size_t len)
{
	memcpy(writer->at, entry, len);
	writer->at += len;
	writer->nr_entries++;
}

static void put_interrupt(struct mp_writer *writer, uint8_t type, uint8_t kind, uint8_t bus_irq,
			  uint8_t apic, uint8_t pin)
{
	put(writer,
	    &(struct mp_interrupt){
		    .type = type,
		    .kind = kind,
		    .bus = ISA_BUS,
		    .bus_irq = bus_irq,
		    .apic = apic,
		    .pin = pin,
	    },
	    sizeof(struct mp_interrupt));
}

static void put_entries(struct mp_writer *writer, unsigned int nr_cpus)
{
	for (unsigned int i = 0; i < nr_cpus; i++)
		put(writer,
		    &(struct mp_processor){
			    .type = MP_PROCESSOR,
			    .apic_id = (uint8_t)i,
			    .apic_version = LAPIC_VERSION,
			    .flags = i == 0 ? 3 : 1,
			    /* Kernels ask CPUID; these say no more than "has FPU and APIC". */
			    .signature = 0x600,
			    .features = 0x201,
		    },
		    sizeof(struct mp_processor));
	put(writer, &(struct mp_bus){.type = MP_BUS, .id = ISA_BUS, .name = "ISA   "},
	    sizeof(struct mp_bus));
	put(writer,
	    &(struct mp_ioapic){
		    .type = MP_IOAPIC,
		    .id = IOAPIC_ID,
		    .version = IOAPIC_VERSION,
		    .flags = 1,
		    .addr = IOAPIC_ADDR,
	    },
	    sizeof(struct mp_ioapic));
	for (uint8_t irq = 0; irq < 16; irq++)
		if (irq != ISA_CASCADE_IRQ)
			put_interrupt(writer, MP_IO_INTERRUPT, MP_INT, irq, IOAPIC_ID,
				      isa_irq_pin(irq));
	/* Virtual wire mode: the PIC arrives at LINT0, NMI at LINT1. */
	put_interrupt(writer, MP_LOCAL_INTERRUPT, MP_EXTINT, 0, 0xff, 0);
	put_interrupt(writer, MP_LOCAL_INTERRUPT, MP_NMI, 0, 0xff, 1);
}

size_t mptable_build(void *buf, size_t len, uint32_t base, unsigned int nr_cpus)
{
	size_t need = sizeof(struct mp_floating) + sizeof(struct mp_header) +
		      nr_cpus * sizeof(struct mp_processor) + sizeof(struct mp_bus) +
		      sizeof(struct mp_ioapic) + (15 + 2) * sizeof(struct mp_interrupt);
	struct mp_floating floating = {
		.signature = "_MP_",
		.table = base + sizeof(floating),
		.length = 1,
		.spec_rev = 4,
	};
	struct mp_header header = {
		.signature = "PCMP",
		.spec_rev = 4,
		.oem = "HVPOKE  ",
		.product = "HVPOKE-VMM  ",
		.lapic = LAPIC_ADDR,
	};
	uint8_t *table = (uint8_t *)buf + sizeof(floating);
	struct mp_writer writer = {.at = table + sizeof(header)};

	if (need > len)
		return 0;
	put_entries(&writer, nr_cpus);
	header.nr_entries = writer.nr_entries;
	header.length = (uint16_t)(writer.at - table);
	memcpy(table, &header, sizeof(header));
	((struct mp_header *)table)->checksum = table_checksum(table, header.length);
	floating.checksum = table_checksum(&floating, sizeof(floating));
	memcpy(buf, &floating, sizeof(floating));
	return need;
}
