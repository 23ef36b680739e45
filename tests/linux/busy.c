// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke_busy - load for a small test guest, built in.
 *
 *   hvpoke_busy.spin=1  one user-mode task on each CPU that never stops
 *   hvpoke_busy.tick=1  a pr_debug() once a second, to see a site at work; and
 *                       requests of the guest's own, see busy_ask(); and a
 *                       static key that the kernel flips by itself, busy_flip()
 *   hvpoke_busy.hot=N   a kernel thread on each of the last N CPUs that runs through
 *                       eight sites all the time, so that patching with INT3 is met;
 *                       with more than one, tick prints how often they did
 *
 * It is a driver since a program in such a guest can do nothing: where KVM's
 * back end emulates the guest's kernel mode, system calls do not work.
 */
#include <linux/cpumask.h>
#include <linux/dynamic_debug.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/umh.h>
#include <linux/workqueue.h>

static bool spin;
module_param(spin, bool, 0444);
MODULE_PARM_DESC(spin, "keep every CPU busy in user mode");

static bool tick;
module_param(tick, bool, 0444);
MODULE_PARM_DESC(tick, "print a debug message once a second");

static unsigned int hot;
module_param(hot, uint, 0444);
MODULE_PARM_DESC(hot, "run through sites all the time, on so many CPUs");

static void busy_start(struct work_struct *work);
static DECLARE_DELAYED_WORK(busy_start_work, busy_start);
static void busy_tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(busy_tick_work, busy_tick);

/*
 * The spinners are as nice as can be, so that whatever the kernel has to do
 * (the agent's requests) gets nearly all of a CPU that it shares with one.
 */
static void busy_place(struct task_struct *task, unsigned int cpu)
{
	set_user_nice(task, MAX_NICE);
	if (set_cpus_allowed_ptr(task, cpumask_of(cpu)))
		pr_warn("hvpoke_busy: cannot bind a task to CPU %u\n", cpu);
}

/* Runs in the new process, before it becomes the spinner. */
static int busy_child(struct subprocess_info *info, struct cred *new)
{
	busy_place(current, (unsigned long)info->data);
	return 0;
}

static int busy_spin_on(unsigned int cpu)
{
	static char path[] = "/init";
	static char *argv[] = {path, NULL};
	static char *envp[] = {NULL};
	struct subprocess_info *info;

	info = call_usermodehelper_setup(path, argv, envp, GFP_KERNEL, busy_child, NULL,
					 (void *)(unsigned long)cpu);
	if (!info)
		return -ENOMEM;
	return call_usermodehelper_exec(info, UMH_WAIT_EXEC);
}

/* Sites of dynamic debug without a message behind them. */
#define BUSY_SITE(name)                                                         \
	do {                                                                    \
		DEFINE_DYNAMIC_DEBUG_METADATA(name, "hvpoke_busy: hot " #name); \
		if (DYNAMIC_DEBUG_BRANCH(name))                                 \
			WRITE_ONCE(busy_seen, busy_seen + 1);                   \
	} while (0)

static unsigned long busy_seen;
static DEFINE_PER_CPU(unsigned long, busy_rounds);

static int busy_hot(void *unused)
{
	int i;

	set_user_nice(current, MAX_NICE);
	for (;;) {
		for (i = 0; i < 100; i++) {
			BUSY_SITE(a);
			BUSY_SITE(b);
			BUSY_SITE(c);
			BUSY_SITE(d);
			BUSY_SITE(e);
			BUSY_SITE(f);
			BUSY_SITE(g);
			BUSY_SITE(h);
		}
		this_cpu_add(busy_rounds, i);
		cond_resched();
	}
	return 0;
}

static void busy_count_hot(void)
{
	unsigned long rounds = 0;
	unsigned int cpu;

	for_each_online_cpu (cpu)
		rounds += per_cpu(busy_rounds, cpu);
	pr_info("hvpoke_busy: %lu rounds at %llu us\n", rounds,
		div_u64(ktime_get_ns(), NSEC_PER_USEC));
}

static void busy_start_hot(unsigned int cpu)
{
	struct task_struct *task;

	task = kthread_create(busy_hot, NULL, "hvpoke_hot");
	if (IS_ERR(task)) {
		pr_warn("hvpoke_busy: no hot thread: error %ld\n", PTR_ERR(task));
		return;
	}
	kthread_bind(task, cpu);
	wake_up_process(task);
}

static void busy_start(struct work_struct *work)
{
	struct task_struct *init;
	unsigned int cpu, first = cpumask_first(cpu_online_mask);
	int error;

	/* PID 1 spins as well, but not before the boot is over. */
	if (system_state < SYSTEM_RUNNING) {
		schedule_delayed_work(&busy_start_work, HZ / 10);
		return;
	}

	init = get_pid_task(find_vpid(1), PIDTYPE_PID);
	if (init) {
		busy_place(init, first);
		put_task_struct(init);
	}
	for_each_online_cpu (cpu) {
		if (cpu == first)
			continue;
		error = busy_spin_on(cpu);
		if (error)
			pr_warn("hvpoke_busy: no spinner on CPU %u: error %d\n", cpu, error);
	}
	for_each_online_cpu (cpu)
		if (cpu + hot >= num_online_cpus())
			busy_start_hot(cpu);
	pr_info("hvpoke_busy: %u CPUs busy\n", num_online_cpus());
}

/*
 * A request of the guest's own, by the function into which a write to the
 * control file comes. The host asks for it by the flag t of the descriptor below,
 * which requests for p leave alone, and which this one takes off again: it is one
 * write of two queries.
 */
static void busy_ask(void)
{
	static const char write[] = "module usbcore +p; func busy_ask -t";
	DEFINE_DYNAMIC_DEBUG_METADATA(asked, "hvpoke_busy: ask");
	int (*exec_queries)(char *query, const char *modname);
	char query[sizeof(write)];

	if (!(asked.flags & _DPRINTK_FLAGS_INCL_TID))
		return;
	exec_queries = (void *)kallsyms_lookup_name("ddebug_exec_queries");
	if (!exec_queries) {
		pr_warn("hvpoke_busy: ddebug_exec_queries() is not there\n");
		return;
	}
	memcpy(query, write, sizeof(query));
	pr_info("hvpoke_busy: asked, %d descriptors matched\n", exec_queries(query, NULL));
}

static DEFINE_STATIC_KEY_FALSE(busy_key);

/* Twenty flips a second, as nobody has asked for, while the descriptor below has the flag t. */
static void busy_flip(void)
{
	DEFINE_DYNAMIC_DEBUG_METADATA(flips, "hvpoke_busy: flip");
	unsigned int i, seen = 0;

	if (!(flips.flags & _DPRINTK_FLAGS_INCL_TID))
		return;
	for (i = 0; i < 10; i++) {
		static_branch_enable(&busy_key);
		if (static_branch_unlikely(&busy_key))
			seen++;
		static_branch_disable(&busy_key);
		if (static_branch_unlikely(&busy_key))
			seen--;
	}
	if (seen != 10)
		pr_warn("hvpoke_busy: a key flipped 10 times was seen %u times\n", seen);
}

static void busy_tick(struct work_struct *work)
{
	static unsigned long ticks;

	busy_ask();
	busy_flip();
	if (hot > 1)
		busy_count_hot();
	pr_debug("hvpoke_busy: tick %lu\n", ++ticks);
	schedule_delayed_work(&busy_tick_work, HZ);
}

static int __init busy_init(void)
{
	if (spin)
		schedule_delayed_work(&busy_start_work, HZ / 10);
	if (tick)
		schedule_delayed_work(&busy_tick_work, HZ);
	return 0;
}
late_initcall(busy_init);
