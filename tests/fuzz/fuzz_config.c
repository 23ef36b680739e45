// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke-vmm's configuration. The input is arguments, one a line (@ stands for the file), a
 * NUL, and the file; without a NUL it is the file alone.
 *
 * What is refused gets a message; what is taken is within its bounds, and reads back as
 * itself from what --check prints.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "fuzz.h"
#include "text.h"

#define MAX_ARGS 32

/* A file of that, by a name for it. */
static int make_file(const void *bytes, size_t len, char name[64])
{
	int fd = memfd_create("config", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	snprintf(name, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void check_values(const struct config *config)
{
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];
		const void *value = (const char *)config + key->offset;
		const char *string;

		switch (key->type) {
		case CONFIG_SIZE:
			CHECK(*(const uint64_t *)value % 4096 == 0);
			/* fallthrough */
		case CONFIG_NUMBER:
			CHECK(*(const uint64_t *)value >= key->min &&
			      *(const uint64_t *)value <= key->max);
			break;
		case CONFIG_STRING:
		case CONFIG_PATH:
			string = *(char *const *)value;
			CHECK(!string || strlen(string) <= key->max);
			CHECK(!string || !key->check || !key->check(string));
			break;
		case CONFIG_BOOL:
		case CONFIG_CHOICE: break;
		}
	}
}

static char *print(const struct config *config)
{
	struct json_object *object = config_to_json(config);
	char *text;

	CHECK(object);
	text = strdup(json_object_to_json_string(object));
	CHECK(text);
	json_object_put(object);
	return text;
}

/* In a file they are relative to where that is. */
static bool has_relative_path(const struct config *config)
{
	for (size_t i = 0; i < config_nr_keys; i++) {
		const void *value = (const char *)config + config_keys[i].offset;
		const char *path;

		if (config_keys[i].type != CONFIG_PATH)
			continue;
		path = *(char *const *)value;
		if (path && *path != '/')
			return true;
	}
	return false;
}

static void check_reads_back(const struct config *config)
{
	char *text = print(config), *again, name[64];
	struct message message = {};
	struct config copy;
	int fd, err;

	/* An argument can hold what JSON cannot. */
	if (hvp_utf8_valid(text, strlen(text)) && !has_relative_path(config)) {
		fd = make_file(text, strlen(text), name);
		CHECK(!config_init(&copy));
		err = config_load(&copy, name, &message);
		CHECK(!err);
		again = print(&copy);
		CHECK(!strcmp(text, again));
		free(again);
		config_release(&copy);
		close(fd);
	}
	free(text);
}

static void parse(int argc, char **argv)
{
	struct message message = {};
	struct config_args args;
	struct config config;
	int err;

	CHECK(!config_init(&config));
	err = config_parse_args(&config, argc, argv, &args, &message);
	if (err) {
		CHECK(err < 0 && *message.text);
	} else if (!args.help && !args.version) {
		check_values(&config);
		check_reads_back(&config);
	}
	config_release(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
	char *argv[MAX_ARGS + 1] = {"hvpoke-vmm", NULL}, name[64], *text = NULL, *rest, *arg;
	int argc = 1, fd;

	if (end) {
		text = fuzz_string(data, (size_t)(end - data));
		fd = make_file(end + 1, size - (size_t)(end + 1 - data), name);
		rest = text;
		while (argc < MAX_ARGS && (arg = strsep(&rest, "\n")))
			argv[argc++] = strcmp(arg, "@") != 0 ? arg : name;
	} else {
		fd = make_file(data, size, name);
		argv[argc++] = name;
	}
	parse(argc, argv);
	close(fd);
	free(text);
	return 0;
}
