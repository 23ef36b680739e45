// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The listening socket in the file system: made with mode 0600, in place of a
 * dead one if need be, never in place of a live one.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control_internal.h"

#define LOCK_TRIES   200
#define LOCK_STEP_US 10000

/*
 * "Is the old one dead? Then unlink and bind" is a race between two servers of
 * one name, so it is done under a lock on the directory. Returns the
 * descriptor that holds the lock, or a negative errno.
 */
static int lock_directory(const char *path)
{
	char copy[PATH_MAX];
	int fd, tries;

	strncpy(copy, path, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = '\0';
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (tries = 0; flock(fd, LOCK_EX | LOCK_NB); tries++) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || tries == LOCK_TRIES) {
			close(fd);
			return -EBUSY;
		}
		usleep(LOCK_STEP_US);
	}
	return fd;
}

/* Remove a socket that nobody listens on. 0 if the path is free now. */
static int remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, err;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno : 0;
	close(fd);
	/* EAGAIN: its queue is full, so somebody holds it. EPROTOTYPE: not a stream socket. */
	if (!err || err == -EAGAIN || err == -EPROTOTYPE)
		return -EADDRINUSE;
	if (err != -ECONNREFUSED)
		return err;
	return unlink(addr->sun_path) && errno != ENOENT ? -errno : 0;
}

static int bind_and_listen(int fd, const struct sockaddr_un *addr, struct stat *inode)
{
	int err = 0;

	/*
	 * The file that bind() makes takes the mode of the socket's own inode
	 * (net/unix/af_unix.c, unix_bind_bsd()), so that it is never open to
	 * others, and the umask, which all threads share, is left alone.
	 */
	if (fchmod(fd, 0600))
		return -errno;
	if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return -errno;
	if (lstat(addr->sun_path, inode))
		return -errno;
	if (inode->st_mode & 0777 & ~0600)
		err = -EPERM; /* a file system that has its own idea of modes */
	else if (listen(fd, HVP_CONTROL_MAX_CLIENTS))
		err = -errno;
	if (err)
		unlink(addr->sun_path);
	return err;
}

/* Returns the listening descriptor or a negative errno. */
int control_listen(const char *path, struct stat *inode)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int lock, fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	lock = lock_directory(path);
	if (lock < 0)
		return lock;
	err = remove_stale(&addr);
	if (err)
		goto out_lock;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		err = -errno;
		goto out_lock;
	}
	err = bind_and_listen(fd, &addr, inode);
	if (err)
		close(fd);
out_lock:
	close(lock);
	return err ? err : fd;
}

/* Root and our own user may talk to us; the file's mode alone could be changed. */
bool control_peer_allowed(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) || len != sizeof(*peer))
		return false;
	return !peer->uid || peer->uid == geteuid();
}
