// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a request cost the guest: the figures that the host and a person see.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/kprobes.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "hvpoke.h"

static DEFINE_PER_CPU(u64, int3_hits);

/* Function-call interrupts of all CPUs since boot: the CAL row of /proc/interrupts. */
u64 hvp_count_ipis(void)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += hvp_irq_calls(cpu);
	return sum;
}

/* INT3 hits of the agent's own kprobes, and of nothing else. */
u64 hvp_count_int3(void)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(int3_hits, cpu);
	return sum;
}

/* A kprobe that ftrace carries has no INT3. */
void hvp_int3_hit(const struct kprobe *kp)
{
	if (!kprobe_ftrace((struct kprobe *)kp))
		this_cpu_inc(int3_hits);
}

NOKPROBE_SYMBOL(hvp_int3_hit);

/*
 * From the post-handler. Unless the kernel emulates the instruction under the
 * probe, its copy has run and the INT3 behind that copy was the second hit
 * (arch/x86/kernel/kprobes/core.c). A probe with a post-handler is not boosted,
 * which would spare that one.
 */
void hvp_int3_step(const struct kprobe *kp)
{
	if (!kprobe_ftrace((struct kprobe *)kp) && !kp->ainsn.emulate_op)
		this_cpu_inc(int3_hits);
}

NOKPROBE_SYMBOL(hvp_int3_step);

static DEFINE_SPINLOCK(last_lock);
static struct hvp_result last;

/* For whoever sits in the guest; the host has it in struct hvpoke_complete. */
void hvp_result_report(const char *who, const struct hvp_result *result)
{
	pr_debug("request of the %s: %u sites, %u the kernel's own way, %u batches, %llu us, function-call interrupts %llu -> %llu, own INT3 hits %llu\n",
		 who, result->sites, result->native_sites, result->batches,
		 div_u64(result->ns, NSEC_PER_USEC), result->ipis_before, result->ipis_after,
		 result->int3);
	spin_lock(&last_lock);
	last = *result;
	spin_unlock(&last_lock);
}

static int last_get(char *buffer, const struct kernel_param *kp)
{
	struct hvp_result now;

	spin_lock(&last_lock);
	now = last;
	spin_unlock(&last_lock);
	return sysfs_emit(buffer,
			  "sites %u\nnative_sites %u\nbatches %u\nus %llu\nipis_before %llu\nipis_after %llu\nint3 %llu\n",
			  now.sites, now.native_sites, now.batches, div_u64(now.ns, NSEC_PER_USEC),
			  now.ipis_before, now.ipis_after, now.int3);
}

static int last_set(const char *value, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops last_ops = {
	.get = last_get,
	.set = last_set,
};

module_param_cb(last_request, &last_ops, NULL, 0444);
MODULE_PARM_DESC(last_request, "What the last request cost (read only)");
