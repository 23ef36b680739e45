// SPDX-License-Identifier: GPL-2.0-or-later
#include "irqchip.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/*
 * Pages that KVM on old Intel hosts takes from the guest's physical space to
 * run real mode (KVM_SET_TSS_ADDR: three pages). In the hole, away from RAM,
 * IOAPIC and local APIC.
 */
#define IDENTITY_MAP_ADDR 0xfffbc000ull
#define TSS_ADDR	  0xfffbd000ul

static int failed(const char *what)
{
	int err = errno;

	fprintf(stderr, "hvpoke-vmm: KVM does not provide the %s: %s\n", what, strerror(err));
	return -err;
}

int irqchip_create(int vm_fd)
{
	const uint64_t identity_map = IDENTITY_MAP_ADDR;
	const struct kvm_pit_config pit = {.flags = KVM_PIT_SPEAKER_DUMMY};
	struct kvm_enable_cap x2apic = {
		.cap = KVM_CAP_X2APIC_API,
		.args = {KVM_X2APIC_API_USE_32BIT_IDS | KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK},
	};

	if (ioctl(vm_fd, KVM_SET_IDENTITY_MAP_ADDR, &identity_map))
		return failed("identity map page");
	if (ioctl(vm_fd, KVM_SET_TSS_ADDR, TSS_ADDR))
		return failed("TSS pages");
	if (ioctl(vm_fd, KVM_CREATE_IRQCHIP))
		return failed("interrupt controllers");
	if (ioctl(vm_fd, KVM_CREATE_PIT2, &pit))
		return failed("interval timer");
	/*
	 * Without it, x2APIC destination 0xff would mean all vCPUs (KVM's
	 * documentation, 7.7 KVM_CAP_X2APIC_API). Kernels before 4.7 lack it
	 * and manage: our ids end at 254.
	 */
	if (ioctl(vm_fd, KVM_CHECK_EXTENSION, KVM_CAP_X2APIC_API) > 0 &&
	    ioctl(vm_fd, KVM_ENABLE_CAP, &x2apic))
		return failed("x2APIC ids");
	return 0;
}
