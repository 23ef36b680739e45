/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SOAK_GUESTS_H
#define TESTS_SOAK_GUESTS_H

#include <sys/types.h>

#include "../kvm/vmm_process.h"
#include "../qemu/qemu_test.h"

/*
 * Guests of the simulated day. Each obeys the orders of orders.h, and makes some honest
 * batches of its own with each of them. In the answer to a request: matched = honest batches,
 * changed = those of them that were applied, fallback = the status of the order's batch;
 * error = EILSEQ if a batch was neither whole nor refused, or refused with a wrong status.
 */
#define OWN_BATCHES 2

/* A QEMU that is another process of this program (tests/qemu/fake_qemu.h), served by @host. */
pid_t qemu_guest_start(const struct host *host, const char *name);
/* What that process does; does not return. @dir: of the host's sockets. */
void qemu_guest_main(const char *name, const char *dir);

/* The kernel of a guest of hvpoke-vmm, as a file. */
void port_guest_write_kernel(const char *path);

#endif /* TESTS_SOAK_GUESTS_H */
