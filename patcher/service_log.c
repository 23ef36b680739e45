// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control methods for what has been done: log reads the records, undo puts back what
 * one batch has written. An undo goes through the agent, which holds the kernel's own locks
 * over it (guest-agent/undo.c), and is a batch like any other.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "audit.h"
#include "json_build.h"
#include "service_internal.h"
#include "undo.h"

#define DEFAULT_COUNT 20

static bool take_id(struct hvp_call *call, const char *key, struct json_object *value, int64_t min,
		    uint64_t *to)
{
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < min) {
		hvp_call_fail(call, "bad-params", NULL,
			      "\"%s\" must be the id of a record, as \"log\" has it", key);
		return false;
	}
	*to = json_object_get_uint64(value);
	return true;
}

void hvp_service_log(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_service *service = ctx;
	struct hvp_audit *audit = hvp_guest_audit(service->guest);
	struct json_object *records, *result;
	unsigned int count = DEFAULT_COUNT;
	struct hvp_audit_state state;
	uint64_t after = 0;

	json_object_object_foreach(params, key, value)
	{
		bool ok;

		if (!strcmp(key, "count"))
			ok = service_take_int(call, key, value, 1, HVP_AUDIT_READ_MAX, &count);
		else if (!strcmp(key, "after"))
			ok = take_id(call, key, value, 0, &after);
		else
			ok = service_fail_unknown(call, "log", key);
		if (!ok)
			return;
	}
	hvp_audit_state(audit, &state);
	if (!state.path) {
		hvp_call_fail(call, "no-log", NULL,
			      "nothing is recorded of this VM: its log was switched off, or could "
			      "not be opened when it started");
		return;
	}
	records = hvp_audit_read(audit, count, after);
	if (!records) {
		hvp_call_fail(call, "internal", NULL, "out of memory");
		return;
	}
	/* Again: some may have been lost while we waited for them. */
	hvp_audit_state(audit, &state);
	result = json_object_new_object();
	hvp_json_add(result, "records", records);
	service_add_u64(result, "lost", state.lost);
	service_add_u64(result, "unrecorded", state.unrecorded);
	hvp_json_add(result, "file", json_object_new_string(state.path));
	hvp_call_reply(call, result);
}

static struct json_object *status_data(const struct hvp_undone *undone)
{
	struct json_object *data = json_object_new_object();

	hvp_json_add(data, "status", json_object_new_string(hvpoke_status_text(undone->status)));
	if (undone->bad_index != HVPOKE_NO_INDEX)
		service_add_u64(data, "site", undone->bad_index);
	return data;
}

/* Nothing was written. */
static void fail_undo(const struct service_request *request, const struct hvp_undone *undone)
{
	uint64_t id = request->wish.undo;

	switch (undone->status) {
	case HVPOKE_MISMATCH:
		hvp_call_fail(request->call, "changed", status_data(undone),
			      "site %" PRIu32 " of batch %" PRIu64 " (0x%" PRIx64 " in the guest's "
			      "kernel) no longer holds what the batch wrote; nothing was put back",
			      undone->bad_index, id, undone->bad_gva);
		break;
	case HVPOKE_NOT_TEXT:
		hvp_call_fail(request->call, "gone", status_data(undone),
			      "site %" PRIu32 " of batch %" PRIu64 " (0x%" PRIx64 ") was in text "
			      "that is not there any more, as of a module that was unloaded; "
			      "nothing was put back",
			      undone->bad_index, id, undone->bad_gva);
		break;
	case HVPOKE_NO_REQUEST:
		hvp_call_fail(request->call, "no-batch", status_data(undone),
			      "batch %" PRIu64 " is not kept any more; nothing was put back", id);
		break;
	default:
		hvp_call_fail(request->call, "undo-failed", status_data(undone),
			      "batch %" PRIu64 " was not put back: %s", id,
			      hvpoke_status_text(undone->status));
		break;
	}
}

static void undo_answer(struct service_request *request, const struct hvp_outcome *outcome)
{
	const struct hvp_undone *undone = &outcome->undone;
	struct json_object *result;

	if (undone->tried && undone->status != HVPOKE_OK) {
		fail_undo(request, undone);
		return;
	}
	result = json_object_new_object();
	if (!undone->tried && !outcome->guest.error) {
		hvp_call_fail(request->call, "bad-answer", result,
			      "the agent says that it is done, but has not asked for it");
		return;
	}
	service_add_u64(result, "undone", request->wish.undo);
	service_add_u64(result, "id", undone->id);
	service_add_u64(result, "sites", undone->sites);
	service_add_u64(result, "pauses", outcome->pauses);
	hvp_json_add(result, "pause_us", service_us(outcome->pause_ns));
	hvp_json_add(result, "apply_us", service_us(outcome->apply_ns));
	hvp_json_add(result, "guest_us", service_us(outcome->guest.guest_ns));
	service_answer(request, outcome, result);
}

static void refuse_undo(struct hvp_call *call, int err, uint64_t id)
{
	switch (err) {
	case -ENODEV: service_fail_no_agent(call); break;
	case -EOPNOTSUPP:
		hvp_call_fail(call, "no-labels", NULL,
			      "batch %" PRIu64 " has sites that are no jump labels (static calls, "
			      "ftrace or kprobes), or more than %u: the kernel may have freed by "
			      "now what they led to, so it is not put back",
			      id, HVP_UNDO_SITES);
		break;
	default:
		hvp_call_fail(call, "no-batch", NULL,
			      "%" PRIu64 " is none of the last %d batches (%u sites in all) that "
			      "this agent had applied since it was loaded and since the host's "
			      "program was started",
			      id, HVP_UNDO_BATCHES, HVP_UNDO_SITES);
		break;
	}
}

/* What can be told without the guest; what is refused here is recorded as well. */
static bool can_undo(struct hvp_service *service, struct hvp_call *call, struct hvp_origin *origin,
		     uint64_t id)
{
	int err = hvp_guest_can_undo(service->guest, id);

	if (!err)
		return true;
	hvp_call_peer(call, &origin->uid, &origin->pid);
	refuse_undo(call, err, id);
	hvp_audit_unanswered(hvp_guest_audit(service->guest), origin, "refused",
			     err == -ENODEV ? "no-agent" : strerrordesc_np(-err));
	return false;
}

void hvp_service_undo(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct hvp_origin origin = {.method = "undo"};
	struct service_wish wish = {
		.flags = HVPOKE_REQ_UNDO,
		.timeout_ms = SERVICE_TIMEOUT_MS,
		.origin = &origin,
		.answer = undo_answer,
	};

	json_object_object_foreach(params, key, value)
	{
		bool ok;

		if (!strcmp(key, "id"))
			ok = take_id(call, key, value, 1, &wish.undo);
		else if (!strcmp(key, "timeout_ms"))
			ok = service_take_timeout(call, value, &wish);
		else
			ok = service_fail_unknown(call, "undo", key);
		if (!ok)
			return;
	}
	if (!wish.undo) {
		hvp_call_fail(call, "bad-params", NULL, "\"undo\" needs an \"id\"");
		return;
	}
	snprintf(origin.what, sizeof(origin.what), "batch %" PRIu64, wish.undo);
	if (can_undo(ctx, call, &origin, wish.undo))
		service_submit(ctx, call, &wish, NULL);
}
