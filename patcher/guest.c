// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct hvp_guest *hvp_guest_new(const struct hvp_backend *backend, void *ctx)
{
	struct hvp_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->backend = backend;
	guest->ctx = ctx;
	guest->max_sites = HVPOKE_MAX_SITES;
	pthread_mutex_init(&guest->owner, NULL);
	pthread_mutex_init(&guest->lock, NULL);
	return guest;
}

void hvp_guest_limit_sites(struct hvp_guest *guest, uint32_t max_sites)
{
	guest->max_sites = max_sites;
}

void hvp_guest_free(struct hvp_guest *guest)
{
	if (!guest)
		return;
	hvp_guest_reset(guest);
	hvp_arena_release(&guest->arena);
	hvp_ranges_clear(&guest->ranges);
	pthread_mutex_destroy(&guest->lock);
	pthread_mutex_destroy(&guest->owner);
	free(guest);
}

void hvp_host_error(const char *what, int err)
{
	static atomic_uint said;
	unsigned int nr = atomic_fetch_add(&said, 1);

	if (nr < HVP_HOST_ERRORS)
		fprintf(stderr, "hvpoke: %s: %s\n", what, strerrordesc_np(err));
	else if (nr == HVP_HOST_ERRORS)
		fprintf(stderr, "hvpoke: more host errors; no more of them are shown\n");
}
