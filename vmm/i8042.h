/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_I8042_H
#define VMM_I8042_H

#include "bus.h"

/*
 * The one thing that PC software expects of the keyboard controller even
 * where there is no keyboard: pulsing the reset line. The device is a struct vm.
 */
#define I8042_PORT     0x60
#define I8042_NR_PORTS 5 /* data at 0x60, command and status at 0x64 */

extern const struct port_ops i8042_ops;

#endif /* VMM_I8042_H */
