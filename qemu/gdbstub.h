/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_GDBSTUB_H
#define HVPOKED_GDBSTUB_H

#include <stdint.h>
#include <sys/types.h>

#include "message.h"
#include "qmp.h"

/*
 * QEMU's gdbstub, used for one thing: writes to guest physical memory that QEMU makes
 * itself. With TCG a write by anybody else leaves translated code as it was, and
 * the guest goes on running the old instruction.
 */
struct gdbstub {
	int fd; /* -1: not connected */
};

/*
 * Have QEMU (@pid) connect its gdbstub to us, over a socket at @path that is there only
 * for that. QEMU pauses the guest when it connects: the caller lets it run again. A
 * gdbstub that somebody else uses is left alone (-EBUSY).
 * 0 or -errno with @message.
 */
int gdbstub_open(struct gdbstub *gdb, struct qmp *qmp, pid_t pid, const char *path,
		 struct message *message);
void gdbstub_close(struct gdbstub *gdb);
/*
 * Close it, with everything in it that QEMU has not done yet: what is left in a socket is
 * read, and done, after the other end has closed it. While the guest is paused.
 */
void gdbstub_abort(struct gdbstub *gdb, struct qmp *qmp);

/* Some bytes that go to one place. */
struct gdb_write {
	uint64_t gpa;
	const uint8_t *bytes;
	uint32_t len; /* at most GDB_WRITE_MAX */
};
#define GDB_WRITE_MAX 16

/*
 * Make the @nr writes, in order, within @timeout_ms. They are all under way together: one
 * answer is waited for, so to speak, not @nr. 0; -EREMOTEIO if QEMU refused one
 * (others may be done); -ETIMEDOUT or -ECONNRESET, and then the connection is of no more use.
 */
int gdbstub_write(struct gdbstub *gdb, const struct gdb_write *write, uint32_t nr, int timeout_ms);

/* Drop what QEMU told meanwhile (each stop is reported). 0, or -ECONNRESET if it hung up. */
int gdbstub_drain(struct gdbstub *gdb);

#endif /* HVPOKED_GDBSTUB_H */
