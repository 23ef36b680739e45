// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the agent needs of the kernel and the kernel does not export.
 *
 * A name is taken as it stands or not at all: a compiler may have made
 * ddebug_exec_queries.constprop.0 with other parameters of it, and to hook that
 * would be worse than not to hook anything.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/module.h>
#include <linux/rculist.h>

#include <asm/cpufeature.h>
#include <asm/sections.h>

#include "compat.h"
#include "hvpoke.h"

struct hvp_symbols hvp_symbols;

static unsigned long (*lookup_name)(const char *name);

#ifdef MODULE
#define GLOBAL(name) ((void *)lookup_name(#name))

/*
 * kallsyms_lookup_name() is not exported; a kprobe tells where it is. On a
 * kernel built for IBT that is behind the function's ENDBR, which is just as
 * good where IBT is off, and where it is on hvp_symbols_init() has given up.
 */
static int find_lookup_name(void)
{
	struct kprobe kp = { .symbol_name = "kallsyms_lookup_name" };
	int err = register_kprobe(&kp);

	if (err) {
		pr_err("cannot find kallsyms_lookup_name with a kprobe (error %d)\n", err);
		return err;
	}
	lookup_name = (void *)kp.addr;
	unregister_kprobe(&kp);
	return 0;
}
#else
/* Built in, only what is static must be looked up: before 6.2 that reads every name there is. */
#define GLOBAL(name) ((void *)&(name))

static int find_lookup_name(void)
{
	lookup_name = kallsyms_lookup_name;
	return 0;
}
#endif

static int find_text(void)
{
	hvp_symbols.stext = (unsigned long)GLOBAL(_stext);
	hvp_symbols.etext = (unsigned long)GLOBAL(_etext);
	if (hvp_symbols.stext && hvp_symbols.stext < hvp_symbols.etext)
		return 0;
	pr_err("this kernel does not tell where its text begins and ends (_stext, _etext)\n");
	return -EOPNOTSUPP;
}

/*
 * lookup_name() goes on to look into modules: a function of that name in one of
 * them is not the kernel's.
 */
static void *check_function(const char *name, void *addr)
{
	if (addr && hvp_core_text((unsigned long)addr))
		return addr;
	pr_err("this kernel has no function %s (inlined, renamed by the compiler or gone); without it a dynamic debug request cannot be diverted\n",
	       name);
	return NULL;
}

#define FUNCTION(name) check_function(#name, GLOBAL(name))

static int find_needed(void)
{
	hvp_symbols.exec_queries =
		check_function("ddebug_exec_queries", (void *)lookup_name("ddebug_exec_queries"));
	hvp_symbols.transform_queue = FUNCTION(arch_jump_label_transform_queue);
	hvp_symbols.transform_apply = FUNCTION(arch_jump_label_transform_apply);
	hvp_symbols.module_address = FUNCTION(__module_address);
	hvp_symbols.text_mutex = GLOBAL(text_mutex);
	if (!hvp_symbols.text_mutex)
		pr_err("this kernel does not show text_mutex; without it text cannot be patched side by side with the kernel\n");
	hvp_symbols.init_mm = GLOBAL(init_mm);
	if (!hvp_symbols.init_mm)
		pr_err("this kernel does not show init_mm; without it the pages of modules cannot be told\n");
	if (!hvp_symbols.exec_queries || !hvp_symbols.transform_queue ||
	    !hvp_symbols.transform_apply || !hvp_symbols.module_address ||
	    !hvp_symbols.text_mutex || !hvp_symbols.init_mm)
		return -EOPNOTSUPP;
	return 0;
}

#ifdef MODULE
/* Names are not unique: it is the list of modules if this module is in it. */
static struct list_head *find_modules(void)
{
	struct list_head *head = GLOBAL(modules), *found = NULL;
	struct module *mod;

	rcu_read_lock();
	list_for_each_entry_rcu(mod, &THIS_MODULE->list, list)
		if (&mod->list == head)
			found = head;
	rcu_read_unlock();
	return found;
}
#else
static struct list_head *find_modules(void)
{
	return &modules;
}
#endif

/* For what the host may ask for besides dynamic debug. */
static void find_optional(void)
{
	hvp_symbols.ddebug_lock = (void *)lookup_name("ddebug_lock");
	hvp_symbols.ddebug_tables = (void *)lookup_name("ddebug_tables");
	hvp_symbols.ddebug_start = GLOBAL(__start___dyndbg);
	hvp_symbols.ddebug_stop = GLOBAL(__stop___dyndbg);
	hvp_symbols.perf_text_poke = (void *)lookup_name("perf_event_text_poke");
	hvp_symbols.nr_text_poke_events = (void *)lookup_name("nr_text_poke_events");
	hvp_symbols.jump_lock = GLOBAL(jump_label_lock);
	hvp_symbols.jump_unlock = GLOBAL(jump_label_unlock);
	hvp_symbols.jump_start = GLOBAL(__start___jump_table);
	hvp_symbols.jump_stop = GLOBAL(__stop___jump_table);
	hvp_symbols.modules = find_modules();
	hvp_symbols.init_begin = (unsigned long)GLOBAL(__init_begin);
	hvp_symbols.init_end = (unsigned long)GLOBAL(__init_end);
	hvp_symbols.end = (unsigned long)GLOBAL(_end);
#ifdef CONFIG_EVENT_TRACING
	hvp_symbols.event_mutex = GLOBAL(event_mutex);
	hvp_symbols.event_switch = GLOBAL(trace_event_enable_disable);
	hvp_symbols.trace_buffers_expand = GLOBAL(tracing_update_buffers);
#endif
}

int __init hvp_symbols_init(void)
{
	int err;

	/*
	 * None of these functions is called through a pointer in the kernel, so
	 * its build has taken the ENDBR away that such a call must find.
	 */
	if (cpu_feature_enabled(X86_FEATURE_IBT)) {
		pr_err("indirect branch tracking is on, which forbids to call the functions that must be diverted; boot with ibt=off\n");
		return -EOPNOTSUPP;
	}
	err = find_lookup_name();
	if (!err)
		err = find_text();
	if (!err)
		err = find_needed();
	if (err)
		return err;
	find_optional();
	return 0;
}

void *hvp_symbols_find(const char *name)
{
	return (void *)lookup_name(name);
}

/* Each has another name since 6.16. */
static void *find_poke(const char *name, const char *newer)
{
	void *addr = hvp_symbols_find(newer) ?: hvp_symbols_find(name);

	if (addr && hvp_core_text((unsigned long)addr))
		return addr;
	pr_err("this kernel has neither %s nor %s; without it the scope stays dyndbg\n", name,
	       newer);
	return NULL;
}

static int find_transform_queue_len(void)
{
	int (*size_offset)(unsigned long addr, unsigned long *size, unsigned long *offset) =
		hvp_symbols_find("kallsyms_lookup_size_offset");
	unsigned long offset;

	if (size_offset && size_offset((unsigned long)hvp_symbols.transform_queue,
				       &hvp_symbols.transform_queue_len, &offset))
		return 0;
	pr_err("this kernel does not tell how long arch_jump_label_transform_queue is; without it the scope stays dyndbg\n");
	return -EOPNOTSUPP;
}

int hvp_symbols_find_gate(void)
{
	hvp_symbols.poke_queue = find_poke("text_poke_queue", "smp_text_poke_batch_add");
	hvp_symbols.poke_finish = find_poke("text_poke_finish", "smp_text_poke_batch_finish");
	hvp_symbols.poke_sync = find_poke("text_poke_sync", "smp_text_poke_sync_each_cpu");
	hvp_symbols.text_poke = find_poke("text_poke", "text_poke");
	if (!hvp_symbols.poke_queue || !hvp_symbols.poke_finish || !hvp_symbols.poke_sync ||
	    !hvp_symbols.text_poke)
		return -EOPNOTSUPP;
	return find_transform_queue_len();
}
