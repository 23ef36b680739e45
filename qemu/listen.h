/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_LISTEN_H
#define HVPOKED_LISTEN_H

#include <sys/types.h>

/*
 * The sockets that QEMU connects to. Who connects is asked of the kernel
 * (SO_PEERCRED), never of the peer: that ties a guest's memory, its monitor and
 * its process together.
 */
struct peer {
	int fd;
	pid_t pid;
	uid_t uid;
};

/* The group whose members may connect, next to root and us: -1 for none. Call before the first. */
void listen_allow_group(gid_t group);
/*
 * A listening, non-blocking UNIX stream socket at @path, mode 0660. What stands
 * there is replaced: callers own the directory. Its descriptor or -errno.
 */
int listen_at(const char *path);
/* The next client. 0, -EAGAIN if there is none, -EMFILE if it had to be turned away, or -errno. */
int listen_accept(int listener, struct peer *peer);

#endif /* HVPOKED_LISTEN_H */
