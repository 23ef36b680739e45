// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stopping all vCPUs.
 *
 * One futex word, the gate, says whether a vCPU may enter the guest. Whoever
 * sets PAUSE_STOP coordinates; nobody else is woken for that. The coordinator
 * closes the gate, kicks the vCPUs that are in the guest, and waits until
 * none counts as running; then guest memory is its own until it opens the gate.
 *
 * Why no kick is lost (all accesses to gate and state are sequentially
 * consistent, so there is one order of them that everybody agrees on):
 *
 *	vCPU, pause_cpu_enter()		coordinator, close_gate()
 *	1  immediate_exit = 0		a  gate |= STOP
 *	2  state = GUEST		b  read state
 *	3  read gate			c  if GUEST: immediate_exit = 1,
 *	4  if it is 0: KVM_RUN		   send the signal
 *
 * If b does not see GUEST, 2 comes after b, so 3 comes after a and sees the
 * closed gate: the vCPU stops by itself. If b sees the GUEST of this entry, 1
 * came before c, so nothing wipes out c's immediate_exit: KVM_RUN, whenever
 * it starts, returns at once, and the signal gets a KVM_RUN that is under way
 * out of the guest, of HLT, and of the wait for INIT. If b sees the GUEST of an
 * earlier entry, the vCPU has yet to come by 3, which again comes after a.
 * A late signal costs one empty KVM_RUN.
 *
 * A thread in the VMM needs no kick: it comes by 3 by itself. Unless it sleeps there in a
 * system call that waits for somebody else, who may never come. So whoever is not still after
 * KICK_AGAIN_NS is kicked wherever it is, and again and again: a signal that comes before
 * the sleep is lost, the next one is not. What no signal ends (a page that does not come,
 * a debugger) makes the pause fail when its time is over.
 *
 * Guest memory: what the coordinator wrote happens before it opens the gate,
 * and a vCPU reads the open gate before it enters; what the guest wrote
 * happens before its vCPU leaves the count of running ones, which the
 * coordinator reads as 0 before it looks.
 */
#include "pause.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

/*
 * How long the coordinator spins before it sleeps. A vCPU that runs on another
 * core needs a few microseconds to stop, and sleeping and waking cost as much.
 */
#define SPIN_NS 20000

/* Longer than any exit takes to be handled, by far; on a busy machine it costs an EINTR. */
#define KICK_AGAIN_NS 10000000

static _Thread_local uint8_t *own_immediate_exit;

static void futex_wait(atomic_uint *word, unsigned int value, const struct timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void futex_wake(atomic_uint *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* Another thread, the signal handler and KVM look at this byte while it changes. */
static void set_immediate_exit(uint8_t *byte, uint8_t value)
{
	__atomic_store_n(byte, value, __ATOMIC_SEQ_CST);
}

static void on_signal(int signal)
{
	(void)signal;
	if (own_immediate_exit)
		set_immediate_exit(own_immediate_exit, 1);
}

int pause_install_handler(void)
{
	/* No SA_RESTART: a device's blocking call is to look at what is wanted of it. */
	const struct sigaction action = {.sa_handler = on_signal};

	return sigaction(PAUSE_SIGNAL, &action, NULL) ? -errno : 0;
}

void pause_init(struct pause *pause, struct pause_cpu **cpus, unsigned int nr_cpus)
{
	cpu_set_t cores;
	bool known = !sched_getaffinity(0, sizeof(cores), &cores);

	*pause = (struct pause){
		.pid = getpid(),
		.nr_cpus = nr_cpus,
		.cpus = cpus,
		/* Spinning with fewer cores would keep the vCPU that we wait for off its core. */
		.may_spin = known && (unsigned int)CPU_COUNT(&cores) >= nr_cpus,
		.timeout_ns = PAUSE_TIMEOUT_NS,
	};
}

/* Transitions: see pause.h. */
static void set_state(struct pause_cpu *cpu, enum vcpu_state from, enum vcpu_state to)
{
	assert(atomic_load_explicit(&cpu->state, memory_order_relaxed) == (int)from);
	atomic_store(&cpu->state, to);
}

static void count_running(struct pause *pause)
{
	atomic_fetch_add(&pause->running, 1);
}

static void count_still(struct pause *pause)
{
	/*
	 * The coordinator says that it sleeps, then reads the count and sleeps
	 * only if it is still that (futex); we change the count, then ask
	 * whether it sleeps. One of us sees the other.
	 */
	if (atomic_fetch_sub(&pause->running, 1) == 1 && atomic_load(&pause->coordinator_sleeps))
		futex_wake(&pause->running, 1);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};
}

/* Sleep while the gate is @seen, at most for @ns; 0: for ever. May return early. */
static void gate_sleep(struct pause *pause, unsigned int seen, uint64_t ns)
{
	const struct timespec most = timespec_of(ns);

	atomic_fetch_add(&pause->sleepers, 1);
	futex_wait(&pause->gate, seen, ns ? &most : NULL);
	atomic_fetch_sub(&pause->sleepers, 1);
}

/* The gate has changed. Saves the system call if everybody is still on the way to sleep. */
static void gate_wake(struct pause *pause)
{
	if (atomic_load(&pause->sleepers))
		futex_wake(&pause->gate, INT_MAX);
}

static void kick(struct pause *pause, struct pause_cpu *cpu)
{
	set_immediate_exit(cpu->immediate_exit, 1);
	syscall(SYS_tgkill, pause->pid, atomic_load(&cpu->tid), PAUSE_SIGNAL);
}

static void kick_all(struct pause *pause)
{
	for (unsigned int i = 0; i < pause->nr_cpus; i++)
		if (atomic_load(&pause->cpus[i]->state) == VCPU_GUEST)
			kick(pause, pause->cpus[i]);
}

void pause_kick_again(struct pause *pause)
{
	for (unsigned int i = 0; i < pause->nr_cpus; i++) {
		int state = atomic_load(&pause->cpus[i]->state);

		if (state == VCPU_GUEST || state == VCPU_VMM)
			kick(pause, pause->cpus[i]);
	}
}

/* The gate is taken by somebody who does not give it back. */
static int give_way(struct pause *pause)
{
	atomic_fetch_and(&pause->gate, ~PAUSE_OPERATOR);
	gate_wake(pause);
	return -ETIMEDOUT;
}

/*
 * Become the one that may stop the vCPUs. 0, -ECANCELED, or, for an operator, -ETIMEDOUT. A
 * vCPU waits as long as it takes: an operator's pause lasts as long as he likes, and meanwhile
 * the vCPU is in nobody's way.
 */
static int take_gate(struct pause *pause, bool is_operator)
{
	/* An operator goes first, so that a guest cannot keep it waiting by ringing on. */
	const unsigned int in_the_way = PAUSE_STOP | (is_operator ? 0 : PAUSE_OPERATOR);
	const uint64_t deadline = hvp_now_ns() + pause->timeout_ns;
	uint64_t now, left = 0;
	unsigned int gate;

	if (is_operator)
		atomic_fetch_or(&pause->gate, PAUSE_OPERATOR);
	gate = atomic_load(&pause->gate);
	while (!(gate & PAUSE_EXIT)) {
		if (gate & in_the_way) {
			now = hvp_now_ns();
			if (is_operator && now >= deadline)
				return give_way(pause);
			if (is_operator)
				left = deadline - now;
			gate_sleep(pause, gate, left);
			gate = atomic_load(&pause->gate);
		} else if (atomic_compare_exchange_weak(&pause->gate, &gate,
							(gate & ~PAUSE_OPERATOR) | PAUSE_STOP)) {
			return 0;
		}
	}
	return -ECANCELED;
}

static void open_gate(struct pause *pause)
{
	atomic_fetch_and(&pause->gate, ~PAUSE_STOP);
	gate_wake(pause);
}

/* Wait until no vCPU runs. 0 or -ETIMEDOUT. */
static int wait_until_still(struct pause *pause, uint64_t start)
{
	const uint64_t deadline = start + pause->timeout_ns;
	uint64_t now, kick_at = start + KICK_AGAIN_NS;
	unsigned int running;
	int ret = 0;

	if (pause->may_spin) {
		do {
			if (!atomic_load(&pause->running))
				return 0;
			__builtin_ia32_pause();
		} while (hvp_now_ns() < start + SPIN_NS);
	}
	atomic_store(&pause->coordinator_sleeps, true);
	while ((running = atomic_load(&pause->running))) {
		struct timespec left;

		now = hvp_now_ns();
		if (now >= deadline) {
			ret = -ETIMEDOUT;
			break;
		}
		if (now >= kick_at) {
			pause_kick_again(pause);
			kick_at = now + KICK_AGAIN_NS;
		}
		left = timespec_of((kick_at < deadline ? kick_at : deadline) - now);
		futex_wait(&pause->running, running, &left);
	}
	atomic_store(&pause->coordinator_sleeps, false);
	return ret;
}

int pause_begin(struct pause *pause, struct pause_cpu *self, struct hvp_pause_times *times)
{
	uint64_t start;
	int ret;

	if (self) {
		set_state(self, VCPU_VMM, VCPU_RINGING);
		self->stood_still = true;
		count_still(pause);
	}
	ret = take_gate(pause, !self);
	if (!ret) {
		start = hvp_now_ns();
		kick_all(pause);
		ret = wait_until_still(pause, start);
		if (ret)
			open_gate(pause);
		if (times)
			times->kick_ns = hvp_now_ns() - start;
	}
	if (ret && self) {
		count_running(pause);
		set_state(self, VCPU_RINGING, VCPU_VMM);
	}
	return ret;
}

void pause_end(struct pause *pause, struct pause_cpu *self, struct hvp_pause_times *times)
{
	uint64_t start = hvp_now_ns();

	/* While the gate is still ours: the next coordinator must not take us for stopped. */
	if (self) {
		count_running(pause);
		set_state(self, VCPU_RINGING, VCPU_VMM);
	}
	open_gate(pause);
	if (times)
		times->wake_ns = hvp_now_ns() - start;
}

void pause_exit(struct pause *pause)
{
	atomic_fetch_or(&pause->gate, PAUSE_EXIT);
	gate_wake(pause);
	kick_all(pause);
}

void pause_cpu_start(struct pause *pause, struct pause_cpu *cpu)
{
	own_immediate_exit = cpu->immediate_exit;
	atomic_store(&cpu->tid, (int)syscall(SYS_gettid));
	count_running(pause);
	set_state(cpu, VCPU_NEW, VCPU_VMM);
}

bool pause_cpu_enter(struct pause *pause, struct pause_cpu *cpu)
{
	set_immediate_exit(cpu->immediate_exit, 0);
	set_state(cpu, VCPU_VMM, VCPU_GUEST);
	if (!atomic_load(&pause->gate))
		return true;
	set_state(cpu, VCPU_GUEST, VCPU_VMM);
	return false;
}

void pause_cpu_leave(struct pause_cpu *cpu)
{
	set_state(cpu, VCPU_GUEST, VCPU_VMM);
}

void pause_cpu_stop(struct pause *pause, struct pause_cpu *cpu)
{
	set_state(cpu, VCPU_VMM, VCPU_STOPPED);
	count_still(pause);
}

bool pause_cpu_wait(struct pause *pause, struct pause_cpu *cpu)
{
	unsigned int gate;

	while ((gate = atomic_load(&pause->gate)) && !(gate & PAUSE_EXIT))
		gate_sleep(pause, gate, 0);
	/*
	 * If the gate closes again before this counts, the new coordinator may
	 * find nobody running. Rightly so: the gate is read once more, by
	 * pause_cpu_enter(), before the guest runs.
	 */
	count_running(pause);
	set_state(cpu, VCPU_STOPPED, VCPU_VMM);
	return !gate;
}

void pause_cpu_end(struct pause *pause, struct pause_cpu *cpu)
{
	set_state(cpu, VCPU_VMM, VCPU_ENDED);
	count_still(pause);
	own_immediate_exit = NULL;
}
