// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke event VM on|off GLOB */
#include <string.h>

#include "cli.h"

int cmd_event(const struct options *options)
{
	const char *glob = options->args[2];
	uint64_t matched;
	int err = change_command(options, &matched);

	if (err || matched)
		return err;
	if (strchr(glob, ':'))
		fprintf(stderr, "hvpoke: the guest has no event that matches \"%s\"\n", glob);
	else
		fprintf(stderr,
			"hvpoke: the guest has no events of a system \"%s\"; an event of any "
			"system is "
			"\"*:%s\"\n",
			glob, glob);
	return DONE;
}
