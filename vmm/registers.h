/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_REGISTERS_H
#define VMM_REGISTERS_H

#include "vcpu.h"

/*
 * Print to stderr, for a person: @what happened on @vcpu (the caller's own),
 * what KVM said, and every vCPU's registers. Stops the VM meanwhile; if the VM
 * ends already, somebody else has reported, and this prints nothing.
 */
void registers_report(struct vcpu *vcpu, const char *what);

#endif /* VMM_REGISTERS_H */
