// SPDX-License-Identifier: GPL-2.0-or-later
/* What became of a request of changes, for people. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"

static uint64_t count(struct json_object *result, const char *key)
{
	return json_object_get_uint64(json_object_object_get(result, key));
}

static void print_line(const char *label, struct json_object *result, const char *key)
{
	char *text = value_text(key, json_object_object_get(result, key));

	printf("%-8s  %s\n", label, text);
	free(text);
}

static void print_pauses(struct json_object *result)
{
	char *pause = value_text("pause_us", json_object_object_get(result, "pause_us"));
	char *apply = value_text("apply_us", json_object_object_get(result, "apply_us"));

	printf("%-8s  %" PRIu64, "pauses", count(result, "pauses"));
	if (count(result, "pauses"))
		printf(" (%s, of these %s to verify and write)", pause, apply);
	putchar('\n');
	free(pause);
	free(apply);
}

void print_outcome(struct json_object *result)
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
	printf("%-8s  %s by text patching, %" PRIu64 " of the agent's own\n", "INT3", text,
	       count(result, "own_int3"));
	free(text);
	print_line("guest", result, "guest_us");
	print_line("via", result, "via");
	if (json_object_object_get(result, "fallback")) {
		text = value_text("fallback", json_object_object_get(result, "fallback"));
		printf("The guest fell back to the kernel's own way: %s\n", text);
		free(text);
	}
	text = value_text("message", json_object_object_get(result, "message"));
	if (*text)
		printf("The agent says: %s\n", text);
	free(text);
}
