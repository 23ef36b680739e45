/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_IVSHMEM_H
#define HVPOKED_IVSHMEM_H

#include <stdint.h>

/*
 * The server's side of the ivshmem protocol (QEMU's docs/specs/ivshmem-spec):
 * 8-byte little-endian numbers, some with a descriptor.
 *
 * The protocol means one memory for all clients, each of which can ring every
 * other. Here each client gets a memory of its own and hears of one peer only, the
 * host: guests neither see nor ring each other.
 */
#define IVSHMEM_VERSION	 0
#define IVSHMEM_HOST	 0 /* our own peer id */
#define IVSHMEM_FIRST_ID 1
#define IVSHMEM_LAST_ID	 65535 /* the doorbell register has 16 bits for it */

/*
 * All that a client ever hears: version, its @id, the memory, how to ring the host, how
 * it is rung. QEMU waits for the memory while it makes the device, so this must not
 * wait for anything else; it fits into any socket's buffer. 0 or -errno
 * (-EAGAIN: a client that does not read).
 */
int ivshmem_greet(int conn, uint16_t id, int memory, int host_doorbell, int guest_doorbell);

#endif /* HVPOKED_IVSHMEM_H */
