/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_QMP_H
#define HVPOKED_QMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

#include "message.h"

/* A client of QEMU's monitor (QMP) on a connected socket. One thread at a time. */
struct qmp {
	int fd;	  /* -1: closed */
	char *in; /* what has come and is not used yet */
	size_t len, size;
	int64_t last_id;
	/* Called for each event, also in the middle of qmp_call(): only take note there. */
	void (*on_event)(void *ctx, const char *event, struct json_object *data);
	void *ctx;
};

/* A line longer than this is not one of QEMU's. */
#define QMP_MAX_LINE (4u << 20)
/* How long QEMU may take to answer what it answers by itself. Its main loop may be busy. */
#define QMP_TIMEOUT_MS 5000

/*
 * Take @fd (also on failure): wait for the greeting, then leave negotiation mode.
 * on_event and ctx are set by the caller before. 0 or -errno with @message.
 */
int qmp_open(struct qmp *qmp, int fd, struct message *message);
void qmp_close(struct qmp *qmp);

/*
 * Execute @command; takes @arguments, which may be NULL. 0 with *@result (the caller puts
 * it; @result may be NULL), or -errno with @message: -EREMOTEIO QEMU refused it, and
 * says why; -ETIMEDOUT no answer within @timeout_ms, and a late one will be ignored;
 * -ECONNRESET QEMU hung up; -EPROTO it does not speak QMP. After the last two the
 * connection is of no more use.
 */
int qmp_call(struct qmp *qmp, const char *command, struct json_object *arguments, int timeout_ms,
	     struct json_object **result, struct message *message);
/* Send without waiting for the answer, which is ignored. 0 or -errno. */
int qmp_post(struct qmp *qmp, const char *command);
/* A command of the human monitor; *@text (from malloc()) is what it printed. Likewise. */
int qmp_human(struct qmp *qmp, const char *command, char **text, struct message *message);

/*
 * There is something to read: take some of it, and all that has been read before. The rest
 * is still there to be read then. 0, -ECONNRESET, -EPROTO or -ENOMEM.
 */
int qmp_work(struct qmp *qmp);

#endif /* HVPOKED_QMP_H */
