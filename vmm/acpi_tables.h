/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_ACPI_TABLES_H
#define VMM_ACPI_TABLES_H

#include <stdint.h>

/* The ACPI tables' layouts (ACPI 6.5, chapter 5.2; the FADT as of ACPI 2.0). */

struct acpi_rsdp {
	char signature[8];
	uint8_t checksum; /* of the first ACPI_RSDP_V1_LENGTH bytes */
	char oem_id[6];
	uint8_t revision;
	uint32_t rsdt;
	uint32_t length;
	uint64_t xsdt;
	uint8_t ext_checksum;
	uint8_t reserved[3];
} __attribute__((packed));
#define ACPI_RSDP_V1_LENGTH 20

struct acpi_header {
	char signature[4];
	uint32_t length;
	uint8_t revision;
	uint8_t checksum;
	char oem_id[6];
	char oem_table_id[8];
	uint32_t oem_revision;
	char creator_id[4];
	uint32_t creator_revision;
} __attribute__((packed));

struct acpi_xsdt {
	struct acpi_header header;
	uint64_t tables[2];
} __attribute__((packed));

/* Generic address structure. */
struct acpi_gas {
	uint8_t space;
	uint8_t bit_width;
	uint8_t bit_offset;
	uint8_t access;
	uint64_t address;
} __attribute__((packed));
#define ACPI_SPACE_IO 1

struct acpi_fadt {
	struct acpi_header header;
	uint32_t facs;
	uint32_t dsdt;
	uint8_t int_model;
	uint8_t profile;
	uint16_t sci_interrupt;
	uint32_t smi_command;
	uint8_t acpi_enable, acpi_disable, s4bios_request, pstate_control;
	uint32_t pm1a_event, pm1b_event, pm1a_control, pm1b_control;
	uint32_t pm2_control, pm_timer, gpe0, gpe1;
	uint8_t pm1_event_len, pm1_control_len, pm2_control_len, pm_timer_len;
	uint8_t gpe0_len, gpe1_len, gpe1_base, cst_control;
	uint16_t c2_latency, c3_latency; /* microseconds */
	uint16_t flush_size, flush_stride;
	uint8_t duty_offset, duty_width, day_alarm, month_alarm, century;
	uint16_t boot_arch;
	uint8_t reserved;
	uint32_t flags;
	struct acpi_gas reset;
	uint8_t reset_value;
	uint8_t reserved2[3];
	uint64_t x_facs;
	uint64_t x_dsdt;
	struct acpi_gas x_pm1a_event, x_pm1b_event, x_pm1a_control, x_pm1b_control;
	struct acpi_gas x_pm2_control, x_pm_timer, x_gpe0, x_gpe1;
} __attribute__((packed));
#define ACPI_NO_C2		  101  /* a latency above 100 means: not there */
#define ACPI_NO_C3		  1001 /* likewise above 1000 */
#define ACPI_BOOT_LEGACY_DEVICES  (1u << 0)
#define ACPI_BOOT_NO_VGA	  (1u << 2)
#define ACPI_FADT_WBINVD	  (1u << 0)
#define ACPI_FADT_C1		  (1u << 2)
#define ACPI_FADT_NO_POWER_BUTTON (1u << 4) /* none in the fixed hardware */
#define ACPI_FADT_NO_SLEEP_BUTTON (1u << 5)
#define ACPI_FADT_NO_FIXED_RTC	  (1u << 6)
#define ACPI_FADT_RESET		  (1u << 10)

struct acpi_facs {
	char signature[4];
	uint32_t length;
	uint32_t hardware_signature;
	uint32_t waking_vector;
	uint32_t global_lock;
	uint32_t flags;
	uint64_t x_waking_vector;
	uint8_t version;
	uint8_t reserved[31];
} __attribute__((packed));

struct acpi_madt {
	struct acpi_header header;
	uint32_t lapic;
	uint32_t flags;
} __attribute__((packed));
#define ACPI_MADT_PCAT_COMPAT (1u << 0) /* there are two 8259 PICs */

#define ACPI_MADT_LAPIC	    0
#define ACPI_MADT_IOAPIC    1
#define ACPI_MADT_OVERRIDE  2
#define ACPI_MADT_LAPIC_NMI 4

struct acpi_madt_lapic {
	uint8_t type, length;
	uint8_t processor;
	uint8_t apic_id;
	uint32_t flags;
} __attribute__((packed));
#define ACPI_MADT_ENABLED (1u << 0)

struct acpi_madt_ioapic {
	uint8_t type, length;
	uint8_t id;
	uint8_t reserved;
	uint32_t address;
	uint32_t gsi_base;
} __attribute__((packed));

struct acpi_madt_override {
	uint8_t type, length;
	uint8_t bus; /* 0: ISA */
	uint8_t irq;
	uint32_t gsi;
	uint16_t flags;
} __attribute__((packed));
#define ACPI_MADT_HIGH	(1u << 0)
#define ACPI_MADT_LEVEL (3u << 2)

struct acpi_madt_lapic_nmi {
	uint8_t type, length;
	uint8_t processor;
	uint16_t flags;
	uint8_t lint;
} __attribute__((packed));

_Static_assert(sizeof(struct acpi_rsdp) == 36, "ACPI 6.5, table 5.3");
_Static_assert(sizeof(struct acpi_header) == 36, "ACPI 6.5, table 5.4");
_Static_assert(sizeof(struct acpi_fadt) == 244, "ACPI 2.0, table 5-8");
_Static_assert(sizeof(struct acpi_facs) == 64, "ACPI 6.5, table 5.12");
_Static_assert(sizeof(struct acpi_madt) == 44, "ACPI 6.5, table 5.19");
_Static_assert(sizeof(struct acpi_madt_lapic) == 8, "ACPI 6.5, table 5.21");
_Static_assert(sizeof(struct acpi_madt_ioapic) == 12, "ACPI 6.5, table 5.23");
_Static_assert(sizeof(struct acpi_madt_override) == 10, "ACPI 6.5, table 5.25");
_Static_assert(sizeof(struct acpi_madt_lapic_nmi) == 6, "ACPI 6.5, table 5.28");

#endif /* VMM_ACPI_TABLES_H */
