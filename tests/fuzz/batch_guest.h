/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FUZZ_BATCH_GUEST_H
#define FUZZ_BATCH_GUEST_H

#include "batch_model.h"
#include "fuzz.h"
#include "guest.h"

/*
 * The guest of fuzz_batch.c, as the engine sees it and as it must be: its memory, the command in
 * hand, what has been written. The engine's ways to it are held against the model here.
 */
#define MAX_STEPS   24
#define MAX_ENTRIES 48
#define MAX_ARMED   8
#define MAX_MADE    256

/* A write that waits for its moment. */
struct armed {
	uint32_t countdown; /* 0: not armed */
	uint32_t at;
	uint8_t len;
	uint8_t bytes[8];
};

struct batch_guest {
	struct hvp_guest *guest;
	uint8_t *ram;	   /* the guest's memory ... */
	uint8_t *expected; /* ... and what must stand there */
	struct model_ranges ranges;
	struct armed armed[MAX_ARMED];

	/* The command in hand. */
	uint64_t page;
	bool has_header, has_body, too_many, pausing;
	unsigned int paused;
	struct hvpoke_cmd header; /* as copied; likewise: */
	union {
		struct hvpoke_batch batch;
		struct hvpoke_hello hello;
		struct hvpoke_complete complete;
	} body;
	uint32_t nr; /* records copied, or those of the batch that is put back */
	bool undoes, can_undo;
	struct hvp_agent_info agent; /* before it */
	uint32_t bad; /* the first one whose old bytes do not stand in the pause; @nr: none */
	struct hvpoke_entry entry[MODEL_MAX_SITES];
	int pause_err, notify_err;
	uint64_t now_ns;
	uint64_t batches_left;

	/* What was written, and can be put back: until there is another agent. */
	struct kept {
		uint64_t id;
		uint32_t nr;
		struct hvpoke_entry entry[MAX_ENTRIES];
		struct hvpoke_range text[MAX_ENTRIES]; /* that each is in */
	} kept[MAX_STEPS];
	uint32_t nr_kept;
	uint64_t batch_id;   /* of the last batch */
	uint64_t undo_id;    /* the batch that the request in progress is about; 0: none */
	bool kept_too_large; /* one that does not fit here: the end of this input */

	/* Host requests. */
	uint32_t submitted, done, cancelled, nr_made;
	uint64_t last_id;
	struct {
		uint64_t id, undo;
		uint32_t len;
		uint8_t data[HVPOKE_REQ_DATA];
	} made[MAX_MADE]; /* last: not cleared for each input */
};
extern struct batch_guest g;

/* What such a guest may have. */
extern const struct hvp_limits batch_limits;
/* Its back end. */
extern const struct hvp_backend batch_backend;

/* The guest writes to its memory, if there is any at that place. */
void guest_writes(uint32_t at, const uint8_t *bytes, uint32_t len);
/* It rings with the command on @page, and all that follows is checked. */
void guest_rings(uint64_t page);

#endif /* FUZZ_BATCH_GUEST_H */
