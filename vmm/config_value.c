// SPDX-License-Identifier: GPL-2.0-or-later
/* config_value.c - set one key, checked, from the command line's text or from JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

/* As much of a bad value as a message should repeat. */
#define SHOWN 60

static void *field(const struct config *config, const struct config_key *key)
{
	return (char *)(uintptr_t)config + key->offset;
}

static bool parse_digits(const char *text, uint64_t *value, const char **end)
{
	char *stop;

	if (text[0] < '0' || text[0] > '9')
		return false; /* strtoull would take blanks and signs */
	errno = 0;
	*value = strtoull(text, &stop, 10);
	*end = stop;
	return errno == 0;
}

bool config_parse_size(const char *text, uint64_t *bytes)
{
	unsigned int shift = 0;
	const char *end;

	if (!parse_digits(text, bytes, &end))
		return false;
	switch (*end) {
	case 'K':
	case 'k': shift = 10; break;
	case 'M':
	case 'm': shift = 20; break;
	case 'G':
	case 'g': shift = 30; break;
	}
	if (shift)
		end++;
	if (*end || *bytes > UINT64_MAX >> shift)
		return false;
	*bytes <<= shift;
	return true;
}

/* "512M" rather than 536870912. */
static void format_size(uint64_t bytes, char *buf, size_t len)
{
	static const char units[] = {'G', 'M', 'K'};

	for (unsigned int i = 0; i < 3; i++) {
		unsigned int shift = 30 - 10 * i;

		if (bytes && !(bytes & ((1ull << shift) - 1))) {
			snprintf(buf, len, "%llu%c", (unsigned long long)bytes >> shift, units[i]);
			return;
		}
	}
	snprintf(buf, len, "%llu", (unsigned long long)bytes);
}

static int set_number(struct config *config, const struct config_key *key, uint64_t value,
		      const char *came, const char *where, struct message *message)
{
	char min[24], max[24];

	if (key->type == CONFIG_SIZE) {
		format_size(key->min, min, sizeof(min));
		format_size(key->max, max, sizeof(max));
	} else {
		snprintf(min, sizeof(min), "%llu", (unsigned long long)key->min);
		snprintf(max, sizeof(max), "%llu", (unsigned long long)key->max);
	}
	if (value < key->min || value > key->max)
		return message_set(message, -EINVAL, "%s: expected %s to %s, got %.*s", where, min,
				   max, SHOWN, came);
	if (key->type == CONFIG_SIZE && (value & 0xfff))
		return message_set(message, -EINVAL,
				   "%s: expected a multiple of 4K, got %.*s bytes", where, SHOWN,
				   came);
	*(uint64_t *)field(config, key) = value;
	return 0;
}

static int set_string(struct config *config, const struct config_key *key, const char *value,
		      const char *where, const char *dir, struct message *message)
{
	char **string = field(config, key);
	size_t len = strlen(value);
	const char *expected = NULL;
	char *copy;

	if (len < key->min && key->min == 1)
		return message_set(message, -EINVAL, "%s: expected %s, got nothing", where,
				   key->arg);
	if (key->check && len <= key->max)
		expected = key->check(value);
	if (expected)
		return message_set(message, -EINVAL, "%s: expected %s, got \"%.*s\"", where,
				   expected, SHOWN, value);
	if (key->type == CONFIG_PATH && dir && value[0] != '/') {
		if (asprintf(&copy, "%s/%s", dir, value) < 0)
			copy = NULL;
	} else {
		copy = strdup(value);
	}
	if (!copy)
		return message_set(message, -ENOMEM, "%s: out of memory", where);
	if (strlen(copy) > key->max) {
		free(copy);
		return message_set(message, -EINVAL,
				   "%s: expected at most %llu characters, got %zu", where,
				   (unsigned long long)key->max, len);
	}
	free(*string);
	*string = copy;
	return 0;
}

static int set_choice(struct config *config, const struct config_key *key, const char *value,
		      const char *where, struct message *message)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (strcmp(value, key->choices[i]) != 0)
			continue;
		*(bool *)field(config, key) = i;
		return 0;
	}
	return message_set(message, -EINVAL, "%s: expected %s or %s, got \"%.*s\"", where,
			   key->choices[1], key->choices[0], SHOWN, value);
}

int config_set_text(struct config *config, const struct config_key *key, const char *value,
		    const char *where, struct message *message)
{
	const char *end;
	uint64_t number;

	switch (key->type) {
	case CONFIG_STRING:
	case CONFIG_PATH: return set_string(config, key, value, where, NULL, message);
	case CONFIG_CHOICE: return set_choice(config, key, value, where, message);
	case CONFIG_SIZE:
		if (!config_parse_size(value, &number))
			return message_set(message, -EINVAL,
					   "%s: expected a size such as 512M or 2G, got \"%.*s\"",
					   where, SHOWN, value);
		return set_number(config, key, number, value, where, message);
	case CONFIG_NUMBER:
		if (!parse_digits(value, &number, &end) || *end)
			return message_set(message, -EINVAL, "%s: expected a number, got \"%.*s\"",
					   where, SHOWN, value);
		return set_number(config, key, number, value, where, message);
	case CONFIG_BOOL:
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			return message_set(message, -EINVAL, "%s: expected yes or no, got \"%.*s\"",
					   where, SHOWN, value);
		*(bool *)field(config, key) = !strcmp(value, "yes");
		return 0;
	}
	return -EINVAL;
}

static int wrong_type(const struct config_key *key, struct json_object *value, const char *where,
		      struct message *message)
{
	static const char *const expected[] = {
		[CONFIG_STRING] = "a string",
		[CONFIG_PATH] = "a string",
		[CONFIG_SIZE] = "a string such as \"512M\", or a number of bytes",
		[CONFIG_NUMBER] = "a whole number",
		[CONFIG_BOOL] = "true or false",
		[CONFIG_CHOICE] = "a string",
	};

	return message_set(message, -EINVAL, "%s: expected %s, got %.*s", where,
			   expected[key->type], SHOWN,
			   json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
}

static int set_json_number(struct config *config, const struct config_key *key,
			   struct json_object *value, const char *where, struct message *message)
{
	int64_t number = json_object_get_int64(value);

	/* Negative ones are out of range too, and json-c stops at the ends of int64_t. */
	return set_number(config, key, number < 0 ? 0 : (uint64_t)number,
			  json_object_get_string(value), where, message);
}

int config_set_json(struct config *config, const struct config_key *key, struct json_object *value,
		    const char *where, const char *dir, struct message *message)
{
	enum json_type type = json_object_get_type(value);
	const char *text;

	if (type == json_type_int && (key->type == CONFIG_NUMBER || key->type == CONFIG_SIZE))
		return set_json_number(config, key, value, where, message);
	if (type == json_type_boolean && key->type == CONFIG_BOOL) {
		*(bool *)field(config, key) = json_object_get_boolean(value);
		return 0;
	}
	if (type != json_type_string || key->type == CONFIG_NUMBER || key->type == CONFIG_BOOL)
		return wrong_type(key, value, where, message);

	text = json_object_get_string(value);
	if (strlen(text) != (size_t)json_object_get_string_len(value))
		return message_set(message, -EINVAL, "%s: expected text, got a NUL character",
				   where);
	if (key->type == CONFIG_PATH)
		return set_string(config, key, text, where, dir, message);
	return config_set_text(config, key, text, where, message);
}

static struct json_object *value_to_json(const struct config *config, const struct config_key *key)
{
	const void *value = field(config, key);
	char size[24];

	switch (key->type) {
	case CONFIG_STRING:
	case CONFIG_PATH: return json_object_new_string(*(char *const *)value);
	case CONFIG_NUMBER: return json_object_new_int64((int64_t) * (const uint64_t *)value);
	case CONFIG_BOOL: return json_object_new_boolean(*(const bool *)value);
	case CONFIG_CHOICE: return json_object_new_string(key->choices[*(const bool *)value]);
	case CONFIG_SIZE:
		format_size(*(const uint64_t *)value, size, sizeof(size));
		return json_object_new_string(size);
	}
	return NULL;
}

struct json_object *config_to_json(const struct config *config)
{
	struct json_object *object = json_object_new_object();

	for (size_t i = 0; object && i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];
		bool is_string = key->type == CONFIG_STRING || key->type == CONFIG_PATH;
		struct json_object *value;

		/* What is not set is left out, so that the output can be read back. */
		if (is_string && !*(char *const *)field(config, key))
			continue;
		value = value_to_json(config, key);
		if (!value || json_object_object_add(object, key->name, value) < 0) {
			json_object_put(value);
			json_object_put(object);
			return NULL;
		}
	}
	return object;
}
