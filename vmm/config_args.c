// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * config_args.c - the command line: --key VALUE or --key=VALUE for each key of
 * the table, and one configuration file.
 */
#include <errno.h>
#include <string.h>

#include "config.h"

struct option {
	const struct config_key *key;
	const char *value; /* NULL: it is the next argument */
	char name[64];	   /* as written, without the value */
};

static int split(const char *arg, struct option *option, struct message *message)
{
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct config_key *nearest;

	if (len >= sizeof(option->name)) {
		message_set(message, 0, "unknown option %.60s...", arg);
		return -EINVAL;
	}
	memcpy(option->name, arg, len);
	option->name[len] = '\0';
	option->value = equals ? equals + 1 : NULL;
	option->key = config_find(option->name + 2);
	/* One spelling: --on-reboot. */
	if (option->key && !strchr(option->name, '_'))
		return 0;
	nearest = config_nearest(option->name + 2);
	if (!nearest) {
		message_set(message, 0, "unknown option %s; hvpoke-vmm --help lists them",
			    option->name);
		return -EINVAL;
	}
	message_set(message, 0, "unknown option %s; did you mean --%s?", option->name,
		    nearest->name);
	for (char *c = strstr(message->text, "mean --"); *c; c++)
		if (*c == '_')
			*c = '-';
	return -EINVAL;
}

/* Options that are no keys. True if @arg is one. */
static bool special(const char *arg, struct config_args *args)
{
	if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
		args->help = true;
	else if (!strcmp(arg, "--version"))
		args->version = true;
	else if (!strcmp(arg, "--check"))
		args->check = true;
	else
		return false;
	return true;
}

/*
 * Walk over the arguments. With @config NULL only the special ones and the
 * file are looked for, which must be known before any key is set.
 */
static int walk(struct config *config, int argc, char **argv, struct config_args *args,
		struct message *message)
{
	for (int i = 1; i < argc; i++) {
		struct option option = {};
		int err;

		if (special(argv[i], args))
			continue;
		if (!strcmp(argv[i], "--no-sandbox")) {
			if (config)
				config->sandbox = false;
			continue;
		}
		if (strncmp(argv[i], "--", 2) != 0) {
			if (argv[i][0] == '-' && argv[i][1])
				return message_set(message, -EINVAL,
						   "unknown option %.60s; hvpoke-vmm --help lists "
						   "them",
						   argv[i]);
			if (!config && args->file)
				return message_set(message, -EINVAL,
						   "expected one configuration file, got %s and %s",
						   args->file, argv[i]);
			args->file = argv[i];
			continue;
		}
		err = split(argv[i], &option, message);
		if (err)
			return err;
		/* A switch may stand alone. */
		if (!option.value && option.key->type == CONFIG_BOOL)
			option.value = "yes";
		else if (!option.value && i + 1 < argc)
			option.value = argv[++i];
		if (!option.value)
			return message_set(message, -EINVAL, "%s: expected %s, got nothing",
					   option.name, option.key->arg);
		if (!config)
			continue;
		err = config_set_text(config, option.key, option.value, option.name, message);
		if (err)
			return err;
	}
	return 0;
}

int config_parse_args(struct config *config, int argc, char **argv, struct config_args *args,
		      struct message *message)
{
	int err;

	*args = (struct config_args){};
	err = walk(NULL, argc, argv, args, message);
	if (args->help || args->version)
		return 0;
	if (!err && args->file)
		err = config_load(config, args->file, message);
	if (!err)
		err = walk(config, argc, argv, args, message);
	return err;
}
