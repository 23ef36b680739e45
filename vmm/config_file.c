// SPDX-License-Identifier: GPL-2.0-or-later
/* config_file.c - read a configuration file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#define MAX_FILE  (1 << 20)
#define MAX_DEPTH 8 /* one is used; the rest gives a better message */

/* Read until the end, at most @size bytes. Their number, or a negative errno. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t got = read(fd, buf + len, size - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	return (ssize_t)len;
}

/* All of the file, NUL terminated, to be freed. */
static int read_file(const char *path, char **text, size_t *len, struct message *message)
{
	char *buf = malloc(MAX_FILE + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0) {
		message_set(message, 0, "cannot open %s: %s", path, strerror(errno));
		got = -EINVAL;
	} else if (!buf) {
		message_set(message, 0, "%s: out of memory", path);
		got = -ENOMEM;
	} else {
		got = read_all(fd, buf, MAX_FILE + 1);
		if (got < 0)
			message_set(message, 0, "cannot read %s: %s", path, strerror((int)-got));
		if (got > MAX_FILE)
			got = message_set(message, -EFBIG, "%s: expected at most %d bytes", path,
					  MAX_FILE);
	}
	if (fd >= 0)
		close(fd);
	if (got < 0) {
		free(buf);
		return (int)got;
	}
	buf[got] = '\0';
	*text = buf;
	*len = (size_t)got;
	return 0;
}

static int parse(const char *path, const char *text, size_t len, struct json_object **object,
		 struct message *message)
{
	struct json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
	unsigned int line = 1, column = 1;
	enum json_tokener_error error;
	size_t end;

	if (!tokener)
		return message_set(message, -ENOMEM, "%s: out of memory", path);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	/* With the NUL, so that a number at the end is complete. */
	*object = json_tokener_parse_ex(tokener, text, (int)len + 1);
	error = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (error == json_tokener_success && end >= len &&
	    json_object_is_type(*object, json_type_object))
		return 0;

	json_object_put(*object);
	*object = NULL;
	if (error == json_tokener_success && end >= len)
		return message_set(message, -EINVAL, "%s: expected a JSON object { ... }", path);
	for (size_t i = 0; i < end && i < len; i++) {
		column = text[i] == '\n' ? 1 : column + 1;
		line += text[i] == '\n';
	}
	return message_set(message, -EINVAL, "%s:%u:%u: not valid JSON: %s", path, line, column,
			   error == json_tokener_success ? "something follows the object"
							 : json_tokener_error_desc(error));
}

static int unknown_key(const char *path, const char *name, struct message *message)
{
	const struct config_key *nearest = config_nearest(name);

	if (nearest)
		return message_set(message, -EINVAL,
				   "%s: unknown key \"%.60s\"; did you mean \"%s\"?", path, name,
				   nearest->name);
	return message_set(message, -EINVAL,
			   "%s: unknown key \"%.60s\"; hvpoke-vmm --help lists them", path, name);
}

static int apply(struct config *config, const char *path, struct json_object *object,
		 const char *dir, struct message *message)
{
	json_object_object_foreach(object, name, value)
	{
		const struct config_key *key = config_find(name);
		char where[512];
		int err;

		/* config_find() takes '-' too, but JSON has one spelling of a key. */
		if (!key || strcmp(key->name, name) != 0)
			return unknown_key(path, name, message);
		snprintf(where, sizeof(where), "%s: %s", path, name);
		err = config_set_json(config, key, value, where, dir, message);
		if (err)
			return err;
	}
	return 0;
}

int config_load(struct config *config, const char *path, struct message *message)
{
	const char *slash = strrchr(path, '/');
	struct json_object *object = NULL;
	char *text = NULL, *dir = NULL;
	size_t len = 0;
	int err;

	err = read_file(path, &text, &len, message);
	if (err)
		return err;
	err = parse(path, text, len, &object, message);
	free(text);
	if (err)
		return err;
	if (slash)
		dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (slash && !dir)
		err = message_set(message, -ENOMEM, "%s: out of memory", path);
	else
		err = apply(config, path, object, dir, message);
	free(dir);
	json_object_put(object);
	return err;
}
