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
 * Map all of @area here too, at *@mem, for reading and writing. Only for a file that is
 * shared, holds all of it and cannot shrink (a sealed memfd, as QEMU's memory-backend-memfd
 * is): others could take the memory away under our hands. 0, -EPERM if it is not of
 * that kind, or another -errno.
 */
int process_map(pid_t pid, const struct process_area *area, void **mem);

/*
 * Its memory, as /proc/PID/mem: a descriptor or -errno. It stays with the program that runs
 * there now. Once the process has executed another one (which may have more rights), what it
 * was is gone, and reads and writes fail. A process id would lead to the new one.
 */
int process_memory(pid_t pid);
/*
 * Read from or write to @nr places in that, each of the size of its local counterpart. 0,
 * or -EFAULT if one of them cannot be reached, or another -errno; some may be done then.
 * Read-only mappings are written to as well: see process_is_writable().
 */
int process_read(int memory, const struct iovec *local, const struct iovec *remote, uint32_t nr);
int process_write(int memory, const struct iovec *local, const struct iovec *remote, uint32_t nr);

/* Are all of its mappings in [@start, @end) writable, with no hole between them? */
bool process_is_writable(pid_t pid, uint64_t start, uint64_t end);

/* Does it have a memfd of inode @ino mapped, shared and writable? */
bool process_has_memfd(pid_t pid, uint64_t ino);

/* When it was started, in clock ticks since boot: a process id alone may be another's by now. */
int process_start_time(pid_t pid, uint64_t *ticks);

#endif /* HVPOKED_PROCESS_H */
