// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop.h"

int loop_init(struct loop *loop)
{
	loop->stop = false;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll < 0 ? -errno : 0;
}

void loop_release(struct loop *loop)
{
	if (loop->epoll >= 0)
		close(loop->epoll);
	loop->epoll = -1;
}

static int control(struct loop *loop, int op, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop->epoll, op, watch->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, watch, events);
}

void loop_remove(struct loop *loop, struct loop_watch *watch)
{
	control(loop, EPOLL_CTL_DEL, watch, 0);
}

int loop_run(struct loop *loop)
{
	while (!loop->stop) {
		struct epoll_event event = {};
		/*
		 * One at a time: a handler may remove another's watch, and then
		 * an event fetched before would lead to it all the same.
		 */
		int nr = epoll_wait(loop->epoll, &event, 1, -1);
		struct loop_watch *watch = event.data.ptr;

		if (nr < 0 && errno != EINTR)
			return -errno;
		if (nr > 0)
			watch->ready(watch->ctx, event.events);
	}
	return 0;
}
