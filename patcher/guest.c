// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

struct hvp_guest *hvp_guest_new(const struct hvp_backend *backend, void *ctx)
{
	struct hvp_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->backend = backend;
	guest->ctx = ctx;
	hvp_guest_limit(guest, &(struct hvp_limits){
				       .max_sites = HVPOKE_MAX_SITES,
				       .max_requests = HVP_MAX_REQUESTS,
				       .seconds = 1,
			       });
	pthread_mutex_init(&guest->owner, NULL);
	pthread_mutex_init(&guest->lock, NULL);
	return guest;
}

void hvp_guest_limit(struct hvp_guest *guest, const struct hvp_limits *limits)
{
	guest->limits = *limits;
	hvp_rates_init(&guest->rates, limits, hvp_now_ns());
}

const struct hvp_limits *hvp_guest_limits(const struct hvp_guest *guest)
{
	return &guest->limits;
}

void hvp_guest_set_audit(struct hvp_guest *guest, struct hvp_audit *audit)
{
	guest->audit = audit;
}

struct hvp_audit *hvp_guest_audit(struct hvp_guest *guest)
{
	return guest->audit;
}

int hvp_guest_can_undo(struct hvp_guest *guest, uint64_t id)
{
	const struct hvp_undo_batch *batch;
	int err = 0;

	pthread_mutex_lock(&guest->lock);
	batch = hvp_undo_find(&guest->undo, id);
	if (!guest->agent.present)
		err = -ENODEV;
	else if (!batch)
		err = -ENOENT;
	else if (!batch->labels)
		err = -EOPNOTSUPP;
	pthread_mutex_unlock(&guest->lock);
	return err;
}

void hvp_guest_free(struct hvp_guest *guest)
{
	if (!guest)
		return;
	hvp_guest_reset(guest);
	hvp_undo_forget(&guest->undo);
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
