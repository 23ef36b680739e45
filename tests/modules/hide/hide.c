// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hide - makes the kernel look as if it had no symbol of a name, for whoever asks for it.
 *
 *   symbol=NAME  that kallsyms_lookup_name() does not find any more
 *   decoy=1      it finds a function of this module of that name instead
 *
 * So what hvpoke.ko does on a kernel where a function was inlined, renamed or taken out can be
 * tried on one where it was not, with hvpoke.ko as it is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/string.h>

static char *symbol = "";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "the name that is not found");

static bool decoy;
module_param(decoy, bool, 0444);
MODULE_PARM_DESC(decoy, "a function of this module is found instead");

static noinline int decoy_function(void)
{
	pr_err("the decoy was called\n");
	return 0;
}

/* 0: the return is to be changed. */
static int on_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	(void)instance;
	return strcmp((const char *)regs_get_kernel_argument(regs, 0), symbol) != 0;
}

static int on_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	(void)instance;
	regs_set_return_value(regs, decoy ? (unsigned long)decoy_function : 0);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "kallsyms_lookup_name",
	.entry_handler = on_entry,
	.handler = on_return,
	.maxactive = 64,
};

static int __init hide_init(void)
{
	int err = register_kretprobe(&probe);

	if (!err)
		pr_info("%s is %s\n", symbol, decoy ? "another" : "hidden");
	return err;
}

static void __exit hide_exit(void)
{
	unregister_kretprobe(&probe);
}

module_init(hide_init);
module_exit(hide_exit);
MODULE_DESCRIPTION("hides a symbol from those who look it up, for tests");
MODULE_LICENSE("GPL");
