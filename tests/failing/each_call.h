/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAILING_EACH_CALL_H
#define TESTS_FAILING_EACH_CALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"

/*
 * Do something between failing_begin(@how, @nth, ...) and failing_end(), whose number is returned;
 * check that what failed was reported, that nothing is lost, and that all works again.
 */
typedef unsigned int (*failing_scenario)(enum failing_how how, unsigned int nth);

/*
 * Run @scenario for each call that it makes: failing with an error, interrupted, and then with
 * half of those that can be interrupted. Fails the test if one hangs or leaves a
 * descriptor open. Prints how many calls failed.
 */
void each_call(const char *name, failing_scenario scenario);

/* Open descriptors of this process. */
unsigned int open_descriptors(void);

#endif /* TESTS_FAILING_EACH_CALL_H */
