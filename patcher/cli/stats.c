// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke stats VM */
#include "cli.h"

int cmd_stats(const struct options *options)
{
	return vm_show(options, "stats");
}
