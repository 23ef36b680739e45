// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace events of the top instance by name, for requests of the host: what
 * tracefs has under events/, and switches in the same way.
 *
 * The instance's list of events is private to kernel/trace, but each event that
 * is in it leads to the others, and what its "enable" file calls can be called.
 * event_mutex is over all of it, as it is there: events neither come nor go.
 *
 * It is taken inside of a session, and nobody who holds it waits for one. A module
 * that goes away needs both: the session comes first, since hvp_session_module() is
 * the first of its notifiers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/parser.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/trace_events.h>

#include "hvpoke.h"

/* One that every kernel with events has: the way in. */
#define FIRST_SYSTEM "sched"
#define FIRST_EVENT  "sched_switch"

static bool covered;

void hvp_events_init(void)
{
	covered = hvp_symbols.event_mutex && hvp_symbols.event_switch &&
		  hvp_symbols.trace_buffers_expand;
	if (!covered)
		pr_warn("not covered: trace events in the host's requests (this kernel does not show event_mutex, trace_event_enable_disable or tracing_update_buffers)\n");
}

/* Is this one of those that can be switched? As in tracefs, which shows an "enable" for them. */
static bool switchable(struct trace_event_call *call)
{
	return trace_event_name(call) && call->class && call->class->reg &&
	       !(call->flags & TRACE_EVENT_FL_IGNORE_ENABLE);
}

/* What reads as 1 in tracefs; a trigger may keep one enabled that is off for everybody else. */
static bool is_on(const struct trace_event_file *file)
{
	return (file->flags & EVENT_FILE_FL_ENABLED) &&
	       !(file->flags & EVENT_FILE_FL_SOFT_DISABLED);
}

/* 0, or a negative errno and why; the first one's is kept. */
static int switch_event(struct trace_event_file *file, bool on, struct hvp_change *change)
{
	bool was_on = is_on(file);
	int err = hvp_symbols.event_switch(file, on, 0);

	change->matched++;
	change->changed += is_on(file) != was_on;
	if (err && !*change->why)
		hvp_change_refuse(change, "the kernel cannot switch %s:%s (error %d)",
				  file->event_call->class->system,
				  trace_event_name(file->event_call), err);
	return err;
}

/*
 * The list is a ring through @first and its head, which lies in the instance
 * itself. Read as an event, that has no pointer back to the instance: what stands
 * there are other lists and cpumasks.
 */
static int switch_events(struct trace_event_file *first, const char *system, const char *event,
			 bool on, struct hvp_change *change)
{
	struct trace_event_file *file = first;
	struct trace_event_call *call;
	int err = 0, ret;

	mutex_lock(hvp_symbols.event_mutex);
	do {
		call = file->tr == first->tr ? file->event_call : NULL;
		if (call && switchable(call) && match_wildcard(system, call->class->system) &&
		    match_wildcard(event, trace_event_name(call))) {
			ret = switch_event(file, on, change);
			err = err ?: ret;
		}
		file = list_next_entry(file, list);
	} while (file != first);
	mutex_unlock(hvp_symbols.event_mutex);
	return err;
}

static int with_first(const char *system, const char *event, bool on, struct hvp_change *change)
{
	struct trace_event_file *first;
	int err;

	first = trace_get_event_file(NULL, FIRST_SYSTEM, FIRST_EVENT);
	if (IS_ERR(first)) {
		hvp_change_refuse(change, "this kernel has no trace event " FIRST_SYSTEM
					  ":" FIRST_EVENT " to begin with");
		return PTR_ERR(first);
	}
	/* Whoever turns the first event on has to. */
	err = hvp_symbols.trace_buffers_expand(first->tr);
	if (err)
		hvp_change_refuse(change, "the kernel has no memory for its trace buffers");
	else
		err = switch_events(first, system, event, on, change);
	trace_put_event_file(first);
	return err;
}

int hvp_events_switch(const char *glob, bool on, struct hvp_change *change)
{
	char *system, *event;
	int err = -EINVAL;

	if (!covered) {
		hvp_change_refuse(change, "trace events are not covered on this kernel");
		return -EOPNOTSUPP;
	}
	system = kstrdup(glob, GFP_KERNEL);
	if (!system) {
		hvp_change_refuse(change, "no memory for the request");
		return -ENOMEM;
	}
	event = system;
	strsep(&event, ":");
	if (event)
		err = with_first(system, event, on, change);
	else
		hvp_change_refuse(change, "trace events are named SYSTEM:EVENT");
	kfree(system);
	return err;
}
