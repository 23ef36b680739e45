// SPDX-License-Identifier: GPL-2.0-or-later
#include "cpuid.h"

#include <asm/kvm_para.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "../proto/hvpoke_abi.h"
#include "kvm_backend.h"

/* KVM_MAX_CPUID_ENTRIES (arch/x86/include/asm/kvm_host.h): more it never returns, nor takes. */
#define MAX_ENTRIES 256

/* Leaf 1 (SDM vol. 2A, CPUID). */
#define LEAF1_ECX_CX16	       (1u << 13)
#define LEAF1_ECX_X2APIC       (1u << 21)
#define LEAF1_ECX_TSC_DEADLINE (1u << 24)
#define LEAF1_ECX_HYPERVISOR   (1u << 31)
#define LEAF1_EDX_HTT	       (1u << 28)

/* Leaf 0xb and 0x1f, ECX[15:8]. */
#define LEVEL_THREAD 1
#define LEVEL_CORE   2

struct kvm_cpuid2 *cpuid_supported(int kvm_fd)
{
	struct kvm_cpuid2 *cpuid;

	cpuid = calloc(1, sizeof(*cpuid) + MAX_ENTRIES * sizeof(cpuid->entries[0]));
	if (!cpuid)
		return NULL;
	cpuid->nent = MAX_ENTRIES;
	if (ioctl(kvm_fd, KVM_GET_SUPPORTED_CPUID, cpuid)) {
		int err = errno;

		free(cpuid);
		errno = err;
		return NULL;
	}
	return cpuid;
}

static struct kvm_cpuid_entry2 *find(struct kvm_cpuid2 *cpuid, uint32_t function, uint32_t index)
{
	for (uint32_t i = 0; i < cpuid->nent; i++)
		if (cpuid->entries[i].function == function && cpuid->entries[i].index == index)
			return &cpuid->entries[i];
	return NULL;
}

/* The leaf, added if there is none and room for it; else NULL. */
static struct kvm_cpuid_entry2 *find_or_add(struct kvm_cpuid2 *cpuid, uint32_t function,
					    uint32_t index, uint32_t flags)
{
	struct kvm_cpuid_entry2 *entry = find(cpuid, function, index);

	if (!entry && cpuid->nent < MAX_ENTRIES) {
		entry = &cpuid->entries[cpuid->nent++];
		*entry = (struct kvm_cpuid_entry2){
			.function = function, .index = index, .flags = flags};
	}
	return entry;
}

/* Bits of an APIC id that tell the package's cores apart. */
static unsigned int core_bits(unsigned int nr_vcpus)
{
	unsigned int bits = 0;

	while ((1u << bits) < nr_vcpus)
		bits++;
	return bits;
}

static void set_features(struct kvm_cpuid2 *cpuid, unsigned int id, unsigned int nr_vcpus)
{
	struct kvm_cpuid_entry2 *leaf = find(cpuid, 1, 0);
	unsigned int ids = 1u << core_bits(nr_vcpus);

	if (!leaf)
		return;
	/* EBX: APIC id, addressable ids in the package, CLFLUSH size, (brand) */
	leaf->ebx &= 0x0000ffff;
	leaf->ebx |= id << 24 | (ids > 255 ? 255 : ids) << 16;
	leaf->ecx |= LEAF1_ECX_X2APIC | LEAF1_ECX_TSC_DEADLINE | LEAF1_ECX_HYPERVISOR;
	leaf->edx &= ~LEAF1_EDX_HTT;
	if (nr_vcpus > 1)
		leaf->edx |= LEAF1_EDX_HTT;
}

/* Leaves 0xb and 0x1f: the x2APIC id, and how it is made up. */
static void set_topology(struct kvm_cpuid2 *cpuid, uint32_t function, unsigned int id,
			 unsigned int nr_vcpus)
{
	const uint32_t flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
	struct kvm_cpuid_entry2 *thread = find_or_add(cpuid, function, 0, flags);
	struct kvm_cpuid_entry2 *core = find_or_add(cpuid, function, 1, flags);
	struct kvm_cpuid_entry2 *end = find_or_add(cpuid, function, 2, flags);

	if (!thread || !core || !end)
		return;
	thread->eax = 0;
	thread->ebx = 1;
	thread->ecx = 0 | LEVEL_THREAD << 8;
	thread->edx = id;
	core->eax = core_bits(nr_vcpus);
	core->ebx = nr_vcpus;
	core->ecx = 1 | LEVEL_CORE << 8;
	core->edx = id;
	end->eax = 0;
	end->ebx = 0;
	end->ecx = 2;
	end->edx = id;
}

/* Leaf 4 (Intel) and 0x8000001d (AMD): level 3 is the package's, the others a core's own. */
static void set_cache_sharing(struct kvm_cpuid2 *cpuid, unsigned int nr_vcpus)
{
	unsigned int ids = 1u << core_bits(nr_vcpus);

	for (uint32_t i = 0; i < cpuid->nent; i++) {
		struct kvm_cpuid_entry2 *leaf = &cpuid->entries[i];
		unsigned int level = (leaf->eax >> 5) & 7;

		if ((leaf->function != 4 && leaf->function != 0x8000001d) || !(leaf->eax & 0x1f))
			continue;
		leaf->eax &= 0x00003fff;
		if (level >= 3)
			leaf->eax |= (ids - 1) << 14;
		if (leaf->function == 4)
			leaf->eax |= ((ids > 64 ? 64 : ids) - 1) << 26;
	}
}

/* AMD's own topology leaves (APM vol. 3, appendix E). */
static void set_amd_topology(struct kvm_cpuid2 *cpuid, unsigned int id, unsigned int nr_vcpus)
{
	struct kvm_cpuid_entry2 *sizes = find(cpuid, 0x80000008, 0);
	struct kvm_cpuid_entry2 *ids = find(cpuid, 0x8000001e, 0);

	if (sizes && sizes->ecx)
		sizes->ecx = core_bits(nr_vcpus) << 12 | (nr_vcpus - 1);
	if (ids) {
		ids->eax = id;
		ids->ebx = id & 0xff; /* core id, one thread in it */
		ids->ecx = 0;	      /* one node, number 0 */
	}
}

/*
 * KVM's own features that a guest uses by hypercalls (Documentation/virt/kvm/
 * x86/cpuid.rst).
 */
#define KVM_HYPERCALL_FEATURES                                         \
	(1u << KVM_FEATURE_PV_UNHALT | 1u << KVM_FEATURE_PV_SEND_IPI | \
	 1u << KVM_FEATURE_PV_SCHED_YIELD)

/* What a guest's kernel would use, but KVM's software back end cannot execute (kvm_backend.h). */
static void hide_what_hangs(struct kvm_cpuid2 *cpuid)
{
	struct kvm_cpuid_entry2 *features = find(cpuid, 1, 0);
	struct kvm_cpuid_entry2 *kvm = find(cpuid, KVM_CPUID_FEATURES, 0);

	if (!kvm_backend_may_be_software())
		return;
	/* Other instructions that it lacks show all the same: the kernel has to be told. */
	if (features)
		features->ecx &= ~LEAF1_ECX_CX16;
	if (kvm)
		kvm->eax &= ~KVM_HYPERCALL_FEATURES;
}

static void set_hvpoke(struct kvm_cpuid2 *cpuid)
{
	struct kvm_cpuid_entry2 *name = find_or_add(cpuid, VMM_CPUID_HVPOKE, 0, 0);
	struct kvm_cpuid_entry2 *host = find_or_add(cpuid, VMM_CPUID_HVPOKE + 1, 0, 0);

	if (!name || !host)
		return;
	name->eax = VMM_CPUID_HVPOKE + 1;
	name->ebx = HVPOKE_CPUID_EBX;
	name->ecx = HVPOKE_CPUID_ECX;
	name->edx = HVPOKE_CPUID_EDX;
	host->eax = HVPOKE_ABI_VERSION;
	host->ebx = HVPOKE_FEATURES;
	host->ecx = HVPOKE_PORT;
	host->edx = HVPOKE_IRQ;
}

void cpuid_for_vcpu(struct kvm_cpuid2 *cpuid, unsigned int id, unsigned int nr_vcpus)
{
	const struct kvm_cpuid_entry2 *highest = find(cpuid, 0, 0);

	set_features(cpuid, id, nr_vcpus);
	set_topology(cpuid, 0xb, id, nr_vcpus);
	if (highest && highest->eax >= 0x1f)
		set_topology(cpuid, 0x1f, id, nr_vcpus);
	set_cache_sharing(cpuid, nr_vcpus);
	set_amd_topology(cpuid, id, nr_vcpus);
	hide_what_hangs(cpuid);
	set_hvpoke(cpuid);
}
