// SPDX-License-Identifier: GPL-2.0-or-later
/* What went wrong: in words for people, with --json also for programs. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

static void print_error(const struct options *options, const char *message,
			struct json_object *error)
{
	struct json_object *object;

	fprintf(stderr, "hvpoke: %s\n", message);
	if (!options->json) {
		json_object_put(error);
		return;
	}
	object = json_object_new_object();
	json_object_object_add(object, "error", error);
	print_json(object);
	json_object_put(object);
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
	if (len < 0)
		message = strdup("out of memory");
	/* Names come from whoever typed them, reasons from a server. */
	hvp_text_clean(message);
	json_object_object_add(error, "code", json_object_new_string(code));
	json_object_object_add(error, "message", json_object_new_string(message));
	if (data)
		json_object_object_add(error, "data", data);
	print_error(options, message, error);
	free(message);
	return exit_code;
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
	hvp_text_clean(message);
	print_error(options, message, error);
	free(message);
	return exit_code;
}
