// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "hello.h"
#include "string_in.h"

static void agent_info(struct hvp_agent_info *info, const struct hvpoke_hello *hello)
{
	*info = (struct hvp_agent_info){
		.present = true, .nr_ranges = hello->nr_ranges, .scope = hello->scope};
	hvp_string_in(info->kernel, hello->kernel, sizeof(hello->kernel));
	hvp_string_in(info->agent, hello->agent, sizeof(hello->agent));
	memcpy(info->probe_gva, hello->probe_gva, sizeof(info->probe_gva));
}

/* Its other probes come and go with the scope. */
static bool same_agent(const struct hvp_agent_info *a, const struct hvp_agent_info *b)
{
	return !strcmp(a->kernel, b->kernel) && !strcmp(a->agent, b->agent) &&
	       a->probe_gva[0] == b->probe_gva[0];
}

enum hvpoke_status hvp_hello(struct hvp_guest *guest, struct hvpoke_hello *hello)
{
	struct hvp_ranges ranges = {0}, before = {0};
	struct hvp_request *lost = NULL;
	struct hvp_agent_info info;
	enum hvpoke_status status;

	hello->features = HVPOKE_FEATURES;
	hello->max_sites = (uint32_t)guest->limits.max_sites;
	hello->bad_index = HVPOKE_NO_INDEX;
	agent_info(&info, hello);
	if (hello->scope > HVPOKE_SCOPE_ALL || hello->reserved)
		return HVPOKE_BAD_HEADER;

	if (pthread_mutex_trylock(&guest->owner))
		return HVPOKE_BUSY;
	status = hvp_ranges_copy(&ranges, guest->backend, guest->ctx, gpa(hello->ranges_gpa),
				 hello->nr_ranges, &hello->bad_index);
	if (status == HVPOKE_OK) {
		pthread_mutex_lock(&guest->lock);
		if (!same_agent(&guest->agent, &info)) {
			lost = hvp_requests_take(&guest->requests);
			guest->counters.stats.noisy = 0;
			hvp_undo_forget(&guest->undo);
		}
		guest->agent = info;
		before = guest->ranges;
		guest->ranges = ranges;
		guest->scope = hello->scope;
		pthread_mutex_unlock(&guest->lock);
	}
	pthread_mutex_unlock(&guest->owner);
	hvp_ranges_clear(&before);
	hvp_requests_lost(guest, lost);
	return status;
}

/* The ranges stay until the next hello: no batch is taken before that. */
static bool forget_agent(struct hvp_guest *guest)
{
	struct hvp_request *lost;
	bool present;

	pthread_mutex_lock(&guest->lock);
	present = guest->agent.present;
	guest->agent = (struct hvp_agent_info){0};
	lost = hvp_requests_take(&guest->requests);
	pthread_mutex_unlock(&guest->lock);
	hvp_requests_lost(guest, lost);
	return present;
}

enum hvpoke_status hvp_bye(struct hvp_guest *guest)
{
	return forget_agent(guest) ? HVPOKE_OK : HVPOKE_NOT_HELLO;
}

void hvp_guest_reset(struct hvp_guest *guest)
{
	forget_agent(guest);
}

bool hvp_guest_is_text_gva(struct hvp_guest *guest, uint64_t gva)
{
	bool found = false;

	pthread_mutex_lock(&guest->lock);
	for (uint32_t i = 0; i < guest->ranges.nr && !found && guest->agent.present; i++)
		found = gva - guest->ranges.range[i].gva < guest->ranges.range[i].len;
	pthread_mutex_unlock(&guest->lock);
	return found;
}

void hvp_guest_agent(struct hvp_guest *guest, struct hvp_agent_info *info)
{
	pthread_mutex_lock(&guest->lock);
	*info = guest->agent;
	pthread_mutex_unlock(&guest->lock);
}
