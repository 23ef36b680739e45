// SPDX-License-Identifier: GPL-2.0-or-later
#include "failing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <json-c/json.h>

static atomic_bool on, everywhere;
static _Thread_local bool ours;
static enum failing_how how;
static atomic_uint seen, failed;
static unsigned int nth;
static const char *_Atomic last;
static int report_fd = -1;

void failing_begin(enum failing_how new_how, unsigned int new_nth, bool of_all)
{
	how = new_how;
	nth = new_nth;
	atomic_store(&seen, 0);
	atomic_store(&failed, 0);
	atomic_store(&last, "nothing");
	atomic_store(&everywhere, of_all);
	ours = true;
	atomic_store(&on, true);
}

unsigned int failing_end(void)
{
	atomic_store(&on, false);
	ours = false;
	return atomic_load(&failed);
}

const char *failing_call(void)
{
	return atomic_load(&last);
}

static void __attribute__((constructor)) failing_from_environment(void)
{
	const char *what = getenv("FAILING"), *fd = getenv("FAILING_FD");
	unsigned int number = 0;
	char word[16] = "";

	if (!what || sscanf(what, "%15s %u", word, &number) != 2)
		return;
	report_fd = fd ? atoi(fd) : -1;
	failing_begin(!strcmp(word, "error")	   ? FAILING_ERROR
		      : !strcmp(word, "interrupt") ? FAILING_INTERRUPT
						   : FAILING_FLAKY,
		      number, true);
}

/* True for half of all numbers, in no order (the finalizer of MurmurHash3). */
static bool odd(uint32_t number)
{
	number = (number ^ number >> 16) * 0x85ebca6b;
	number = (number ^ number >> 13) * 0xc2b2ae35;
	return (number ^ number >> 16) & 1;
}

/* Is it this call's turn? @error: what it has for failures, 0: none; @can_wait: EINTR can come. */
static bool fails(const char *call, int error, bool can_wait)
{
	unsigned int number;

	if (!atomic_load(&on) || (!ours && !atomic_load(&everywhere)))
		return false;
	if (how == FAILING_ERROR ? !error : !can_wait)
		return false;
	number = atomic_fetch_add(&seen, 1) + 1;
	/* Half of them in no order, as a loop of two calls would always lose the same one. */
	if (how == FAILING_FLAKY ? !odd(number) : number != nth)
		return false;
	atomic_fetch_add(&failed, 1);
	atomic_store(&last, call);
	if (report_fd >= 0)
		dprintf(report_fd, "%s\n", call);
	errno = how == FAILING_ERROR ? error : EINTR;
	return true;
}

/* failing_NAME(), which returns @bad where it fails. */
#define CALL(type, name, bad, error, can_wait, params, args) \
	type failing_##name params;                          \
	type failing_##name params                           \
	{                                                    \
		if (fails(#name, error, can_wait))           \
			return bad;                          \
		return name args;                            \
	}

/* clang-format off */

/* Memory. */
CALL(void *, malloc, NULL, ENOMEM, false, (size_t size), (size))
CALL(void *, calloc, NULL, ENOMEM, false, (size_t nr, size_t size), (nr, size))
CALL(void *, realloc, NULL, ENOMEM, false, (void *at, size_t size), (at, size))
CALL(char *, strdup, NULL, ENOMEM, false, (const char *text), (text))
CALL(char *, strndup, NULL, ENOMEM, false, (const char *text, size_t len), (text, len))
CALL(int, vasprintf, -1, ENOMEM, false, (char **to, const char *fmt, va_list args), (to, fmt, args))
CALL(void *, mmap, MAP_FAILED, ENOMEM, false,
	(void *at, size_t len, int prot, int flags, int fd, off_t offset),
	(at, len, prot, flags, fd, offset))
CALL(int, madvise, -1, ENOMEM, false, (void *at, size_t len, int advice), (at, len, advice))

/* Descriptors and what they are for. */
CALL(int, socket, -1, EMFILE, false, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, accept4, -1, EMFILE, true, (int fd, struct sockaddr *addr, socklen_t *len, int flags),
	(fd, addr, len, flags))
CALL(int, epoll_create1, -1, EMFILE, false, (int flags), (flags))
CALL(int, eventfd, -1, EMFILE, false, (unsigned int value, int flags), (value, flags))
CALL(int, timerfd_create, -1, EMFILE, false, (int clock, int flags), (clock, flags))
CALL(int, signalfd, -1, EMFILE, false, (int fd, const sigset_t *set, int flags), (fd, set, flags))
CALL(int, memfd_create, -1, EMFILE, false, (const char *name, unsigned int flags), (name, flags))
CALL(DIR *, opendir, NULL, EMFILE, false, (const char *path), (path))
CALL(FILE *, fopen, NULL, EMFILE, false, (const char *path, const char *mode), (path, mode))
CALL(int, scandir, -1, ENOMEM, false,
	(const char *path, struct dirent ***to, int (*filter)(const struct dirent *),
	 int (*compare)(const struct dirent **, const struct dirent **)),
	(path, to, filter, compare))
CALL(int, pthread_create, EAGAIN, EAGAIN, false,
	(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
	(thread, attr, run, arg))

/* Files. */
CALL(int, ftruncate, -1, ENOSPC, true, (int fd, off_t len), (fd, len))
CALL(int, mkdir, -1, ENOSPC, false, (const char *path, mode_t mode), (path, mode))
CALL(int, fchmod, -1, EROFS, false, (int fd, mode_t mode), (fd, mode))
CALL(int, chmod, -1, EROFS, false, (const char *path, mode_t mode), (path, mode))
CALL(int, chown, -1, EROFS, false, (const char *path, uid_t user, gid_t group),
	(path, user, group))
CALL(int, stat, -1, EIO, false, (const char *path, struct stat *to), (path, to))
CALL(int, lstat, -1, EIO, false, (const char *path, struct stat *to), (path, to))
CALL(int, fstat, -1, EIO, false, (int fd, struct stat *to), (fd, to))
CALL(int, unlink, -1, EIO, false, (const char *path), (path))
CALL(int, flock, -1, ENOLCK, true, (int fd, int how_to), (fd, how_to))
CALL(int, fsync, -1, EIO, true, (int fd), (fd))
CALL(int, fdatasync, -1, EIO, true, (int fd), (fd))
CALL(int, rename, -1, ENOSPC, false, (const char *from, const char *to), (from, to))
CALL(ssize_t, read, -1, EIO, true, (int fd, void *to, size_t len), (fd, to, len))
CALL(ssize_t, write, -1, ENOSPC, true, (int fd, const void *from, size_t len), (fd, from, len))
CALL(ssize_t, pread, -1, EIO, true, (int fd, void *to, size_t len, off_t at), (fd, to, len, at))
CALL(ssize_t, pwrite, -1, ENOSPC, true, (int fd, const void *from, size_t len, off_t at),
	(fd, from, len, at))

/* Sockets. */
CALL(int, connect, -1, ENOMEM, true, (int fd, const struct sockaddr *addr, socklen_t len),
	(fd, addr, len))
CALL(int, bind, -1, ENOSPC, false, (int fd, const struct sockaddr *addr, socklen_t len),
	(fd, addr, len))
CALL(int, listen, -1, ENOBUFS, false, (int fd, int backlog), (fd, backlog))
CALL(int, getsockopt, -1, ENOBUFS, false,
	(int fd, int level, int name, void *to, socklen_t *len), (fd, level, name, to, len))
CALL(ssize_t, send, -1, ENOBUFS, true, (int fd, const void *from, size_t len, int flags),
	(fd, from, len, flags))
CALL(ssize_t, recv, -1, ENOMEM, true, (int fd, void *to, size_t len, int flags),
	(fd, to, len, flags))
CALL(ssize_t, sendmsg, -1, ENOBUFS, true, (int fd, const struct msghdr *message, int flags),
	(fd, message, flags))
CALL(ssize_t, recvmsg, -1, ENOMEM, true, (int fd, struct msghdr *message, int flags),
	(fd, message, flags))

/* Waiting. Only a signal makes these fail. */
CALL(int, poll, -1, ENOMEM, true, (struct pollfd *fds, nfds_t nr, int timeout), (fds, nr, timeout))
CALL(int, epoll_wait, -1, 0, true, (int fd, struct epoll_event *events, int nr, int timeout),
	(fd, events, nr, timeout))
CALL(int, usleep, -1, 0, true, (useconds_t us), (us))

/* Another process's memory. */
CALL(ssize_t, process_vm_readv, -1, ENOMEM, false,
	(pid_t pid, const struct iovec *local, unsigned long nr, const struct iovec *remote,
	 unsigned long nr_remote, unsigned long flags),
	(pid, local, nr, remote, nr_remote, flags))
CALL(ssize_t, process_vm_writev, -1, ENOMEM, false,
	(pid_t pid, const struct iovec *local, unsigned long nr, const struct iovec *remote,
	 unsigned long nr_remote, unsigned long flags),
	(pid, local, nr, remote, nr_remote, flags))

/* json-c, which gets no memory. */
CALL(struct json_object *, json_object_new_object, NULL, ENOMEM, false, (void), ())
CALL(struct json_object *, json_object_new_array, NULL, ENOMEM, false, (void), ())
CALL(struct json_object *, json_object_new_string, NULL, ENOMEM, false, (const char *text), (text))
CALL(struct json_object *, json_object_new_int, NULL, ENOMEM, false, (int32_t value), (value))
CALL(struct json_object *, json_object_new_int64, NULL, ENOMEM, false, (int64_t value), (value))
CALL(struct json_object *, json_object_new_uint64, NULL, ENOMEM, false, (uint64_t value), (value))
CALL(struct json_object *, json_object_new_boolean, NULL, ENOMEM, false, (json_bool value), (value))
CALL(struct json_object *, json_object_new_double_s, NULL, ENOMEM, false,
	(double value, const char *text), (value, text))
CALL(int, json_object_object_add, -1, ENOMEM, false,
	(struct json_object *object, const char *key, struct json_object *value),
	(object, key, value))
CALL(int, json_object_array_add, -1, ENOMEM, false,
	(struct json_object *array, struct json_object *value), (array, value))
CALL(const char *, json_object_to_json_string_ext, NULL, ENOMEM, false,
	(struct json_object *object, int flags), (object, flags))
CALL(const char *, json_object_to_json_string_length, NULL, ENOMEM, false,
	(struct json_object *object, int flags, size_t *len), (object, flags, len))
CALL(struct json_tokener *, json_tokener_new_ex, NULL, ENOMEM, false, (int depth), (depth))

/* clang-format on */

/* Those with a variable number of arguments. */

int failing_asprintf(char **to, const char *fmt, ...);
int failing_asprintf(char **to, const char *fmt, ...)
{
	va_list args;
	int len;

	if (fails("asprintf", ENOMEM, false))
		return -1;
	va_start(args, fmt);
	len = vasprintf(to, fmt, args);
	va_end(args);
	return len;
}

int failing_open(const char *path, int flags, ...);
int failing_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	if (fails("open", flags & O_CREAT ? ENOSPC : EMFILE, true))
		return -1;
	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open(path, flags, mode);
}

int failing_fcntl(int fd, int cmd, ...);
int failing_fcntl(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	if (fails("fcntl", EMFILE, false))
		return -1;
	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return fcntl(fd, cmd, arg);
}

int failing_ioctl(int fd, unsigned long request, ...);
int failing_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	if (fails("ioctl", ENOMEM, request == KVM_RUN || request == KVM_CREATE_VM))
		return -1;
	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return ioctl(fd, request, arg);
}

long failing_syscall(long number, ...);
long failing_syscall(long number, ...)
{
	va_list args;
	long arg[6];

	/* A futex fails for a signal only. */
	if (fails("syscall", number == SYS_pidfd_open ? EMFILE : 0, number == SYS_futex))
		return -1;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	return syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
