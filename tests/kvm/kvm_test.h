/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_KVM_TEST_H
#define TESTS_KVM_KVM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "guest.h"

/* First in each test: skipped by name, with the reason, where there is no /dev/kvm. */
#define NEED_KVM()                     \
	do {                           \
		if (!guest_have_kvm()) \
			skip();        \
	} while (0)

/* Likewise, where the guest's instructions must be more than user mode's (played/kvm.h). */
#define NEED_REAL_KVM()                                                                 \
	do {                                                                            \
		NEED_KVM();                                                             \
		if (guest_kvm_is_played()) {                                            \
			fprintf(stderr, "skipped: needs KVM itself, not one played\n"); \
			skip();                                                         \
		}                                                                       \
	} while (0)

#endif /* TESTS_KVM_KVM_TEST_H */
