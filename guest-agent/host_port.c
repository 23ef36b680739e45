// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way to hvpoke's own VMM: found by CPUID, called through a port.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/io.h>

#include <asm/cpufeature.h>

#include "compat.h"
#include "hvpoke.h"
#include "transport.h"

static struct {
	u16 port;
	unsigned int irq; /* 0: the host has no requests */
} door;

static u64 port_lay_out(const struct hvp_pages *list, unsigned int nr)
{
	/* The host sees all of the guest's memory. */
	return hvp_pages_gpa(list);
}

/*
 * The OUT is an exit of this CPU to the host, which is done when the next
 * instruction runs; the compiler is told that memory changes there.
 */
static u32 port_send(struct hvpoke_cmd *cmd)
{
	barrier();
	outl(virt_to_phys(cmd) >> PAGE_SHIFT, door.port);
	barrier();
	return cmd->status;
}

/* The host is there as long as the guest; it says NOT_HELLO should it have forgotten. */
static bool port_greeted(void)
{
	return true;
}

static irqreturn_t request_waits(int irq, void *dev)
{
	hvp_requests_wake();
	return IRQ_HANDLED;
}

static int port_listen(void)
{
	return door.irq ? request_irq(door.irq, request_waits, 0, "hvpoke", &door) : -ENXIO;
}

static void port_deafen(void)
{
	free_irq(door.irq, &door);
}

static void port_close(void)
{
}

static const struct hvp_transport port = {
	.lay_out = port_lay_out,
	.send = port_send,
	.greeted = port_greeted,
	.listen = port_listen,
	.deafen = port_deafen,
	.close = port_close,
};

/*
 * Only CPUID is asked of a hypervisor that may be anybody's; the port is not
 * touched before the signature was seen.
 */
int __init hvp_port_open(const struct hvp_transport **transport)
{
	u32 base = 0, version, features, io, irq;

	if (boot_cpu_has(X86_FEATURE_HYPERVISOR))
		base = cpuid_base_hypervisor(HVPOKE_CPUID_SIGNATURE, 1);
	if (!base)
		return -ENODEV;
	cpuid(base + 1, &version, &features, &io, &irq);
	if (version != HVPOKE_ABI_VERSION) {
		pr_err("the host speaks version %u of the protocol, this agent version %u\n",
		       version, HVPOKE_ABI_VERSION);
		return -EPROTO;
	}
	if (!(features & HVPOKE_FEAT_BATCH)) {
		pr_err("the host takes no batches (features %#x)\n", features);
		return -EPROTO;
	}
	if (inl(io) != HVPOKE_PORT_MAGIC) {
		pr_err("no answer at the host's doorbell, port %#x\n", io);
		return -EIO;
	}
	door.port = io;
	door.irq = features & HVPOKE_FEAT_REQUESTS ? irq : 0;
	*transport = &port;
	return 0;
}
