// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke toggle VM QUERY */
#include "cli.h"

int cmd_toggle(const struct options *options)
{
	return change_command(options, NULL);
}
