/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_QEMU_FAKE_QEMU_H
#define TESTS_QEMU_FAKE_QEMU_H

#include <pthread.h>
#include <stdatomic.h>

#include "hvpoke_shm.h"
#include "qemu_test.h"

/*
 * A QEMU that is this very process: it connects an ivshmem device and a monitor to
 * hvpoked, says that it runs on KVM, and that the guest's RAM is @ram. Its vCPU is the
 * test's own thread, which plays the agent; a thread answers the monitor. So all
 * of the KVM way is tried without KVM, and all that a QEMU may do wrong.
 */
#define FAKE_RAM   (1u << 20)
#define FAKE_TEXT  0x10000u /* GPA of the registered text */
#define FAKE_SIZE  0x20000u /* its length */
#define FAKE_SITES 1024

enum fake_mood {
	FAKE_WELL,     /* answers as QEMU does */
	FAKE_SILENT,   /* does not answer "stop" */
	FAKE_LATE,     /* takes longer for a "stop" than anybody waits, and then does it */
	FAKE_HANGS_UP, /* closes the monitor instead of answering "stop", stopped */
	FAKE_BABBLES,  /* answers "stop" with something else */
	FAKE_PAUSED,   /* an operator's stop follows in the same breath as the answer to "cont" */
	FAKE_IO_ERROR, /* it stands still because of that */
	FAKE_ABANDONS, /* the agent takes its batch back just before the guest stands still */
};

struct fake_qemu {
	const struct host *host;
	const char *name; /* that it states to the monitor; "fake" */
	uint64_t session; /* of the agent, as its HELLO states it; 1 */
	/* ivshmem */
	int conn, memory, doorbell, irq;
	int64_t id;
	uint8_t *shm;
	size_t shm_size;
	atomic_ulong seq; /* the monitor's thread looks too */
	/* memory */
	int ram_fd; /* -1: private */
	uint8_t *ram;
	/* monitor */
	int qmp;
	pthread_t thread;
	bool has_thread;
	atomic_int mood;
	atomic_bool running;
	atomic_uint stops, conts;
};

/* @shared: RAM is a sealed memfd, as memory-backend-memfd,share=on makes it. */
void fake_qemu_open(struct fake_qemu *fake, const struct host *host, bool shared);
void fake_qemu_close(struct fake_qemu *fake);
/* Its parts: memory and state, connect the device, take what it is sent, map the memory. */
void fake_qemu_init(struct fake_qemu *fake, const struct host *host, bool shared);
void fake_qemu_connect_device(struct fake_qemu *fake);
void fake_qemu_take_device(struct fake_qemu *fake);
void fake_qemu_map(struct fake_qemu *fake);
/* Connect a monitor, and wait until hvpoked serves the guest. */
void fake_qemu_monitor(struct fake_qemu *fake);
/* Connect it only. */
void fake_qemu_connect_monitor(struct fake_qemu *fake);
/* The monitor is connected already, at @fd. */
void fake_qemu_answer(struct fake_qemu *fake, int fd);
/* As an operator at another monitor does it: hvpoked gets the event. */
void fake_qemu_operator(struct fake_qemu *fake, bool run);
void fake_qemu_hang_up(struct fake_qemu *fake);
/* The monitor says that something has happened. */
void fake_qemu_event(struct fake_qemu *fake, const char *event);
/* All of that, and a HELLO. */
void fake_qemu_serve(struct fake_qemu *fake, const struct host *host, bool shared);

struct hvpoke_shm_host *fake_host(struct fake_qemu *fake);
struct hvpoke_shm_mail *fake_mail(struct fake_qemu *fake);
struct hvpoke_cmd *fake_command(struct fake_qemu *fake);
uint32_t fake_state(struct fake_qemu *fake);

/* The agent: submit and ring; then wait until the host is done with it (DONE or IDLE). */
void fake_submit(struct fake_qemu *fake, uint32_t cmd);
uint32_t fake_wait(struct fake_qemu *fake);
uint32_t fake_command_run(struct fake_qemu *fake, uint32_t cmd);
/* HELLO with all the text. */
void fake_hello(struct fake_qemu *fake);
/*
 * Fill in a batch of FAKE_SITES sites, every 64th across a page's end, and put their old
 * bytes into RAM.
 */
void fake_batch(struct fake_qemu *fake);
/* Only the old bytes, into memory that is RAM's copy. */
void fake_text(uint8_t *ram);
/* How many of them hold their new bytes; all others their old ones. */
uint32_t fake_new_sites(const struct fake_qemu *fake);
struct hvpoke_entry *fake_entries(struct fake_qemu *fake);

#endif /* TESTS_QEMU_FAKE_QEMU_H */
