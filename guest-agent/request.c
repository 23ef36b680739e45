// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of the host: an interrupt says that one waits, a work item fetches
 * it, runs it like one of the guest's own, and reports what came of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "hvpoke.h"

/* Only for the work item, of which never more than one runs. */
static struct hvpoke_fetch *request;
static struct hvpoke_complete outcome;

static bool listening;

static void fail(u32 index, int err, const char *why)
{
	if (outcome.error)
		return;
	outcome.error = -err;
	outcome.bad_query = index;
	strscpy(outcome.message, why, sizeof(outcome.message));
}

void hvp_change_refuse(struct hvp_change *change, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(change->why, sizeof(change->why), format, args);
	va_end(args);
}

/* Offset 0 means that there is no such string; any other must lead to one. */
static bool string_fits(const struct hvpoke_query *query, u16 offset)
{
	if (!offset)
		return true;
	return offset >= sizeof(*query) && offset < query->size &&
	       strnlen((const char *)query + offset, query->size - offset) < query->size - offset;
}

static const char *text_of(const struct hvpoke_query *query)
{
	return (const char *)query + query->text;
}

/* The record at @at, or NULL if the host sent none that can be read. */
static const struct hvpoke_query *query_at(u32 at)
{
	const struct hvpoke_query *query = (const void *)(request->data + at);
	u32 left = min_t(u32, request->data_len, sizeof(request->data)) - at;

	if (left < sizeof(*query) || query->size < sizeof(*query) || query->size > left ||
	    query->size % 8)
		return NULL;
	if (!query->text && query->kind != HVPOKE_CHANGE_SCOPE)
		return NULL;
	if (!string_fits(query, query->text) || !string_fits(query, query->func) ||
	    !string_fits(query, query->file) || !string_fits(query, query->module) ||
	    !string_fits(query, query->format) || !string_fits(query, query->class_name) ||
	    strnlen(query->flags, sizeof(query->flags)) == sizeof(query->flags))
		return NULL;
	return query;
}

/* Each returns 0, or a negative errno and why in @change. */
static int run_query(const struct hvpoke_query *query, struct hvp_change *change)
{
	const char *why = "the kernel refused the query; its log says why";
	char *text;
	int ret;

	if (query->negate) {
		ret = hvp_dyndbg_change(query, &why);
	} else {
		/* The kernel writes into it. */
		text = kstrdup(text_of(query), GFP_KERNEL);
		if (!text) {
			hvp_change_refuse(change, "no memory for the query");
			return -ENOMEM;
		}
		ret = hvp_symbols.exec_queries(text, NULL);
		kfree(text);
	}
	if (ret < 0) {
		hvp_change_refuse(change, "%s", why);
		return ret;
	}
	/* How many descriptors are different now is counted for all queries together. */
	change->matched = ret;
	return 0;
}

static int run_switch(const struct hvpoke_query *query, struct hvp_change *change)
{
	bool on = query->op == '+';
	int err;

	if (!on && query->op != '-') {
		hvp_change_refuse(change, "a key or an event is switched by '+' or '-'");
		return -EBADMSG;
	}
	if (query->kind == HVPOKE_CHANGE_KEY)
		return hvp_key_switch(text_of(query), on, change);
	hvp_session_trace(true);
	err = hvp_events_switch(text_of(query), on, change);
	hvp_session_trace(false);
	if (change->changed && hvp_session_diverts() && hvp_gate_scope() != HVPOKE_SCOPE_ALL)
		strscpy(outcome.message,
			"trace events are patched the kernel's own way unless the agent's scope is \"all\"",
			sizeof(outcome.message));
	return err;
}

static int run_scope(const struct hvpoke_query *query, struct hvp_change *change)
{
	int err = hvp_scope_set(query->first_line);

	if (err)
		hvp_change_refuse(change, "the agent cannot take this scope; its log says why");
	return err;
}

static int run_record(const struct hvpoke_query *query, struct hvp_change *change)
{
	switch (query->kind) {
	case HVPOKE_CHANGE_DYNDBG: return run_query(query, change);
	case HVPOKE_CHANGE_KEY:
	case HVPOKE_CHANGE_EVENTS: return run_switch(query, change);
	case HVPOKE_CHANGE_SCOPE: return run_scope(query, change);
	}
	hvp_change_refuse(change, "the agent does not know this kind of change (%u)", query->kind);
	return -EOPNOTSUPP;
}

/*
 * Run the records that set the scope (@scope), or all the others. Goes on after one
 * that fails, as the kernel does with queries.
 */
static void run_records(bool scope)
{
	const struct hvpoke_query *query;
	struct hvp_change change;
	u32 i, at = 0;
	bool is_scope;
	int err;

	for (i = 0; i < request->nr_queries; i++, at += query->size) {
		query = query_at(at);
		if (!query) {
			fail(i, -EBADMSG, "the host's query cannot be read");
			return;
		}
		is_scope = query->kind == HVPOKE_CHANGE_SCOPE;
		if (is_scope != scope)
			continue;
		memset(&change, 0, sizeof(change));
		err = run_record(query, &change);
		if (err)
			fail(i, err, change.why);
		outcome.matched += change.matched;
		outcome.changed += change.changed;
	}
}

/* Is there a record of any of these kinds (bits)? */
static bool has_kind(u32 kinds)
{
	const struct hvpoke_query *query;
	u32 i, at = 0;

	for (i = 0; i < request->nr_queries; i++, at += query->size) {
		query = query_at(at);
		if (!query)
			return false;
		if (BIT(min_t(u32, query->kind, 31)) & kinds)
			return true;
	}
	return false;
}

static void run_session(void)
{
	bool descriptors = has_kind(BIT(HVPOKE_CHANGE_DYNDBG));
	struct hvp_snapshot *snapshot = NULL;
	struct hvp_result result;

	hvp_session_begin(NULL, !(request->flags & HVPOKE_REQ_NATIVE));
	if (descriptors)
		snapshot = hvp_snapshot_take();
	run_records(false);
	outcome.changed += hvp_snapshot_changed(snapshot);
	hvp_session_end(&result);
	hvp_result_report("host", &result);

	if (descriptors && !snapshot && !outcome.error)
		strscpy(outcome.message, "how many descriptors changed is not known",
			sizeof(outcome.message));
	outcome.sites = result.sites;
	outcome.native_sites = result.native_sites;
	outcome.guest_ns = result.ns;
	outcome.ipis = result.ipis_after - result.ipis_before;
	outcome.own_int3 = result.int3;
	outcome.batches = result.batches;
	outcome.fallback = result.fallback;
}

/*
 * All in one session, so that it is one batch. But the scope decides what a session
 * collects: it is set before, wherever its record stands.
 */
static void run_changes(void)
{
	run_records(true);
	if (has_kind((u32)~BIT(HVPOKE_CHANGE_SCOPE)))
		run_session();
}

static void run_list(void)
{
	const struct hvpoke_query *query = query_at(0);
	struct hvp_change change = {};
	int err;

	if (!query || query->kind != HVPOKE_CHANGE_KEY) {
		fail(0, -EBADMSG, "the host's query cannot be read");
		return;
	}
	err = hvp_keys_list(text_of(query), query->first_line, &outcome, &change);
	if (err)
		fail(0, err, change.why);
	outcome.matched = change.matched;
}

static void run_undo(void)
{
	struct hvp_result result = {};
	struct hvp_change change = {};
	int err = hvp_undo(&result, &change);

	if (err)
		fail(HVPOKE_NO_INDEX, err, change.why);
	outcome.sites = result.sites;
	outcome.guest_ns = result.ns;
	outcome.ipis = result.ipis_after - result.ipis_before;
	outcome.own_int3 = result.int3;
	outcome.batches = result.batches;
}

/*
 * What the counter does by itself: nothing to take part in, so no session. The CPU
 * is kept as busy as a request keeps it, since a scheduler that balances load
 * interrupts, too: only so is the one comparable with the other.
 */
static void run_idle(void)
{
	u64 ipis = hvp_count_ipis();
	ktime_t begin = ktime_get();

	while (ktime_ms_delta(ktime_get(), begin) < request->idle_ms) {
		cpu_relax();
		cond_resched();
	}
	outcome.guest_ns = ktime_to_ns(ktime_sub(ktime_get(), begin));
	outcome.ipis = hvp_count_ipis() - ipis;
}

static void run_requests(struct work_struct *work)
{
	u32 status = hvp_session_hello(), taken;

	while (status == HVPOKE_OK && (status = hvp_host_fetch(request)) == HVPOKE_OK) {
		memset(&outcome, 0, sizeof(outcome));
		outcome.id = request->id;
		outcome.bad_query = HVPOKE_NO_INDEX;
		if (request->flags & HVPOKE_REQ_COUNT_IDLE)
			run_idle();
		else if (request->flags & HVPOKE_REQ_LIST_KEYS)
			run_list();
		else if (request->flags & HVPOKE_REQ_UNDO)
			run_undo();
		else
			run_changes();
		outcome.noisy = hvp_gate_noisy();
		taken = hvp_host_complete(&outcome);
		if (taken != HVPOKE_OK)
			pr_warn_ratelimited("the host does not take the outcome of request %llu: %s\n",
					    outcome.id, hvpoke_status_text(taken));
	}
	if (status != HVPOKE_NO_REQUEST && status != HVPOKE_NO_HOST)
		pr_warn_ratelimited("cannot fetch a host request: %s\n",
				    hvpoke_status_text(status));
}

static DECLARE_WORK(requests_work, run_requests);

/* Unbound: the kernel's own way may take long. */
void hvp_requests_wake(void)
{
	if (READ_ONCE(listening))
		queue_work(hvp_workqueue, &requests_work);
}

/* Without an interrupt the guest's own requests are still served. */
int hvp_requests_init(void)
{
	int err;

	hvp_keys_init();
	hvp_events_init();
	request = kmalloc(sizeof(*request), GFP_KERNEL);
	if (!request)
		return -ENOMEM;
	WRITE_ONCE(listening, true);
	err = hvp_host_listen();
	if (err) {
		pr_warn("not covered: requests of the host (no interrupt for them, error %d)\n",
			err);
		WRITE_ONCE(listening, false);
		kfree(request);
		request = NULL;
		return 0;
	}
	/* One may have waited since before the interrupt was ours. */
	hvp_requests_wake();
	return 0;
}

/* One that runs is finished; the host fails those that still wait, at BYE. */
void hvp_requests_exit(void)
{
	if (!request)
		return;
	WRITE_ONCE(listening, false);
	hvp_host_deafen();
	cancel_work_sync(&requests_work);
	kfree(request);
}
