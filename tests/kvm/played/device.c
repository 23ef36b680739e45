// SPDX-License-Identifier: GPL-2.0-or-later
/* /dev/kvm and what comes of it: the calls of libc that a VMM makes on them. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../vmm/pause.h"
#include "kvm.h"

#define DEVICE	       "/dev/kvm"
#define MAX_FDS	       4096
#define CLOCK_FLAGS    29 /* offset in struct pvclock_vcpu_time_info */
#define CLOCK_STOPPED  (1u << 1)
#define CLOCK_FEATURES 0x40000001u /* KVM's features: bit 3 is the clock */

static struct handle {
	enum { NONE, SYSTEM, VM, CPU } kind;
	struct played_vm *vm;
	struct played_cpu *cpu;
} handles[MAX_FDS];

/* For guest_kvm_is_played(). */
extern const char played_kvm[];
const char played_kvm[] = "played";

#define LIBC(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static struct handle *handle_of(int fd)
{
	return fd >= 0 && fd < MAX_FDS && handles[fd].kind != NONE ? &handles[fd] : NULL;
}

static int new_handle(struct handle handle, size_t size)
{
	int fd = memfd_create("played-kvm", MFD_CLOEXEC);

	if (fd < 0)
		return fd;
	if (fd >= MAX_FDS || ftruncate(fd, (off_t)size)) {
		LIBC(close)(fd);
		errno = EMFILE;
		return -1;
	}
	handles[fd] = handle;
	return fd;
}

int open(const char *file, int oflag, ...)
{
	mode_t mode = 0;
	va_list args;

	if (oflag & (O_CREAT | __O_TMPFILE)) {
		va_start(args, oflag);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	if (!strcmp(file, DEVICE))
		return new_handle((struct handle){.kind = SYSTEM}, 0);
	return LIBC(open)(file, oflag, mode);
}

int access(const char *name, int type)
{
	return strcmp(name, DEVICE) ? LIBC(access)(name, type) : 0;
}

/* The program's handler of the signal is called by ours. */
int sigaction(int sig, const struct sigaction *act, struct sigaction *oact)
{
	struct sigaction ours = {
		.sa_sigaction = played_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	if (sig != PAUSE_SIGNAL || !act)
		return LIBC(sigaction)(sig, act, oact);
	if (oact)
		*oact = played_action;
	played_action = *act;
	sigfillset(&ours.sa_mask);
	return LIBC(sigaction)(sig, &ours, NULL);
}

static void free_cpu(struct played_cpu *cpu)
{
	munmap(cpu->run, PLAYED_RUN_SIZE);
	free(cpu->stack);
	free(cpu);
}

int close(int fd)
{
	struct handle *handle = handle_of(fd);

	if (handle) {
		if (handle->kind == CPU) {
			free_cpu(handle->cpu);
		} else if (handle->kind == VM) {
			played_unmap_all(handle->vm);
			free(handle->vm);
		}
		*handle = (struct handle){.kind = NONE};
	}
	return LIBC(close)(fd);
}

static int create_vm(void)
{
	struct handle handle = {.kind = VM, .vm = calloc(1, sizeof(struct played_vm))};
	int fd = handle.vm ? new_handle(handle, 0) : -1;

	if (fd < 0)
		free(handle.vm);
	return fd;
}

static int create_cpu(struct played_vm *vm, unsigned long id)
{
	struct handle handle = {.kind = CPU, .cpu = calloc(1, sizeof(struct played_cpu))};
	struct played_cpu *cpu = handle.cpu;
	int fd;

	if (!cpu)
		return -1;
	cpu->vm = vm;
	cpu->into = -1;
	/* As with an irqchip. */
	cpu->mp_state = id ? KVM_MP_STATE_UNINITIALIZED : KVM_MP_STATE_RUNNABLE;
	fd = new_handle(handle, PLAYED_RUN_SIZE);
	if (fd < 0) {
		free(cpu);
		return -1;
	}
	cpu->run = mmap(NULL, PLAYED_RUN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cpu->run != MAP_FAILED)
		return fd;
	handles[fd].kind = NONE;
	LIBC(close)(fd);
	free(cpu);
	return -1;
}

static int supported_cpuid(struct kvm_cpuid2 *cpuid)
{
	static const struct kvm_cpuid_entry2 leaf[] = {
		{.function = 0, .eax = 0xd},
		{.function = 1},
		{.function = 0x40000000, .eax = CLOCK_FEATURES},
		{.function = CLOCK_FEATURES, .eax = 1u << 3},
	};

	if (cpuid->nent < sizeof(leaf) / sizeof(*leaf)) {
		errno = E2BIG;
		return -1;
	}
	cpuid->nent = sizeof(leaf) / sizeof(*leaf);
	memcpy(cpuid->entries, leaf, sizeof(leaf));
	return 0;
}

static int system_ioctl(unsigned long request, void *arg)
{
	switch (request) {
	case KVM_GET_API_VERSION: return KVM_API_VERSION;
	case KVM_CREATE_VM: return create_vm();
	case KVM_GET_VCPU_MMAP_SIZE: return PLAYED_RUN_SIZE;
	case KVM_GET_SUPPORTED_CPUID: return supported_cpuid(arg);
	case KVM_CHECK_EXTENSION:
		switch ((unsigned long)arg) {
		case KVM_CAP_MAX_VCPUS: return 1024;
		case KVM_CAP_EXIT_ON_EMULATION_FAILURE: return 0;
		default: return 1;
		}
	default: errno = ENOTTY; return -1;
	}
}

static int vm_ioctl(struct played_vm *vm, unsigned long request, void *arg)
{
	const struct kvm_userspace_memory_region *region = arg;

	switch (request) {
	case KVM_CHECK_EXTENSION: return system_ioctl(request, arg);
	case KVM_CREATE_VCPU: return create_cpu(vm, (unsigned long)arg);
	case KVM_SET_USER_MEMORY_REGION:
		if (region->slot >= PLAYED_SLOTS) {
			errno = EINVAL;
			return -1;
		}
		vm->slot[region->slot] = *region;
		return 0;
	case KVM_SET_IDENTITY_MAP_ADDR:
	case KVM_SET_TSS_ADDR:
	case KVM_CREATE_IRQCHIP:
	case KVM_CREATE_PIT2:
	case KVM_ENABLE_CAP:
	case KVM_IRQ_LINE: return 0;
	default: errno = ENOTTY; return -1;
	}
}

static const struct {
	size_t offset;
	int reg;
} regs_of[] = {
	{offsetof(struct kvm_regs, rax), REG_RAX}, {offsetof(struct kvm_regs, rbx), REG_RBX},
	{offsetof(struct kvm_regs, rcx), REG_RCX}, {offsetof(struct kvm_regs, rdx), REG_RDX},
	{offsetof(struct kvm_regs, rsi), REG_RSI}, {offsetof(struct kvm_regs, rdi), REG_RDI},
	{offsetof(struct kvm_regs, rsp), REG_RSP}, {offsetof(struct kvm_regs, rbp), REG_RBP},
	{offsetof(struct kvm_regs, r8), REG_R8},   {offsetof(struct kvm_regs, r9), REG_R9},
	{offsetof(struct kvm_regs, r10), REG_R10}, {offsetof(struct kvm_regs, r11), REG_R11},
	{offsetof(struct kvm_regs, r12), REG_R12}, {offsetof(struct kvm_regs, r13), REG_R13},
	{offsetof(struct kvm_regs, r14), REG_R14}, {offsetof(struct kvm_regs, r15), REG_R15},
	{offsetof(struct kvm_regs, rip), REG_RIP}, {offsetof(struct kvm_regs, rflags), REG_EFL},
};
#define NR_REGS (sizeof(regs_of) / sizeof(*regs_of))

static void get_regs(const struct played_cpu *cpu, struct kvm_regs *regs)
{
	for (size_t i = 0; i < NR_REGS; i++)
		memcpy((uint8_t *)regs + regs_of[i].offset, &cpu->regs[regs_of[i].reg], 8);
}

static void set_regs(struct played_cpu *cpu, const struct kvm_regs *regs)
{
	for (size_t i = 0; i < NR_REGS; i++)
		memcpy(&cpu->regs[regs_of[i].reg], (const uint8_t *)regs + regs_of[i].offset, 8);
}

static int clock_ctrl(struct played_cpu *cpu)
{
	uint8_t *clock = cpu->clock ? played_memory(cpu->vm, cpu->clock) : NULL;

	if (!clock) {
		errno = EINVAL;
		return -1;
	}
	__atomic_fetch_or(clock + CLOCK_FLAGS, CLOCK_STOPPED, __ATOMIC_SEQ_CST);
	return 0;
}

static int translate(struct played_cpu *cpu, struct kvm_translation *translation)
{
	uint64_t gpa = 0;

	translation->valid = played_translate(cpu, translation->linear_address, &gpa);
	translation->physical_address = gpa;
	return 0;
}

static int cpu_ioctl(struct played_cpu *cpu, unsigned long request, void *arg)
{
	int err;

	switch (request) {
	case KVM_RUN:
		err = played_run(cpu);
		errno = err;
		return err ? -1 : 0;
	case KVM_GET_REGS: get_regs(cpu, arg); return 0;
	case KVM_SET_REGS: set_regs(cpu, arg); return 0;
	case KVM_GET_SREGS: memcpy(arg, &cpu->sregs, sizeof(cpu->sregs)); return 0;
	case KVM_SET_SREGS: memcpy(&cpu->sregs, arg, sizeof(cpu->sregs)); return 0;
	case KVM_SET_MP_STATE: cpu->mp_state = ((struct kvm_mp_state *)arg)->mp_state; return 0;
	case KVM_KVMCLOCK_CTRL: return clock_ctrl(cpu);
	case KVM_TRANSLATE: return translate(cpu, arg);
	case KVM_SET_CPUID2: return 0;
	default: errno = ENOTTY; return -1;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct handle *handle = handle_of(fd);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!handle)
		return LIBC(ioctl)(fd, request, arg);
	switch (handle->kind) {
	case SYSTEM: return system_ioctl(request, arg);
	case VM: return vm_ioctl(handle->vm, request, arg);
	default: return cpu_ioctl(handle->cpu, request, arg);
	}
}
