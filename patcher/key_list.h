/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_KEY_LIST_H
#define HVP_KEY_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"

/* A static key as the guest's agent lists it. */
struct hvp_key {
	const char *name; /* in the answer; printable ASCII without blanks, NUL terminated */
	bool enabled;
	uint32_t sites;
};

/*
 * The next key of the answer to HVPOKE_REQ_LIST_KEYS, of which nothing is trusted. @at
 * starts at 0. 1 with @key filled in, 0 at the end, or -EPROTO: the record at *@at
 * is not one.
 */
int hvp_key_next(const struct hvpoke_complete *answer, uint32_t *at, struct hvp_key *key);

#endif /* HVP_KEY_LIST_H */
