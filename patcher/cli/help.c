// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke help [COMMAND] */
#include <string.h>

#include "cli.h"

#define SYNOPSIS 43 /* columns; a longer one has its summary on the next line */

int cmd_help(const struct options *options)
{
	const struct command *command;

	if (options->nr_args) {
		for (command = commands; command->name; command++) {
			if (!strcmp(command->name, options->args[0])) {
				usage(stdout, command);
				return DONE;
			}
		}
		return report(options, USAGE, "usage", NULL, "there is no command \"%s\"",
			      options->args[0]);
	}
	puts("usage: hvpoke COMMAND [OPTION...] [VM [ARGUMENT]]\n");
	for (command = commands; command->name; command++) {
		printf("  %-13s %-*s ", command->name, SYNOPSIS, command->synopsis);
		if (strlen(command->synopsis) > SYNOPSIS)
			printf("\n  %-13s %-*s ", "", SYNOPSIS, "");
		puts(command->summary);
	}
	puts("\nVM is a name from \"hvpoke list\", or the path of a control socket.\n"
	     "With --connect URI it is a domain of libvirt's at that URI, as qemu:///system.\n"
	     "--json prints results and errors as JSON; --version says which hvpoke this is.\n"
	     "hvpoke(1) explains queries and exit codes.");
	return DONE;
}
