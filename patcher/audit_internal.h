/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_AUDIT_INTERNAL_H
#define HVP_AUDIT_INTERNAL_H

#include <limits.h>
#include <sys/queue.h>
#include <time.h>

#include "audit.h"

enum audit_kind {
	AUDIT_BATCH,
	AUDIT_REQUEST,
	AUDIT_MORE, /* @count batches, the last one with result.status */
};

struct audit_record {
	STAILQ_ENTRY(audit_record) link;
	uint64_t id;
	struct timespec time; /* CLOCK_REALTIME */
	uint64_t lost;	      /* records that are missing before this one */
	enum audit_kind kind;
	bool by_client;
	struct hvp_origin origin; /* if by_client */

	/* A batch. */
	uint32_t sites;
	uint64_t undoes; /* the id of the batch that it puts back, or 0 */
	struct hvp_batch_result result;
	uint64_t count, all_sites; /* of AUDIT_MORE */

	/* A request. */
	const char *ended; /* "done", "failed", ... */
	bool answered;	   /* what the guest says of it, is valid: */
	uint64_t matched, changed, guest_sites, native_sites, pause_ns;
	uint32_t batches, fallback, error;
	char message[192];
};

/* One line with its newline, from malloc(); NULL: out of memory. */
char *audit_line(const struct audit_record *record, size_t *len);

/* The current file and the older ones, PATH.1 and so on. */
struct audit_file {
	char path[PATH_MAX - 16];
	int fd;	   /* -1: not open at the moment */
	bool torn; /* it ends in half a line that could not be cut off */
	uint64_t size;
	uint64_t max_bytes;
	unsigned int nr;
};

/* Make @dir and open DIR/NAME.jsonl; *@last_id: of the last record that can be read, or 0. */
int audit_file_open(struct audit_file *file, const char *dir, const char *name, uint64_t *last_id);
/* The whole line, or nothing of it and a negative errno. */
int audit_file_append(struct audit_file *file, const char *line, size_t len);
/* Any thread, while another one appends. As hvp_audit_read(). */
struct json_object *audit_file_read(const struct audit_file *file, unsigned int max,
				    uint64_t after);
void audit_file_close(struct audit_file *file);

#endif /* HVP_AUDIT_INTERNAL_H */
