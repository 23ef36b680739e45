// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI side of QEMU's ivshmem-doorbell. It is a device of many uses; hvpoke's
 * are told by what the host has written at the start of its memory.
 *
 * There is no MODULE_DEVICE_TABLE: the module is not to be loaded, and to
 * complain, wherever somebody else has such a device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/string.h>

#include "hvpoke.h"
#include "shm.h"

enum { BAR_REGISTERS = 0, BAR_MEMORY = 2 };

/* What is to go into hvp_shm. */
struct parts {
	void *bar;
	u64 size;
	void __iomem *registers;
	unsigned int irq;
};

/* Why the last device that is hvpoke's is not used. */
static int refused = -ENODEV;

static irqreturn_t host_rang(int irq, void *bar)
{
	if (hvp_shm_wants(bar + HVPOKE_SHM_HOST))
		hvp_requests_wake();
	return IRQ_HANDLED;
}

/* 0, -ENODEV: somebody else's; or an errno, having said why. */
static int check(struct pci_dev *pdev, struct parts *parts)
{
	const struct hvpoke_shm_host *host = parts->bar + HVPOKE_SHM_HOST;
	u64 size;

	if (memcmp(host->magic, HVPOKE_SHM_MAGIC, sizeof(HVPOKE_SHM_MAGIC)))
		return -ENODEV;
	if (host->version != HVPOKE_SHM_VERSION || host->abi_version != HVPOKE_ABI_VERSION) {
		pci_err(pdev,
			"hvpoked speaks versions %u and %u of the protocol, this agent %u and %u\n",
			host->version, host->abi_version, HVPOKE_SHM_VERSION, HVPOKE_ABI_VERSION);
		return -EPROTO;
	}
	size = READ_ONCE(host->size);
	if (size < HVPOKE_SHM_MIN_SIZE || size > pci_resource_len(pdev, BAR_MEMORY)) {
		pci_err(pdev, "hvpoked claims %llu bytes of %llu\n", size,
			(u64)pci_resource_len(pdev, BAR_MEMORY));
		return -EPROTO;
	}
	parts->size = size;
	return 0;
}

/*
 * The interrupt is the last that is had, and so the first that devres gives back. Without
 * hvp_shm.lock: a batch takes that under text_mutex, which the kernel takes, when it brings a
 * CPU up, under the lock of what is allocated here (sparse_irq_lock).
 */
static int set_up(struct pci_dev *pdev, struct parts *parts)
{
	int err;

	parts->registers = devm_ioremap_resource(&pdev->dev, &pdev->resource[BAR_REGISTERS]);
	if (IS_ERR(parts->registers))
		return PTR_ERR(parts->registers);
	pci_set_master(pdev);
	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	parts->irq = pci_irq_vector(pdev, HVPOKE_SHM_VECTOR);
	return devm_request_irq(&pdev->dev, parts->irq, host_rang, 0, "hvpoke", parts->bar);
}

/* From here on it is used, unless another one is. */
static int publish(const struct parts *parts)
{
	if (hvp_shm.bar)
		return -EBUSY;
	hvp_shm.registers = parts->registers;
	hvp_shm.irq = parts->irq;
	hvp_shm.size = parts->size;
	hvp_shm.bar = parts->bar;
	hvp_shm_begin();
	return 0;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct resource *memory = &pdev->resource[BAR_MEMORY];
	struct parts parts = {};
	int err;

	if (resource_size(memory) < HVPOKE_SHM_MIN_SIZE)
		return -ENODEV;
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	if (!devm_request_mem_region(&pdev->dev, memory->start, resource_size(memory), "hvpoke"))
		return -ENODEV; /* in use, so not by us */
	parts.bar = devm_memremap(&pdev->dev, memory->start, resource_size(memory), MEMREMAP_WB);
	if (IS_ERR(parts.bar))
		return PTR_ERR(parts.bar);

	err = check(pdev, &parts);
	if (!err) {
		err = set_up(pdev, &parts);
		if (err)
			pci_err(pdev, "hvpoked's device cannot be set up (error %d)\n", err);
	}
	mutex_lock(&hvp_shm.lock);
	if (!err)
		err = publish(&parts);
	refused = err;
	mutex_unlock(&hvp_shm.lock);
	if (!err)
		hvp_requests_wake();
	return err;
}

/* Unplugged, or the module goes. Requests take the kernel's own way from here on. */
static void remove(struct pci_dev *pdev)
{
	mutex_lock(&hvp_shm.lock);
	hvp_shm_end();
	hvp_shm.bar = NULL;
	mutex_unlock(&hvp_shm.lock);
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(HVPOKE_SHM_PCI_VENDOR, HVPOKE_SHM_PCI_DEVICE) }, {}
};

static struct pci_driver driver = {
	.name = "hvpoke",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
};

int __init hvp_shm_find(void)
{
	int err = pci_register_driver(&driver);

	if (err) {
		pr_err("cannot register with PCI (error %d)\n", err);
		return err;
	}
	if (hvp_shm.bar)
		return 0;
	pci_unregister_driver(&driver);
	return refused;
}

void hvp_shm_close(void)
{
	pci_unregister_driver(&driver);
}

void hvp_shm_deafen(void)
{
	mutex_lock(&hvp_shm.lock);
	if (hvp_shm.bar)
		synchronize_irq(hvp_shm.irq);
	mutex_unlock(&hvp_shm.lock);
}
