// SPDX-License-Identifier: GPL-2.0-or-later
/* What went wrong: in words for people, with --json also for programs. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

/* What can be said when there is no memory to say it with. */
#define NO_MEMORY      "out of memory"
#define NO_MEMORY_JSON "{\"error\":{\"code\":\"internal\",\"message\":\"" NO_MEMORY "\"}}"

static void print_error(const struct options *options, const char *message,
			struct json_object *error)
{
	struct json_object *object;
	const char *text;

	fprintf(stderr, "hvpoke: %s\n", message);
	if (!options->json) {
		json_object_put(error);
		return;
	}
	object = json_object_new_object();
	hvp_json_add(object, "error", error);
	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
							      JSON_C_TO_STRING_NOSLASHESCAPE);
	puts(text && hvp_json_whole(object) ? text : NO_MEMORY_JSON);
	json_object_put(object);
}

int report_memory(const struct options *options)
{
	fputs("hvpoke: " NO_MEMORY "\n", stderr);
	if (options->json)
		puts(NO_MEMORY_JSON);
	return FAILED;
}

int report(const struct options *options, int exit_code, const char *code, struct json_object *data,
	   const char *fmt, ...)
{
	struct json_object *error = json_object_new_object();
	char *message = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&message, fmt, args);
	va_end(args);
	if (len < 0) {
		json_object_put(error);
		json_object_put(data);
		report_memory(options);
		return exit_code;
	}
	/* Names come from whoever typed them, reasons from a server. */
	hvp_text_clean(message);
	hvp_json_add(error, "code", json_object_new_string(code));
	hvp_json_add(error, "message", json_object_new_string(message));
	if (data)
		hvp_json_add(error, "data", data);
	print_error(options, message, error);
	free(message);
	return exit_code;
}

void *need(void *memory)
{
	if (memory)
		return memory;
	fputs("hvpoke: " NO_MEMORY "\n", stderr);
	exit(FAILED);
}

int check_made(const struct options *options, struct json_object *value)
{
	if (hvp_json_whole(value))
		return DONE;
	json_object_put(value);
	return report_memory(options);
}

static const char *member(struct json_object *object, const char *key, const char *otherwise)
{
	struct json_object *value;

	if (json_object_object_get_ex(object, key, &value) &&
	    json_object_is_type(value, json_type_string))
		return json_object_get_string(value);
	return otherwise;
}

int report_reply(const struct options *options, struct json_object *error)
{
	char *message = strdup(member(error, "message", "the server gave no reason"));
	const char *code = member(error, "code", "");
	int exit_code = FAILED;

	if (!strcmp(code, "bad-query"))
		exit_code = USAGE;
	else if (!strcmp(code, "timeout"))
		exit_code = TIMED_OUT;
	if (!message) {
		json_object_put(error);
		report_memory(options);
		return exit_code;
	}
	hvp_text_clean(message);
	print_error(options, message, error);
	free(message);
	return exit_code;
}
