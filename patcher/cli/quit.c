// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke quit VM */
#include "cli.h"

int cmd_quit(const struct options *options)
{
	return vm_show(options, "quit");
}
