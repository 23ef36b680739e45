// SPDX-License-Identifier: GPL-2.0-or-later
/* help.c - what --help and --check print. */
#include <stdio.h>
#include <string.h>

#include "help.h"
#include "vm.h"

#define OPTION_WIDTH 26

static void print_option(const char *option, const char *help)
{
	/* A long option has its line to itself. */
	if (strlen(option) > OPTION_WIDTH)
		printf("  %s\n  %-*s  %s\n", option, OPTION_WIDTH, "", help);
	else
		printf("  %-*s  %s\n", OPTION_WIDTH, option, help);
}

int help_print(void)
{
	printf("usage: hvpoke-vmm [OPTION]... [CONFIG.json]\n"
	       "\n"
	       "Run a Linux guest under KVM. Each option is also a key of the configuration\n"
	       "file, with '_' for '-'; options win over the file.\n"
	       "\n");
	for (size_t i = 0; i < config_nr_keys; i++) {
		char option[80];

		snprintf(option, sizeof(option), "--%s %s", config_keys[i].name,
			 config_keys[i].arg);
		for (char *c = option; *c && *c != ' '; c++)
			if (*c == '_')
				*c = '-';
		print_option(option, config_keys[i].help);
	}
	print_option("--no-sandbox", "the same as --sandbox no");
	print_option("--check", "print the effective configuration as JSON, start nothing");
	print_option("--help", "this text");
	print_option("--version", "the program's version");
	printf("\n"
	       "Exit codes: 0 the guest powered off, 2 bad configuration, 3 the host lacks\n"
	       "something or failed, 4 triple fault, 5 KVM could not run the guest, 7 the sandbox\n"
	       "forbade a system call.\n"
	       "hvpoke-vmm(1) has the details.\n");
	return ferror(stdout) || fflush(stdout) ? VM_EXIT_HOST : 0;
}

int help_print_config(const struct config *config)
{
	struct json_object *object = config_to_json(config);
	const char *text = NULL;

	if (object)
		text = json_object_to_json_string_ext(
			object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!text || puts(text) < 0 || fflush(stdout)) {
		fprintf(stderr, "hvpoke-vmm: cannot print the configuration\n");
		json_object_put(object);
		return VM_EXIT_HOST;
	}
	json_object_put(object);
	return 0;
}
