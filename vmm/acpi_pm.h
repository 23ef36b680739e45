/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_ACPI_PM_H
#define VMM_ACPI_PM_H

#include <stdatomic.h>

#include "bus.h"

struct vm;

/* ACPI's fixed hardware, as far as power off and reset need it (ACPI 6.5, 4.8). */
#define ACPI_PM1_EVENT	  0x600 /* status, then enable: 16 bits each */
#define ACPI_PM1_CONTROL  0x604
#define ACPI_PM1_NR_PORTS 6
#define ACPI_RESET	  0xcf9 /* where PC chipsets have their reset register */
#define ACPI_RESET_VALUE  0x06	/* reset the CPUs, and do it now */
#define ACPI_SLEEP_S5	  5	/* what \_S5 says: SLP_TYP for "off" */

struct acpi_pm {
	struct vm *vm;
	_Atomic uint8_t enable[2];
	_Atomic uint8_t control[2];
};

/* PM1 event and control registers. The device is a struct acpi_pm. */
extern const struct port_ops acpi_pm_ops;
/* The reset register, one port. The device is a struct vm. */
extern const struct port_ops acpi_reset_ops;

#endif /* VMM_ACPI_PM_H */
