// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pause engine without KVM: threads that stand in for vCPUs, with a KVM_RUN
 * that blocks or spins until it is kicked. Run under TSan: what a coordinator
 * may touch while the VM stands is plain memory here, which the vCPUs use in
 * guest mode, so that any hole in the pause is a data race.
 *
 * The engine is compiled in here with a delay now and then before each of its
 * atomic accesses: the windows in which a kick could be lost are a few
 * nanoseconds wide otherwise, and no test would ever hit them.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pause.h"

static void jitter(void);

#undef atomic_load
#undef atomic_store
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_fetch_or
#undef atomic_fetch_and
#define atomic_load(word) (jitter(), atomic_load_explicit(word, memory_order_seq_cst))
#define atomic_store(word, value) \
	(jitter(), atomic_store_explicit(word, value, memory_order_seq_cst))
#define atomic_fetch_add(word, value) \
	(jitter(), atomic_fetch_add_explicit(word, value, memory_order_seq_cst))
#define atomic_fetch_sub(word, value) \
	(jitter(), atomic_fetch_sub_explicit(word, value, memory_order_seq_cst))
#define atomic_fetch_or(word, value) \
	(jitter(), atomic_fetch_or_explicit(word, value, memory_order_seq_cst))
#define atomic_fetch_and(word, value) \
	(jitter(), atomic_fetch_and_explicit(word, value, memory_order_seq_cst))

#include "../../vmm/pause.c" /* NOLINT(bugprone-suspicious-include): see above */

/* One time in 16 up to 60 us (and what the kernel adds), one in 16 the core to somebody else. */
static void jitter(void)
{
	static _Thread_local uint32_t x;
	struct timespec nap = {0};

	if (!x)
		x = (uint32_t)syscall(SYS_gettid) * 2654435761u | 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	if (x % 16 == 0) {
		nap.tv_nsec = x / 16 % 60000;
		nanosleep(&nap, NULL);
	} else if (x % 16 == 1) {
		sched_yield();
	}
}

#define MAX_CPUS 8
#define WORDS	 16

enum behaviour { HALTS, SPINS, RINGS, STUCK, SLEEPS };

struct fake {
	struct pause_cpu cpu;
	struct machine *machine;
	enum behaviour behaviour;
	uint8_t immediate_exit;
	bool half_done;	   /* an access that the next KVM_RUN completes; plain on purpose */
	atomic_uint runs;  /* KVM_RUNs so far */
	atomic_uint rings; /* pauses that this vCPU coordinated */
	pthread_t thread;
};

struct machine {
	struct pause pause;
	struct fake fake[MAX_CPUS];
	struct pause_cpu *cpus[MAX_CPUS];
	unsigned int nr;
	/* "Guest memory": written by who paused the VM, read by vCPUs in guest mode. All words equal. */
	uint64_t memory[WORDS];
	atomic_bool release;  /* lets STUCK vCPUs go on */
	atomic_uint in_pause; /* coordinators between begin and end: never 2 */
};

static void check_memory(const struct machine *machine)
{
	for (unsigned int i = 1; i < WORDS; i++)
		if (machine->memory[i] != machine->memory[0])
			abort();
}

/* As a batch does: everything in sight, plainly. */
static void write_memory(struct machine *machine)
{
	if (atomic_fetch_add(&machine->in_pause, 1))
		abort();
	for (unsigned int i = 0; i < machine->nr; i++)
		if (machine->fake[i].behaviour != RINGS && machine->fake[i].half_done)
			abort(); /* CASES 2 (the access of one that rings is the ringing) */
	check_memory(machine);
	for (unsigned int i = 0; i < WORDS; i++)
		machine->memory[i]++;
	atomic_fetch_sub(&machine->in_pause, 1);
}

/* In the guest; a signal brings it out, whatever its handler does. */
static void spin_until_kicked(struct fake *fake)
{
	sigset_t pending;

	do {
		check_memory(fake->machine);
		sigpending(&pending);
	} while (!sigismember(&pending, PAUSE_SIGNAL));
}

/*
 * KVM_RUN as far as the engine can tell: returns when immediate_exit is set or
 * a signal comes, whenever that was since the thread looked at the gate. (The
 * kernel looks for signals with none able to slip in before it sleeps; ppoll()
 * gives us the same.)
 */
static void fake_kvm_run(struct fake *fake)
{
	const struct timespec tick = {.tv_nsec = 200000};
	sigset_t block, before;

	sigemptyset(&block);
	sigaddset(&block, PAUSE_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &block, &before);
	atomic_fetch_add(&fake->runs, 1);
	fake->half_done = false;
	check_memory(fake->machine);
	if (!__atomic_load_n(&fake->immediate_exit, __ATOMIC_SEQ_CST)) {
		if (fake->behaviour == HALTS)
			ppoll(NULL, 0, NULL, &before);
		else if (fake->behaviour == SPINS)
			spin_until_kicked(fake);
		else
			ppoll(NULL, 0, &tick, &before);
	}
	check_memory(fake->machine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void fake_handle_exit(struct fake *fake)
{
	struct machine *machine = fake->machine;
	struct hvp_pause_times times = {0};

	fake->half_done = true;
	if (fake->behaviour == STUCK) {
		while (!atomic_load(&machine->release))
			sched_yield();
	} else if (fake->behaviour == SLEEPS) {
		/* Ended by a signal that comes while it lasts, and by nothing else. */
		poll(NULL, 0, -1);
		atomic_fetch_add(&fake->rings, 1);
	} else if (fake->behaviour == RINGS) {
		if (!pause_begin(&machine->pause, &fake->cpu, &times)) {
			write_memory(machine);
			pause_end(&machine->pause, &fake->cpu, &times);
			atomic_fetch_add(&fake->rings, 1);
		}
	}
}

/* The run loop of vmm/vcpu.c, as far as it is the engine's. */
static void *fake_thread(void *arg)
{
	struct fake *fake = arg;
	struct pause *pause = &fake->machine->pause;

	pause_cpu_start(pause, &fake->cpu);
	for (;;) {
		if (pause_cpu_enter(pause, &fake->cpu)) {
			jitter();
			fake_kvm_run(fake);
			pause_cpu_leave(&fake->cpu);
			fake_handle_exit(fake);
			continue;
		}
		if (fake->half_done)
			fake->half_done = false;
		pause_cpu_stop(pause, &fake->cpu);
		if (!pause_cpu_wait(pause, &fake->cpu))
			break;
	}
	pause_cpu_end(pause, &fake->cpu);
	return NULL;
}

static struct machine *machine_new(unsigned int nr, const enum behaviour *behaviour)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	assert_non_null(machine);
	assert_int_equal(pause_install_handler(), 0);
	machine->nr = nr;
	for (unsigned int i = 0; i < nr; i++) {
		machine->fake[i].machine = machine;
		machine->fake[i].behaviour = behaviour[i];
		machine->fake[i].cpu.immediate_exit = &machine->fake[i].immediate_exit;
		machine->cpus[i] = &machine->fake[i].cpu;
	}
	pause_init(&machine->pause, machine->cpus, nr);
	/* Generous: a sanitizer on a loaded machine is slow, and only a lost kick takes forever. */
	machine->pause.timeout_ns = 20 * PAUSE_TIMEOUT_NS;
	return machine;
}

static void machine_start(struct machine *machine)
{
	for (unsigned int i = 0; i < machine->nr; i++)
		assert_int_equal(pthread_create(&machine->fake[i].thread, NULL, fake_thread,
						&machine->fake[i]),
				 0);
}

static void machine_end(struct machine *machine)
{
	pause_exit(&machine->pause);
	for (unsigned int i = 0; i < machine->nr; i++) {
		pthread_join(machine->fake[i].thread, NULL);
		assert_int_equal(machine->fake[i].cpu.state, VCPU_ENDED);
	}
	assert_int_equal(machine->pause.running, 0);
	free(machine);
}

static void nap_us(unsigned int us)
{
	const struct timespec nap = {.tv_nsec = us * 1000l};

	nanosleep(&nap, NULL);
}

static void operator_pauses(struct machine *machine, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		assert_int_equal(pause_begin(&machine->pause, NULL, NULL), 0);
		write_memory(machine);
		pause_end(&machine->pause, NULL, NULL);
		if (i % 4 == 0)
			nap_us(i % 200);
	}
}

/* CASES 1: kicks that come at any point of the way into KVM_RUN, where a halted vCPU stays. */
static void test_halting_vcpus_stop_every_time(void **state)
{
	const enum behaviour behaviour[] = {HALTS, HALTS, HALTS};
	struct machine *machine = machine_new(3, behaviour);

	(void)state;
	machine_start(machine);
	operator_pauses(machine, 5000);
	machine_end(machine);
}

static void test_more_vcpus_than_cores(void **state)
{
	const enum behaviour behaviour[] = {SPINS, HALTS, SPINS, SPINS, HALTS, SPINS, SPINS, SPINS};
	struct machine *machine = machine_new(8, behaviour);

	(void)state;
	machine->pause.may_spin = false;
	machine_start(machine);
	operator_pauses(machine, 300);
	machine_end(machine);
}

/* vCPUs that ring at the same time take turns, and an operator gets in between. */
static void test_ringing_vcpus_and_an_operator(void **state)
{
	const enum behaviour behaviour[] = {RINGS, RINGS, HALTS, RINGS};
	struct machine *machine = machine_new(4, behaviour);

	(void)state;
	machine_start(machine);
	operator_pauses(machine, 2000);
	while (!machine->fake[0].rings || !machine->fake[1].rings || !machine->fake[3].rings)
		nap_us(100);
	machine_end(machine);
}

/* A batch that comes while an operator holds the VM waits, and goes on after the resume. */
static void test_batch_waits_for_the_operator(void **state)
{
	const enum behaviour behaviour[] = {RINGS, HALTS};
	struct machine *machine = machine_new(2, behaviour);
	unsigned int rings;

	(void)state;
	machine_start(machine);
	while (machine->fake[0].rings < 10)
		nap_us(100);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(pause_begin(&machine->pause, NULL, NULL), 0);
		rings = machine->fake[0].rings;
		nap_us(1000);
		assert_int_equal(machine->fake[0].rings, rings);
		pause_end(&machine->pause, NULL, NULL);
		while (machine->fake[0].rings == rings)
			nap_us(100);
	}
	machine_end(machine);
}

/* A vCPU's thread that does not come back from a device: undone, and everybody goes on. */
static void test_stuck_vcpu_times_out(void **state)
{
	const enum behaviour behaviour[] = {HALTS, STUCK, SPINS};
	struct machine *machine = machine_new(3, behaviour);
	unsigned int runs;

	(void)state;
	machine->pause.timeout_ns = 20000000;
	machine_start(machine);
	/* The tick of its KVM_RUN brings it into the device. */
	while (!machine->fake[1].runs)
		nap_us(100);
	nap_us(50000);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(pause_begin(&machine->pause, NULL, NULL), -ETIMEDOUT);
		assert_int_equal(machine->pause.gate, 0);
		runs = machine->fake[0].runs;
		while (machine->fake[0].runs == runs && machine->fake[0].cpu.state != VCPU_GUEST)
			nap_us(100);
	}
	machine->pause.timeout_ns = 20 * PAUSE_TIMEOUT_NS;
	atomic_store(&machine->release, true);
	operator_pauses(machine, 10);
	machine_end(machine);
}

/* One that sleeps in a system call of the VMM is got out of it. */
static void test_sleeping_vcpu_is_woken(void **state)
{
	const enum behaviour behaviour[] = {HALTS, SLEEPS, RINGS};
	struct machine *machine = machine_new(3, behaviour);
	unsigned int slept;

	(void)state;
	machine_start(machine);
	for (unsigned int i = 0; i < 50; i++) {
		slept = atomic_load(&machine->fake[1].rings);
		operator_pauses(machine, 1);
		/* A pause may find it in the guest: on to one that does not. */
		while (atomic_load(&machine->fake[1].rings) == slept)
			operator_pauses(machine, 1);
	}
	pause_exit(&machine->pause);
	while (atomic_load(&machine->fake[1].cpu.state) != VCPU_ENDED) {
		pause_kick_again(&machine->pause);
		nap_us(1000);
	}
	machine_end(machine);
}

static void *pause_once(void *arg)
{
	struct machine *machine = arg;
	int err = pause_begin(&machine->pause, NULL, NULL);

	if (!err)
		pause_end(&machine->pause, NULL, NULL);
	return (void *)(intptr_t)err;
}

/* Somebody's pause does not end: the operator is told so, and leaves nothing behind. */
static void test_operator_does_not_wait_for_ever(void **state)
{
	const enum behaviour behaviour[] = {SPINS, HALTS};
	struct machine *machine = machine_new(2, behaviour);
	struct timespec deadline;
	pthread_t thread;
	void *err;

	(void)state;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 60;
	machine_start(machine);
	assert_int_equal(pause_begin(&machine->pause, NULL, NULL), 0);
	machine->pause.timeout_ns = 20000000;
	assert_int_equal(pthread_create(&thread, NULL, pause_once, machine), 0);
	assert_int_equal(pthread_timedjoin_np(thread, &err, &deadline), 0);
	assert_int_equal((intptr_t)err, -ETIMEDOUT);
	assert_int_equal(atomic_load(&machine->pause.gate), PAUSE_STOP);
	machine->pause.timeout_ns = 20 * PAUSE_TIMEOUT_NS;
	pause_end(&machine->pause, NULL, NULL);
	operator_pauses(machine, 10);
	machine_end(machine);
}

static void test_vcpus_that_have_not_started_are_still(void **state)
{
	const enum behaviour behaviour[] = {HALTS, HALTS};
	struct machine *machine = machine_new(2, behaviour);
	struct hvp_pause_times times = {0};

	(void)state;
	assert_int_equal(pause_begin(&machine->pause, NULL, &times), 0);
	assert_in_range(times.kick_ns, 1, PAUSE_TIMEOUT_NS);
	/* Started while the VM is paused: they must not enter. */
	machine_start(machine);
	nap_us(20000);
	assert_int_equal(machine->fake[0].runs, 0);
	assert_int_equal(machine->fake[1].runs, 0);
	pause_end(&machine->pause, NULL, &times);
	assert_in_range(times.wake_ns, 1, PAUSE_TIMEOUT_NS);
	while (!machine->fake[0].runs || !machine->fake[1].runs)
		nap_us(100);
	machine_end(machine);
}

struct operator_thread {
	struct machine *machine;
	pthread_t thread;
};

static void *operate(void *arg)
{
	struct operator_thread *op = arg;
	int err;

	while (!(err = pause_begin(&op->machine->pause, NULL, NULL))) {
		write_memory(op->machine);
		pause_end(&op->machine->pause, NULL, NULL);
	}
	return (void *)(intptr_t)err;
}

/* The end may come at any time: in a batch, in an operator's pause, while both wait. */
static void test_exit_during_pauses(void **state)
{
	const enum behaviour behaviour[] = {RINGS, RINGS, HALTS, SPINS};

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		struct machine *machine = machine_new(4, behaviour);
		struct operator_thread op = {.machine = machine};
		void *err;

		machine_start(machine);
		assert_int_equal(pthread_create(&op.thread, NULL, operate, &op), 0);
		nap_us(i * 5);
		pause_exit(&machine->pause);
		assert_int_equal(pthread_join(op.thread, &err), 0);
		assert_int_equal((intptr_t)err, -ECANCELED);
		machine_end(machine);
	}
}

/* An operator who paused the VM and never resumes it must not keep it from ending. */
static void test_exit_while_paused(void **state)
{
	const enum behaviour behaviour[] = {RINGS, HALTS, RINGS};
	struct machine *machine = machine_new(3, behaviour);

	(void)state;
	machine_start(machine);
	while (machine->fake[0].rings < 3)
		nap_us(100);
	assert_int_equal(pause_begin(&machine->pause, NULL, NULL), 0);
	machine_end(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_halting_vcpus_stop_every_time),
		cmocka_unit_test(test_more_vcpus_than_cores),
		cmocka_unit_test(test_ringing_vcpus_and_an_operator),
		cmocka_unit_test(test_batch_waits_for_the_operator),
		cmocka_unit_test(test_stuck_vcpu_times_out),
		cmocka_unit_test(test_sleeping_vcpu_is_woken),
		cmocka_unit_test(test_operator_does_not_wait_for_ever),
		cmocka_unit_test(test_vcpus_that_have_not_started_are_still),
		cmocka_unit_test(test_exit_during_pauses),
		cmocka_unit_test(test_exit_while_paused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
