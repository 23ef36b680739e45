// SPDX-License-Identifier: GPL-2.0-or-later
#include "json_build.h"

/* The userdata of an object or array that lacks something; json-c has no use for it there. */
static char incomplete;

static void mark(struct json_object *object)
{
	json_object_set_userdata(object, &incomplete, NULL);
}

bool hvp_json_whole(struct json_object *value)
{
	return value && json_object_get_userdata(value) != &incomplete;
}

void hvp_json_add(struct json_object *object, const char *key, struct json_object *value)
{
	if (object && hvp_json_whole(value) && !json_object_object_add(object, key, value))
		return;
	json_object_put(value);
	if (object)
		mark(object);
}

void hvp_json_add_null(struct json_object *object, const char *key)
{
	if (object && json_object_object_add(object, key, NULL))
		mark(object);
}

void hvp_json_append(struct json_object *array, struct json_object *value)
{
	if (array && hvp_json_whole(value) && !json_object_array_add(array, value))
		return;
	json_object_put(value);
	if (array)
		mark(array);
}
