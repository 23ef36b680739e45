// SPDX-License-Identifier: GPL-2.0-only
/*
 * Static keys by name, for requests of the host.
 *
 * A key is looked for in the jump table, the kernel's and those of modules: what
 * is in there is a key, whatever a symbol is called. Its name is the symbol at
 * its very address. A key inside of something bigger, as each tracepoint and
 * each descriptor of dynamic debug has one, goes without: it is switched
 * together with what it belongs to, by requests of that kind. Of an array of keys
 * the first has a name.
 *
 * Locking
 * -------
 * jump_label_mutex is held as long as a table is looked at.
 *
 * - The kernel's own table is sorted at boot and stays.
 * - A module's is sorted in jump_label_module_notify(), under this mutex and
 *   before the module is LIVE.
 * - A module that goes away is first GOING, then comes the same notifier, again
 *   under this mutex, and then its memory is freed. So one that is seen LIVE with
 *   the mutex held stays until it is released: its table, its keys, its name.
 *
 * That is asked of each module while the list of modules is read, under RCU.
 *
 * The mutex is released before a key is switched, which takes it; the module that
 * has the key is held by a reference then. Modules that only use the key may come
 * and go: the kernel switches those that are there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jump_label_ratelimit.h>
#include <linux/kallsyms.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/parser.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "hvpoke.h"

/* The kernel's part of the jump table (@mod is NULL), or a module's. Sorted by key. */
struct table {
	struct module *mod;
	struct jump_entry *start, *stop;
};

/* A key, and how far the walk has come that found it. */
struct walk {
	unsigned int table;
	struct jump_entry *at;
	struct static_key *key;
	struct module *owner; /* NULL: the kernel */
};

/* All under jump_label_mutex, and only for the work item that serves the host. */
static struct table *tables;
static unsigned int nr_tables;
static char symbol[KSYM_SYMBOL_LEN];
static char name[MODULE_NAME_LEN + KSYM_SYMBOL_LEN]; /* of the key that the walk is at */

static bool covered;

void hvp_keys_init(void)
{
	covered = hvp_symbols.jump_lock && hvp_symbols.jump_unlock && hvp_symbols.jump_start &&
		  hvp_symbols.jump_stop && hvp_symbols.init_begin && hvp_symbols.init_end &&
		  hvp_symbols.end;
	if (!covered)
		pr_warn("not covered: static keys in the host's requests (this kernel does not show jump_label_lock, __start___jump_table, __init_begin or _end)\n");
	else if (!hvp_symbols.modules)
		pr_warn("not covered: static keys of modules in the host's requests (this kernel does not show its list of modules)\n");
}

bool hvp_keys_covered(void)
{
	return covered && hvp_symbols.modules;
}

static unsigned int count_modules(void)
{
	struct module *mod;
	unsigned int nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(mod, hvp_symbols.modules, list)
		nr++;
	rcu_read_unlock();
	return nr;
}

/* Modules that have been loaded since there were @max - 1 of them are not seen. */
static void read_modules(unsigned int max)
{
	struct module *mod;

	rcu_read_lock();
	list_for_each_entry_rcu(mod, hvp_symbols.modules, list) {
		if (nr_tables == max)
			break;
		if (READ_ONCE(mod->state) == MODULE_STATE_LIVE && mod->num_jump_entries)
			tables[nr_tables++] = (struct table){
				.mod = mod,
				.start = mod->jump_entries,
				.stop = mod->jump_entries + mod->num_jump_entries,
			};
	}
	rcu_read_unlock();
}

static void tables_unlock(void)
{
	kvfree(tables);
	tables = NULL;
	hvp_symbols.jump_unlock();
}

/* 0, or a negative errno with nothing locked. */
static int tables_lock(struct hvp_change *change)
{
	unsigned int max = 1;

	if (!covered) {
		hvp_change_refuse(change, "static keys are not covered on this kernel");
		return -EOPNOTSUPP;
	}
	hvp_symbols.jump_lock();
	if (hvp_symbols.modules)
		max += count_modules();
	tables = kvmalloc_array(max, sizeof(*tables), GFP_HVP);
	if (!tables) {
		tables_unlock();
		hvp_change_refuse(change, "no memory to look for static keys");
		return -ENOMEM;
	}
	tables[0] = (struct table){
		.start = hvp_symbols.jump_start,
		.stop = hvp_symbols.jump_stop,
	};
	nr_tables = 1;
	if (hvp_symbols.modules)
		read_modules(max);
	return 0;
}

/* Is there a module that comes or goes? Its table may be ours to look at soon, or never again. */
static bool modules_move(void)
{
	struct module *mod;
	bool move = false;

	rcu_read_lock();
	list_for_each_entry_rcu(mod, hvp_symbols.modules, list) {
		enum module_state state = READ_ONCE(mod->state);

		if (mod != THIS_MODULE &&
		    (state == MODULE_STATE_COMING || state == MODULE_STATE_GOING))
			move = true;
	}
	rcu_read_unlock();
	return move;
}

int hvp_keys_walk(void (*each)(struct jump_entry *entry), struct hvp_change *change)
{
	const struct table *table;
	struct jump_entry *entry;
	int err;

	err = tables_lock(change);
	if (err)
		return err;
	for (table = tables; table < tables + nr_tables; table++) {
		for (entry = table->start; entry < table->stop; entry++)
			each(entry);
		cond_resched();
	}
	if (modules_move())
		err = -EAGAIN;
	tables_unlock();
	return err;
}

/* The first of @key's entries; the table's end or another key's if it has none. */
static struct jump_entry *first_entry(const struct table *table, const struct static_key *key)
{
	struct jump_entry *low = table->start, *high = table->stop, *middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (jump_entry_key(middle) < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool entry_of(const struct table *table, const struct jump_entry *entry,
		     const struct static_key *key)
{
	return entry < table->stop && jump_entry_key(entry) == key;
}

/* Of all the tables that have entries of @key, the one at which the walk stops for it. */
static bool home_of(const struct table *table, const struct static_key *key)
{
	const struct table *before;

	for (before = tables; before < table; before++)
		if (entry_of(before, first_entry(before, key), key))
			return false;
	return true;
}

/* What is left of @key's sites now that __init text is gone. */
static u32 count_sites(const struct static_key *key)
{
	const struct table *table;
	struct jump_entry *entry;
	u32 nr = 0;

	for (table = tables; table < tables + nr_tables; table++)
		for (entry = first_entry(table, key); entry_of(table, entry, key); entry++)
			nr += !jump_entry_is_init(entry);
	return nr;
}

/* A key of the kernel itself, in memory that is not free by now. */
static bool core_key(unsigned long addr)
{
	return addr >= hvp_symbols.stext && addr < hvp_symbols.end &&
	       (addr < hvp_symbols.init_begin || addr >= hvp_symbols.init_end);
}

/* Find out whose the walk's key is and what it is called. False: nothing to be dealt with. */
static bool name_key(struct walk *walk)
{
	unsigned long addr = (unsigned long)walk->key;
	char *offset;

	preempt_disable();
	walk->owner = hvp_symbols.module_address(addr);
	preempt_enable();
	if (!walk->owner && !core_key(addr))
		return false;
	if (walk->owner && (READ_ONCE(walk->owner->state) != MODULE_STATE_LIVE ||
			    within_module_init(addr, walk->owner)))
		return false;

	/* "NAME+0x0/0x10", and perhaps " [MODULE]" */
	sprint_symbol(symbol, addr);
	offset = strrchr(symbol, '+');
	if (!offset || !str_has_prefix(offset, "+0x0/"))
		return false;
	*offset = '\0';
	snprintf(name, sizeof(name), "%s%s%s", walk->owner ? walk->owner->name : "",
		 walk->owner ? ":" : "", symbol);
	return true;
}

static void walk_begin(struct walk *walk)
{
	*walk = (struct walk){ .at = tables[0].start };
}

/* The next key, with its name in @name; false after the last one. */
static bool walk_next(struct walk *walk)
{
	const struct table *table;

	while (walk->table < nr_tables) {
		table = &tables[walk->table];
		if (walk->at == table->stop) {
			if (++walk->table < nr_tables)
				walk->at = tables[walk->table].start;
			continue;
		}
		walk->key = jump_entry_key(walk->at);
		while (entry_of(table, walk->at, walk->key))
			walk->at++;
		cond_resched();
		if (home_of(table, walk->key) && name_key(walk))
			return true;
	}
	return false;
}

/* 0, or a negative errno and why. @walk is at the key then. */
static int find_key(const char *wanted, struct walk *walk, struct hvp_change *change)
{
	struct walk at;
	unsigned int nr = 0;

	walk_begin(&at);
	while (walk_next(&at)) {
		if (strcmp(name, wanted))
			continue;
		*walk = at;
		nr++;
	}
	if (nr == 1)
		return 0;
	if (nr > 1) {
		hvp_change_refuse(change, "%u static keys have this name", nr);
		return -EINVAL;
	}
	if (hvp_symbols_find(wanted)) {
		hvp_change_refuse(change,
				  "this symbol is not a static key, or one that switches nothing");
		return -EINVAL;
	}
	hvp_change_refuse(change, "this kernel has no symbol of this name");
	return -ENOENT;
}

/*
 * Keys that are __ro_after_init. From 6.10 on the kernel also forgets their sites
 * (static_key_seal()), which shows where rodata=off keeps them writable.
 */
static bool read_only(const struct static_key *key)
{
	unsigned int level;
	pte_t *pte = lookup_address((unsigned long)key, &level);

	return !pte || !(pte_flags(*pte) & _PAGE_RW) ||
	       ((key->type & JUMP_TYPE_LINKED) && !(key->type & ~JUMP_TYPE_MASK));
}

/*
 * A struct static_key_deferred goes off by itself, some time after its last user.
 * What stands behind any other key cannot be this function's address at this
 * place: it would be a deferred key that overlaps it.
 */
static bool deferred(struct static_key *key)
{
	struct static_key_deferred *whole = container_of(key, struct static_key_deferred, key);
	work_func_t func;

	return !get_kernel_nofault(func, &whole->work.work.func) &&
	       func == jump_label_update_timeout;
}

/*
 * May it be switched? static_key_enable() and static_key_disable() are for keys
 * that are 0 or 1, and warn about any other: the kernel's own users are counted
 * there, and would be left with a wrong count. A single one of them looks like a
 * key that is simply on; whoever switches that off is told by the kernel's warning
 * when that user goes. With the mutex held nobody is half-way (-1).
 */
static int may_switch(struct static_key *key, bool on, struct hvp_change *change)
{
	int count = static_key_count(key);

	if (read_only(key)) {
		hvp_change_refuse(change, "the key is read-only since the kernel has booted");
		return -EPERM;
	}
	if (deferred(key)) {
		hvp_change_refuse(change,
				  "the kernel switches this key by itself (a deferred key, with %d users now)",
				  count);
		return -EBUSY;
	}
	if (count > 1) {
		hvp_change_refuse(change,
				  "the key counts its users in the kernel, %d now; it cannot be switched for them",
				  count);
		return -EBUSY;
	}
	change->matched = 1;
	change->changed = count != on;
	return 0;
}

/* In between, the count may change under those few users that need no lock for it. */
int hvp_key_switch(const char *wanted, bool on, struct hvp_change *change)
{
	struct walk walk;
	int err;

	err = tables_lock(change);
	if (err)
		return err;
	err = find_key(wanted, &walk, change);
	if (!err && !try_module_get(walk.owner)) {
		hvp_change_refuse(change, "the key's module is going away");
		err = -ENOENT;
		walk.owner = NULL;
	}
	if (err) {
		tables_unlock();
		return err;
	}
	err = may_switch(walk.key, on, change);
	tables_unlock();

	if (!err && change->changed && on)
		static_key_enable(walk.key);
	else if (!err && change->changed)
		static_key_disable(walk.key);
	module_put(walk.owner);
	return err;
}

/* Append the walk's key. False: no room. */
static bool put_key(const struct walk *walk, struct hvpoke_complete *complete)
{
	struct hvpoke_key *record = (void *)(complete->data + complete->data_len);
	u32 len = strlen(name), size = ALIGN(sizeof(*record) + len + 1, 4);

	if (size > sizeof(complete->data) - complete->data_len)
		return false;
	memset(record, 0, size);
	record->size = size;
	record->enabled = static_key_enabled(walk->key);
	record->sites = count_sites(walk->key);
	memcpy(record->name, name, len);
	complete->data_len += size;
	return true;
}

int hvp_keys_list(const char *glob, u32 skip, struct hvpoke_complete *complete,
		  struct hvp_change *change)
{
	struct walk walk;
	bool full = false;
	int err;

	err = tables_lock(change);
	if (err)
		return err;
	walk_begin(&walk);
	while (walk_next(&walk)) {
		if (!match_wildcard(glob, name) || change->matched++ < skip)
			continue;
		if (full || !put_key(&walk, complete)) {
			full = true;
			complete->more++;
		}
	}
	tables_unlock();
	return 0;
}
