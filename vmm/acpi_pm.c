// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * acpi_pm.c - PM1 registers and the reset register. There are no events (no
 * buttons, no PM timer), so that status always reads 0 and the SCI is never
 * raised. Registers are bytes here, since they may be accessed as such.
 */
#include "acpi_pm.h"
#include "vm.h"

#define ENABLE	2 /* offsets from ACPI_PM1_EVENT */
#define CONTROL 4

/* PM1 control (ACPI 6.5, table 4.17). Bits 8 to 15 are in the second byte. */
#define SCI_EN	      0x01
#define SLP_TYP_SHIFT 2
#define SLP_TYP_MASK  0x07
#define SLP_EN	      0x20

static uint8_t read_byte(struct acpi_pm *pm, unsigned int offset)
{
	switch (offset) {
	case ENABLE:
	case ENABLE + 1: return pm->enable[offset - ENABLE];
	/* The firmware left ACPI mode on: there is no SMI command to do so (FADT). */
	case CONTROL: return pm->control[0] | SCI_EN;
	case CONTROL + 1: return pm->control[1];
	}
	return 0;
}

static void write_byte(struct acpi_pm *pm, unsigned int offset, uint8_t value)
{
	switch (offset) {
	case ENABLE:
	case ENABLE + 1: pm->enable[offset - ENABLE] = value; break;
	case CONTROL: pm->control[0] = value; break;
	case CONTROL + 1:
		/* SLP_EN is write only. */
		pm->control[1] = value & ~SLP_EN;
		if ((value & SLP_EN) && ((value >> SLP_TYP_SHIFT) & SLP_TYP_MASK) == ACPI_SLEEP_S5)
			vm_request_exit(pm->vm, VM_EXIT_SHUTDOWN);
		break;
	}
}

static uint32_t acpi_pm_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	uint32_t value = 0;

	(void)vcpu;
	for (unsigned int i = 0; i < size; i++)
		value |= (uint32_t)read_byte(dev, offset + i) << (8 * i);
	return value;
}

static void acpi_pm_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			uint32_t value)
{
	(void)vcpu;
	for (unsigned int i = 0; i < size; i++)
		write_byte(dev, offset + i, (uint8_t)(value >> (8 * i)));
}

const struct port_ops acpi_pm_ops = {
	.in = acpi_pm_in,
	.out = acpi_pm_out,
};

static uint32_t acpi_reset_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return 0;
}

static void acpi_reset_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			   uint32_t value)
{
	(void)vcpu;
	(void)offset;
	/* Bit 2 is what triggers; software may choose the kind of reset before (bit 1). */
	if (size == 1 && (value & 0x04))
		vm_request_exit(dev, VM_EXIT_REBOOT);
}

const struct port_ops acpi_reset_ops = {
	.in = acpi_reset_in,
	.out = acpi_reset_out,
};
