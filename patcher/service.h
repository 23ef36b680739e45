/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_SERVICE_H
#define HVP_SERVICE_H

#include "control.h"
#include "guest.h"

/*
 * The control methods that are the same under every VMM: info, stats, toggle,
 * idle. A VMM lists HVP_SERVICE_METHODS first in its own table and makes a
 * struct hvp_service the first member of the method ctx.
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
};

void hvp_service_info(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_stats(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_toggle(void *ctx, struct hvp_call *call, struct json_object *params);
void hvp_service_idle(void *ctx, struct hvp_call *call, struct json_object *params);

#define HVP_SERVICE_METHODS                                                                       \
	{"info", hvp_service_info}, {"stats", hvp_service_stats}, {"toggle", hvp_service_toggle}, \
	{                                                                                         \
		"idle", hvp_service_idle                                                          \
	}

#endif /* HVP_SERVICE_H */
