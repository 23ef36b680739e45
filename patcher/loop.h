/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_LOOP_H
#define HVP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* A thread's event loop: epoll, and who is called when a descriptor is ready. */
struct loop {
	int epoll;
	bool stop;
};

struct loop_watch {
	int fd;
	void (*ready)(void *ctx, uint32_t events); /* EPOLL* */
	void *ctx;
};

/* 0 or a negative errno. */
int loop_init(struct loop *loop);
void loop_release(struct loop *loop);
/*
 * @watch stays where it is until loop_remove(). 0 or a negative errno: -EPERM
 * if the file is one that is always ready (a regular file).
 */
int loop_add(struct loop *loop, struct loop_watch *watch, uint32_t events);
void loop_remove(struct loop *loop, struct loop_watch *watch);
/* Until loop->stop is set, or epoll fails (negative errno). */
int loop_run(struct loop *loop);

#endif /* HVP_LOOP_H */
