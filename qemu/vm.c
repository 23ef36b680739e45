// SPDX-License-Identifier: GPL-2.0-or-later
#include "vm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ivshmem.h"
#include "log.h"
#include "process.h"

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void vm_free(struct vm *vm)
{
	struct vm_letter letter;

	vm_control_close(vm);
	hvp_guest_free(vm->guest);
	hvp_audit_close(vm->audit);
	text_release(&vm->text);
	qmp_close(&vm->qmp);
	if (vm->record)
		record_close(vm->record, vm->keep ? NULL : vm->state_dir);
	close_fd(&vm->record_file);
	if (vm->conn >= 0)
		close(vm->conn);
	close_fd(&vm->doorbell);
	close_fd(&vm->irq);
	close_fd(&vm->pidfd);
	shm_release(&vm->shm);
	/* What was handed to us too late. */
	while (vm->inbox[0] >= 0 && read(vm->inbox[0], &letter, sizeof(letter)) > 0)
		if (letter.fd >= 0)
			close(letter.fd);
	close_fd(&vm->inbox[0]);
	close_fd(&vm->inbox[1]);
	loop_release(&vm->loop);
	free(vm);
}

void vm_tell(struct vm *vm, enum vm_news news, int fd)
{
	struct vm_letter letter = {.news = news, .fd = fd};

	/* A pipe that is full of these has a thread behind it that will never read them. */
	if (write(vm->inbox[1], &letter, sizeof(letter)) != sizeof(letter) && fd >= 0)
		close(fd);
}

static void on_inbox(void *ctx, uint32_t events)
{
	struct vm_letter letter;
	struct vm *vm = ctx;

	(void)events;
	if (read(vm->inbox[0], &letter, sizeof(letter)) != sizeof(letter))
		return;
	switch (letter.news) {
	case VM_MONITOR:
		if (vm->qmp.fd < 0)
			vm_monitor_open(vm, letter.fd);
		else
			close(letter.fd); /* one monitor is enough */
		break;
	case VM_CONNECTION:
		if (vm->conn >= 0)
			close(vm->conn);
		vm->conn = letter.fd;
		vm->on_conn.fd = vm->conn;
		loop_add(&vm->loop, &vm->on_conn, EPOLLIN);
		break;
	case VM_END:
		vm->keep = true;
		vm->loop.stop = true;
		break;
	case VM_GONE: vm->loop.stop = true; break;
	}
}

/* The protocol is one-way: what comes is either the end or nonsense. */
static void on_conn(void *ctx, uint32_t events)
{
	struct vm *vm = ctx;

	(void)events;
	say(LOG_INFO, "%s: the ivshmem device is gone", vm->log_name);
	vm->loop.stop = true;
}

static void on_pid(void *ctx, uint32_t events)
{
	struct vm *vm = ctx;

	(void)events;
	say(LOG_INFO, "%s: QEMU has ended", vm->log_name);
	vm->loop.stop = true;
}

static void on_doorbell(void *ctx, uint32_t events)
{
	struct vm *vm = ctx;
	uint64_t count;

	(void)events;
	/* Before the mailbox is looked at: who rings after that wakes us again. */
	if (read(vm->doorbell, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	if (!vm->ready)
		return;
	vm_serve(vm);
	/* What has come right behind an answer wakes nobody any more. */
	vm_monitor_work(vm);
}

static int watch(struct vm *vm, struct loop_watch *entry, int fd,
		 void (*ready)(void *ctx, uint32_t events))
{
	*entry = (struct loop_watch){.fd = fd, .ready = ready, .ctx = vm};
	return fd < 0 ? 0 : loop_add(&vm->loop, entry, EPOLLIN);
}

static void *run(void *arg)
{
	struct vm *vm = arg;
	int err;

	if (vm->sandbox && vm->sandbox->on)
		hvpoked_sandbox_confine(&vm->sandbox->guest);
	err = loop_run(&vm->loop);
	if (err)
		say(LOG_ERR, "%s: cannot wait for events: %s", vm->log_name, strerrordesc_np(-err));
	if (vm->ready)
		vm_monitor_lost(vm);
	if (write(vm->finished, &arg, sizeof(arg)) != sizeof(arg))
		say(LOG_ERR, "%s: cannot report the end of a thread", vm->log_name);
	return NULL;
}

static int start(struct vm *vm)
{
	sigset_t all, before;
	int err = watch(vm, &vm->on_inbox, vm->inbox[0], on_inbox);

	if (!err)
		err = watch(vm, &vm->on_pid, vm->pidfd, on_pid);
	if (!err)
		err = watch(vm, &vm->on_doorbell, vm->doorbell, on_doorbell);
	if (!err)
		err = watch(vm, &vm->on_conn, vm->conn, on_conn);
	if (err)
		return err;
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&vm->thread, NULL, run, vm);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Without the right to it the guest is there, and patches in its own way. 0 or -errno. */
static int open_memory(struct vm *vm)
{
	vm->text.memory = process_memory(vm->pid);
	if (vm->text.memory != -EACCES && vm->text.memory != -EPERM)
		return vm->text.memory < 0 ? vm->text.memory : 0;
	say(LOG_ERR, "%s: its memory is out of reach: %s", vm->log_name,
	    strerrordesc_np(-vm->text.memory));
	return 0;
}

static int open_all(struct vm *vm, const struct hvp_limits *limits)
{
	int err = open_memory(vm);

	if (!err)
		err = loop_init(&vm->loop);
	if (err)
		return err;
	vm->pidfd = (int)syscall(SYS_pidfd_open, vm->pid, 0);
	if (vm->pidfd < 0 || pipe2(vm->inbox, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	return vm_guest_create(vm, limits);
}

/* What new and recovered ones have in common. NULL with errno (logged). */
static struct vm *allocate(const struct vm_config *config, pid_t pid)
{
	struct vm *vm = calloc(1, sizeof(*vm));
	int err;

	if (!vm)
		return NULL;
	vm->pid = vm->text.pid = pid;
	vm->conn = vm->doorbell = vm->irq = vm->qmp.fd = vm->shm.fd = vm->text.gdb.fd = -1;
	vm->inbox[0] = vm->inbox[1] = vm->record_file = vm->loop.epoll = vm->text.memory = -1;
	vm->state_dir = config->state_dir;
	vm->finished = config->finished;
	vm->audit_config = &config->audit;
	vm->sandbox = config->sandbox;
	vm->text.qmp = &vm->qmp;
	vm->ram_stale = true;
	snprintf(vm->log_name, sizeof(vm->log_name), "QEMU %d", (int)pid);
	snprintf(vm->text.gdb_path, sizeof(vm->text.gdb_path), "%s/gdb-%d", config->socket_dir,
		 (int)pid);
	err = open_all(vm, &config->limits);
	if (!err)
		return vm;
	say(LOG_ERR, "%s: cannot serve it: %s", vm->log_name, strerrordesc_np(-err));
	vm_free(vm);
	errno = -err;
	return NULL;
}

static int create_shared(struct vm *vm, uint64_t size)
{
	uint32_t doorbell = (uint32_t)IVSHMEM_HOST << 16 | HVPOKE_SHM_VECTOR;
	int err = shm_create(&vm->shm, size, doorbell);

	if (err)
		return err;
	vm->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	vm->irq = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (vm->doorbell < 0 || vm->irq < 0)
		return -errno;
	vm->record = record_create(vm->state_dir, vm->pid, &vm->record_file);
	if (!vm->record)
		return -errno;
	vm->record->peer_id = vm->peer_id;
	err = record_descriptors(vm->record, &vm->shm, vm->doorbell, vm->irq);
	/* An old kernel: then a restart of ours means the guest's own way until it restarts. */
	return err == -EOPNOTSUPP ? 0 : err;
}

struct vm *vm_new(const struct vm_config *config, int conn, pid_t pid, uint16_t peer_id)
{
	struct vm *vm = allocate(config, pid);
	int err;

	if (!vm) {
		close(conn);
		return NULL;
	}
	vm->conn = conn;
	vm->peer_id = peer_id;
	err = create_shared(vm, config->shm_size);
	if (!err)
		err = ivshmem_greet(conn, peer_id, vm->shm.fd, vm->doorbell, vm->irq);
	if (!err)
		err = start(vm);
	if (!err) {
		say(LOG_INFO, "%s: the ivshmem device is here (peer %u)", vm->log_name, peer_id);
		return vm;
	}
	say(LOG_ERR, "%s: cannot serve its ivshmem device: %s", vm->log_name,
	    strerrordesc_np(-err));
	vm_free(vm);
	return NULL;
}

struct vm *vm_recover(const struct vm_config *config, const char *name)
{
	struct record *record;
	int err, file = -1;
	struct vm *vm;

	record = record_open(config->state_dir, name, &file);
	if (!record)
		return NULL;
	vm = allocate(config, record->pid);
	if (!vm) {
		err = errno;
		record_close(record, NULL);
		close(file);
		errno = err;
		return NULL;
	}
	vm->record = record;
	vm->record_file = file;
	vm->peer_id = record->peer_id;
	err = record_recover(record, vm->pidfd, &vm->shm, &vm->doorbell, &vm->irq);
	if (!err)
		err = start(vm);
	if (!err) {
		say(LOG_INFO, "%s: taken over from a former hvpoked", vm->log_name);
		return vm;
	}
	say(LOG_WARNING, "%s: cannot be taken over from a former hvpoked: %s", vm->log_name,
	    strerrordesc_np(-err));
	vm->keep = true; /* the server decides */
	vm_free(vm);
	errno = -err;
	return NULL;
}
