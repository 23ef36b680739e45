// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flags of all descriptors before a request, to count those that it
 * changed: the kernel itself tells only how many matched.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "hvpoke.h"

struct snapshot_table {
	const struct _ddebug *ddebugs;
	unsigned int num_ddebugs;
};

struct hvp_snapshot {
	unsigned int nr_tables;
	struct snapshot_table *table;
	u8 *flags; /* of the tables' descriptors, one after the other */
};

static void count(size_t *tables, size_t *flags)
{
	const struct hvp_ddebug_table *table;

	*tables = 0;
	*flags = 0;
	list_for_each_entry(table, hvp_symbols.ddebug_tables, link) {
		++*tables;
		*flags += table->num_ddebugs;
	}
}

static void fill(struct hvp_snapshot *snapshot, size_t max_tables, size_t max_flags)
{
	const struct hvp_ddebug_table *table;
	u8 *flags = snapshot->flags;
	unsigned int i;

	list_for_each_entry(table, hvp_symbols.ddebug_tables, link) {
		/* A module has loaded since they were counted: not one of ours. */
		if (snapshot->nr_tables == max_tables ||
		    table->num_ddebugs > max_flags - (flags - snapshot->flags))
			return;
		snapshot->table[snapshot->nr_tables++] = (struct snapshot_table){
			.ddebugs = table->ddebugs,
			.num_ddebugs = table->num_ddebugs,
		};
		for (i = 0; i < table->num_ddebugs; i++)
			*flags++ = table->ddebugs[i].flags;
	}
}

struct hvp_snapshot *hvp_snapshot_take(void)
{
	struct hvp_snapshot *snapshot;
	size_t tables, flags;

	if (!hvp_dyndbg_known())
		return NULL;
	mutex_lock(hvp_symbols.ddebug_lock);
	count(&tables, &flags);
	mutex_unlock(hvp_symbols.ddebug_lock);

	snapshot = kvmalloc(sizeof(*snapshot) + tables * sizeof(*snapshot->table) + flags, GFP_HVP);
	if (!snapshot)
		return NULL;
	snapshot->nr_tables = 0;
	snapshot->table = (void *)(snapshot + 1);
	snapshot->flags = (void *)(snapshot->table + tables);

	mutex_lock(hvp_symbols.ddebug_lock);
	fill(snapshot, tables, flags);
	mutex_unlock(hvp_symbols.ddebug_lock);
	return snapshot;
}

static u64 table_changed(const struct hvp_ddebug_table *table, const u8 *flags)
{
	unsigned int i;
	u64 nr = 0;

	for (i = 0; i < table->num_ddebugs; i++)
		nr += table->ddebugs[i].flags != flags[i];
	return nr;
}

/*
 * Tables may have come and gone, but never change places: the search for the
 * next one goes on where the last one was found.
 */
u64 hvp_snapshot_changed(struct hvp_snapshot *snapshot)
{
	const struct hvp_ddebug_table *table;
	const u8 *flags, *skip;
	unsigned int at = 0, i;
	u64 nr = 0;

	if (!snapshot)
		return 0;
	flags = snapshot->flags;
	mutex_lock(hvp_symbols.ddebug_lock);
	list_for_each_entry(table, hvp_symbols.ddebug_tables, link) {
		for (i = at, skip = flags; i < snapshot->nr_tables; i++) {
			if (snapshot->table[i].ddebugs == table->ddebugs)
				break;
			skip += snapshot->table[i].num_ddebugs;
		}
		if (i == snapshot->nr_tables ||
		    snapshot->table[i].num_ddebugs != table->num_ddebugs)
			continue;
		nr += table_changed(table, skip);
		flags = skip + table->num_ddebugs;
		at = i + 1;
	}
	mutex_unlock(hvp_symbols.ddebug_lock);
	kvfree(snapshot);
	return nr;
}
