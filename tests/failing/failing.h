/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAILING_H
#define TESTS_FAILING_H

#include <stdbool.h>

/*
 * Calls that fail. The objects of the programs are linked here with their calls of libc
 * and json-c led to failing_<call>() (objcopy; the test's own calls are left alone), which
 * counts them and lets one, or half of them, fail with an error that the real one has.
 *
 * A scenario is run for the first call, the second and so on, until one run had no call
 * left to fail: then every call that it makes has failed once.
 */
enum failing_how {
	FAILING_ERROR,	   /* the @nth call: no memory, descriptors, space, ... */
	FAILING_INTERRUPT, /* the @nth call that a signal can interrupt: EINTR */
	FAILING_FLAKY,	   /* half of those: EINTR again and again; @nth is of no matter */
};

/* @everywhere: calls of all threads, else those of this one. */
void failing_begin(enum failing_how how, unsigned int nth, bool everywhere);
/* How many were made to fail since; nothing fails any more. */
unsigned int failing_end(void);
/* The last call that was made to fail since failing_begin(). */
const char *failing_call(void);

/*
 * A program linked with it fails by itself: FAILING="error 12", "interrupt 3" or "flaky 0" in its
 * environment; to the descriptor FAILING_FD it writes a line with the call for each that failed.
 */

#endif /* TESTS_FAILING_H */
