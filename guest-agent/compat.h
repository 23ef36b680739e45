/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs from kernel to kernel; no other file asks which one it is.
 *
 * Written against 6.1, 6.12 and 7.3.
 */
#ifndef HVPOKE_COMPAT_H
#define HVPOKE_COMPAT_H

#include <linux/dynamic_debug.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/version.h>

#include <asm/hardirq.h>
#include <asm/processor.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid/api.h>
#else
#define cpuid_base_hypervisor(signature, leaves) hypervisor_cpuid_base(signature, leaves)
#endif

#include "hvpoke.h"

#ifndef _DPRINTK_CLASS_DFLT
#error "hvpoke needs Linux 6.1 or later: classes of dynamic debug came with it"
#endif

/* 6.4 replaced the two layouts of a module by one piece of memory a type. */
#ifdef for_each_mod_mem_type
static inline unsigned long hvp_module_text(const struct module *mod, unsigned long *len)
{
	*len = mod->mem[MOD_TEXT].size;
	return (unsigned long)mod->mem[MOD_TEXT].base;
}
#else
static inline unsigned long hvp_module_text(const struct module *mod, unsigned long *len)
{
	*len = mod->core_layout.text_size;
	return (unsigned long)mod->core_layout.base;
}
#endif

/*
 * The page that holds a module's text at @addr. Where modules share big read-only
 * pages, the kernel may put small ones together at any time and then frees the page
 * table that led to them. It holds init_mm's lock for writing while it does, and
 * for reading when it patches (poke_vmalloc_pages() in arch/x86/kernel/alternative.c).
 */
static inline struct page *hvp_text_page(unsigned long addr)
{
	struct page *page;

#ifdef CONFIG_ARCH_HAS_EXECMEM_ROX
	mmap_read_lock(hvp_symbols.init_mm);
#endif
	page = vmalloc_to_page((void *)addr);
#ifdef CONFIG_ARCH_HAS_EXECMEM_ROX
	mmap_read_unlock(hvp_symbols.init_mm);
#endif
	return page;
}

/* The function-call interrupts that @cpu has taken since boot. */
static inline u64 hvp_irq_calls(unsigned int cpu)
{
	/* 7.x counts in an array. Its indices are no macros; this one came with them. */
#ifdef inc_perf_irq_stat
	return per_cpu(irq_stat, cpu).counts[IRQ_COUNT_CALL_FUNCTION];
#else
	return per_cpu(irq_stat, cpu).irq_call_count;
#endif
}

/* What may run anywhere and for long. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define hvp_workqueue system_dfl_wq
#else
#define hvp_workqueue system_unbound_wq
#endif

/*
 * lib/dynamic_debug.c keeps this one to itself. Unchanged from 6.1 to 7.3; on
 * anything else hvp_dyndbg_init() finds out whether it still holds.
 */
struct hvp_ddebug_table {
	struct list_head link, maps;
	const char *mod_name;
	unsigned int num_ddebugs;
	struct _ddebug *ddebugs;
};

/* Its descriptors in the kernel itself; the linker's symbols, declared in no header. */
extern struct _ddebug __start___dyndbg[], __stop___dyndbg[];

/* The list of modules (kernel/module/internal.h); named here for an agent that is built in. */
extern struct list_head modules;

/*
 * Likewise kernel/trace/trace.h. Before 6.7 tracing_update_buffers() has no
 * parameter: it does not see the one that is passed.
 */
struct trace_array;
struct trace_event_file;
extern struct mutex event_mutex;
int trace_event_enable_disable(struct trace_event_file *file, int enable, int soft_disable);
int tracing_update_buffers(struct trace_array *tr);

/* The bits of a flag letter that the running kernel's dynamic debug knows, or -EINVAL. */
static inline int hvp_ddebug_flag(char letter)
{
	switch (letter) {
	case 'p': return _DPRINTK_FLAGS_PRINT;
	case 'm': return _DPRINTK_FLAGS_INCL_MODNAME;
	case 'f': return _DPRINTK_FLAGS_INCL_FUNCNAME;
#ifdef _DPRINTK_FLAGS_INCL_SOURCENAME
	case 's': return _DPRINTK_FLAGS_INCL_SOURCENAME;
#endif
	case 'l': return _DPRINTK_FLAGS_INCL_LINENO;
	case 't': return _DPRINTK_FLAGS_INCL_TID;
#ifdef _DPRINTK_FLAGS_INCL_STACK
	case 'd': return _DPRINTK_FLAGS_INCL_STACK;
#endif
	case '_': return _DPRINTK_FLAGS_NONE;
	}
	return -EINVAL;
}

#endif /* HVPOKE_COMPAT_H */
