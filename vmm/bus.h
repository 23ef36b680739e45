/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_BUS_H
#define VMM_BUS_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/*
 * A device's ports. @offset is from the start of its range. Called on vCPU
 * threads with no lock held: a device locks itself. A string instruction
 * calls once for each item.
 */
struct port_ops {
	uint32_t (*in)(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size);
	void (*out)(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		    uint32_t value);
};

#define BUS_MAX_DEVICES 16
struct bus {
	unsigned int nr;
	struct {
		uint16_t first;
		uint16_t len;
		const struct port_ops *ops;
		void *dev;
	} range[BUS_MAX_DEVICES];
};

/* Before the vCPUs start. 0, -ENOSPC, or -EEXIST if ports are taken. */
int bus_add(struct bus *bus, uint16_t first, uint16_t len, const struct port_ops *ops, void *dev);
/* Unclaimed ports read as all ones and ignore writes, as on an ISA bus. */
uint32_t bus_in(struct bus *bus, struct vcpu *vcpu, uint16_t port, unsigned int size);
void bus_out(struct bus *bus, struct vcpu *vcpu, uint16_t port, unsigned int size, uint32_t value);

#endif /* VMM_BUS_H */
