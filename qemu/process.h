/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_PROCESS_H
#define HVPOKED_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Another process, seen from outside: QEMU. */

/* A mapping of it, as /proc/PID/maps tells. */
struct process_area {
	uint64_t start, end;
	bool shared, writable;
};

/* The area that @address is in. 0, -ENOENT or another -errno. */
int process_area(pid_t pid, uint64_t address, struct process_area *area);

/*
 * Map all of @area here too, at *@mem, for reading and writing. Only for a file
 * that is shared and cannot shrink (a sealed memfd, as QEMU's memory-backend-memfd
 * is): others could take the memory away under our hands. 0, -EPERM if it is not of that
 * kind, or another -errno.
 */
int process_map(pid_t pid, const struct process_area *area, void **mem);

/*
 * Read from or write to @nr places in it, each of the size of its local counterpart. 0,
 * or -EFAULT if one of them cannot be reached, or another -errno; some may be done then.
 */
int process_read(pid_t pid, const struct iovec *local, const struct iovec *remote, uint32_t nr);
int process_write(pid_t pid, const struct iovec *local, const struct iovec *remote, uint32_t nr);

/* Does it have a memfd of inode @ino mapped? */
bool process_has_memfd(pid_t pid, uint64_t ino);

/* When it was started, in clock ticks since boot: a process id alone may be another's by now. */
int process_start_time(pid_t pid, uint64_t *ticks);

#endif /* HVPOKED_PROCESS_H */
