// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke toggle VM QUERY */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "query.h"
#include "text.h"

#define DEFAULT_TIMEOUT_MS 120000

/* Before anything is asked of a VM: a query is as wrong when the VM is down. */
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
	json_object_object_add(data, "word", json_object_new_string(error.word));
	json_object_object_add(data, "column", json_object_new_uint64(error.column));
	if (error.column)
		report(options, USAGE, "bad-query", data, "bad query, column %zu: %s", error.column,
		       error.message);
	else
		report(options, USAGE, "bad-query", data, "bad query: %s", error.message);
	print_caret(stderr, query, error.column, error.word);
	return USAGE;
}

static uint64_t count(struct json_object *result, const char *key)
{
	return json_object_get_uint64(json_object_object_get(result, key));
}

static void print_line(const char *label, struct json_object *result, const char *key)
{
	char *text = value_text(key, json_object_object_get(result, key));

	printf("%-8s  %s\n", label, text ? text : "-");
	free(text);
}

static void print_pauses(struct json_object *result)
{
	char *pause = value_text("pause_us", json_object_object_get(result, "pause_us"));
	char *apply = value_text("apply_us", json_object_object_get(result, "apply_us"));

	printf("%-8s  %" PRIu64, "pauses", count(result, "pauses"));
	if (count(result, "pauses") && pause && apply)
		printf(" (%s, of these %s to verify and write)", pause, apply);
	putchar('\n');
	free(pause);
	free(apply);
}

static void print_summary(struct json_object *result)
{
	char *text;

	print_line("matched", result, "matched");
	print_line("changed", result, "changed");
	printf("%-8s  %" PRIu64, "sites", count(result, "sites"));
	if (count(result, "native_sites"))
		printf(" (%" PRIu64 " by the kernel's own way)", count(result, "native_sites"));
	putchar('\n');
	print_pauses(result);
	print_line("IPIs", result, "ipis");
	text = value_text("int3", json_object_object_get(result, "int3"));
	printf("%-8s  %s by text patching, %" PRIu64 " of the agent's own\n", "INT3",
	       text ? text : "-", count(result, "own_int3"));
	free(text);
	print_line("guest", result, "guest_us");
	print_line("via", result, "via");
	if (json_object_object_get(result, "fallback")) {
		text = value_text("fallback", json_object_object_get(result, "fallback"));
		printf("The guest fell back to the kernel's own way: %s\n", text ? text : "-");
		free(text);
	}
	text = value_text("message", json_object_object_get(result, "message"));
	if (text && *text)
		printf("The agent says: %s\n", text);
	free(text);
}

int cmd_toggle(const struct options *options)
{
	unsigned int timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
	const char *query = options->args[1];
	struct json_object *params, *result;
	int err;

	err = check_query(options, query);
	if (err)
		return err;
	params = json_object_new_object();
	json_object_object_add(params, "query", json_object_new_string(query));
	json_object_object_add(params, "via",
			       json_object_new_string(options->native ? "native" : "hvpoke"));
	json_object_object_add(params, "timeout_ms", json_object_new_int64(timeout_ms));
	err = vm_call(options, options->args[0], "toggle", params, timeout_ms, true, &result);
	if (err)
		return err;
	if (options->json)
		print_json(result);
	else
		print_summary(result);
	json_object_put(result);
	return DONE;
}
