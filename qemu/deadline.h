/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_DEADLINE_H
#define HVPOKED_DEADLINE_H

#include <stdint.h>
#include <time.h>

/* A moment on CLOCK_MONOTONIC, milliseconds: everything that waits has one. */
static inline int64_t deadline_in(int ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000 + ms;
}

/* Milliseconds left, for poll(); 0 if it is over. */
static inline int deadline_left(int64_t deadline)
{
	int64_t left = deadline - deadline_in(0);

	return left > 0 ? (int)left : 0;
}

#endif /* HVPOKED_DEADLINE_H */
