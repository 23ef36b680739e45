/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_IRQCHIP_H
#define VMM_IRQCHIP_H

/*
 * The interrupt controllers and the timer that KVM emulates itself: PICs,
 * IOAPIC, a local APIC for each vCPU, PIT with port 0x61. Before the first
 * vCPU is made. Prints what failed; 0 or a negative errno.
 */
int irqchip_create(int vm_fd);

#endif /* VMM_IRQCHIP_H */
