// SPDX-License-Identifier: GPL-2.0-or-later
#include "doorbell.h"

#include <errno.h>
#include <stddef.h>

#include "fault.h"
#include "vm.h"

#define DOORBELL_PORTS 4 /* one 32-bit register */

/* The vCPU whose thread rings, for the back end's calls that come of it. */
static _Thread_local struct vcpu *ringing;

static uint32_t doorbell_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	if (offset || size != 4)
		return UINT32_MAX;
	return HVPOKE_PORT_MAGIC;
}

static void doorbell_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			 uint32_t value)
{
	struct vm *vm = dev;

	if (offset || size != 4)
		return;
	ringing = vcpu;
	fault("doorbell");
	hvp_guest_command(vm->guest, gpa((uint64_t)value * HVPOKE_PAGE_SIZE));
	fault("answered");
	ringing = NULL;
}

static const struct port_ops doorbell_ops = {
	.in = doorbell_in,
	.out = doorbell_out,
};

static void *doorbell_translate(void *ctx, gpa_t addr, uint64_t len)
{
	struct vm *vm = ctx;

	return memory_at(&vm->memory, addr, len);
}

/*
 * The vCPU that rang stands at its OUT instruction. All that is left of that
 * is to move RIP past it, which KVM does when the vCPU enters again: nothing
 * of it can be seen in memory or happen twice. So it counts as stopped.
 */
static int doorbell_pause(void *ctx, struct hvp_pause_times *times)
{
	struct vm *vm = ctx;
	int err = ringing ? pause_begin(&vm->pause, &ringing->pause, times) : -EBUSY;

	/* The VM ends: no answer will be read, so it need not be told as a failure. */
	return err == -ECANCELED ? -EBUSY : err;
}

static void doorbell_resume(void *ctx, struct hvp_pause_times *times)
{
	struct vm *vm = ctx;

	pause_end(&vm->pause, &ringing->pause, times);
}

static int doorbell_notify(void *ctx)
{
	struct vm *vm = ctx;
	int err;

	err = vm_irq_line(vm, HVPOKE_IRQ, true);
	if (!err)
		err = vm_irq_line(vm, HVPOKE_IRQ, false);
	return err;
}

static const struct hvp_backend doorbell_backend = {
	.translate = doorbell_translate,
	.pause = doorbell_pause,
	.resume = doorbell_resume,
	.notify = doorbell_notify,
};

int doorbell_create(struct vm *vm)
{
	int err;

	vm->guest = hvp_guest_new(&doorbell_backend, vm);
	if (!vm->guest)
		return -ENOMEM;
	err = bus_add(&vm->bus, HVPOKE_PORT, DOORBELL_PORTS, &doorbell_ops, vm);
	if (err)
		doorbell_destroy(vm);
	return err;
}

void doorbell_destroy(struct vm *vm)
{
	hvp_guest_free(vm->guest);
	vm->guest = NULL;
}
