// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke info VM */
#include "cli.h"

int cmd_info(const struct options *options)
{
	return vm_show(options, "info");
}
