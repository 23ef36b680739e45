/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "guest.h"

/*
 * A guest without a VMM: RAM at GPA 0, nothing above it, no vCPUs. Where things
 * are, for the helpers below:
 *
 *   FAKE_CMD    the command page
 *   FAKE_LIST   pages of the list, then the pages of its records
 *   FAKE_TEXT   text: FAKE_TEXT_SIZE bytes, registered by fake_hello()
 */
#define FAKE_CMD       0x1000
#define FAKE_LIST      0x10000
#define FAKE_TEXT      0x100000
#define FAKE_TEXT_SIZE 0x100000
#define FAKE_RAM       0x300000 /* the usual size: a MiB behind the text is RAM, not text */
#define FAKE_TEXT_GVA  0xffffffff81000000ull

struct fake {
	struct hvp_guest *guest;
	uint8_t *ram;
	size_t size;
	atomic_uint pauses, resumes, notifies;
	int pause_err; /* what pause() fails with, or 0 */
	int notify_err;
	bool busy;	/* paused just now */
	uint32_t scope; /* of the next hello: an enum hvpoke_scope */
	/* Called at the end of pause(): what the guest did last before it stood still. */
	void (*at_pause)(struct fake *fake);
	void (*at_resume)(struct fake *fake); /* at the start of resume() */
};

/* A fake of @size bytes of RAM, with its guest. Fails the test if there is no memory. */
void fake_init(struct fake *fake, size_t size);
void fake_free(struct fake *fake);

/* The host's view of guest memory. */
void *fake_at(struct fake *fake, uint64_t addr);
struct hvpoke_cmd *fake_cmd(struct fake *fake);

/* Lay @nr records of 32 bytes out as a list at FAKE_LIST (or @at). Returns its address. */
uint64_t fake_list(struct fake *fake, uint64_t at, const void *records, uint32_t nr);

/* Fill in the command page's header and ring the doorbell. Checks that page and return agree. */
enum hvpoke_status fake_ring(struct fake *fake, uint32_t cmd);

/* HELLO with the ranges given, or with all of the text. */
enum hvpoke_status fake_hello_ranges(struct fake *fake, const struct hvpoke_range *range,
				     uint32_t nr);
void fake_hello(struct fake *fake);

/* BATCH. The OUT fields are in fake_cmd(fake)->batch. */
enum hvpoke_status fake_batch(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr);

/* Sites. @target goes into the displacement. */
enum fake_insn {
	FAKE_NOP2,
	FAKE_JMP2,
	FAKE_NOP5,
	FAKE_JMP5,
	FAKE_CALL5,
	/* With HVPOKE_SCOPE_ALL only. */
	FAKE_RET5,
	FAKE_XOR5,
	FAKE_XORQ5,
	FAKE_UD5,
	FAKE_JCC6,
	/* Of HVPOKE_SITE_PROBE. */
	FAKE_INT3,
	FAKE_PUSH1,
	FAKE_INT3_5,
	FAKE_PROBE_JMP5,
};
uint8_t fake_insn(uint8_t *insn, enum fake_insn which, uint32_t target); /* returns its length */
struct hvpoke_entry fake_entry(uint64_t addr, enum fake_insn old, enum fake_insn new_insn,
			       uint32_t target);
/* Write the entry's old (or new) bytes to where it says. */
void fake_put(struct fake *fake, const struct hvpoke_entry *entry, const uint8_t *insn);
/* Do they stand there? */
bool fake_holds(struct fake *fake, const struct hvpoke_entry *entry, const uint8_t *insn);

/* A batch that must be refused, without a pause and without a byte of text changed. */
void fake_refused(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr,
		  enum hvpoke_status status, uint32_t bad_index);
/* A batch that must be applied, in one pause. */
void fake_applied(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr);

/* A key, in the agent's answer to HVPOKE_REQ_LIST_KEYS. False: there is no room for it. */
bool fake_add_key(struct hvpoke_complete *answer, const char *name, bool enabled, uint32_t sites);

#endif /* FAKE_BACKEND_H */
