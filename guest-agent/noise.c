// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sites that the kernel itself flips, many times a second: KFENCE's allocation gate is
 * one. Each flip would stop every virtual CPU with nobody having asked for anything.
 * They are known by their rate, and by who flips them: a thread of the kernel's.
 * Whoever switches something on and off from user space has asked.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "hvpoke.h"

#define SLOT_BITS 6
/* So many flips within a second are too often, until there are fewer. */
#define MAX_FLIPS 8

/* Two sites of one slot drive each other out: then both count as quiet. */
static struct {
	unsigned long addr, since;
	u32 flips, before;
} slots[1 << SLOT_BITS];

bool hvp_noise(unsigned long addr)
{
	typeof(*slots) *slot = &slots[hash_long(addr, SLOT_BITS)];

	if (!(current->flags & PF_KTHREAD))
		return false;
	if (slot->addr != addr || time_after(jiffies, slot->since + 2 * HZ)) {
		slot->addr = addr;
		slot->since = jiffies;
		slot->flips = 0;
		slot->before = 0;
	} else if (time_after(jiffies, slot->since + HZ)) {
		slot->since = jiffies;
		slot->before = slot->flips;
		slot->flips = 0;
	}
	slot->flips++;
	return slot->flips > MAX_FLIPS || slot->before > MAX_FLIPS;
}
