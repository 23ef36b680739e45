// SPDX-License-Identifier: GPL-2.0-or-later
#include "server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ivshmem.h"
#include "listen.h"
#include "log.h"
#include "process.h"

static struct vm *find_vm(struct server *server, pid_t pid)
{
	struct vm *vm;

	LIST_FOREACH(vm, &server->vms, link)
	if (vm->pid == pid)
		break;
	return vm;
}

static void end_vm(struct server *server, struct vm *vm)
{
	pthread_join(vm->thread, NULL);
	LIST_REMOVE(vm, link);
	server->nr_vms--;
	vm_free(vm);
}

/*
 * End the next VM whose thread has said that it ends, which each does once. Its process
 * id, or 0 if there is none. Every pointer must be taken out of the pipe before its memory is
 * anybody else's: so this is the only way for a VM to go.
 */
static pid_t reap(struct server *server)
{
	void *finished;
	pid_t pid;

	if (read(server->finished[0], &finished, sizeof(finished)) != sizeof(finished))
		return 0;
	pid = ((struct vm *)finished)->pid;
	end_vm(server, finished);
	return pid;
}

static void on_finished(void *ctx, uint32_t events)
{
	(void)events;
	reap(ctx);
}

/* Wait until a thread has ended, which has been told to, and end its VM. */
static pid_t wait_and_reap(struct server *server)
{
	struct pollfd poll_fd = {.fd = server->finished[0], .events = POLLIN};

	poll(&poll_fd, 1, -1);
	return reap(server);
}

static void add_vm(struct server *server, struct vm *vm)
{
	LIST_INSERT_HEAD(&server->vms, vm, link);
	server->nr_vms++;
}

static bool id_in_use(struct server *server, uint16_t id)
{
	struct vm *vm;

	LIST_FOREACH(vm, &server->vms, link)
	if (vm->peer_id == id)
		return true;
	return false;
}

/* There are more ids than guests. */
static uint16_t next_id(struct server *server)
{
	do {
		if (server->last_id == IVSHMEM_LAST_ID)
			server->last_id = IVSHMEM_FIRST_ID - 1;
		server->last_id++;
	} while (id_in_use(server, server->last_id));
	return server->last_id;
}

static void drop_waiting(struct server *server, struct waiting *waiting)
{
	loop_remove(server->loop, &waiting->watch);
	LIST_REMOVE(waiting, link);
	server->nr_waiting--;
	free(waiting);
}

/* Its monitor may have been here first. */
static void hand_monitor(struct server *server, struct vm *vm)
{
	struct waiting *waiting;
	int fd;

	LIST_FOREACH(waiting, &server->waiting, link)
	if (waiting->pid == vm->pid)
		break;
	if (!waiting)
		return;
	fd = waiting->watch.fd;
	drop_waiting(server, waiting);
	vm_tell(vm, VM_MONITOR, fd);
}

/*
 * A device of a process that has one already: is it a second one, or was the first
 * unplugged a moment ago? (The end of one that was taken over is not seen: its
 * connection was the former hvpoked's.) True if the place is free now.
 */
static bool replace_vm(struct server *server, struct vm *vm)
{
	struct pollfd poll_fd = {.fd = vm->conn, .events = POLLIN};
	pid_t pid = vm->pid;

	if (vm->conn < 0 ? process_has_memfd(vm->pid, vm->shm.ino) : poll(&poll_fd, 1, 0) <= 0)
		return false;
	vm_tell(vm, VM_GONE, -1);
	while (wait_and_reap(server) != pid)
		;
	return true;
}

static int accept_peer(int listener, struct peer *peer)
{
	int err = listen_accept(listener, peer);

	if (err && err != -EAGAIN)
		say(LOG_ERR, "a QEMU is not served: %s", strerrordesc_np(-err));
	return err;
}

static void on_ivshmem(void *ctx, uint32_t events)
{
	struct server *server = ctx;
	struct peer peer;
	struct vm *vm;

	(void)events;
	if (accept_peer(server->on_ivshmem.fd, &peer))
		return;
	vm = find_vm(server, peer.pid);
	if (vm && replace_vm(server, vm))
		vm = NULL;
	if (vm && vm->conn < 0) {
		/* Taken over, and its end of the socket connects again: it has all it needs. */
		vm_tell(vm, VM_CONNECTION, peer.fd);
		return;
	}
	if (vm) {
		say(LOG_WARNING,
		    "QEMU %d: it has two ivshmem devices with us; only the first is "
		    "served",
		    (int)peer.pid);
		close(peer.fd);
		return;
	}
	if (server->nr_vms == SERVER_MAX_VMS) {
		say(LOG_ERR, "QEMU %d: not served: %d guests are served already", (int)peer.pid,
		    SERVER_MAX_VMS);
		close(peer.fd);
		return;
	}
	vm = vm_new(&server->config, peer.fd, peer.pid, next_id(server));
	if (!vm)
		return;
	add_vm(server, vm);
	hand_monitor(server, vm);
}

/* A monitor that waits says something, or hangs up: nobody has asked it anything yet. */
static void on_waiting(void *ctx, uint32_t events)
{
	struct waiting *waiting = ctx;
	int fd = waiting->watch.fd;

	if (!(events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)))
		return;
	drop_waiting(waiting->server, waiting);
	close(fd);
}

/* What is short may be there again in a moment, and the guest may stand still until then. */
static bool may_pass(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

/* The guest of the record @name. NULL with errno, and the record is gone if it is of no use. */
static struct vm *recover_vm(struct server *server, const char *name)
{
	struct vm *vm = vm_recover(&server->config, name);
	char path[PATH_MAX];
	int err = errno;

	if (vm) {
		add_vm(server, vm);
	} else if (!may_pass(err)) {
		snprintf(path, sizeof(path), "%s/%s", server->state_dir, name);
		unlink(path);
	}
	errno = err;
	return vm;
}

static void recover(struct server *server)
{
	struct dirent *entry;
	DIR *dir = opendir(server->state_dir);

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			recover_vm(server, entry->d_name);
	closedir(dir);
}

/*
 * A monitor whose guest could not be taken over when we started. True if it was dealt with.
 */
static bool recover_late(struct server *server, const struct peer *peer)
{
	char name[16], path[PATH_MAX];
	struct vm *vm;

	snprintf(name, sizeof(name), "%d", (int)peer->pid);
	snprintf(path, sizeof(path), "%s/%s", server->state_dir, name);
	if (access(path, F_OK))
		return false;
	vm = recover_vm(server, name);
	if (vm)
		vm_tell(vm, VM_MONITOR, peer->fd);
	else if (may_pass(errno))
		close(peer->fd); /* QEMU connects again, in a second */
	else
		return false;
	return true;
}

static void on_qmp(void *ctx, uint32_t events)
{
	struct server *server = ctx;
	struct waiting *waiting;
	struct peer peer;
	struct vm *vm;

	(void)events;
	if (accept_peer(server->on_qmp.fd, &peer))
		return;
	vm = find_vm(server, peer.pid);
	if (vm) {
		vm_tell(vm, VM_MONITOR, peer.fd);
		return;
	}
	if (recover_late(server, &peer))
		return;
	waiting = server->nr_waiting < SERVER_MAX_WAITING ? calloc(1, sizeof(*waiting)) : NULL;
	if (!waiting) {
		close(peer.fd);
		return;
	}
	waiting->pid = peer.pid;
	waiting->server = server;
	waiting->watch = (struct loop_watch){.fd = peer.fd, .ready = on_waiting, .ctx = waiting};
	if (loop_add(server->loop, &waiting->watch, EPOLLRDHUP)) {
		free(waiting);
		close(peer.fd);
		return;
	}
	LIST_INSERT_HEAD(&server->waiting, waiting, link);
	server->nr_waiting++;
}

static int listen_on(struct server *server, struct loop_watch *watch, const char *path,
		     void (*ready)(void *ctx, uint32_t events), struct message *message)
{
	int err, fd = listen_at(path);

	if (fd < 0)
		return message_set(message, fd, "cannot listen at %s: %s", path,
				   strerrordesc_np(-fd));
	*watch = (struct loop_watch){.fd = fd, .ready = ready, .ctx = server};
	err = loop_add(server->loop, watch, EPOLLIN);
	if (err)
		return message_set(message, err, "cannot watch %s: %s", path,
				   strerrordesc_np(-err));
	return 0;
}

/* The paths must fit into a socket's address, with the longest of their names. */
static int make_paths(struct server *server, const char *dir, struct message *message)
{
	const int room = sizeof(server->ivshmem_path) - (int)sizeof("/gdb-4194304");
	int err;

	if (snprintf(server->state_dir, sizeof(server->state_dir), "%s/state", dir) > room)
		return message_set(message, -ENAMETOOLONG,
				   "the directory %s has too long a name for sockets", dir);
	snprintf(server->ivshmem_path, sizeof(server->ivshmem_path), "%s/ivshmem", dir);
	snprintf(server->qmp_path, sizeof(server->qmp_path), "%s/qmp", dir);
	if (mkdir(server->state_dir, 0700) < 0 && errno != EEXIST) {
		err = -errno;
		return message_set(message, err, "cannot make %s: %s", server->state_dir,
				   strerrordesc_np(-err));
	}
	return 0;
}

int server_open(struct server *server, struct loop *loop, const char *dir,
		const struct vm_config *guests, struct message *message)
{
	int err;

	*server = (struct server){.loop = loop};
	server->on_ivshmem.fd = server->on_qmp.fd = server->finished[0] = server->finished[1] = -1;
	LIST_INIT(&server->vms);
	LIST_INIT(&server->waiting);
	err = make_paths(server, dir, message);
	if (err)
		return err;
	if (pipe2(server->finished, O_CLOEXEC | O_NONBLOCK) < 0)
		return message_set(message, -errno, "cannot make a pipe: %s",
				   strerrordesc_np(errno));
	server->config = *guests;
	server->config.state_dir = server->state_dir;
	server->config.socket_dir = dir;
	server->config.finished = server->finished[1];
	server->on_finished = (struct loop_watch){
		.fd = server->finished[0],
		.ready = on_finished,
		.ctx = server,
	};
	err = loop_add(loop, &server->on_finished, EPOLLIN);
	if (err)
		return message_set(message, err, "cannot watch a pipe: %s", strerrordesc_np(-err));
	/* Before the sockets: a monitor that comes back must find its guest known. */
	recover(server);
	err = listen_on(server, &server->on_ivshmem, server->ivshmem_path, on_ivshmem, message);
	if (!err)
		err = listen_on(server, &server->on_qmp, server->qmp_path, on_qmp, message);
	return err;
}

void server_close(struct server *server)
{
	int fds[] = {server->on_ivshmem.fd, server->on_qmp.fd, server->finished[0],
		     server->finished[1]};
	struct waiting *waiting, *next;
	struct vm *vm;
	int fd;

	LIST_FOREACH(vm, &server->vms, link)
	vm_tell(vm, VM_END, -1);
	while (server->nr_vms)
		wait_and_reap(server);
	for (waiting = LIST_FIRST(&server->waiting); waiting; waiting = next) {
		next = LIST_NEXT(waiting, link);
		fd = waiting->watch.fd;
		drop_waiting(server, waiting);
		close(fd);
	}
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
