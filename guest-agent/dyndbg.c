// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queries with negated terms, which no kernel parses yet: matched here, against
 * the kernel's own tables of descriptors.
 *
 * The tables are private to lib/dynamic_debug.c. Whether they are laid out as
 * compat.h says is found out once, without trusting a pointer in them. If they
 * are not, only this is missing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/parser.h>
#include <linux/string.h>
#include <linux/string_helpers.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "hvpoke.h"

#define MAX_DESCRIPTORS BIT(20)

static bool known;
/* What the kernel's build has before every file's name; usually nothing. */
static const char *prefix = "";
static size_t prefix_len;

bool hvp_dyndbg_known(void)
{
	return known;
}

static bool same_name(const char *a, const char *b)
{
	char x, y;
	int i;

	for (i = 0; i < MODULE_NAME_LEN; i++) {
		if (copy_from_kernel_nofault(&x, a + i, 1) ||
		    copy_from_kernel_nofault(&y, b + i, 1) || x != y)
			return false;
		if (!x)
			return i;
	}
	return false;
}

/*
 * Is @table what the kernel made of its own descriptors, or of a module's? That
 * module may be loading just now, so it is not asked for.
 */
static bool table_holds(const struct hvp_ddebug_table *table)
{
	struct _ddebug *first = table->ddebugs, *end = first + table->num_ddebugs;
	struct _ddebug desc;

	if (!table->num_ddebugs || table->num_ddebugs > MAX_DESCRIPTORS ||
	    copy_from_kernel_nofault(&desc, first, sizeof(desc)))
		return false;
	if (first >= hvp_symbols.ddebug_start && end <= hvp_symbols.ddebug_stop)
		return desc.modname == table->mod_name;
	return same_name(desc.modname, table->mod_name);
}

static bool tables_hold(void)
{
	struct list_head *head = hvp_symbols.ddebug_tables, *prev = head, *at;
	struct hvp_ddebug_table table;
	struct list_head map;

	if (copy_from_kernel_nofault(&at, &head->next, sizeof(at)))
		return false;
	for (; at != head; prev = at, at = table.link.next) {
		if (copy_from_kernel_nofault(&table, at, sizeof(table)) ||
		    table.link.prev != prev || !table_holds(&table))
			return false;
		/* The list of class maps, empty or not, leads back. */
		if (copy_from_kernel_nofault(&map, table.maps.next, sizeof(map)) ||
		    map.prev != &((struct hvp_ddebug_table *)at)->maps)
			return false;
	}
	return prev != head;
}

/*
 * Dynamic debug leaves the path to the kernel's sources away when it matches a
 * file: what stands before "init/main.c", which has descriptors in every kernel.
 */
static void find_prefix(void)
{
	static const char name[] = "init/main.c";
	const struct _ddebug *desc;
	size_t len;

	for (desc = hvp_symbols.ddebug_start; desc < hvp_symbols.ddebug_stop; desc++) {
		len = strlen(desc->filename);
		if (len < strlen(name) || strcmp(desc->filename + len - strlen(name), name))
			continue;
		prefix = desc->filename;
		prefix_len = len - strlen(name);
		return;
	}
}

void hvp_dyndbg_init(void)
{
	if (!hvp_symbols.ddebug_lock || !hvp_symbols.ddebug_tables || !hvp_symbols.ddebug_start ||
	    !hvp_symbols.ddebug_stop) {
		pr_warn("this kernel does not show ddebug_lock and ddebug_tables\n");
	} else {
		mutex_lock(hvp_symbols.ddebug_lock);
		known = tables_hold();
		if (known)
			find_prefix();
		mutex_unlock(hvp_symbols.ddebug_lock);
		if (!known)
			pr_warn("this kernel's table of descriptors is not laid out as in 6.1 to 7.3\n");
	}
	if (!known)
		pr_warn("not covered: negated terms in the host's queries, and how many descriptors changed\n");
}

static const char *trim_prefix(const char *file)
{
	return strncmp(file, prefix, prefix_len) ? file : file + prefix_len;
}

struct terms {
	const char *func, *file, *module, *format, *class_name;
	u32 first_line, last_line, negate;
};

static void read_terms(struct terms *terms, const struct hvpoke_query *query)
{
	const char *record = (const char *)query;

	*terms = (struct terms){
		.func = query->func ? record + query->func : NULL,
		.file = query->file ? record + query->file : NULL,
		.module = query->module ? record + query->module : NULL,
		.format = query->format ? record + query->format : NULL,
		.class_name = query->class_name ? record + query->class_name : NULL,
		.first_line = query->first_line,
		.last_line = query->last_line,
		.negate = query->negate,
	};
}

static bool file_matches(const char *pattern, const char *file)
{
	return match_wildcard(pattern, file) || match_wildcard(pattern, kbasename(file)) ||
	       match_wildcard(pattern, trim_prefix(file));
}

static bool format_matches(const char *part, const char *format)
{
	if (*part == '^')
		return str_has_prefix(format, part + 1) || !part[1];
	return strstr(format, part);
}

static bool desc_matches(const struct terms *terms, const struct _ddebug *desc)
{
	if (terms->file &&
	    file_matches(terms->file, desc->filename) == !!(terms->negate & HVPOKE_NEG_FILE))
		return false;
	if (terms->func &&
	    match_wildcard(terms->func, desc->function) == !!(terms->negate & HVPOKE_NEG_FUNC))
		return false;
	if (terms->format &&
	    format_matches(terms->format, desc->format) == !!(terms->negate & HVPOKE_NEG_FORMAT))
		return false;
	if (terms->first_line && desc->lineno < terms->first_line)
		return false;
	return !terms->last_line || desc->lineno <= terms->last_line;
}

/*
 * The class id that a table's descriptors must have, or -ENOENT. A query that
 * names no class leaves descriptors with a class alone.
 */
static int table_class(const struct terms *terms, const struct hvp_ddebug_table *table)
{
	struct ddebug_class_map *map;
	int i;

	if (terms->module &&
	    match_wildcard(terms->module, table->mod_name) == !!(terms->negate & HVPOKE_NEG_MODULE))
		return -ENOENT;
	if (!terms->class_name)
		return _DPRINTK_CLASS_DFLT;
	list_for_each_entry(map, &table->maps, link) {
		i = match_string(map->class_names, map->length, terms->class_name);
		if (i >= 0)
			return map->base + i;
	}
	return -ENOENT;
}

static int read_flags(const struct hvpoke_query *query, unsigned int *flags, unsigned int *mask)
{
	const char *letter;
	int flag;

	*flags = 0;
	for (letter = query->flags; *letter; letter++) {
		flag = hvp_ddebug_flag(*letter);
		if (flag < 0)
			return flag;
		*flags |= flag;
	}
	*mask = query->op == '=' ? 0 : ~0u;
	if (query->op == '-') {
		*mask = ~*flags;
		*flags = 0;
	}
	return 0;
}

static void set_flags(struct _ddebug *desc, unsigned int flags)
{
	if (flags & ~desc->flags & _DPRINTK_FLAGS_PRINT)
		static_branch_enable(&desc->key.dd_key_true);
	else if (desc->flags & ~flags & _DPRINTK_FLAGS_PRINT)
		static_branch_disable(&desc->key.dd_key_true);
	desc->flags = flags;
}

int hvp_dyndbg_change(const struct hvpoke_query *query, const char **why)
{
	struct hvp_ddebug_table *table;
	unsigned int flags, mask, i;
	struct terms terms;
	int class, nr = 0;

	if (!known) {
		*why = "negated terms are not covered on this kernel";
		return -EOPNOTSUPP;
	}
	if (read_flags(query, &flags, &mask)) {
		*why = "this kernel does not know one of the flags";
		return -EINVAL;
	}
	read_terms(&terms, query);

	mutex_lock(hvp_symbols.ddebug_lock);
	list_for_each_entry(table, hvp_symbols.ddebug_tables, link) {
		class = table_class(&terms, table);
		if (class < 0)
			continue;
		for (i = 0; i < table->num_ddebugs; i++) {
			struct _ddebug *desc = &table->ddebugs[i];

			if (desc->class_id != class || !desc_matches(&terms, desc))
				continue;
			set_flags(desc, (desc->flags & mask) | flags);
			nr++;
		}
	}
	mutex_unlock(hvp_symbols.ddebug_lock);
	return nr;
}
