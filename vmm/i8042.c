// SPDX-License-Identifier: GPL-2.0-or-later
/* i8042.c - reset by the keyboard controller: command 0xfe, "pulse output line 0". */
#include "i8042.h"
#include "vm.h"

#define DATA	      0 /* 0x60 */
#define COMMAND	      4 /* 0x64; reads as status */
#define STATUS_OUTPUT 0x01
#define PULSE_RESET   0xfe

static uint32_t i8042_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)size;
	/*
	 * "Ready for a command, and there is always one more byte to read": a
	 * driver that empties the controller first gives up after a few bytes
	 * (Linux: i8042_flush(), 16) instead of waiting half a second for
	 * answers, and one that waits until it may send a command does not wait.
	 */
	return offset == COMMAND ? STATUS_OUTPUT : 0xff;
}

static void i8042_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		      uint32_t value)
{
	(void)vcpu;
	if (offset == COMMAND && size == 1 && value == PULSE_RESET)
		vm_request_exit(dev, VM_EXIT_REBOOT);
}

const struct port_ops i8042_ops = {
	.in = i8042_in,
	.out = i8042_out,
};
