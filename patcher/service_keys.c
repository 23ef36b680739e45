// SPDX-License-Identifier: GPL-2.0-or-later
/* The control method keys: a page of the guest's static keys, as its agent lists them. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "change.h"
#include "key_list.h"
#include "service_internal.h"

static struct json_object *key_object(const struct hvp_key *key)
{
	struct json_object *object = json_object_new_object();

	hvp_json_add(object, "name", json_object_new_string(key->name));
	hvp_json_add(object, "enabled", json_object_new_boolean(key->enabled));
	service_add_u64(object, "sites", key->sites);
	return object;
}

static void keys_answer(struct service_request *request, const struct hvp_outcome *outcome)
{
	struct json_object *result = json_object_new_object();
	const struct hvpoke_complete *guest = &outcome->guest;
	struct json_object *keys;
	struct hvp_key key;
	uint32_t at = 0;
	bool any = false;
	int found;

	if (guest->error) {
		service_answer(request, outcome, result);
		return;
	}
	keys = json_object_new_array();
	while ((found = hvp_key_next(guest, &at, &key)) > 0) {
		hvp_json_append(keys, key_object(&key));
		any = true;
	}
	hvp_json_add(result, "keys", keys);
	service_add_u64(result, "more", guest->more);
	/* One that has more to tell, and does not, would be asked for ever. */
	if (!found && (!guest->more || any)) {
		service_answer(request, outcome, result);
		return;
	}
	json_object_put(result);
	hvp_call_fail(request->call, "bad-answer", NULL,
		      found ? "the agent's list of keys is wrong at byte %u of %u: no record as "
			      "hvpoke_abi.h has it"
			    : "the agent's list of keys ends at byte %u of %u, with no key, but it "
			      "says that there are more",
		      at, guest->data_len);
}

void hvp_service_keys(void *ctx, struct hvp_call *call, struct json_object *params)
{
	struct service_wish wish = {.flags = HVPOKE_REQ_LIST_KEYS,
				    .timeout_ms = SERVICE_TIMEOUT_MS,
				    .answer = keys_answer};
	struct hvp_query_error error;
	struct hvp_queries queries;
	const char *glob = "*";
	unsigned int skip = 0;
	int err;

	json_object_object_foreach(params, key, value)
	{
		bool ok;

		if (!strcmp(key, "glob"))
			ok = service_take_text(call, key, value, &glob);
		else if (!strcmp(key, "skip"))
			ok = service_take_int(call, key, value, 0, INT_MAX, &skip);
		else if (!strcmp(key, "timeout_ms"))
			ok = service_take_timeout(call, value, &wish);
		else
			ok = service_fail_unknown(call, "keys", key);
		if (!ok)
			return;
	}
	err = hvp_change_list_keys(glob, skip, &queries, &error);
	if (err == -EINVAL) {
		hvp_call_fail(call, "bad-query", NULL, "%s", error.message);
		return;
	}
	if (err) {
		hvp_call_fail(call, "internal", NULL, "%s", strerror(-err));
		return;
	}
	service_submit(ctx, call, &wish, &queries);
	hvp_queries_free(&queries);
}
