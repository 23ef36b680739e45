/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_SERVICE_INTERNAL_H
#define HVP_SERVICE_INTERNAL_H

#include <stdint.h>
#include <stdio.h>

#include "service.h"

/*
 * service.c		info and stats
 * service_request.c	toggle and idle: what the guest has to answer
 */

/* A JSON string of @text, at most @size bytes, fit to be shown. */
struct json_object *service_guest_string(const char *text, size_t size);
/* @ns as a JSON number of microseconds. */
struct json_object *service_us(uint64_t ns);
void service_add_u64(struct json_object *object, const char *key, uint64_t value);

#endif /* HVP_SERVICE_INTERNAL_H */
