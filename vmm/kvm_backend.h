/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_KVM_BACKEND_H
#define VMM_KVM_BACKEND_H

#include <stdbool.h>

/* "vmx", "svm" or "pvm", by the KVM module that is loaded; "unknown" if that does not tell. */
const char *kvm_backend(void);

/*
 * Whether a guest may be in KVM's software back end, kvm-pvm. There VMCALL and
 * VMMCALL never return: the emulator means to replace them by the processor's
 * own, and comes back to the same instruction for ever (tried on Linux 6.18).
 */
bool kvm_backend_may_be_software(void);

#endif /* VMM_KVM_BACKEND_H */
