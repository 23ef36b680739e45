// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke resume VM */
#include "cli.h"

int cmd_resume(const struct options *options)
{
	return vm_show(options, "resume");
}
