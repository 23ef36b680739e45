/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_KVM_TEST_H
#define TESTS_KVM_KVM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guest.h"

/* First in each test: skipped by name, with the reason, where there is no /dev/kvm. */
#define NEED_KVM()                     \
	do {                           \
		if (!guest_have_kvm()) \
			skip();        \
	} while (0)

#endif /* TESTS_KVM_KVM_TEST_H */
