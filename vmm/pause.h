/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_PAUSE_H
#define VMM_PAUSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backend.h"

/*
 * Stopping all vCPUs. Knows nothing of KVM: a vCPU is a thread that says in
 * which state it is, and a byte and a signal that get it out of guest mode.
 */

/*
 * What a vCPU's thread is doing. "Still" states count as stopped: no guest
 * instruction runs, and the thread will pass the gate before one does. Only
 * the vCPU's own thread changes its state. Allowed:
 *
 *   NEW -> VMM                  the thread starts
 *   VMM -> GUEST -> VMM         KVM_RUN, then its exit is handled
 *   VMM -> STOPPED -> VMM       the gate was closed
 *   VMM -> RINGING -> VMM       the doorbell: pause_begin() .. pause_end()
 *   VMM -> ENDED                the thread ends
 */
enum vcpu_state {
	VCPU_NEW,     /* still: the thread has not started */
	VCPU_VMM,     /* handles an exit, or is about to enter the guest */
	VCPU_GUEST,   /* in KVM_RUN, or past the last check before it: must be kicked */
	VCPU_STOPPED, /* still: waits at the gate, every access completed */
	VCPU_RINGING, /* still: coordinates a pause, or waits for its turn to */
	VCPU_ENDED,   /* still: for good */
};

/* The pause engine's share of a vCPU. */
struct pause_cpu {
	atomic_int state;	 /* enum vcpu_state */
	atomic_int tid;		 /* kernel thread id, valid from VCPU_VMM on */
	uint8_t *immediate_exit; /* kvm_run's: not 0 makes KVM_RUN return at once */
	bool stood_still;	 /* own thread's: was RINGING; the run loop clears it */
};

/* The gate's bits. A vCPU enters the guest only while all are 0. */
#define PAUSE_STOP     (1u << 0) /* somebody pauses, or has paused, the VM */
#define PAUSE_OPERATOR (1u << 1) /* an operator waits to be the next to pause it */
#define PAUSE_EXIT     (1u << 2) /* the VM ends; never cleared */

struct pause {
	atomic_uint gate;		/* futex: PAUSE_* */
	atomic_uint sleepers;		/* threads that sleep, or are about to, on the gate */
	atomic_uint running;		/* futex: vCPUs that are not in a still state */
	atomic_bool coordinator_sleeps; /* the one that set PAUSE_STOP sleeps on running */
	pid_t pid;			/* of the process */
	unsigned int nr_cpus;
	struct pause_cpu **cpus; /* borrowed */
	bool may_spin;		 /* as many cores as vCPUs */
	uint64_t timeout_ns;	 /* for the last vCPU to stand still */
};

#define PAUSE_TIMEOUT_NS 1000000000ull

/* @cpus is borrowed for the life of @pause; each has its immediate_exit set. */
void pause_init(struct pause *pause, struct pause_cpu **cpus, unsigned int nr_cpus);

/*
 * Stop every vCPU. @self is the calling thread's own vCPU, which counts as
 * stopped (and, if another pause is going on, waits for its turn as a stopped
 * one); NULL for an operator, who goes before any vCPU that waits. Operators
 * come one at a time. Returns 0, -ETIMEDOUT (a vCPU did not stop in time, or, for an
 * operator, another's pause did not end in as much: all run again) or -ECANCELED (the VM ends). pause_end() takes the same @self.
 * @times may be NULL.
 */
int pause_begin(struct pause *pause, struct pause_cpu *self, struct hvp_pause_times *times);
void pause_end(struct pause *pause, struct pause_cpu *self, struct hvp_pause_times *times);

/*
 * Kick those that are not still, in the VMM as well: with the gate closed, whatever they sleep
 * in there (EINTR) is to come to an end. Any thread, any number of times.
 */
void pause_kick_again(struct pause *pause);

/* The VM ends: no vCPU enters the guest any more, those that wait are woken. Any thread. */
void pause_exit(struct pause *pause);

/* On a vCPU's own thread, in this order; see vcpu.c's run loop. */
void pause_cpu_start(struct pause *pause, struct pause_cpu *cpu);
/*
 * The last thing before KVM_RUN. True: the state is GUEST, enter. False: the
 * gate is closed; complete accesses, pause_cpu_stop(), pause_cpu_wait().
 */
bool pause_cpu_enter(struct pause *pause, struct pause_cpu *cpu);
/* The first thing after KVM_RUN. */
void pause_cpu_leave(struct pause_cpu *cpu);
/* From here on this vCPU counts as stopped. */
void pause_cpu_stop(struct pause *pause, struct pause_cpu *cpu);
/* Sleep until the gate opens (true), or the VM ends (false). Never counts as running meanwhile. */
bool pause_cpu_wait(struct pause *pause, struct pause_cpu *cpu);
void pause_cpu_end(struct pause *pause, struct pause_cpu *cpu);

/* The signal that gets a thread out of KVM_RUN, sent to the thread alone. */
#define PAUSE_SIGNAL SIGUSR1
/* Install the handler (process wide; may be called again). 0 or a negative errno. */
int pause_install_handler(void);

#endif /* VMM_PAUSE_H */
