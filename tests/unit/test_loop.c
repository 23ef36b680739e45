// SPDX-License-Identifier: GPL-2.0-or-later
/* The event loop: one event at a time, so that a handler may take another's watch away. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "loop.h"

struct both {
	struct loop loop;
	struct loop_watch one, other;
	unsigned int calls;
};

/* Both are ready at once: whoever is first removes the other and ends the loop. */
static void first(void *ctx, uint32_t events)
{
	struct both *both = ctx;

	assert_true(events & EPOLLIN);
	both->calls++;
	loop_remove(&both->loop, &both->one);
	loop_remove(&both->loop, &both->other);
	both->loop.stop = both->calls == 1;
}

static void handlers_may_remove_others(void **state)
{
	struct both both = {};

	(void)state;
	assert_int_equal(loop_init(&both.loop), 0);
	both.one = (struct loop_watch){eventfd(1, EFD_CLOEXEC), first, &both};
	both.other = (struct loop_watch){eventfd(1, EFD_CLOEXEC), first, &both};
	assert_int_equal(loop_add(&both.loop, &both.one, EPOLLIN), 0);
	assert_int_equal(loop_add(&both.loop, &both.other, EPOLLIN), 0);
	assert_int_equal(loop_add(&both.loop, &both.other, EPOLLIN), -EEXIST);
	assert_int_equal(loop_run(&both.loop), 0);
	assert_int_equal(both.calls, 1);
	close(both.one.fd);
	close(both.other.fd);
	loop_release(&both.loop);
	/* Once more does no harm. */
	loop_release(&both.loop);
	assert_int_equal(both.loop.epoll, -1);
}

static void says_that_it_cannot_wait(void **state)
{
	struct loop loop = {.epoll = -1};

	(void)state;
	assert_int_equal(loop_run(&loop), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handlers_may_remove_others),
		cmocka_unit_test(says_that_it_cannot_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
