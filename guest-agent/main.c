// SPDX-License-Identifier: GPL-2.0-only
/*
 * hvpoke - the agent in the guest.
 *
 * Linux patches its own running text with an INT3 and interrupts to every CPU,
 * a few of them for each instruction. A hypervisor can stop all virtual CPUs,
 * write thousands of instructions and let them go on. The agent collects what a
 * request to dynamic debug patches and hands it over in one piece; the way is
 * hooks.c -> session.c -> batch.c -> host.c. With a wider scope that is so for
 * whatever else patches text: diversions.c -> gate.c -> batch.c -> host.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>

#include "hvpoke.h"

/* A host that is away just now is welcome later. */
static int __init say_hello(void)
{
	u32 status = hvp_session_hello();

	if (status == HVPOKE_OK || status == HVPOKE_NO_HOST || status == HVPOKE_TIMED_OUT ||
	    status == HVPOKE_BUSY)
		return 0;
	pr_err("the host does not take this agent: %s\n", hvpoke_status_text(status));
	return -EIO;
}

static int __init hvpoke_init(void)
{
	int err;

	err = hvp_host_find();
	if (err)
		return err;
	err = hvp_symbols_init();
	if (err)
		goto bye;
	hvp_dyndbg_init();
	err = hvp_session_init();
	if (err)
		goto bye;
	err = hvp_hooks_init();
	if (err)
		goto session;
	err = say_hello();
	if (err)
		goto hooks;
	err = hvp_gate_init();
	if (err)
		goto hooks;
	err = hvp_requests_init();
	if (err)
		goto hooks;
	pr_info("dynamic debug requests go to the host%s, one pause each\n",
		hvp_host_greeted() ? "" : " once it is there");
	return 0;

hooks:
	hvp_hooks_exit();
session:
	hvp_session_exit();
bye:
	hvp_host_bye();
	return err;
}

static void __exit hvpoke_exit(void)
{
	hvp_requests_exit();
	hvp_hooks_exit();
	hvp_session_exit();
	hvp_host_bye();
}

/* Late: built in, the subsystems whose text it is about are there. */
late_initcall(hvpoke_init);
module_exit(hvpoke_exit);

MODULE_DESCRIPTION("hvpoke agent: the kernel's text patched by the hypervisor in one pause");
MODULE_VERSION(HVP_VERSION);
MODULE_LICENSE("GPL");
