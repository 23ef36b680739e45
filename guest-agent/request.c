// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of the host: an interrupt says that one waits, a work item fetches
 * it, runs it like one of the guest's own, and reports what came of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

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

/* Offset 0 means that there is no such string; any other must lead to one. */
static bool string_fits(const struct hvpoke_query *query, u16 offset)
{
	if (!offset)
		return true;
	return offset >= sizeof(*query) && offset < query->size &&
	       strnlen((const char *)query + offset, query->size - offset) < query->size - offset;
}

/* The record at @at, or NULL if the host sent none that can be read. */
static const struct hvpoke_query *query_at(u32 at)
{
	const struct hvpoke_query *query = (const void *)(request->data + at);
	u32 left = min_t(u32, request->data_len, sizeof(request->data)) - at;

	if (left < sizeof(*query) || query->size < sizeof(*query) || query->size > left ||
	    query->size % 8)
		return NULL;
	if (!query->text || !string_fits(query, query->text) || !string_fits(query, query->func) ||
	    !string_fits(query, query->file) || !string_fits(query, query->module) ||
	    !string_fits(query, query->format) || !string_fits(query, query->class_name) ||
	    strnlen(query->flags, sizeof(query->flags)) == sizeof(query->flags))
		return NULL;
	return query;
}

/* The number of matches, or a negative errno and why. */
static int run_query(const struct hvpoke_query *query, const char **why)
{
	char *text;
	int ret;

	if (query->negate)
		return hvp_dyndbg_change(query, why);
	/* The kernel writes into it. */
	text = kstrdup((const char *)query + query->text, GFP_KERNEL);
	if (!text) {
		*why = "no memory for the query";
		return -ENOMEM;
	}
	ret = hvp_symbols.exec_queries(text, NULL);
	kfree(text);
	*why = "the kernel refused the query; its log says why";
	return ret;
}

/* Goes on after a query that fails, as the kernel does. */
static void run_queries(void)
{
	const struct hvpoke_query *query;
	const char *why;
	u32 i, at = 0;
	int ret;

	for (i = 0; i < request->nr_queries; i++) {
		query = query_at(at);
		if (!query) {
			fail(i, -EBADMSG, "the host's query cannot be read");
			return;
		}
		ret = run_query(query, &why);
		if (ret < 0)
			fail(i, ret, why);
		else
			outcome.matched += ret;
		at += query->size;
	}
}

static void run_toggle(void)
{
	struct hvp_snapshot *snapshot;
	struct hvp_result result;

	hvp_session_begin(NULL, !(request->flags & HVPOKE_REQ_NATIVE));
	snapshot = hvp_snapshot_take();
	run_queries();
	outcome.changed = hvp_snapshot_changed(snapshot);
	hvp_session_end(&result);
	hvp_result_report("host", &result);

	if (!snapshot && !outcome.error)
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
		outcome = (struct hvpoke_complete){
			.id = request->id,
			.bad_query = HVPOKE_NO_INDEX,
		};
		if (request->flags & HVPOKE_REQ_COUNT_IDLE)
			run_idle();
		else
			run_toggle();
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
		queue_work(system_unbound_wq, &requests_work);
}

/* Without an interrupt the guest's own requests are still served. */
int hvp_requests_init(void)
{
	int err;

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
