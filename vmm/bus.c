// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus.h"

#include <errno.h>
#include <stddef.h>

int bus_add(struct bus *bus, uint16_t first, uint16_t len, const struct port_ops *ops, void *dev)
{
	for (unsigned int i = 0; i < bus->nr; i++)
		if (first < bus->range[i].first + bus->range[i].len &&
		    bus->range[i].first < first + len)
			return -EEXIST;
	if (bus->nr == BUS_MAX_DEVICES)
		return -ENOSPC;
	bus->range[bus->nr].first = first;
	bus->range[bus->nr].len = len;
	bus->range[bus->nr].ops = ops;
	bus->range[bus->nr].dev = dev;
	bus->nr++;
	return 0;
}

/* The device that claims all of the access, or -1. */
static int find(const struct bus *bus, uint16_t port, unsigned int size)
{
	for (unsigned int i = 0; i < bus->nr; i++)
		if (port >= bus->range[i].first &&
		    port + size <= (unsigned int)bus->range[i].first + bus->range[i].len)
			return (int)i;
	return -1;
}

static uint32_t mask(unsigned int size)
{
	return size >= 4 ? UINT32_MAX : (1u << (8 * size)) - 1;
}

uint32_t bus_in(struct bus *bus, struct vcpu *vcpu, uint16_t port, unsigned int size)
{
	int i = find(bus, port, size);
	uint32_t value = UINT32_MAX;

	if (i >= 0)
		value = bus->range[i].ops->in(bus->range[i].dev, vcpu,
					      (uint16_t)(port - bus->range[i].first), size);
	return value & mask(size);
}

void bus_out(struct bus *bus, struct vcpu *vcpu, uint16_t port, unsigned int size, uint32_t value)
{
	int i = find(bus, port, size);

	if (i >= 0)
		bus->range[i].ops->out(bus->range[i].dev, vcpu,
				       (uint16_t)(port - bus->range[i].first), size,
				       value & mask(size));
}
