// SPDX-License-Identifier: GPL-2.0-or-later
/* The MP and ACPI tables, walked as a kernel walks them, for 1, 2 and 255 CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acpi.h"
#include "acpi_pm.h"
#include "acpi_tables.h"
#include "interrupts.h"
#include "layout.h"
#include "mptable.h"
#include "vm.h"

static const unsigned int counts[] = {1, 2, 255};

static uint8_t sum(const void *data, size_t len)
{
	const uint8_t *byte = data;
	uint8_t total = 0;

	while (len--)
		total += *byte++;
	return total;
}

static uint32_t get16(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const uint8_t *at)
{
	return get16(at) | get16(at + 2) << 16;
}

/* What the MP table's entries said. */
struct mp_seen {
	unsigned int cpus, buses, ioapics, isa_irqs, locals, entries;
	bool apic_ids[256];
	bool irqs[16];
};

/* One entry; returns its length (MP 1.4, table 4-3). */
static size_t walk_mp_entry(const uint8_t *entry, struct mp_seen *seen)
{
	switch (entry[0]) {
	case 0:
		assert_false(seen->apic_ids[entry[1]]);
		seen->apic_ids[entry[1]] = true;
		assert_int_equal(entry[3], seen->cpus ? 1 : 3); /* the first boots */
		seen->cpus++;
		return 20;
	case 1:
		seen->buses++;
		assert_memory_equal(entry + 2, "ISA   ", 6);
		return 8;
	case 2:
		seen->ioapics++;
		assert_int_equal(get32(entry + 4), 0xfec00000);
		assert_int_equal(entry[3], 1);
		return 8;
	case 3:
		assert_int_equal(entry[1], 0);
		assert_true(entry[5] < 16);
		assert_false(seen->irqs[entry[5]]);
		seen->irqs[entry[5]] = true;
		assert_int_equal(entry[6], IOAPIC_ID);
		/* KVM's routing, not a PC's: the timer, too, is one to one. */
		assert_int_equal(entry[7], entry[5]);
		seen->isa_irqs++;
		return 8;
	case 4:
		assert_int_equal(entry[6], 0xff);
		/* ExtINT on LINT0, NMI on LINT1 */
		assert_int_equal(entry[1], entry[7] == 0 ? 3 : 1);
		seen->locals++;
		return 8;
	}
	fail_msg("entry of type %u", entry[0]);
	return 0;
}

static void mp_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		uint8_t *buf = calloc(1, LAYOUT_MPTABLE_LEN);
		uint8_t *table = buf + 16;
		struct mp_seen seen = {};
		size_t len = mptable_build(buf, LAYOUT_MPTABLE_LEN, LAYOUT_MPTABLE, counts[i]);
		size_t at = 44;

		assert_in_range(len, 1, LAYOUT_MPTABLE_LEN);
		assert_memory_equal(buf, "_MP_", 4);
		assert_int_equal(sum(buf, 16), 0);
		assert_int_equal(get32(buf + 4), LAYOUT_MPTABLE + 16);
		assert_int_equal(buf[11], 0); /* no default configuration: a table */
		assert_memory_equal(table, "PCMP", 4);
		assert_int_equal(get16(table + 4), len - 16);
		assert_int_equal(sum(table, len - 16), 0);
		assert_int_equal(get32(table + 36), 0xfee00000);
		for (; at < len - 16; seen.entries++)
			at += walk_mp_entry(table + at, &seen);
		assert_int_equal(at, len - 16);
		assert_int_equal(get16(table + 34), seen.entries);
		assert_int_equal(seen.cpus, counts[i]);
		assert_int_equal(seen.buses, 1);
		assert_int_equal(seen.ioapics, 1);
		assert_int_equal(seen.isa_irqs, 15);
		assert_false(seen.irqs[ISA_CASCADE_IRQ]);
		assert_int_equal(seen.locals, 2);
		assert_false(seen.apic_ids[255]);
		assert_int_equal(mptable_build(buf, len - 1, LAYOUT_MPTABLE, counts[i]), 0);
		free(buf);
	}
}

/* The table at guest address @addr, found sound. */
static const uint8_t *acpi_table(const uint8_t *buf, size_t len, uint64_t addr, const char *name)
{
	const uint8_t *table = buf + (addr - LAYOUT_ACPI);

	assert_in_range(addr, LAYOUT_ACPI, LAYOUT_ACPI + len - 36);
	assert_memory_equal(table, name, 4);
	assert_in_range(get32(table + 4), 36, LAYOUT_ACPI + len - addr);
	assert_int_equal(sum(table, get32(table + 4)), 0);
	return table;
}

static void check_madt(const uint8_t *madt, unsigned int nr_cpus)
{
	unsigned int cpus = 0, ioapics = 0, overrides = 0, nmis = 0;
	size_t at = 44, len = get32(madt + 4);

	assert_int_equal(get32(madt + 36), 0xfee00000);
	assert_int_equal(get32(madt + 40), 1); /* PICs are there */
	for (; at < len; at += madt[at + 1]) {
		const uint8_t *entry = madt + at;

		assert_true(entry[1] >= 2);
		switch (entry[0]) {
		case 0:
			assert_int_equal(entry[2], cpus);
			assert_int_equal(entry[3], cpus);
			assert_int_equal(get32(entry + 4), 1);
			cpus++;
			break;
		case 1:
			assert_int_equal(get32(entry + 4), 0xfec00000);
			assert_int_equal(get32(entry + 8), 0);
			ioapics++;
			break;
		case 2:
			assert_int_equal(entry[3], LAYOUT_IRQ_SCI);
			assert_int_equal(get32(entry + 4), LAYOUT_IRQ_SCI);
			assert_int_equal(get16(entry + 8), 0x0d); /* level, active high */
			overrides++;
			break;
		case 4:
			assert_int_equal(entry[2], 0xff);
			assert_int_equal(entry[5], 1);
			nmis++;
			break;
		default: fail_msg("MADT entry of type %u", entry[0]);
		}
	}
	assert_int_equal(at, len);
	assert_int_equal(cpus, nr_cpus);
	assert_int_equal(ioapics, 1);
	assert_int_equal(overrides, 1);
	assert_int_equal(nmis, 1);
}

static void check_fadt(const uint8_t *buf, size_t len, const struct acpi_fadt *fadt)
{
	static const uint8_t s5[] = {0x08, '_', 'S', '5', '_', 0x12, 8, 4, 0x0a, 5, 0x0a, 5, 0, 0};
	const uint8_t *dsdt = acpi_table(buf, len, fadt->dsdt, "DSDT");
	const uint8_t *facs = buf + (fadt->facs - LAYOUT_ACPI);

	assert_true(fadt->x_dsdt == fadt->dsdt);
	assert_memory_equal(dsdt + 36, s5, sizeof(s5));
	assert_int_equal(get32(dsdt + 4), 36 + sizeof(s5));
	assert_memory_equal(facs, "FACS", 4);
	assert_int_equal(fadt->facs % 64, 0);
	assert_int_equal(get32(facs + 4), 64);

	assert_int_equal(fadt->pm1a_event, ACPI_PM1_EVENT);
	assert_true(fadt->x_pm1a_event.address == ACPI_PM1_EVENT);
	assert_int_equal(fadt->pm1a_control, ACPI_PM1_CONTROL);
	assert_true(fadt->x_pm1a_control.address == ACPI_PM1_CONTROL);
	assert_int_equal(fadt->smi_command, 0);
	assert_true(fadt->flags & (1u << 10)); /* the reset register is there */
	assert_int_equal(fadt->reset.space, 1);
	assert_true(fadt->reset.address == ACPI_RESET);
	assert_int_equal(fadt->reset_value, ACPI_RESET_VALUE);
	assert_false(fadt->flags & (1u << 20)); /* not "hardware reduced" */
}

static void acpi_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		uint8_t *buf = calloc(1, LAYOUT_ACPI_LEN);
		size_t len = acpi_build(buf, LAYOUT_ACPI_LEN, LAYOUT_ACPI, counts[i]);
		const struct acpi_rsdp *rsdp = (void *)buf;
		const struct acpi_xsdt *xsdt;

		assert_in_range(len, 1, LAYOUT_ACPI_LEN);
		assert_memory_equal(rsdp->signature, "RSD PTR ", 8);
		assert_int_equal(rsdp->revision, 2);
		assert_int_equal(sum(rsdp, 20), 0);
		assert_int_equal(sum(rsdp, 36), 0);
		xsdt = (const void *)acpi_table(buf, len, rsdp->xsdt, "XSDT");
		assert_int_equal(xsdt->header.length, 36 + 2 * 8);
		check_fadt(buf, len, (const void *)acpi_table(buf, len, xsdt->tables[0], "FACP"));
		check_madt(acpi_table(buf, len, xsdt->tables[1], "APIC"), counts[i]);
		assert_int_equal(acpi_build(buf, 1024, LAYOUT_ACPI, 255), 0);
		free(buf);
	}
}

/* What the tables promise is what the ports do. */
static void pm1_registers(void **state)
{
	struct vm vm = {.exit = VM_EXIT_NONE, .exit_event = -1};
	struct acpi_pm pm = {.vm = &vm};

	(void)state;
	/* SCI_EN from the start, no events, and enable bits that read back. */
	assert_int_equal(acpi_pm_ops.in(&pm, NULL, 4, 2), 1);
	assert_int_equal(acpi_pm_ops.in(&pm, NULL, 0, 2), 0);
	acpi_pm_ops.out(&pm, NULL, 2, 2, 0x0120);
	assert_int_equal(acpi_pm_ops.in(&pm, NULL, 0, 4), 0x01200000);
	assert_int_equal(acpi_pm_ops.in(&pm, NULL, 3, 1), 1);
	/* The sleep type alone does nothing, nor does another type's enable bit. */
	acpi_pm_ops.out(&pm, NULL, 4, 2, 5 << 10 | 1);
	acpi_pm_ops.out(&pm, NULL, 4, 2, 3 << 10 | 1 << 13);
	assert_int_equal(vm.exit, VM_EXIT_NONE);
	assert_int_equal(acpi_pm_ops.in(&pm, NULL, 4, 2), 3 << 10 | 1);
	/* A reset needs bit 2. */
	acpi_reset_ops.out(&vm, NULL, 0, 1, 0x02);
	assert_int_equal(vm.exit, VM_EXIT_NONE);
	assert_int_equal(acpi_reset_ops.in(&vm, NULL, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mp_table),
		cmocka_unit_test(acpi_tables),
		cmocka_unit_test(pm1_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
