// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host as the agent sees it: commands, one at a time, by whichever way
 * there is. hvpoke's own VMM has a port, QEMU a PCI device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/math.h>
#include <linux/mutex.h>

#include "hvpoke.h"
#include "transport.h"

#define NO_HOST                                                                            \
	"no hvpoke host: the hypervisor has no hvpoke CPUID leaf (" HVPOKE_CPUID_SIGNATURE \
	"), and there is no PCI device 1af4:1110 (ivshmem-doorbell) that hvpoked serves%s\n"
#define NO_PCI (IS_ENABLED(CONFIG_PCI_MSI) ? "" : " (a kernel without CONFIG_PCI_MSI)")

static struct {
	struct mutex lock; /* the command page, one command at a time */
	struct hvpoke_cmd *cmd;
	const struct hvp_transport *transport;
} door = {
	.lock = __MUTEX_INITIALIZER(door.lock),
};

int __init hvp_host_find(void)
{
	int err = hvp_port_open(&door.transport);

	if (err == -ENODEV && IS_ENABLED(CONFIG_PCI_MSI))
		err = hvp_shm_open(&door.transport);
	/* A kernel with the agent built in may run anywhere. */
	if (err == -ENODEV && IS_BUILTIN(CONFIG_HVPOKE))
		pr_info(NO_HOST, NO_PCI);
	else if (err == -ENODEV)
		pr_err(NO_HOST, NO_PCI);
	if (err)
		return err;
	door.cmd = (void *)get_zeroed_page(GFP_KERNEL);
	if (!door.cmd) {
		door.transport->close();
		return -ENOMEM;
	}
	return 0;
}

int hvp_host_listen(void)
{
	return door.transport->listen();
}

void hvp_host_deafen(void)
{
	door.transport->deafen();
}

bool hvp_host_greeted(void)
{
	return door.transport->greeted();
}

/* The command whose part of the page is filled in. */
static u32 send(u32 command)
{
	struct hvpoke_cmd *cmd = door.cmd;

	lockdep_assert_held(&door.lock);
	cmd->version = HVPOKE_ABI_VERSION;
	cmd->cmd = command;
	/* What stands there if nobody answers. */
	cmd->status = HVPOKE_HOST_ERROR;
	cmd->reserved = 0;
	return door.transport->send(cmd);
}

u32 hvp_host_hello(struct hvpoke_hello *hello, const struct hvp_pages *ranges)
{
	u32 status = HVPOKE_TOO_LARGE;

	mutex_lock(&door.lock);
	hello->ranges_gpa = door.transport->lay_out(ranges, DIV_ROUND_UP(hello->nr_ranges,
									 HVPOKE_RANGES_PER_PAGE));
	if (hello->ranges_gpa) {
		door.cmd->hello = *hello;
		status = send(HVPOKE_CMD_HELLO);
		*hello = door.cmd->hello;
	}
	mutex_unlock(&door.lock);
	return status;
}

u32 hvp_host_batch(struct hvpoke_batch *batch, const struct hvp_pages *entries)
{
	u32 status = HVPOKE_TOO_LARGE;

	mutex_lock(&door.lock);
	batch->entries_gpa =
		door.transport->lay_out(entries,
					DIV_ROUND_UP(batch->nr_entries, HVPOKE_ENTRIES_PER_PAGE));
	if (batch->entries_gpa) {
		door.cmd->batch = *batch;
		status = send(HVPOKE_CMD_BATCH);
		*batch = door.cmd->batch;
	}
	mutex_unlock(&door.lock);
	return status;
}

u32 hvp_host_undo(struct hvpoke_batch *batch)
{
	u32 status;

	mutex_lock(&door.lock);
	door.cmd->batch = (struct hvpoke_batch){
		.flags = HVPOKE_BATCH_UNDO,
		.bad_index = HVPOKE_NO_INDEX,
	};
	status = send(HVPOKE_CMD_BATCH);
	*batch = door.cmd->batch;
	mutex_unlock(&door.lock);
	return status;
}

u32 hvp_host_fetch(struct hvpoke_fetch *fetch)
{
	u32 status;

	mutex_lock(&door.lock);
	status = send(HVPOKE_CMD_FETCH);
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
	status = send(HVPOKE_CMD_COMPLETE);
	mutex_unlock(&door.lock);
	return status;
}

/* The host forgets the agent; nothing can be sent any more. */
void hvp_host_bye(void)
{
	mutex_lock(&door.lock);
	send(HVPOKE_CMD_BYE);
	mutex_unlock(&door.lock);
	door.transport->close();
	free_page((unsigned long)door.cmd);
	door.cmd = NULL;
}
