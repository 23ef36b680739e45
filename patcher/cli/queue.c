// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke queue VM add|show|clear|commit: several changes, made in one request */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The changes from the third argument on, as an array. */
static int take_changes(const struct options *options, struct json_object **changes)
{
	struct json_object *change = NULL;
	int at = 2, used, err;

	*changes = json_object_new_array();
	while (at < options->nr_args) {
		err = change_parse(options, options->args + at, options->nr_args - at, &change,
				   &used);
		if (err) {
			json_object_put(*changes);
			return err;
		}
		hvp_json_append(*changes, change);
		at += used;
	}
	return DONE;
}

static int add(const struct options *options)
{
	struct json_object *changes, *params, *result;
	int err;

	if (options->nr_args < 3)
		return options_wrong(options, "a change is missing behind add", "");
	err = take_changes(options, &changes);
	if (err)
		return err;
	params = json_object_new_object();
	hvp_json_add(params, "changes", changes);
	err = check_made(options, params);
	if (!err)
		err = vm_call(options, options->args[0], "queue-add", params, REQUEST_MS, false,
			      &result);
	return err ? err : show_result(options, result);
}

static int commit(const struct options *options)
{
	struct json_object *changes, *params;
	int err;

	err = take_changes(options, &changes);
	if (err)
		return err;
	params = json_object_new_object();
	hvp_json_add(params, "changes", changes);
	return change_run(options, "queue-commit", params, NULL);
}

static char *text_of(struct json_object *change, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(change, key, &value) ? value_text(key, value) : NULL;
}

static void print_changes(struct json_object *changes)
{
	static const char *const titles[] = {"CHANGE", "TO", "WHAT"};
	size_t nr = json_object_array_length(changes), i;
	struct row *rows = need(calloc(nr, sizeof(*rows)));
	struct json_object *enable;

	for (i = 0; i < nr; i++) {
		struct json_object *change = json_object_array_get_idx(changes, i);
		char **cells = rows[i].cells;

		cells[0] = text_of(change, "change");
		if (json_object_object_get_ex(change, "enable", &enable))
			cells[1] = need(strdup(json_object_get_boolean(enable) ? "on" : "off"));
		cells[2] = text_of(change, "query");
		if (!cells[2])
			cells[2] = text_of(change, "name");
		if (!cells[2])
			cells[2] = text_of(change, "glob");
	}
	print_rows(titles, sizeof(titles) / sizeof(titles[0]), rows, (int)nr);
	free_rows(rows, (int)nr);
}

static int show(const struct options *options)
{
	struct json_object *result, *changes;
	int err;

	err = vm_call(options, options->args[0], "queue-show", NULL, REQUEST_MS, false, &result);
	if (err)
		return err;
	changes = json_object_object_get(result, "changes");
	if (options->json)
		err = print_json(options, result);
	else if (json_object_is_type(changes, json_type_array) && json_object_array_length(changes))
		print_changes(changes);
	else
		fputs("hvpoke: the queue is empty\n", stderr);
	json_object_put(result);
	return err;
}

static int clear(const struct options *options)
{
	return vm_show(options, "queue-clear");
}

int cmd_queue(const struct options *options)
{
	const char *verb = options->args[1];
	bool takes_more = true;
	int (*run)(const struct options *options);

	if (!strcmp(verb, "commit"))
		return commit(options);
	if (!strcmp(verb, "add")) {
		run = add;
	} else if (!strcmp(verb, "show")) {
		run = show;
		takes_more = false;
	} else if (!strcmp(verb, "clear")) {
		run = clear;
		takes_more = false;
	} else {
		return options_wrong(options, "add, show, clear or commit is expected, not ", verb);
	}
	if (options->native || options->timeout_ms)
		return options_wrong(options, "only commit takes --native and --timeout, not ",
				     verb);
	if (!takes_more && options->nr_args > 2)
		return options_wrong(options, "one argument too many: ", options->args[2]);
	return run(options);
}
