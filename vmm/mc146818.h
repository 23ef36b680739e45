/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_MC146818_H
#define VMM_MC146818_H

#include <stdatomic.h>
#include <stdint.h>

#include "bus.h"

/* The real-time clock, read only: the host's time in UTC. No alarms, no CMOS memory. */
#define MC146818_PORT	  0x70
#define MC146818_NR_PORTS 2    /* index, data */
#define MC146818_CENTURY  0x32 /* the FADT names it */

struct mc146818 {
	_Atomic uint8_t index;
};

extern const struct port_ops mc146818_ops;

#endif /* VMM_MC146818_H */
