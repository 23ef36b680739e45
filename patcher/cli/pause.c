// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke pause VM */
#include "cli.h"

int cmd_pause(const struct options *options)
{
	return vm_show(options, "pause");
}
