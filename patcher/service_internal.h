/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_SERVICE_INTERNAL_H
#define HVP_SERVICE_INTERNAL_H

#include <stdint.h>
#include <stdio.h>

#include "json_build.h"
#include "service.h"

/*
 * service.c		info and stats
 * service_request.c	what the guest has to answer: handed over, timed out, answered; idle
 * service_change.c	toggle, key, event and scope: a change as a request of its own
 * service_queue.c	several changes, prepared one by one, as one request
 * service_keys.c	the guest's static keys, a page at a time
 * service_log.c	what was done, and by whom; undo
 */

/* A JSON string of @text, at most @size bytes, fit to be shown. */
struct json_object *service_guest_string(const char *text, size_t size);
/* @ns as a JSON number of microseconds. */
struct json_object *service_us(uint64_t ns);
void service_add_u64(struct json_object *object, const char *key, uint64_t value);
/* True, or the call was failed. */
bool service_no_params(struct hvp_call *call, const char *method, struct json_object *params);

/* service_request.c */

#define SERVICE_TIMEOUT_MS 120000 /* unless a client says something else */

struct service_request;

/* What a client asked for. */
struct service_wish {
	uint32_t flags; /* HVPOKE_REQ_* */
	unsigned int idle_ms;
	unsigned int timeout_ms;
	uint32_t scope; /* for service_change.c */
	uint64_t undo;	/* with HVPOKE_REQ_UNDO: the batch's id */
	/* For the log; service_submit() adds who it is. NULL: not recorded. */
	struct hvp_origin *origin;
	/* Answers the request's call; on the thread that rang the doorbell. */
	void (*answer)(struct service_request *request, const struct hvp_outcome *outcome);
};

/* Freed with its call: by the control server, once the answer is on its way. */
struct service_request {
	struct hvp_service *service;
	struct hvp_call *call;
	struct service_wish wish;
	uint64_t int3_before;
	uint64_t id; /* the server's thread only: done() may run before it is known */
};

/*
 * Hand the wish to the guest; @queries: its records, none with HVPOKE_REQ_COUNT_IDLE.
 * False: it was not handed over, and the call has been failed.
 */
bool service_submit(struct hvp_service *service, struct hvp_call *call,
		    const struct service_wish *wish, const struct hvp_queries *queries);
/* Reply with @result; if the agent reports an error, fail with it as data. Takes @result. */
void service_answer(struct service_request *request, const struct hvp_outcome *outcome,
		    struct json_object *result);
uint64_t service_int3_hits(struct hvp_service *service);

/* A member of the params. True, or the call was failed. */
bool service_take_int(struct hvp_call *call, const char *key, struct json_object *value,
		      unsigned int min, unsigned int max, unsigned int *to);
bool service_take_text(struct hvp_call *call, const char *key, struct json_object *value,
		       const char **to);
bool service_take_timeout(struct hvp_call *call, struct json_object *value,
			  struct service_wish *wish);
bool service_take_via(struct hvp_call *call, struct json_object *value, struct service_wish *wish);
void service_fail_no_agent(struct hvp_call *call);
bool service_fail_unknown(struct hvp_call *call, const char *method, const char *key);

/* service_change.c */

/* Append to @origin what @change, an element of "changes" that is good, says. */
void service_describe(struct hvp_origin *origin, struct json_object *change);
/*
 * The records of @change, an element of "changes". True (release with
 * hvp_queries_free()), or the call was failed.
 */
bool service_take_change(struct hvp_call *call, struct json_object *change,
			 struct hvp_queries *queries);
/* The answer to a request of changes. */
void service_change_answer(struct service_request *request, const struct hvp_outcome *outcome);

#endif /* HVP_SERVICE_INTERNAL_H */
