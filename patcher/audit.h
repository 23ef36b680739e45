/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_AUDIT_H
#define HVP_AUDIT_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

#include "guest.h"
#include "origin.h"
#include "stats.h"

/*
 * What was done to one VM, and who asked for it: a line of JSON for each batch and each
 * request, in DIR/NAME.jsonl (proto/control.md, "log", has the members). A thread of its
 * own writes them, so that whoever adds a record never waits for a disk.
 *
 *   audit.c		ids, the queue, the thread; what is too much
 *   audit_json.c	a record as JSON
 *   audit_file.c	the files: append, rotate, read
 *
 * What cannot be written is counted, said once, and lost: a full disk must not keep a
 * guest from patching its own text.
 */
struct hvp_audit;

struct hvp_audit_config {
	const char *dir;       /* made if need be; NULL: ids are given, nothing is written */
	uint64_t max_bytes;    /* of one file; 0: the default */
	unsigned int nr_files; /* the current one and older ones; 0: the default */
	unsigned int sum_ms;   /* for tests: HVP_AUDIT_SUM_MS, if not 0 */
	/* First of all on the thread that writes: to give up rights there. May be NULL. */
	void (*confine)(void *ctx);
	void *confine_ctx;
};

#define HVP_AUDIT_MAX_BYTES (4u << 20)
#define HVP_AUDIT_NR_FILES  4u
/*
 * A guest can send batches without end. So many are recorded one by one at once, and one
 * more each so many ms; of what comes on top, one record a minute says how many they were. So
 * a guest needs hours to push out of the log what others have done. Requests are recorded one
 * by one, and undos.
 */
#define HVP_AUDIT_REFUSED    16u
#define HVP_AUDIT_REFUSED_MS 60000u
#define HVP_AUDIT_APPLIED    256u
#define HVP_AUDIT_APPLIED_MS 250u
#define HVP_AUDIT_SUM_MS     60000u

/* What -EPERM of the next one means. */
#define HVP_AUDIT_NOT_OURS "it, or a file in it, is another user's, or others can write there"

/*
 * The log of the VM @name (hvp_name_valid()), which goes on where it ended. 0 or a
 * negative errno: -EPERM the directory or a file in it is not ours alone.
 */
int hvp_audit_open(struct hvp_audit **out, const struct hvp_audit_config *config, const char *name);
/* What was added is written before. @audit may be NULL. */
void hvp_audit_close(struct hvp_audit *audit);

/*
 * A batch, or a request that was answered (@outcome), or not (@why: "lost", "timeout",
 * "refused", with @message what the client was told, or NULL). Any thread; neither blocks
 * nor fails. @audit and @origin may be NULL: no log; the guest's own. Returns the record's
 * id, 0 if there is none.
 */
uint64_t hvp_audit_batch(struct hvp_audit *audit, const struct hvp_origin *origin, uint32_t sites,
			 uint64_t undoes, const struct hvp_batch_result *result);
uint64_t hvp_audit_answered(struct hvp_audit *audit, const struct hvp_origin *origin,
			    const struct hvp_outcome *outcome, bool late);
uint64_t hvp_audit_unanswered(struct hvp_audit *audit, const struct hvp_origin *origin,
			      const char *why, const char *message);

/* What a reader should know beside the records. */
struct hvp_audit_state {
	const char *path;    /* NULL: nothing is written */
	uint64_t lost;	     /* records, since the log was opened */
	uint64_t unrecorded; /* batches that no record counts yet */
};

#define HVP_AUDIT_READ_MAX 1000u
/*
 * The last @max records (at most HVP_AUDIT_READ_MAX) with an id above @after, oldest
 * first, as an array. Waits a moment for those that are not written yet. NULL if nothing
 * is written, or out of memory.
 */
struct json_object *hvp_audit_read(struct hvp_audit *audit, unsigned int max, uint64_t after);
void hvp_audit_state(struct hvp_audit *audit, struct hvp_audit_state *state);

#endif /* HVP_AUDIT_H */
