// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vCPU threads that do not come back to the gate: asleep in a system call of a device, held
 * by something that no signal ends, stopped by a debugger. A pause has them, or ends in its
 * bound with every vCPU running and says so; later ones work.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kvm_test.h"

#define STUCK_PORT 0x0e10
#define LATE	   60 /* s, by which what must happen has happened on any machine */

struct shared {
	uint32_t pfn; /* of an empty batch */
	atomic_uint arrived;
	atomic_uint failed, applied, other; /* batches, by what became of them */
	atomic_uint turns;
};

/* A device that does not answer. */
static struct {
	int pipe[2];
	atomic_bool locked; /* nothing but a change of this lets go */
	atomic_uint entered;
	atomic_uint left;
} stuck;

static uint32_t stuck_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return 0;
}

/* 1: until it is let go. 2: in a read() of what nobody writes. */
static void stuck_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		      uint32_t value)
{
	const struct timespec nap = {.tv_nsec = 5000000};
	char byte;

	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	atomic_fetch_add(&stuck.entered, 1);
	while (value == 1 && atomic_load(&stuck.locked))
		nanosleep(&nap, NULL);
	if (value == 2 && read(stuck.pipe[0], &byte, 1) < 0)
		assert_int_equal(errno, EINTR);
	atomic_fetch_add(&stuck.left, 1);
}

static const struct port_ops stuck_ops = {.in = stuck_in, .out = stuck_out};

GUEST_CODE static void ring_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	struct hvpoke_cmd *cmd = (struct hvpoke_cmd *)(uintptr_t)((uint64_t)s->pfn * 4096);
	unsigned int turns;

	(void)cpu;
	atomic_fetch_add(&s->arrived, 1);
	for (;;) {
		turns = atomic_load(&s->turns);
		/* Somebody else must get to run between two pauses, however busy the host is. */
		while (atomic_load(&s->turns) == turns)
			;
		guest_ring(s->pfn);
		if (cmd->status == HVPOKE_OK)
			atomic_fetch_add(&s->applied, 1);
		else if (cmd->status == HVPOKE_PAUSE_FAILED)
			atomic_fetch_add(&s->failed, 1);
		else
			atomic_fetch_add(&s->other, 1);
	}
}

GUEST_CODE static void spin_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	atomic_fetch_add(&s->arrived, 1);
	for (;;)
		atomic_fetch_add_explicit(&s->turns, 1, memory_order_relaxed);
}

GUEST_CODE static void get_stuck(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	atomic_fetch_add(&s->arrived, 1);
	guest_out32(STUCK_PORT, 1);
	for (;;)
		;
}

GUEST_CODE static void sleep_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	atomic_fetch_add(&s->arrived, 1);
	for (;;)
		guest_out32(STUCK_PORT, 2);
}

/* vCPU 0 does @first, vCPU 1 @second, vCPU 2 spins. */
static struct shared *set_up(struct guest *guest, guest_fn first, guest_fn second)
{
	struct shared *shared;

	atomic_store(&stuck.locked, true);
	atomic_store(&stuck.entered, 0);
	atomic_store(&stuck.left, 0);
	assert_int_equal(pipe(stuck.pipe), 0);
	guest_create(guest, 3, 16 << 20);
	assert_int_equal(bus_add(&guest->vm.bus, STUCK_PORT, 4, &stuck_ops, NULL), 0);
	shared = guest->shared;
	shared->pfn = guest_batch(guest, NULL, 0);
	guest_hello(guest, guest_alloc(guest, 4096), 4096);
	guest_enter(guest, 0, first);
	guest_enter(guest, 1, second);
	guest_enter(guest, 2, spin_on);
	return shared;
}

static void tear_down(struct guest *guest)
{
	guest_stop(guest);
	guest_destroy(guest);
	close(stuck.pipe[0]);
	close(stuck.pipe[1]);
}

/* On from here. */
static void wait_for_more(struct guest *guest, const atomic_uint *counter)
{
	guest_wait_for(guest, counter, atomic_load(counter) + 1, LATE);
}

static void pauses_work(struct guest *guest, struct shared *shared)
{
	for (int i = 0; i < 5; i++) {
		time_t start = time(NULL);

		/* With the bound that programs have, a busy machine may miss it. */
		while (vm_pause(&guest->vm))
			assert_true(time(NULL) - start < LATE);
		assert_int_equal(vm_resume(&guest->vm), 0);
		wait_for_more(guest, &shared->turns);
	}
}

/* Nothing gets it out: the pause fails, for a batch and for an operator, and everybody runs. */
static void test_stuck_thread_fails_the_pause(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	shared = set_up(&guest, ring_on, get_stuck);
	guest.vm.pause.timeout_ns = PAUSE_TIMEOUT_NS; /* tests are more patient */
	guest_start(&guest);
	guest_wait_for(&guest, &shared->arrived, 3, LATE);
	guest_wait_for(&guest, &stuck.entered, 1, LATE);
	/* The one that was under way when it got stuck may still have been applied. */
	guest_wait_for(&guest, &shared->failed, 1, LATE);
	wait_for_more(&guest, &shared->turns);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vm_pause(&guest.vm), -ETIMEDOUT);
		assert_false(vm_is_paused(&guest.vm));
		assert_int_equal(vm_resume(&guest.vm), -EALREADY);
		wait_for_more(&guest, &shared->failed);
		wait_for_more(&guest, &shared->turns);
	}
	atomic_store(&stuck.locked, false);
	wait_for_more(&guest, &shared->applied);
	pauses_work(&guest, shared);
	assert_int_equal(atomic_load(&shared->other), 0);
	tear_down(&guest);
}

/* Asleep in a system call, always again: it is woken for each pause, and for the end. */
static void test_sleeping_thread_is_stopped(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	shared = set_up(&guest, ring_on, sleep_on);
	guest_start(&guest);
	guest_wait_for(&guest, &shared->arrived, 3, LATE);
	guest_wait_for(&guest, &stuck.left, 20, LATE);
	pauses_work(&guest, shared);
	wait_for_more(&guest, &shared->applied);
	assert_int_equal(atomic_load(&shared->failed), 0);
	assert_int_equal(atomic_load(&shared->other), 0);
	tear_down(&guest);
}

/* The end comes while it is asleep, and no pause has woken it before. */
static void test_sleeping_thread_ends(void **state)
{
	struct shared *shared;
	struct guest guest;

	(void)state;
	NEED_KVM();
	shared = set_up(&guest, sleep_on, sleep_on);
	guest_start(&guest);
	guest_wait_for(&guest, &shared->arrived, 3, LATE);
	guest_wait_for(&guest, &stuck.entered, 2, LATE);
	tear_down(&guest);
	assert_int_equal(atomic_load(&stuck.left), 2);
}

/* In a process of its own, as a debugger is: stop @tid until something comes to read. */
static int hold_thread(pid_t tid, int say, int wait)
{
	char byte = 0;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return errno == EPERM ? 77 : 1;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, NULL, __WALL) != tid)
		return 2;
	if (write(say, &byte, 1) != 1 || read(wait, &byte, 1) != 1)
		return 3;
	/* With the signals that came meanwhile left to be delivered. */
	return ptrace(PTRACE_DETACH, tid, NULL, NULL) < 0 ? 4 : 0;
}

static void test_thread_under_a_debugger_fails_the_pause(void **state)
{
	int held[2], let_go[2], status;
	struct shared *shared;
	struct guest guest;
	pid_t debugger, tid;
	char byte = 0;

	(void)state;
	NEED_KVM();
	shared = set_up(&guest, spin_on, spin_on);
	guest.vm.pause.timeout_ns = PAUSE_TIMEOUT_NS;
	guest_start(&guest);
	guest_wait_for(&guest, &shared->arrived, 3, LATE);
	assert_int_equal(pipe(held), 0);
	assert_int_equal(pipe(let_go), 0);
	tid = atomic_load(&guest.vm.vcpus[1]->pause.tid);
	debugger = fork();
	if (!debugger) {
		close(held[0]);
		_exit(hold_thread(tid, held[1], let_go[0]));
	}
	close(held[1]);
	if (read(held[0], &byte, 1) == 1) {
		assert_int_equal(vm_pause(&guest.vm), -ETIMEDOUT);
		assert_false(vm_is_paused(&guest.vm));
		wait_for_more(&guest, &shared->turns);
		assert_int_equal(write(let_go[1], &byte, 1), 1);
	}
	assert_int_equal(waitpid(debugger, &status, 0), debugger);
	assert_true(WIFEXITED(status));
	pauses_work(&guest, shared);
	tear_down(&guest);
	close(held[0]);
	close(let_go[0]);
	close(let_go[1]);
	if (WEXITSTATUS(status) == 77)
		skip(); /* this machine does not let us trace */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stuck_thread_fails_the_pause),
		cmocka_unit_test(test_sleeping_thread_is_stopped),
		cmocka_unit_test(test_sleeping_thread_ends),
		cmocka_unit_test(test_thread_under_a_debugger_fails_the_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
