// SPDX-License-Identifier: GPL-2.0-or-later
/* Control methods that only look: info and stats. */
#include "service.h"

#include <unistd.h>

#include "scope.h"
#include "service_internal.h"
#include "text.h"

/* Strings that a guest wrote are shown, but not trusted. */
struct json_object *service_guest_string(const char *text, size_t size)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%.*s", (int)size, text);
	hvp_text_clean(copy);
	return json_object_new_string(copy);
}

/* Microseconds with three decimals, not whatever a double makes of them. */
struct json_object *service_us(uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu.%03u", (unsigned long long)(ns / 1000),
		 (unsigned int)(ns % 1000));
	return json_object_new_double_s((double)ns / 1000, text);
}

void service_add_u64(struct json_object *object, const char *key, uint64_t value)
{
	hvp_json_add(object, key, json_object_new_uint64(value));
}

bool service_no_params(struct hvp_call *call, const char *method, struct json_object *params)
{
	if (!json_object_object_length(params))
		return true;
	hvp_call_fail(call, "bad-params", NULL, "\"%s\" takes no parameters", method);
	return false;
}

static struct json_object *agent_object(const struct hvp_agent_info *info)
{
	struct json_object *agent = json_object_new_object();

	hvp_json_add(agent, "present", json_object_new_boolean(info->present));
	if (!info->present)
		return agent;
	hvp_json_add(agent, "kernel", service_guest_string(info->kernel, sizeof(info->kernel)));
	hvp_json_add(agent, "version", service_guest_string(info->agent, sizeof(info->agent)));
	service_add_u64(agent, "ranges", info->nr_ranges);
	hvp_json_add(agent, "scope", json_object_new_string(hvp_scope_name(info->scope)));
	return agent;
}

static struct json_object *limits_object(const struct hvp_limits *limits)
{
	struct json_object *object = json_object_new_object();

	service_add_u64(object, "max_sites", limits->max_sites);
	service_add_u64(object, "max_requests", limits->max_requests);
	service_add_u64(object, "max_pauses", limits->max_pauses);
	service_add_u64(object, "max_paused_ms", limits->max_paused_ms);
	service_add_u64(object, "limit_seconds", limits->seconds);
	return object;
}

void hvp_service_info(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_service *service = ctx;
	struct hvp_agent_info agent;
	struct json_object *result;
	bool paused;

	if (!service_no_params(call, "info", params))
		return;
	paused = service->is_paused && service->is_paused(service);
	hvp_guest_agent(service->guest, &agent);
	result = json_object_new_object();
	hvp_json_add(result, "name", json_object_new_string(service->name));
	hvp_json_add(result, "protocol", json_object_new_int(HVP_CONTROL_PROTOCOL));
	hvp_json_add(result, "pid", json_object_new_int(getpid()));
	hvp_json_add(result, "state", json_object_new_string(paused ? "paused" : "running"));
	if (service->add_info)
		service->add_info(service, result);
	hvp_json_add(result, "agent", agent_object(&agent));
	hvp_json_add(result, "limits", limits_object(hvp_guest_limits(service->guest)));
	hvp_call_reply(call, result);
}

void hvp_service_stats(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_service *service = ctx;
	struct json_object *result;
	struct hvp_stats stats;

	if (!service_no_params(call, "stats", params))
		return;
	hvp_guest_stats(service->guest, &stats);
	result = json_object_new_object();
	service_add_u64(result, "requests", stats.requests);
	service_add_u64(result, "batches", stats.batches);
	service_add_u64(result, "refused", stats.refused);
	service_add_u64(result, "refused_rate", stats.rated);
	service_add_u64(result, "sites", stats.sites);
	service_add_u64(result, "pauses", stats.pauses);
	hvp_json_add(result, "pause_p50_us", service_us(stats.pause_p50_ns));
	hvp_json_add(result, "pause_p99_us", service_us(stats.pause_p99_ns));
	hvp_json_add(result, "max_pause_us", service_us(stats.max_pause_ns));
	hvp_json_add(result, "total_pause_us", service_us(stats.total_pause_ns));
	hvp_json_add(result, "last_pause_us", service_us(stats.last_pause_ns));
	hvp_json_add(result, "last_kick_us", service_us(stats.last_kick_ns));
	hvp_json_add(result, "last_apply_us", service_us(stats.last_apply_ns));
	hvp_json_add(result, "last_wake_us", service_us(stats.last_wake_ns));
	hvp_json_add(result, "last_status",
		     json_object_new_string(hvpoke_status_text(stats.last_status)));
	service_add_u64(result, "noisy", stats.noisy);
	if (service->add_stats)
		service->add_stats(service, result);
	hvp_call_reply(call, result);
}
