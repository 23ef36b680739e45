// SPDX-License-Identifier: GPL-2.0-or-later
/* A record of the log as a line of JSON. */
#include <stdio.h>
#include <string.h>

#include "audit_internal.h"
#include "json_build.h"
#include "text.h"

static const char *status_name(uint32_t status)
{
	switch (status) {
#define STATUS_NAME(name, value, text) \
	case value: return #name;
		HVPOKE_STATUSES(STATUS_NAME)
#undef STATUS_NAME
	}
	return "UNKNOWN"; /* from a guest, it may be any number */
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
	hvp_json_add(object, key, json_object_new_string(text));
}

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
	hvp_json_add(object, key, json_object_new_uint64(value));
}

static void add_us(struct json_object *object, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu.%03u", (unsigned long long)(ns / 1000),
		 (unsigned int)(ns % 1000));
	hvp_json_add(object, key, json_object_new_double_s((double)ns / 1000, text));
}

static void add_time(struct json_object *object, const struct timespec *time)
{
	char day[32], text[48];
	struct tm utc;

	gmtime_r(&time->tv_sec, &utc);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, sizeof(text), "%s.%03ldZ", day, time->tv_nsec / 1000000);
	add_text(object, "time", text);
}

static void add_origin(struct json_object *object, const struct audit_record *record)
{
	const struct hvp_origin *origin = &record->origin;

	add_text(object, "by", record->by_client ? "client" : "guest");
	if (!record->by_client)
		return;
	add_u64(object, "uid", origin->uid);
	hvp_json_add(object, "pid", json_object_new_int(origin->pid));
	add_text(object, "method", origin->method);
	add_text(object, "what", origin->what);
	if (origin->native)
		add_text(object, "via", "native");
}

static void add_batch(struct json_object *object, const struct audit_record *record)
{
	const struct hvp_batch_result *result = &record->result;

	if (record->undoes)
		add_u64(object, "undoes", record->undoes);
	add_u64(object, "sites", record->sites);
	add_u64(object, "written", result->written);
	add_text(object, "status", status_name(result->status));
	if (result->bad_index != HVPOKE_NO_INDEX)
		add_u64(object, "bad_index", result->bad_index);
	if (!result->paused)
		return;
	add_us(object, "pause_us", result->pause_ns);
	add_us(object, "apply_us", result->apply_ns);
}

/* Perhaps a guest's words: shown, but not trusted. */
static void add_message(struct json_object *object, const struct audit_record *record)
{
	char text[sizeof(record->message)];

	memcpy(text, record->message, sizeof(text));
	hvp_text_clean(text);
	if (*text)
		add_text(object, "message", text);
}

static void add_request(struct json_object *object, const struct audit_record *record)
{
	add_text(object, "ended", record->ended);
	if (record->answered) {
		add_u64(object, "matched", record->matched);
		add_u64(object, "changed", record->changed);
		add_u64(object, "batches", record->batches);
		add_u64(object, "sites", record->guest_sites);
		add_u64(object, "native_sites", record->native_sites);
		add_us(object, "pause_us", record->pause_ns);
	}
	if (record->fallback)
		add_text(object, "fallback", status_name(record->fallback));
	if (record->error)
		add_u64(object, "errno", record->error);
	add_message(object, record);
}

static struct json_object *record_object(const struct audit_record *record)
{
	static const char *const kinds[] = {
		[AUDIT_BATCH] = "batch",
		[AUDIT_REQUEST] = "request",
		[AUDIT_MORE] = "more",
	};
	struct json_object *object = json_object_new_object();

	if (!object)
		return NULL;
	add_u64(object, "id", record->id);
	add_time(object, &record->time);
	add_text(object, "kind", kinds[record->kind]);
	switch (record->kind) {
	case AUDIT_BATCH:
		add_origin(object, record);
		add_batch(object, record);
		break;
	case AUDIT_REQUEST:
		add_origin(object, record);
		add_request(object, record);
		break;
	case AUDIT_MORE:
		add_u64(object, "count", record->count);
		add_u64(object, "sites", record->all_sites);
		add_text(object, "status", status_name(record->result.status));
		break;
	}
	if (record->lost)
		add_u64(object, "lost_before", record->lost);
	return object;
}

char *audit_line(const struct audit_record *record, size_t *len)
{
	struct json_object *object = record_object(record);
	/* A record that lacks its id, say, is none: better to count it as lost. */
	const char *text =
		hvp_json_whole(object)
			? json_object_to_json_string_ext(
				  object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
			: NULL;
	char *line = NULL;
	int printed = text ? asprintf(&line, "%s\n", text) : -1;

	json_object_put(object);
	*len = printed < 0 ? 0 : (size_t)printed;
	return printed < 0 ? NULL : line;
}
