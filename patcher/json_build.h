/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_JSON_BUILD_H
#define HVP_JSON_BUILD_H

#include <stdbool.h>
#include <json-c/json.h>

/*
 * Building JSON where memory may run out. json-c ends the program when something is added
 * to an object that could not be made, and what it fails to add is simply not there. So
 * whatever could not be made or added marks the object (or array) that it was for, and that
 * marks the next one up; who sends or prints asks once whether all of it is there.
 * Complete a child before it is added.
 *
 * Each takes @value. A NULL @object (the json_object_new_ that made it failed) is allowed; a
 * NULL @value is a failure: hvp_json_add_null() says null.
 */
void hvp_json_add(struct json_object *object, const char *key, struct json_object *value);
void hvp_json_add_null(struct json_object *object, const char *key);
void hvp_json_append(struct json_object *array, struct json_object *value);
/* False for NULL, and where something is missing. */
bool hvp_json_whole(struct json_object *value);

#endif /* HVP_JSON_BUILD_H */
