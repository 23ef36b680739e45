/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_SHM_H
#define HVPOKED_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "hvpoke_shm.h"

/*
 * The memory that one guest shares with us (proto/hvpoke_shm.h), a memfd of its
 * own. Sealed against a change of size: QEMU has the descriptor too, and
 * one that shrinks the file would otherwise kill us with SIGBUS.
 */
struct shm {
	int fd; /* -1: none */
	uint8_t *mem;
	uint64_t size;
	uint64_t ino; /* how /proc tells it from others */
};

/* Make one of @size bytes (a power of two) with its header, and no session. 0 or -errno. */
int shm_create(struct shm *shm, uint64_t size, uint32_t doorbell);
/* Take one over that a former hvpoked made; owns @fd, also on failure. 0 or -errno. */
int shm_attach(struct shm *shm, int fd);
void shm_release(struct shm *shm);

/* [@offset, @offset + @len) of it, or NULL. */
void *shm_at(const struct shm *shm, uint64_t offset, uint64_t len);

/*
 * Begin a session: settle what a former host left in the mailbox, then tell a new
 * random number. End it: nobody serves this memory.
 */
void shm_session_begin(struct shm *shm);
void shm_session_end(struct shm *shm);
/* A host request waits. */
void shm_announce_request(struct shm *shm);
/* What the agent calls itself; 0: there is none. */
uint64_t shm_agent_session(const struct shm *shm);

/*
 * The mailbox. @word names one command.
 *
 * Take the command that is submitted, if one is.
 */
bool shm_take(struct shm *shm, uint64_t *word);
/* Does the agent still wait for it? Asked in the pause, before a site is written. */
bool shm_is_wanted(const struct shm *shm, uint64_t word);
/* In the pause: all is written. */
void shm_applied(struct shm *shm, uint64_t word);
/* The OUT fields are valid, or the agent does not want them any more. */
void shm_finish(struct shm *shm, uint64_t word);

#endif /* HVPOKED_SHM_H */
