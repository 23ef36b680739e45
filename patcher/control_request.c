// SPDX-License-Identifier: GPL-2.0-or-later
/* One line from a client: is it a request, and if not, what is wrong with it? */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_internal.h"
#include "text.h"

#define MAX_ID 128 /* bytes of a string id */

static void __attribute__((format(printf, 3, 4)))
refuse(struct request *request, const char *code, const char *fmt, ...)
{
	va_list args;

	if (request->code)
		return;
	request->code = code;
	va_start(args, fmt);
	vsnprintf(request->message, sizeof(request->message), fmt, args);
	va_end(args);
	/* What came from the client may have been cut in the middle of a character. */
	hvp_text_clean(request->message);
}

static void parse_json(struct request *request, const char *line, size_t len)
{
	struct json_tokener *tokener;
	enum json_tokener_error error;
	size_t at;

	if (memchr(line, '\0', len)) {
		refuse(request, "parse-error", "the line has a NUL byte in it");
		return;
	}
	/* json-c's own check takes overlong forms and surrogates for valid. */
	if (!hvp_utf8_valid(line, len)) {
		refuse(request, "parse-error", "the line is not valid UTF-8");
		return;
	}
	tokener = json_tokener_new_ex(HVP_CONTROL_MAX_DEPTH);
	if (!tokener) {
		refuse(request, "internal", "out of memory");
		return;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	/* With the terminating NUL, which ends a number or a literal. */
	request->root = json_tokener_parse_ex(tokener, line, (int)len + 1);
	error = json_tokener_get_error(tokener);
	at = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (error == json_tokener_error_depth)
		refuse(request, "too-deep", "more than %d nested arrays and objects",
		       HVP_CONTROL_MAX_DEPTH);
	else if (error == json_tokener_continue)
		refuse(request, "parse-error", "the JSON text is not complete");
	else if (error != json_tokener_success)
		refuse(request, "parse-error", "not JSON: %s at column %zu",
		       json_tokener_error_desc(error), at + 1);
}

static void take_id(struct request *request, struct json_object *id)
{
	const char *text;

	if (!json_object_is_type(id, json_type_int) && !json_object_is_type(id, json_type_string)) {
		refuse(request, "bad-request", "\"id\" must be an integer or a string");
		return;
	}
	if (json_object_is_type(id, json_type_string) && json_object_get_string_len(id) > MAX_ID) {
		refuse(request, "bad-request", "\"id\" must not be longer than %d bytes", MAX_ID);
		return;
	}
	/* json-c takes what is out of range for the nearest that is not: not the id that came. */
	if (json_object_is_type(id, json_type_int) &&
	    (json_object_get_uint64(id) > INT64_MAX || json_object_get_int64(id) == INT64_MIN)) {
		refuse(request, "bad-request", "\"id\" must fit in a signed 64-bit integer");
		return;
	}
	text = json_object_to_json_string_ext(id, JSON_C_TO_STRING_PLAIN |
							  JSON_C_TO_STRING_NOSLASHESCAPE);
	request->id = text ? strdup(text) : NULL;
	if (!request->id)
		refuse(request, "internal", "out of memory");
}

static void take_method(struct request *request, struct json_object *method)
{
	if (!json_object_is_type(method, json_type_string)) {
		refuse(request, "bad-request", "\"method\" must be a string");
		return;
	}
	request->method = json_object_get_string(method);
	if (strlen(request->method) != (size_t)json_object_get_string_len(method))
		refuse(request, "bad-request", "\"method\" has a NUL character in it");
}

static void take_params(struct request *request, struct json_object *params)
{
	if (json_object_is_type(params, json_type_object))
		request->params = params;
	else
		refuse(request, "bad-request", "\"params\" must be an object");
}

/* Fill @request; on return, request->code says whether it is one. */
void request_parse(struct request *request, const char *line, size_t len)
{
	struct json_object *id;

	memset(request, 0, sizeof(*request));
	parse_json(request, line, len);
	if (request->code)
		return;
	if (!json_object_is_type(request->root, json_type_object)) {
		refuse(request, "bad-request", "a request must be a JSON object");
		return;
	}
	/* First, so that whatever else is wrong is answered with it. */
	if (json_object_object_get_ex(request->root, "id", &id))
		take_id(request, id);
	else
		refuse(request, "bad-request", "the request has no \"id\"");
	json_object_object_foreach(request->root, key, value)
	{
		if (!strcmp(key, "method"))
			take_method(request, value);
		else if (!strcmp(key, "params"))
			take_params(request, value);
		else if (strcmp(key, "id") != 0)
			refuse(request, "bad-request", "a request has no member \"%.40s\"", key);
	}
	if (!request->method)
		refuse(request, "bad-request", "the request has no \"method\"");
}

void request_release(struct request *request)
{
	json_object_put(request->root);
	free(request->id);
}
