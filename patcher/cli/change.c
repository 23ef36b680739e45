// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A change: from words to what a VM is asked. Whatever is wrong is said before
 * anything is asked of a VM: it is as wrong when the VM is down.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "cli.h"
#include "text.h"

static int check_query(const struct options *options, const char *query)
{
	struct hvp_query_error error = {0};
	struct hvp_queries queries = {0};
	struct json_object *data;
	int err;

	/* A kernel would take any bytes, but JSON cannot carry them. */
	if (!hvp_utf8_valid(query, strlen(query)))
		return report(options, USAGE, "bad-query", NULL,
			      "bad query: it is not valid UTF-8");
	err = hvp_queries_parse(query, &queries, &error);
	if (!err) {
		hvp_queries_free(&queries);
		return DONE;
	}
	if (err != -EINVAL && err != -E2BIG)
		return report(options, FAILED, "internal", NULL, "%s", strerror(-err));
	data = json_object_new_object();
	hvp_json_add(data, "word", json_object_new_string(error.word));
	hvp_json_add(data, "column", json_object_new_uint64(error.column));
	if (error.column)
		report(options, USAGE, "bad-query", data, "bad query, column %zu: %s", error.column,
		       error.message);
	else
		report(options, USAGE, "bad-query", data, "bad query: %s", error.message);
	print_caret(stderr, query, error.column, error.word);
	return USAGE;
}

static int parse_toggle(const struct options *options, const char *const *words,
			struct json_object **change)
{
	int err = check_query(options, words[1]);

	if (err)
		return err;
	*change = json_object_new_object();
	hvp_json_add(*change, "change", json_object_new_string("toggle"));
	hvp_json_add(*change, "query", json_object_new_string(words[1]));
	return DONE;
}

/* A change that is something on or off. */
static int parse_switch(const struct options *options, const char *const *words,
			struct json_object **change)
{
	bool is_key = !strcmp(words[0], "key"), on = !strcmp(words[1], "on");
	struct hvp_query_error error = {0};
	struct hvp_queries queries = {0};
	int err;

	if (!on && strcmp(words[1], "off") != 0)
		return options_wrong(options, "on or off is expected, not ", words[1]);
	err = is_key ? hvp_change_key(words[2], on, &queries, &error)
		     : hvp_change_events(words[2], on, &queries, &error);
	if (err == -EINVAL)
		return report(options, USAGE, "bad-query", NULL, "%s", error.message);
	if (err)
		return report(options, FAILED, "internal", NULL, "%s", strerror(-err));
	hvp_queries_free(&queries);
	*change = json_object_new_object();
	hvp_json_add(*change, "change", json_object_new_string(words[0]));
	hvp_json_add(*change, is_key ? "name" : "glob", json_object_new_string(words[2]));
	hvp_json_add(*change, "enable", json_object_new_boolean(on));
	return DONE;
}

int change_parse(const struct options *options, const char *const *words, int nr,
		 struct json_object **change, int *used)
{
	bool toggle = !strcmp(words[0], "toggle");

	if (!toggle && strcmp(words[0], "key") != 0 && strcmp(words[0], "event") != 0)
		return options_wrong(options,
				     "a change is \"toggle QUERY\", \"key on|off NAME\" or \"event "
				     "on|off GLOB\"; none begins with ",
				     words[0]);
	*used = toggle ? 2 : 3;
	if (nr < *used)
		return options_wrong(options, "an argument is missing behind ", words[nr - 1]);
	return toggle ? parse_toggle(options, words, change) : parse_switch(options, words, change);
}

int change_run(const struct options *options, const char *method, struct json_object *params,
	       uint64_t *matched)
{
	unsigned int timeout_ms = options->timeout_ms ? options->timeout_ms : CHANGE_TIMEOUT_MS;
	struct json_object *result;
	int err;

	hvp_json_add(params, "via", json_object_new_string(options->native ? "native" : "hvpoke"));
	hvp_json_add(params, "timeout_ms", json_object_new_int64(timeout_ms));
	err = check_made(options, params);
	if (!err)
		err = vm_call(options, options->args[0], method, params, timeout_ms, true, &result);
	if (err)
		return err;
	if (options->json)
		err = print_json(options, result);
	else
		print_outcome(result);
	if (matched)
		*matched = json_object_get_uint64(json_object_object_get(result, "matched"));
	json_object_put(result);
	return err;
}

int change_command(const struct options *options, uint64_t *matched)
{
	const char *words[3] = {options->command->name, options->args[1], options->args[2]};
	struct json_object *change = NULL;
	int used, err;

	err = change_parse(options, words, options->nr_args, &change, &used);
	if (err)
		return err;
	err = check_made(options, change);
	if (err)
		return err;
	/* The method's params are the same, but for this. */
	json_object_object_del(change, "change");
	return change_run(options, words[0], change, matched);
}
