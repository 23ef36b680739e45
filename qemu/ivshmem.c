// SPDX-License-Identifier: GPL-2.0-or-later
#include "ivshmem.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* @fd: -1 if none goes with it. */
static int send_number(int conn, int64_t number, int fd)
{
	uint64_t wire = htole64((uint64_t)number);
	struct iovec iov = {.iov_base = &wire, .iov_len = sizeof(wire)};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *header;
	ssize_t sent;

	if (fd >= 0) {
		message.msg_control = control.space;
		message.msg_controllen = sizeof(control.space);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	do {
		sent = sendmsg(conn, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return sent == sizeof(wire) ? 0 : -EIO;
}

int ivshmem_greet(int conn, uint16_t id, int memory, int host_doorbell, int guest_doorbell)
{
	const struct {
		int64_t number;
		int fd;
	} messages[] = {
		{IVSHMEM_VERSION, -1}, {id, -1}, {-1, memory}, {IVSHMEM_HOST, host_doorbell},
		{id, guest_doorbell},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages) && !err; i++)
		err = send_number(conn, messages[i].number, messages[i].fd);
	return err;
}
