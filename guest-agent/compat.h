/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs from kernel to kernel; no other file asks which one it is.
 *
 * Written against 6.1 and 6.12.
 */
#ifndef HVPOKE_COMPAT_H
#define HVPOKE_COMPAT_H

#include <linux/dynamic_debug.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/module.h>

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
 * lib/dynamic_debug.c keeps this one to itself. Unchanged from 6.1 to 6.12; on
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
	case '_': return _DPRINTK_FLAGS_NONE;
	}
	return -EINVAL;
}

#endif /* HVPOKE_COMPAT_H */
