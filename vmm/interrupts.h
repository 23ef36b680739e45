/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_INTERRUPTS_H
#define VMM_INTERRUPTS_H

#include <stdint.h>

/* KVM's in-kernel interrupt controllers, as the MP and ACPI tables describe them. */
#define LAPIC_ADDR     0xfee00000u
#define LAPIC_VERSION  0x14 /* arch/x86/kvm/lapic.c, APIC_VERSION */
#define IOAPIC_ADDR    0xfec00000u
#define IOAPIC_ID      0    /* what its id register holds after reset */
#define IOAPIC_VERSION 0x11 /* arch/x86/kvm/ioapic.h, IOAPIC_VERSION_ID */

#define ISA_CASCADE_IRQ 2 /* the second PIC's line to the first: no interrupt of its own */

/*
 * The IOAPIC pin of an ISA interrupt. KVM's routing after KVM_CREATE_IRQCHIP
 * (arch/x86/kvm/irq_comm.c, default_routing) is one to one, the timer's
 * interrupt 0 too, so that the tables need no override as a PC's do.
 */
static inline uint8_t isa_irq_pin(uint8_t irq)
{
	return irq;
}

#endif /* VMM_INTERRUPTS_H */
