/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_CPUID_H
#define VMM_CPUID_H

#include <linux/kvm.h>
#include <stdint.h>

/* hvpoke's leaves stand behind KVM's own (0x40000000 and following). */
#define VMM_CPUID_HVPOKE 0x40000100u

/*
 * What KVM supports on this host, with room for the leaves that
 * cpuid_for_vcpu() adds. Release with free(). NULL with errno set on failure.
 */
struct kvm_cpuid2 *cpuid_supported(int kvm_fd);

/*
 * Make @cpuid that of vCPU @id of @nr_vcpus: hvpoke's leaves, one package of
 * @nr_vcpus cores of one thread each, APIC id @id. May be called again for the
 * next vCPU on the same @cpuid.
 */
void cpuid_for_vcpu(struct kvm_cpuid2 *cpuid, unsigned int id, unsigned int nr_vcpus);

#endif /* VMM_CPUID_H */
