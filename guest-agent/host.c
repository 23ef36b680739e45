// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's side of the machine: found by CPUID, called through a port.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include <asm/cpufeature.h>
#include <asm/processor.h>

#include "hvpoke.h"

#define NO_HOST \
	"no hvpoke host: the hypervisor has no hvpoke CPUID leaf (\"%s\", looked for from %#x on)\n"

static struct {
	struct mutex lock; /* the command page, one command at a time */
	struct hvpoke_cmd *cmd;
	u16 port;
	unsigned int irq;
} door = {
	.lock = __MUTEX_INITIALIZER(door.lock),
};

/*
 * Only CPUID is asked of a hypervisor that may be anybody's; the port is not
 * touched before the signature was seen.
 */
int __init hvp_host_find(void)
{
	u32 base = 0, version, features, port, irq;

	if (boot_cpu_has(X86_FEATURE_HYPERVISOR))
		base = hypervisor_cpuid_base(HVPOKE_CPUID_SIGNATURE, 1);
	if (!base) {
		/* A kernel with the agent built in may run anywhere. */
		if (IS_BUILTIN(CONFIG_HVPOKE))
			pr_info(NO_HOST, HVPOKE_CPUID_SIGNATURE, HVPOKE_CPUID_FIRST);
		else
			pr_err(NO_HOST, HVPOKE_CPUID_SIGNATURE, HVPOKE_CPUID_FIRST);
		return -ENODEV;
	}
	cpuid(base + 1, &version, &features, &port, &irq);
	if (version != HVPOKE_ABI_VERSION) {
		pr_err("the host speaks version %u of the protocol, this agent version %u\n",
		       version, HVPOKE_ABI_VERSION);
		return -EPROTO;
	}
	if (!(features & HVPOKE_FEAT_BATCH)) {
		pr_err("the host takes no batches (features %#x)\n", features);
		return -EPROTO;
	}
	if (inl(port) != HVPOKE_PORT_MAGIC) {
		pr_err("no answer at the host's doorbell, port %#x\n", port);
		return -EIO;
	}
	door.cmd = (void *)get_zeroed_page(GFP_KERNEL);
	if (!door.cmd)
		return -ENOMEM;
	door.port = port;
	door.irq = features & HVPOKE_FEAT_REQUESTS ? irq : 0;
	return 0;
}

unsigned int hvp_host_irq(void)
{
	return door.irq;
}

/*
 * Run the command whose part of the page is filled in. The OUT is an exit of
 * this CPU to the host, which is done when the next instruction runs; the
 * compiler is told that memory changes there.
 */
static u32 ring(u32 command)
{
	struct hvpoke_cmd *cmd = door.cmd;

	lockdep_assert_held(&door.lock);
	cmd->version = HVPOKE_ABI_VERSION;
	cmd->cmd = command;
	/* What stands there if nobody answers. */
	cmd->status = HVPOKE_HOST_ERROR;
	cmd->reserved = 0;
	barrier();
	outl(virt_to_phys(cmd) >> PAGE_SHIFT, door.port);
	barrier();
	return cmd->status;
}

u32 hvp_host_hello(struct hvpoke_hello *hello)
{
	u32 status;

	mutex_lock(&door.lock);
	door.cmd->hello = *hello;
	status = ring(HVPOKE_CMD_HELLO);
	*hello = door.cmd->hello;
	mutex_unlock(&door.lock);
	return status;
}

u32 hvp_host_batch(struct hvpoke_batch *batch)
{
	u32 status;

	mutex_lock(&door.lock);
	door.cmd->batch = *batch;
	status = ring(HVPOKE_CMD_BATCH);
	*batch = door.cmd->batch;
	mutex_unlock(&door.lock);
	return status;
}

u32 hvp_host_fetch(struct hvpoke_fetch *fetch)
{
	u32 status;

	mutex_lock(&door.lock);
	status = ring(HVPOKE_CMD_FETCH);
	if (status == HVPOKE_OK)
		*fetch = door.cmd->fetch;
	mutex_unlock(&door.lock);
	return status;
}

u32 hvp_host_complete(const struct hvpoke_complete *complete)
{
	u32 status;

	mutex_lock(&door.lock);
	door.cmd->complete = *complete;
	status = ring(HVPOKE_CMD_COMPLETE);
	mutex_unlock(&door.lock);
	return status;
}

/* The host forgets the agent; also frees the command page. */
void hvp_host_bye(void)
{
	mutex_lock(&door.lock);
	ring(HVPOKE_CMD_BYE);
	mutex_unlock(&door.lock);
	free_page((unsigned long)door.cmd);
	door.cmd = NULL;
}
