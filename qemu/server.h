/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_SERVER_H
#define HVPOKED_SERVER_H

#include <stdint.h>
#include <sys/queue.h>

#include "loop.h"
#include "message.h"
#include "vm.h"

/* A monitor whose guest has no ivshmem device with us (yet). */
struct waiting {
	struct loop_watch watch;
	pid_t pid;
	struct server *server;
	LIST_ENTRY(waiting) link;
};

/*
 * What QEMU connects to: DIR/ivshmem with the device, DIR/qmp with a monitor. Both
 * are clients, so that both ends of a guest are tied together by the process that the
 * kernel says is there, and a restarted hvpoked gets its monitors back
 * ("reconnect=1").
 */
struct server {
	struct loop *loop;
	struct vm_config config;
	struct loop_watch on_ivshmem, on_qmp, on_finished;
	char ivshmem_path[108], qmp_path[108], state_dir[108];
	int finished[2];
	uint16_t last_id;
	uint32_t nr_vms, nr_waiting;
	LIST_HEAD(, vm) vms;
	LIST_HEAD(, waiting) waiting;
};

#define SERVER_MAX_VMS	   4096
#define SERVER_MAX_WAITING 256

/*
 * @dir is ours. Of @guests the shared memory's size, the limits and the log count. 0 or -errno
 * with @message.
 */
int server_open(struct server *server, struct loop *loop, const char *dir,
		const struct vm_config *guests, struct message *message);
/* Leave the guests as they are, for the next hvpoked. */
void server_close(struct server *server);

#endif /* HVPOKED_SERVER_H */
