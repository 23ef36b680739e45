// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of tracefs by which many trace events are switched at once: events/enable
 * and those of a subsystem and of an event, and set_event; and current_tracer, since a
 * tracer wants some events of the scheduler. Who writes one begins a session, and what
 * it patches becomes one batch (tracing.c), ftrace's own stages apart, which build on
 * one another.
 *
 * The kernel's tracing is built so that ftrace does not trace it, so these are kprobes with
 * an INT3, as on ddebug_exec_queries() (hooks.c). The functions are reached through tables of
 * file operations only, so they are there under their names, and called by the ABI.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/pagemap.h>

#include "hvpoke.h"

typedef ssize_t write_fn(struct file *file, const char __user *buf, size_t len, loff_t *pos);

enum { EVENT, SYSTEM, SET_EVENT, SET_TRACER, NR_FILES };

static struct kprobe probes[NR_FILES];
static write_fn *originals[NR_FILES]; /* these stay: a task may be on its way there */
static bool diverted[NR_FILES];

static ssize_t divert(int which, struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct hvp_result result;
	ssize_t ret;

	/* It is read inside of the session: a page that somebody else brings is waited for here. */
	fault_in_readable(buf, min_t(size_t, len, PAGE_SIZE));
	hvp_session_begin(NULL, true);
	hvp_session_trace(true);
	ret = originals[which](file, buf, len, pos);
	hvp_session_end(&result);
	hvp_result_report("guest", &result);
	/* hvp_hooks_exit() says why nothing that sleeps may follow. */
	atomic_dec(&hvp_diverted);
	return ret;
}

static ssize_t event_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return divert(EVENT, file, buf, len, pos);
}

static ssize_t system_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return divert(SYSTEM, file, buf, len, pos);
}

static ssize_t set_event_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return divert(SET_EVENT, file, buf, len, pos);
}

static ssize_t set_tracer_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return divert(SET_TRACER, file, buf, len, pos);
}

static const struct {
	const char *name;
	write_fn *to;
} files[NR_FILES] = {
	[EVENT] = { "event_enable_write", event_write },
	[SYSTEM] = { "system_enable_write", system_write },
	[SET_EVENT] = { "ftrace_event_write", set_event_write },
	[SET_TRACER] = { "tracing_set_trace_write", set_tracer_write },
};

/* A request that begins inside of another one is part of it. */
static int write_pre(struct kprobe *kp, struct pt_regs *regs)
{
	if (hvp_session_owned()) {
		hvp_int3_hit(kp);
		return 0;
	}
	return hvp_hooks_divert(kp, regs, (unsigned long)files[kp - probes].to);
}

NOKPROBE_SYMBOL(write_pre);

void hvp_event_files_divert(void)
{
	int i, err;

	for (i = 0; i < NR_FILES; i++) {
		WRITE_ONCE(originals[i], hvp_symbols_find(files[i].name));
		probes[i] = (struct kprobe){
			.addr = (kprobe_opcode_t *)originals[i],
			.pre_handler = write_pre,
			.post_handler = hvp_hooks_passed,
		};
		err = probes[i].addr ? register_kprobe(&probes[i]) : -ENOENT;
		diverted[i] = !err;
		if (err)
			pr_warn("cannot divert %s (error %d); not covered: one pause for many trace events\n",
				files[i].name, err);
	}
}

void hvp_event_files_release(void)
{
	int i;

	for (i = 0; i < NR_FILES; i++)
		if (diverted[i])
			unregister_kprobe(&probes[i]);
	memset(diverted, 0, sizeof(diverted));
}

int hvp_event_files_probes(u64 *gva)
{
	int i, nr = 0;

	for (i = 0; i < NR_FILES; i++)
		if (diverted[i])
			gva[nr++] = (unsigned long)probes[i].addr;
	return nr;
}
