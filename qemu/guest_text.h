/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_GUEST_TEXT_H
#define HVPOKED_GUEST_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "gdbstub.h"
#include "hvpoke_abi.h"
#include "message.h"
#include "ram.h"

/* One piece of a site: all of it, or what is on one of its two pages. */
struct text_part {
	uint64_t gpa;
	uint8_t *mem; /* here, or NULL */
	uint8_t *now; /* what stands there, in struct text's @bytes */
	const uint8_t *old_insn, *new_insn;
	uint32_t len;
	uint32_t index; /* of its entry */
};

/*
 * The way to a guest's text. Reading: through a mapping where there is one, else out
 * of QEMU's process. Writing depends on what runs the guest: KVM sees every write, TCG
 * only those that QEMU makes.
 */
struct text {
	bool kvm;	    /* IN as QEMU says */
	pid_t pid;	    /* IN */
	int memory;	    /* IN of that process: process_memory() */
	struct qmp *qmp;    /* IN */
	char gdb_path[108]; /* IN where the gdbstub may connect to us */
	struct ram ram;
	struct gdbstub gdb; /* not KVM */

	/* The batch in hand. */
	uint32_t nr_entries, nr_parts;
	size_t capacity; /* parts */
	bool mapped;	 /* every part has a @mem */
	struct text_part *part;
	struct iovec *local, *remote;
	struct gdb_write *write;
	uint8_t *bytes;
};

/*
 * Outside of the pause: find the places of @nr entries, which stay the caller's until
 * text_apply(). 0 or -errno (-EFAULT: not RAM; -ENOMEM).
 */
int text_prepare(struct text *text, const struct hvpoke_entry *entry, uint32_t nr);
/*
 * In the pause: the index of the first entry whose old bytes do not stand, or the number of
 * entries if all do; or -errno.
 */
int64_t text_verify(struct text *text);
/*
 * In the pause, after a verify: write all. 0, or -errno with everything as it was before; or
 * -errno with *@half set, if that could not be had.
 */
int text_write(struct text *text, bool *half);
/*
 * In the pause, of a batch that was begun and not finished: put the old bytes back. 0; -EILSEQ
 * if something stands at one of the sites that is neither what was there before nor what
 * was to be there, and then nothing is written; or another -errno.
 */
int text_roll_back(struct text *text);
/* Forget the batch; all is given back with text_release(). */
void text_done(struct text *text);
void text_release(struct text *text);

#endif /* HVPOKED_GUEST_TEXT_H */
