// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke_selftests - the kernel's own start-up tests, run with the agent at work, built in.
 *
 *   hvpoke_selftests.run=NAME,...  initcalls, in that order
 *
 * The kernel runs most of its tests of live patching before it looks for PCI devices, so
 * before there is a host under QEMU. The command line holds them back
 * (initcall_blacklist=NAME,...), and names them here once more: they run after the agent,
 * which is a late initcall, and before the memory that they lie in is freed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>

static char *run[8];
static int nr_run;
module_param_array(run, charp, &nr_run, 0444);
MODULE_PARM_DESC(run, "initcalls to run after all others");

static int __init selftests_init(void)
{
	initcall_t initcall;
	int i;

	for (i = 0; i < nr_run; i++) {
		initcall = (initcall_t)kallsyms_lookup_name(run[i]);
		if (!initcall) {
			pr_err("this kernel has no %s\n", run[i]);
			continue;
		}
		pr_info("%s begins\n", run[i]);
		pr_info("%s returned %d\n", run[i], initcall());
	}
	return 0;
}
late_initcall_sync(selftests_init);
