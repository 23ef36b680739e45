/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_VM_H
#define HVPOKED_VM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "audit.h"
#include "guest.h"
#include "hvpoked_sandbox.h"
#include "loop.h"
#include "qmp.h"
#include "record.h"
#include "runtime.h"
#include "service.h"
#include "shm.h"
#include "guest_text.h"

/*
 * One guest of QEMU's. Everything of it happens on a thread of its own, one thing after
 * the other, so that a QEMU that does not answer holds up nobody else's guest:
 *
 *   vm.c		the thread, its life, what it waits for
 *   vm_monitor.c	QEMU's monitor: what it runs on, its state, stop and cont
 *   vm_doorbell.c	the agent's commands; the engine's back end
 *   vm_repair.c		what a hvpoked that was killed in the middle of a batch has left
 *   vm_control.c	the control socket
 *
 * Only @inbox is for other threads.
 */
struct vm {
	struct hvp_service service; /* first: the control methods' context */

	pid_t pid;
	int pidfd;
	uint16_t peer_id;
	char name[HVP_NAME_MAX + 1];
	char log_name[HVP_NAME_MAX + 32]; /* "demo (QEMU 4711)" */
	const char *state_dir;

	/* ivshmem */
	atomic_int conn; /* -1: the connection was a former hvpoked's; the server looks too */
	struct shm shm;
	int doorbell, irq; /* eventfds: the guest rings us, we ring the guest */
	struct record *record;
	int record_file; /* the journal follows it */

	/* The monitor. */
	struct qmp qmp;
	bool ready;	/* it answers, and the guest was told that we are here */
	bool running;	/* as the monitor says, our own pauses apart */
	bool own;	/* stop or cont of ours is on its way */
	bool stopped;	/* ... and a STOP came of it */
	bool was_reset; /* not dealt with yet */
	bool ram_stale; /* to be asked for again before it is used */
	char version[32];
	uint32_t nr_vcpus;
	uint64_t memory_bytes;

	/* The agent and its batch. */
	struct hvp_guest *guest;
	uint64_t agent_session;
	uint64_t word;	     /* the command in hand */
	bool half;	     /* of its sites, and nothing could be done about it */
	bool journal_failed; /* and that was logged */
	struct text text;

	struct hvp_control *control;
	const struct hvp_audit_config *audit_config;
	struct hvpoked_sandbox *sandbox;
	struct hvp_audit *audit; /* from the first time that the guest has a name */
	char control_path[108];

	struct loop loop;
	struct loop_watch on_conn, on_doorbell, on_qmp, on_pid, on_control, on_inbox;
	int inbox[2]; /* a pipe of struct vm_letter */
	bool keep;    /* leave the record for the next hvpoked */

	pthread_t thread;
	int finished;	     /* where the thread says that it ends: its struct vm * */
	LIST_ENTRY(vm) link; /* the server's */
};

/* What the server tells a VM's thread. */
enum vm_news {
	VM_MONITOR,    /* fd: QEMU's monitor has connected */
	VM_CONNECTION, /* fd: its ivshmem device has connected again */
	VM_END,	       /* hvpoked ends */
	VM_GONE,       /* the device is gone */
};

struct vm_letter {
	enum vm_news news;
	int fd;
};

struct vm_config {
	const char *state_dir;	/* records */
	const char *socket_dir; /* where QEMU may connect to */
	uint64_t shm_size;
	struct hvp_limits limits; /* of each */
	struct hvp_audit_config audit;
	struct hvpoked_sandbox *sandbox; /* NULL: none */
	int finished;
};

/*
 * A new guest: QEMU's ivshmem device is at @conn, and has been told all that it
 * waits for when this returns. Takes @conn. NULL if not, which was logged.
 */
struct vm *vm_new(const struct vm_config *config, int conn, pid_t pid, uint16_t peer_id);
/*
 * One that a former hvpoked served: the record DIR/@name. NULL with errno if not: EMFILE, ENFILE
 * and ENOMEM may pass, all else means that there is none such.
 */
struct vm *vm_recover(const struct vm_config *config, const char *name);
/* Take @fd, if it is not -1. Any thread. */
void vm_tell(struct vm *vm, enum vm_news news, int fd);
/* After its thread has ended. */
void vm_free(struct vm *vm);

/* vm_monitor.c. Takes @fd. 0 or -errno (logged). */
int vm_monitor_open(struct vm *vm, int fd);
/* The monitor has gone. */
void vm_monitor_lost(struct vm *vm);
void vm_monitor_work(struct vm *vm);
/* Deal with what the events said. Not in the middle of a command. */
void vm_monitor_settle(struct vm *vm);
/* For the engine: as in struct hvp_backend. */
int vm_pause(struct vm *vm);
void vm_resume(struct vm *vm);
/* For an operator. 0 or -errno with @message. */
int vm_operator(struct vm *vm, const char *command, struct message *message);
/*
 * TCG: connect the gdbstub if it is not, which leaves the guest paused (record->paused says
 * whether it ran). 0 or -errno with @message.
 */
int vm_gdbstub(struct vm *vm, struct message *message);

/* vm_doorbell.c. 0 or -ENOMEM. */
int vm_guest_create(struct vm *vm, const struct hvp_limits *limits);
/* Run the command that waits, if one does. */
void vm_serve(struct vm *vm);
void vm_ring(struct vm *vm);
/* Where the guest's RAM is, if that has to be asked. 0 or -errno (logged). */
int vm_learn_ram(struct vm *vm);

/* vm_repair.c. Before the guest may run: 0, or -errno (logged) and it must not. */
int vm_repair(struct vm *vm);

/* vm_control.c: 0 or -errno (logged). */
int vm_control_open(struct vm *vm);
void vm_control_close(struct vm *vm);
void vm_control_state(struct vm *vm, const char *state);

#endif /* HVPOKED_VM_H */
