// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke key VM list [GLOB], hvpoke key VM on|off NAME */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "cli.h"

/* More than any kernel has: a guest that never comes to an end is not listened to for ever. */
#define MAX_KEYS 100000

static void print_keys(struct json_object *keys)
{
	static const char *const titles[] = {"KEY", "STATE", "SITES"};
	size_t nr = json_object_array_length(keys), i;
	struct row *rows = need(calloc(nr, sizeof(*rows)));

	for (i = 0; i < nr; i++) {
		struct json_object *key = json_object_array_get_idx(keys, i);
		bool on = json_object_get_boolean(json_object_object_get(key, "enabled"));

		rows[i].cells[0] = value_text("name", json_object_object_get(key, "name"));
		rows[i].cells[1] = need(strdup(on ? "on" : "off"));
		rows[i].cells[2] = value_text("sites", json_object_object_get(key, "sites"));
	}
	print_rows(titles, sizeof(titles) / sizeof(titles[0]), rows, (int)nr);
	free_rows(rows, (int)nr);
}

static int report_answer(const struct options *options, const char *what)
{
	return report(options, FAILED, "bad-answer", NULL,
		      "VM \"%s\": %s; is its hvpoke of this version?", options->args[0], what);
}

/* Move the keys of one answer to @keys. */
static int take_page(const struct options *options, struct json_object *page,
		     struct json_object *keys)
{
	struct json_object *from = json_object_object_get(page, "keys"), *key;

	if (!json_object_is_type(from, json_type_array))
		return report_answer(options, "a list of keys was expected, and none came");
	if (json_object_array_length(keys) + json_object_array_length(from) > MAX_KEYS)
		return report_answer(options, "more keys came than any kernel has");
	for (size_t i = 0; i < json_object_array_length(from); i++) {
		key = json_object_array_get_idx(from, i);
		if (!json_object_is_type(json_object_object_get(key, "name"), json_type_string))
			return report_answer(options, "a key without a name came");
		hvp_json_append(keys, json_object_get(key));
	}
	return hvp_json_whole(keys) ? DONE : report_memory(options);
}

/* One page, behind those that are in @keys already. *@more: how many are left. */
static int ask_page(const struct options *options, struct hvp_client *client, const char *glob,
		    struct json_object *keys, uint64_t *more)
{
	unsigned int timeout_ms = options->timeout_ms ? options->timeout_ms : CHANGE_TIMEOUT_MS;
	size_t before = json_object_array_length(keys);
	struct json_object *params = json_object_new_object(), *page = NULL;
	int err;

	hvp_json_add(params, "glob", json_object_new_string(glob));
	hvp_json_add(params, "skip", json_object_new_uint64(before));
	hvp_json_add(params, "timeout_ms", json_object_new_int64(timeout_ms));
	err = check_made(options, params);
	if (!err)
		err = vm_ask(options, client, options->args[0], "keys", params, timeout_ms, true,
			     &page);
	if (err)
		return err;
	err = take_page(options, page, keys);
	*more = json_object_get_uint64(json_object_object_get(page, "more"));
	json_object_put(page);
	if (!err && *more && json_object_array_length(keys) == before)
		err = report_answer(options, "it says that there are more keys, and sends none");
	return err;
}

static int check_glob(const struct options *options, const char *glob)
{
	struct hvp_query_error error = {0};
	struct hvp_queries queries = {0};
	int err = hvp_change_list_keys(glob, 0, &queries, &error);

	if (err == -EINVAL)
		return report(options, USAGE, "bad-query", NULL, "%s", error.message);
	if (err)
		return report(options, FAILED, "internal", NULL, "%s", strerror(-err));
	hvp_queries_free(&queries);
	return DONE;
}

static int list_keys(const struct options *options)
{
	const char *glob = options->nr_args > 2 ? options->args[2] : "*";
	struct hvp_client *client = NULL;
	struct json_object *keys;
	uint64_t more = 0;
	int err;

	if (options->native)
		return options_wrong(options, "to list keys takes no --native", "");
	err = check_glob(options, glob);
	if (!err)
		err = vm_connect(options, options->args[0], &client);
	if (err)
		return err;
	keys = json_object_new_array();
	if (!keys) {
		hvp_client_close(client);
		return report_memory(options);
	}
	do
		err = ask_page(options, client, glob, keys, &more);
	while (!err && more);
	hvp_client_close(client);
	if (!err && options->json)
		err = print_json(options, keys);
	else if (!err && json_object_array_length(keys))
		print_keys(keys);
	else if (!err)
		fprintf(stderr, "hvpoke: the guest has no key that matches \"%s\"\n", glob);
	json_object_put(keys);
	return err;
}

int cmd_key(const struct options *options)
{
	const char *verb = options->args[1];

	if (!strcmp(verb, "list"))
		return list_keys(options);
	if (strcmp(verb, "on") != 0 && strcmp(verb, "off") != 0)
		return options_wrong(options, "list, on or off is expected, not ", verb);
	return change_command(options, NULL);
}
