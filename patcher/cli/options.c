// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line after the command's name. Not getopt(): a query may be "-p",
 * so only what starts with two dashes is an option.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define MAX_SECONDS 3600.0

void usage(FILE *to, const struct command *command)
{
	fprintf(to, "usage: hvpoke %s %s\n  %s\n", command->name, command->synopsis,
		command->summary);
}

int options_wrong(const struct options *options, const char *problem, const char *what)
{
	report(options, USAGE, "usage", NULL, "%s: %s%s", options->command->name, problem, what);
	usage(stderr, options->command);
	return USAGE;
}

static int take_timeout(struct options *options, const char *value)
{
	char *end = NULL;
	double seconds = value ? strtod(value, &end) : 0;

	/* Written so that NaN is refused too. */
	if (!value || end == value || *end || !(seconds >= 0.001 && seconds <= MAX_SECONDS))
		return options_wrong(options, "--timeout needs seconds, from 0.001 to 3600, not ",
				     value ? value : "nothing");
	options->timeout_ms = (unsigned int)(seconds * 1000 + 0.5);
	return DONE;
}

static int take_count(struct options *options, const char *value)
{
	char *end = NULL;
	long count = value ? strtol(value, &end, 10) : 0;

	if (!value || *end || count < 1 || count > MAX_COUNT)
		return options_wrong(options, "--count needs a number from 1 to 1000, not ",
				     value ? value : "nothing");
	options->count = (unsigned int)count;
	return DONE;
}

/* One option; @next is the argument after it. @used is set if it was taken. */
static int take_option(struct options *options, const char *option, const char *next, bool *used)
{
	unsigned int takes = options->command->takes;

	*used = false;
	if (!strcmp(option, "--json")) {
		options->json = true;
	} else if (!strcmp(option, "--help")) {
		options->help = true;
	} else if (!strcmp(option, "--yes") && takes & TAKES_SETUP) {
		options->yes = true;
	} else if (!strcmp(option, "--socket-dir") && takes & TAKES_SETUP) {
		if (!next || *next != '/')
			return options_wrong(options,
					     "--socket-dir needs hvpoked's directory, a whole path",
					     "");
		*used = true;
		options->socket_dir = next;
	} else if (!strcmp(option, "--connect")) {
		if (!next)
			return options_wrong(
				options, "--connect needs libvirt's URI, as qemu:///system", "");
		*used = true;
		options->connect = next;
	} else if (!strcmp(option, "--follow") && takes & TAKES_LOG) {
		options->follow = true;
	} else if (!strcmp(option, "--count") && takes & TAKES_LOG) {
		*used = true;
		return take_count(options, next);
	} else if (!strcmp(option, "--native") && takes & TAKES_NATIVE) {
		options->native = true;
	} else if (!strcmp(option, "--timeout") && takes & TAKES_TIMEOUT) {
		*used = true;
		return take_timeout(options, next);
	} else if (!strncmp(option, "--timeout=", 10) && takes & TAKES_TIMEOUT) {
		return take_timeout(options, option + 10);
	} else {
		return options_wrong(options, "unknown option ", option);
	}
	return DONE;
}

int options_parse(struct options *options, int argc, char **argv)
{
	bool only_args = false, used;
	int i, err;

	for (i = 0; i < argc; i++) {
		if (!only_args && !strcmp(argv[i], "--")) {
			only_args = true;
		} else if (!only_args && !strcmp(argv[i], "-h")) {
			options->help = true;
		} else if (!only_args && !strncmp(argv[i], "--", 2)) {
			err = take_option(options, argv[i], i + 1 < argc ? argv[i + 1] : NULL,
					  &used);
			if (err)
				return err;
			i += used;
		} else if (options->nr_args < options->command->max_args) {
			options->args[options->nr_args++] = argv[i];
		} else {
			return options_wrong(
				options,
				"one argument too many (quote a query that has spaces): ", argv[i]);
		}
	}
	if (!options->help && options->nr_args < options->command->min_args)
		return options_wrong(options, "an argument is missing", "");
	return DONE;
}
