/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_RAM_H
#define HVPOKED_RAM_H

#include <stdint.h>
#include <sys/types.h>

#include "message.h"
#include "qmp.h"

/* A piece of a guest's RAM, in one piece in QEMU's address space too. */
struct ram_block {
	uint64_t gpa, len;
	uint64_t hva; /* in QEMU */
	uint8_t *mem; /* here; NULL if it cannot be mapped */
	void *area;   /* what was mapped for that */
	uint64_t area_len;
};

/* Where a guest's RAM is. QEMU is asked, not the guest. */
struct ram {
	struct ram_block *block;
	uint32_t nr;
	char *view; /* what QEMU said, to see whether it changed */
};

/*
 * Ask, and map what can be mapped. What was known before is good until then. 0 or -errno with
 * @message.
 */
int ram_learn(struct ram *ram, struct qmp *qmp, pid_t pid, struct message *message);
void ram_forget(struct ram *ram);

/* The block that holds all of [@gpa, @gpa + @len), or NULL. */
const struct ram_block *ram_find(const struct ram *ram, uint64_t gpa, uint64_t len);

#endif /* HVPOKED_RAM_H */
