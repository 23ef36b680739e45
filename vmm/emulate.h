/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_EMULATE_H
#define VMM_EMULATE_H

#include <stdbool.h>

#include "vcpu.h"

/*
 * Complete what KVM could not: it has left with KVM_EXIT_INTERNAL_ERROR. False
 * if that is beyond us too.
 */
bool emulate_failure(struct vcpu *vcpu);

/*
 * With vm->count_int3 KVM hands us each #BP (KVM_EXIT_DEBUG): count it, and
 * give it to the guest as if nothing had happened. False if it is something
 * else.
 */
bool emulate_breakpoint(struct vcpu *vcpu);
/* Ask KVM for that, before the vCPU starts. 0 or a negative errno. */
int emulate_want_breakpoints(struct vcpu *vcpu);

#endif /* VMM_EMULATE_H */
