// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace events: the static keys and static calls of tracepoints.
 *
 * A request that switches many events changes a key and a call for each, and the kernel
 * writes each at once. In a session they wait instead. What must hold meanwhile, while
 * the text is still the old one, is written in kernel/tracepoint.c:
 *
 *   if the key is on in the text:
 *     funcs = tp->funcs; if (funcs) call(funcs->data, ...)
 *
 * where the call goes to the one function there is, or to the iterator, which looks at
 * all of @funcs itself. The iterator is right at any time. The call of one function is
 * right as long as funcs[0] is that function, or @funcs is NULL. So:
 *
 *   0 -> 1 functions  the key is off in the text: nobody calls. May wait. Unless the key
 *                     is on in the text because its switching off waits, with the call of
 *                     another function behind it: what waits is sent first.
 *   1 -> 0            @funcs is NULL from now on. May wait.
 *   2 -> 1            the text calls the iterator. May wait.
 *   1 -> 2            the text may call the first function, and with the new @funcs
 *                     might hand it another one's data: must be in the text before
 *                     @funcs changes, which it does when the update returns. Only if
 *                     the key waits to be switched on, nobody calls.
 *
 * What waits is the call of arch_static_call_transform(). Of several for one place the
 * last one counts; it is made when the session sends what it has, and what it pokes joins
 * that at the gate. Whoever else updates a static call meanwhile has all of it sent first:
 * the kernel compares with the text to see whether there is anything to do.
 *
 * Under the session's batch_lock, but for the tables of tracepoints, which do not change.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bsearch.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sort.h>
#include <linux/static_call.h>
#include <linux/tracepoint.h>

#define HVPOKE_SORT_RESCHED() cond_resched()
#include "../proto/hvpoke_sort.h"

#include "hvpoke.h"

struct transform {
	void *site, *tramp, *func;
	bool tail;
};

static struct {
	struct transform *transform;
	struct hvpoke_sort_item *item;
	void *scratch;
	u32 nr, max;
	bool died; /* a key was switched off since the last sending */
} waiting;

/* The kernel's own tracepoints; those of modules are sent one by one. */
static struct tracepoint **by_key, **by_call;
static u32 nr_tracepoints;

static unsigned long key_of(const struct tracepoint *tp)
{
	return (unsigned long)&tp->key;
}

static unsigned long call_of(const struct tracepoint *tp)
{
	return (unsigned long)tp->static_call_key;
}

static int compare(unsigned long a, unsigned long b)
{
	return a < b ? -1 : a > b;
}

static int sort_by_key(const void *a, const void *b)
{
	return compare(key_of(*(struct tracepoint **)a), key_of(*(struct tracepoint **)b));
}

static int sort_by_call(const void *a, const void *b)
{
	return compare(call_of(*(struct tracepoint **)a), call_of(*(struct tracepoint **)b));
}

static int find_by_key(const void *key, const void *tp)
{
	return compare((unsigned long)key, key_of(*(struct tracepoint **)tp));
}

static int find_by_call(const void *key, const void *tp)
{
	return compare((unsigned long)key, call_of(*(struct tracepoint **)tp));
}

bool hvp_tracepoint_key(const struct static_key *key)
{
	return by_key && bsearch(key, by_key, nr_tracepoints, sizeof(*by_key), find_by_key);
}

static struct tracepoint *tracepoint_of(const struct static_call_key *key)
{
	struct tracepoint **found;

	if (!by_call)
		return NULL;
	found = bsearch(key, by_call, nr_tracepoints, sizeof(*by_call), find_by_call);
	return found ? *found : NULL;
}

static void count(struct tracepoint *tp, void *nr)
{
	++*(u32 *)nr;
}

static void note(struct tracepoint *tp, void *max)
{
	if (nr_tracepoints == *(u32 *)max)
		return;
	by_key[nr_tracepoints] = tp;
	by_call[nr_tracepoints++] = tp;
}

int hvp_tracing_init(void)
{
	u32 max = 0;

	if (by_key)
		return 0;
	for_each_kernel_tracepoint(count, &max);
	by_key = kvmalloc_array(max, sizeof(*by_key), GFP_HVP);
	by_call = kvmalloc_array(max, sizeof(*by_call), GFP_HVP);
	if (!by_key || !by_call) {
		hvp_tracing_exit();
		return -ENOMEM;
	}
	for_each_kernel_tracepoint(note, &max);
	sort(by_key, nr_tracepoints, sizeof(*by_key), sort_by_key, NULL);
	sort(by_call, nr_tracepoints, sizeof(*by_call), sort_by_call, NULL);
	return 0;
}

static void waiting_free(void)
{
	kvfree(waiting.transform);
	kvfree(waiting.item);
	kvfree(waiting.scratch);
	memset(&waiting, 0, sizeof(waiting));
}

void hvp_tracing_exit(void)
{
	waiting_free();
	kvfree(by_key);
	kvfree(by_call);
	by_key = NULL;
	by_call = NULL;
	nr_tracepoints = 0;
}

static int waiting_grow(void)
{
	u32 max = waiting.max ? 2 * waiting.max : 256;
	struct hvpoke_sort_item *item = kvmalloc_array(max, sizeof(*item), GFP_HVP);
	struct transform *transform = kvmalloc_array(max, sizeof(*transform), GFP_HVP);
	void *scratch = kvmalloc(hvpoke_sort_scratch(max), GFP_HVP);

	if (!item || !transform || !scratch) {
		kvfree(item);
		kvfree(transform);
		kvfree(scratch);
		return -ENOMEM;
	}
	if (waiting.nr)
		memcpy(transform, waiting.transform, waiting.nr * sizeof(*transform));
	kvfree(waiting.item);
	kvfree(waiting.transform);
	kvfree(waiting.scratch);
	waiting.item = item;
	waiting.transform = transform;
	waiting.scratch = scratch;
	waiting.max = max;
	return 0;
}

bool hvp_static_calls_wait(void)
{
	return smp_load_acquire(&waiting.nr); /* pairs with hvp_static_calls_done() */
}

int hvp_static_calls_add(void *site, void *tramp, void *func, bool tail)
{
	unsigned int noio = memalloc_noio_save();
	int err = waiting.nr == waiting.max ? waiting_grow() : 0;

	memalloc_noio_restore(noio);
	if (err)
		return err;
	waiting.transform[waiting.nr] = (struct transform){ site, tramp, func, tail };
	/* Pairs with hvp_static_calls_wait(). */
	smp_store_release(&waiting.nr, waiting.nr + 1);
	return 0;
}

void hvp_static_calls_replay(void)
{
	const struct hvpoke_sort_item *item;
	const struct transform *transform;
	u32 nr = waiting.nr, i;

	for (i = 0; i < nr; i++) {
		transform = &waiting.transform[i];
		waiting.item[i].key = (unsigned long)(transform->site ?: transform->tramp);
		waiting.item[i].index = i;
	}
	item = hvpoke_sort(waiting.item, nr, waiting.scratch);
	for (i = 0; i < nr; i++) {
		if (i + 1 < nr && item[i + 1].key == item[i].key)
			continue;
		transform = &waiting.transform[item[i].index];
		arch_static_call_transform(transform->site, transform->tramp, transform->func,
					   transform->tail);
		cond_resched();
	}
}

/*
 * Only now: up to here others are diverted, and wait for batch_lock. The original compares
 * with the text, would find the old one to be what it wants, and have its function replaced
 * by what was on the way.
 */
void hvp_static_calls_done(void)
{
	waiting.died = false;
	smp_store_release(&waiting.nr, 0); /* pairs with hvp_static_calls_wait() */
	if (waiting.max > 4096)
		waiting_free();
}

/* Does @tp's key wait to be switched on? */
static bool waits_to_be_on(const struct tracepoint *tp)
{
	const struct static_key *key = (const void *)&tp->key;
	struct jump_entry *first = (void *)(key->type & ~JUMP_TYPE_MASK);

	/* One that is used in modules as well has its entries elsewhere. */
	return !(key->type & JUMP_TYPE_LINKED) && first && hvp_session_collected(first);
}

static DEFINE_MUTEX(update_lock);
static struct task_struct *updater; /* written under update_lock */

bool hvp_static_call_updating(void)
{
	return READ_ONCE(updater) == current;
}

/*
 * All sites of a static call in one batch, written before this returns. The kernel pokes
 * them one by one, which no caller can rely on: it says nothing about their order.
 */
static void update_at_once(struct static_call_key *key, void *tramp, void *func)
{
	mutex_lock(&update_lock);
	WRITE_ONCE(updater, current);
	__static_call_update(key, tramp, func);
	mutex_lock(hvp_symbols.text_mutex);
	hvp_gate_finish();
	mutex_unlock(hvp_symbols.text_mutex);
	WRITE_ONCE(updater, NULL);
	mutex_unlock(&update_lock);
}

/* For the owner of a session that switches trace events. */
static void update_tracepoint(struct tracepoint *tp, struct static_call_key *key, void *tramp,
			      void *func)
{
	bool on = static_key_enabled((struct static_key *)&tp->key);
	bool iterator = func == tp->iterator;

	if (!on && !iterator && waiting.died)
		hvp_session_flush();
	hvp_session_update_call(key, tramp, func);
	if (!on && iterator)
		waiting.died = true;
	if (on && iterator && !waits_to_be_on(tp))
		hvp_session_flush();
}

void hvp_static_call_update(struct static_call_key *key, void *tramp, void *func)
{
	struct tracepoint *tp = hvp_session_traces() ? tracepoint_of(key) : NULL;

	if (tp)
		update_tracepoint(tp, key, tramp, func);
	else
		update_at_once(key, tramp, func);
}
