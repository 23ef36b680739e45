/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_SERVICE_H
#define HVP_SERVICE_H

#include "control.h"
#include "guest.h"

/*
 * Changes that wait to be handed to the guest as one request. At most what fits in
 * one (HVPOKE_REQ_DATA). Only the server's thread looks at it.
 */
struct hvp_queue {
	struct json_object *changes; /* as the clients gave them, an array; NULL: none */
	struct hvp_queries records;
};

/*
 * The control methods that are the same under every VMM: HVP_SERVICE_METHODS. A
 * VMM lists them first in its own table and makes a struct hvp_service the first
 * member of the method ctx.
 */
struct hvp_service {
	const char *name; /* VM */
	struct hvp_guest *guest;
	/* VMM specific parts of info and stats; add members to @object. */
	void (*add_info)(struct hvp_service *service, struct json_object *object);
	void (*add_stats)(struct hvp_service *service, struct json_object *object);
	/* INT3 hits that text patching caused so far. NULL: this VMM does not see them. */
	uint64_t (*int3_hits)(struct hvp_service *service);
	/* Paused by an operator: requests are refused with "paused". */
	bool (*is_paused)(struct hvp_service *service);
	struct hvp_queue queue; /* empty at first */
};

/* When the VM's server is closed: let go of what the methods made. */
void hvp_service_release(struct hvp_service *service);

void hvp_service_info(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_stats(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_toggle(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_idle(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_key(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_keys(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_event(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_scope(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_queue_add(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_queue_show(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_queue_clear(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_queue_commit(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_log(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_undo(void *ctx, struct hvp_call *call, struct json_object *params);

/* clang-format off */
#define HVP_SERVICE_METHODS				\
	{"info", hvp_service_info},			\
	{"stats", hvp_service_stats},			\
	{"toggle", hvp_service_toggle},			\
	{"idle", hvp_service_idle},			\
	{"key", hvp_service_key},			\
	{"keys", hvp_service_keys},			\
	{"event", hvp_service_event},			\
	{"scope", hvp_service_scope},			\
	{"queue-add", hvp_service_queue_add},		\
	{"queue-show", hvp_service_queue_show},		\
	{"queue-clear", hvp_service_queue_clear},	\
	{"queue-commit", hvp_service_queue_commit},	\
	{"log", hvp_service_log},			\
	{"undo", hvp_service_undo}
/* clang-format on */

#endif /* HVP_SERVICE_H */
