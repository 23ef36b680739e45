/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_RECORD_H
#define HVPOKED_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shm.h"

/*
 * What the next hvpoked has to know of a guest if this one ends or is killed: a
 * small file in the state directory, mapped, so that a store is all it takes to keep it
 * true. QEMU cannot connect its ivshmem device to a second server; but it still holds
 * the memory and the eventfds, and they can be had back from it (pidfd_getfd(2)).
 */
struct record {
	uint64_t magic;
	uint64_t start_time; /* of the process: pids are used again */
	uint64_t memory_ino;
	int64_t doorbell_id, irq_id; /* as in /proc/PID/fdinfo */
	int32_t pid;
	uint16_t peer_id;
	/* The guest is paused, and by us: whoever comes next lets it run again. */
	uint8_t paused;
	/* The batch whose sites may be half written: see journal.h. */
	struct journal {
		uint64_t word;	  /* of the mailbox; 0: there is none */
		uint64_t session; /* of its agent */
		uint64_t sum;
		uint32_t nr;
	} journal;
};

/*
 * Make the file DIR/PID, and map it; *@file is open for what comes behind it. NULL with errno
 * on failure. The file has its blocks: no store can fail later, on a disk that is full.
 */
struct record *record_create(const char *dir, pid_t pid, int *file);
/* Map the one that a former hvpoked left. NULL with errno: ESRCH if its process is gone. */
struct record *record_open(const char *dir, const char *name, int *file);
/* Unmap; with @dir, remove the file too. */
void record_close(struct record *record, const char *dir);

/* Fill in which descriptors there are. 0 or -errno. */
int record_descriptors(struct record *record, const struct shm *shm, int doorbell, int irq);
/*
 * Get them back from the process. 0 with all three set, or -errno (-ENOENT: QEMU has
 * closed them; the device is gone).
 */
int record_recover(const struct record *record, int pidfd, struct shm *shm, int *doorbell,
		   int *irq);

#endif /* HVPOKED_RECORD_H */
