// SPDX-License-Identifier: GPL-2.0-or-later
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static gid_t allowed = (gid_t)-1;
/* A descriptor to give away when there is none left. */
static int spare = -1;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_spare(void)
{
	pthread_mutex_lock(&spare_lock);
	if (spare < 0)
		spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_mutex_unlock(&spare_lock);
}

void listen_allow_group(gid_t group)
{
	allowed = group;
}

int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, len, err = 0;

	len = snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (len < 0 || (size_t)len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	keep_spare();
	unlink(path);
	/*
	 * Nobody can connect before listen(): by then the mode is right. Not the
	 * umask: other threads have it too.
	 */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err = -errno;
	else if ((allowed != (gid_t)-1 && chown(path, -1, allowed) < 0) ||
		 chmod(path, allowed == (gid_t)-1 ? 0600 : 0660) < 0 || listen(fd, BACKLOG) < 0)
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * There is no descriptor for it, and where it is it would wake us for ever: so it is taken
 * with the spare one and closed. Its QEMU is told at once, instead of waiting for us.
 */
static int refuse(int listener)
{
	pthread_mutex_lock(&spare_lock);
	if (spare >= 0)
		close(spare);
	spare = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (spare >= 0)
		close(spare);
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_mutex_unlock(&spare_lock);
	return -EMFILE;
}

int listen_accept(int listener, struct peer *peer)
{
	struct ucred credentials;
	socklen_t len = sizeof(credentials);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return refuse(listener);
	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0 ||
	    credentials.pid <= 0) {
		/* No pid: it lives in a namespace that we cannot see into. */
		close(fd);
		return -EPERM;
	}
	*peer = (struct peer){.fd = fd, .pid = credentials.pid, .uid = credentials.uid};
	return 0;
}
