/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hvpoke_shm.h - the second transport: hvpoke over QEMU's ivshmem-doorbell.
 *
 * What an agent and hvpoked must agree on beyond hvpoke_abi.h, whose commands,
 * entries and status codes are the same on both transports. Marks as there: IN
 * is written by the guest, OUT by the host. Little endian throughout. The device
 * itself is QEMU's (docs/specs/ivshmem-spec): PCI 1af4:1110, revision 1,
 * BAR0 registers, BAR1 MSI-X, BAR2 the shared memory. One vector, number 0, each
 * way.
 *
 * Every guest has a shared memory of its own, to which only it and the host have
 * access. The host trusts nothing in it, and the agent need not either: all
 * that the host can do to it by way of this memory is to answer.
 *
 * Discovery
 * ---------
 * BAR2 begins with HVPOKE_SHM_MAGIC: the host wrote it before QEMU got to see the
 * memory. An ivshmem device without it is somebody else's: release it, untouched.
 * Then version and abi_version must be those that the agent was built with, and
 * size at most BAR2's. Map BAR2 cacheable (memremap(MEMREMAP_WB)): it is RAM.
 *
 * The commands
 * ------------
 * As with the port there is one command page (struct hvpoke_cmd), at
 * HVPOKE_SHM_CMD. Each field of it that is called a GPA of a list (ranges_gpa,
 * entries_gpa, and the addresses inside of struct hvpoke_page_list) is an offset
 * from the start of BAR2 here, page aligned, not 0. Lists and records go into
 * [HVPOKE_SHM_ARENA, size), where the agent lays them out as it likes; hvpoke_shm_max()
 * says how many records fit. What does not fit is not sent (HVPOKE_TOO_LARGE).
 * The addresses of sites and of text ranges (hvpoke_entry.gpa and gpa2,
 * hvpoke_range.gpa) are guest physical addresses as ever.
 *
 * The doorbell is a 32-bit write of host.doorbell to BAR0 + HVPOKE_SHM_DOORBELL_REG. It
 * does not wait: whether the host has taken and finished the command is told by the
 * mailbox.
 *
 * The mailbox
 * -----------
 * mail.state is one 64-bit word: a sequence number, which the agent increases with
 * each command, and the state of the command of that number. It changes only by
 * a 64-bit compare and exchange with full ordering, by the side that is named:
 *
 *   from       to         who    when
 *   IDLE       SUBMITTED  agent  the command page and its lists are complete; the
 *                                doorbell follows
 *   SUBMITTED  RUNNING    host   it has taken the command
 *   SUBMITTED  IDLE       agent  not taken within HVPOKE_SHM_TAKE_MS: withdrawn, and
 *                                the host will never look at it
 *   RUNNING    APPLIED    host   a batch, with the guest paused: every site is
 *                                written
 *   RUNNING    DONE       host   finished; the OUT fields are valid
 *   APPLIED    DONE       host   likewise
 *   DONE       IDLE       agent  it has read the OUT fields
 *   RUNNING    ABANDONED  agent  not finished within HVPOKE_SHM_RUN_MS: the host
 *                                writes no site of this batch any more. It looks at
 *                                this word while the guest is paused, just
 *                                before it would write
 *   APPLIED    ABANDONED  agent  likewise; but the batch is written, and counts as
 *                                HVPOKE_OK. Nothing but that is known of it
 *   ABANDONED  IDLE       host   it will not touch the command page any more
 *
 * So an agent is never in doubt: if the exchange to IDLE or ABANDONED succeeds
 * from SUBMITTED or RUNNING, nothing was and nothing will be written, and the
 * kernel's own way is safe. If it fails, the host was faster: look again. While
 * the word says ABANDONED the command page is the host's: send nothing, go the
 * kernel's own way. The host rings vector 0 after each of its changes to DONE and
 * IDLE; an agent may poll as well, or do nothing else.
 *
 * TAKE_MS and RUN_MS together bound how long a dead host can hold up the guest. A
 * host that is alive takes a command within a few hundred microseconds; RUN_MS is
 * the guest's time, most of which stands still during a pause.
 *
 * Who is there
 * ------------
 * host.session is 0 while nobody serves this memory: hvpoked has ended, or has no
 * connection to this QEMU's monitor. Else it is a random number that is new with
 * each start of the host side. mail.session is the same for the agent: random,
 * not 0, new with each load; written before the first HELLO.
 *
 * - Agent starts: if mail.state is SUBMITTED or DONE, exchange it for IDLE; if RUNNING or
 *   APPLIED, for ABANDONED (all from a former kernel); anything that is not a
 *   state, for IDLE. Write mail.session. If host.session is not 0, say HELLO, and then
 *   FETCH until HVPOKE_NO_REQUEST; else wait for vector 0.
 * - Vector 0: any of these may be the reason, and several may share one
 *   interrupt, so look at all: mail.state is DONE or IDLE; host.session is not the one
 *   that the agent last said HELLO to (0: the host has gone, use the kernel's own
 *   way; else say HELLO again); host.requests is not what it was at the last
 *   FETCH that returned HVPOKE_NO_REQUEST (read it before that FETCH).
 * - Before each command the agent compares host.session too, so that a missed
 *   interrupt costs nothing but time.
 * - Host starts on memory that has been in use: RUNNING becomes DONE with
 *   HVPOKE_HOST_ERROR, APPLIED becomes DONE with HVPOKE_OK, ABANDONED becomes IDLE.
 *   Other OUT fields are not valid then. SUBMITTED it takes as if just rung; a
 *   command other than HELLO gets HVPOKE_NOT_HELLO, since the new host does not know
 *   the agent: say HELLO and send it again.
 * - Host sees a HELLO with another mail.session than before: it forgets the former
 *   agent. It also does so when QEMU reports a reset.
 * - Agent ends: HVPOKE_CMD_BYE, and mail.session 0.
 */
#ifndef HVPOKE_SHM_H
#define HVPOKE_SHM_H

#include "hvpoke_abi.h"

/* Changes with every incompatible change of this file. */
#define HVPOKE_SHM_VERSION 1

#define HVPOKE_SHM_PCI_VENDOR	0x1af4
#define HVPOKE_SHM_PCI_DEVICE	0x1110
#define HVPOKE_SHM_DOORBELL_REG 12 /* in BAR0: peer << 16 | vector, write only */
#define HVPOKE_SHM_VECTOR	0  /* the only one, each way */

/* 16 bytes, the last two of them NUL. */
#define HVPOKE_SHM_MAGIC     "hvpoke-ivshmem"
#define HVPOKE_SHM_MAGIC_LEN 16

/* Offsets in BAR2. */
#define HVPOKE_SHM_HOST	 0x0000u /* struct hvpoke_shm_host; the guest only reads it */
#define HVPOKE_SHM_MAIL	 0x1000u /* struct hvpoke_shm_mail */
#define HVPOKE_SHM_CMD	 0x2000u /* struct hvpoke_cmd */
#define HVPOKE_SHM_ARENA 0x3000u /* lists and records, up to the end */

/* A power of two, as every BAR; what hvpoked serves unless told otherwise. */
#define HVPOKE_SHM_MIN_SIZE 0x100000u
#define HVPOKE_SHM_SIZE	    0x400000u
#define HVPOKE_SHM_MAX_SIZE 0x4000000u

/* How long the agent waits in SUBMITTED and in RUNNING, milliseconds. */
#define HVPOKE_SHM_TAKE_MS 500u
#define HVPOKE_SHM_RUN_MS  1000u

struct hvpoke_shm_host {
	char magic[HVPOKE_SHM_MAGIC_LEN]; /* OUT */
	__u32 version;			  /* OUT HVPOKE_SHM_VERSION */
	__u32 abi_version;		  /* OUT HVPOKE_ABI_VERSION */
	__u64 size;			  /* OUT bytes of BAR2 in use */
	__u32 doorbell;			  /* OUT what to write to the doorbell register */
	__u32 reserved;			  /* OUT 0 */
	__u64 session;			  /* OUT 0: nobody there */
	__u64 requests;			  /* OUT changes whenever a host request is queued */
};

enum hvpoke_shm_state {
	HVPOKE_SHM_IDLE,
	HVPOKE_SHM_SUBMITTED,
	HVPOKE_SHM_RUNNING,
	HVPOKE_SHM_APPLIED,
	HVPOKE_SHM_DONE,
	HVPOKE_SHM_ABANDONED,
};

/* The sequence number is in the upper 56 bits of the word, the state in the lower 8. */
#define HVPOKE_SHM_STATE_BITS 8

static inline __u64 hvpoke_shm_word(__u64 seq, enum hvpoke_shm_state state)
{
	return seq << HVPOKE_SHM_STATE_BITS | state;
}

static inline __u64 hvpoke_shm_seq(__u64 word)
{
	return word >> HVPOKE_SHM_STATE_BITS;
}

/* One of enum hvpoke_shm_state, or something else that has no business there. */
static inline __u32 hvpoke_shm_state(__u64 word)
{
	return word % (1 << HVPOKE_SHM_STATE_BITS);
}

struct hvpoke_shm_mail {
	__u64 state;   /* both; see "The mailbox" above */
	__u64 session; /* IN 0: no agent */
};

/*
 * How many records of 32 bytes (entries or ranges) fit into a BAR2 of @size
 * bytes, with the page lists that lead to them: a list page for each 511 pages of
 * records, rounded up in favour of the lists.
 */
static inline __u64 hvpoke_shm_max(__u64 size)
{
	__u64 pages = (size - HVPOKE_SHM_ARENA) / HVPOKE_PAGE_SIZE;
	__u64 lists = pages / (HVPOKE_LIST_PAGES + 1) + 1;

	return (pages - lists) * HVPOKE_ENTRIES_PER_PAGE;
}

HVPOKE_ASSERT(sizeof(HVPOKE_SHM_MAGIC) < HVPOKE_SHM_MAGIC_LEN + 1);
HVPOKE_ASSERT(sizeof(struct hvpoke_shm_host) == 56);
HVPOKE_ASSERT(sizeof(struct hvpoke_shm_mail) == 16);

#endif /* HVPOKE_SHM_H */
