// SPDX-License-Identifier: GPL-2.0-or-later
#include "vm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cpuid.h"
#include "doorbell.h"
#include "emulate.h"
#include "irqchip.h"

static int failed(int err, const char *what)
{
	fprintf(stderr, "hvpoke-vmm: %s: %s\n", what, strerror(-err));
	return err;
}

/* What this VMM cannot do without, beyond KVM's stable API of 2007. */
static const struct {
	int cap;
	const char *name;
} needed[] = {
	{KVM_CAP_IRQCHIP, "in-kernel interrupt controllers (KVM_CAP_IRQCHIP)"},
	{KVM_CAP_USER_MEMORY, "user memory regions (KVM_CAP_USER_MEMORY)"},
	{KVM_CAP_SET_TSS_ADDR, "KVM_CAP_SET_TSS_ADDR"},
	{KVM_CAP_SET_IDENTITY_MAP_ADDR, "KVM_CAP_SET_IDENTITY_MAP_ADDR"},
	{KVM_CAP_EXT_CPUID, "KVM_CAP_EXT_CPUID"},
	{KVM_CAP_PIT2, "the interval timer (KVM_CAP_PIT2)"},
	{KVM_CAP_MP_STATE, "KVM_CAP_MP_STATE"},
	{KVM_CAP_VCPU_EVENTS, "KVM_CAP_VCPU_EVENTS"},
	{KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT (Linux 4.11)"},
};

static int no_kvm(int err)
{
	const char *help = "";

	if (err == -ENOENT || err == -ENODEV)
		help = ": load KVM's module (modprobe kvm_intel or kvm_amd); if that fails, enable "
		       "virtualization in the firmware, or nested virtualization if this is a VM";
	else if (err == -EACCES || err == -EPERM)
		help = ": run as root, or as a member of the group that owns it (usually kvm)";
	fprintf(stderr, "hvpoke-vmm: cannot open /dev/kvm: %s%s\n", strerror(-err), help);
	return err;
}

static bool has_what_is_needed(int kvm_fd)
{
	int version = ioctl(kvm_fd, KVM_GET_API_VERSION, 0);

	if (version != KVM_API_VERSION) {
		fprintf(stderr, "hvpoke-vmm: /dev/kvm speaks API version %d, expected %d\n",
			version, KVM_API_VERSION);
		return false;
	}
	for (unsigned int i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (ioctl(kvm_fd, KVM_CHECK_EXTENSION, needed[i].cap) > 0)
			continue;
		fprintf(stderr, "hvpoke-vmm: this host's KVM lacks %s\n", needed[i].name);
		return false;
	}
	return true;
}

int vm_open_kvm(void)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return no_kvm(-errno);
	if (has_what_is_needed(fd))
		return fd;
	close(fd);
	return -ENOTSUP;
}

static int create_vm(struct vm *vm)
{
	int err;

	do {
		vm->fd = ioctl(vm->kvm_fd, KVM_CREATE_VM, 0);
		err = -errno;
	} while (vm->fd < 0 && err == -EINTR);
	return vm->fd < 0 ? failed(err, "KVM cannot create a virtual machine") : 0;
}

/* So that what KVM cannot emulate comes with its bytes, also from guest user mode (emulate.c). */
static void want_emulation_failures(struct vm *vm)
{
	const struct kvm_enable_cap cap = {
		.cap = KVM_CAP_EXIT_ON_EMULATION_FAILURE,
		.args = {1},
	};

	/* Missing before Linux 5.15: VMX and SVM do well without. */
	if (ioctl(vm->fd, KVM_CHECK_EXTENSION, KVM_CAP_EXIT_ON_EMULATION_FAILURE) > 0)
		ioctl(vm->fd, KVM_ENABLE_CAP, &cap);
}

static int create_vcpus(struct vm *vm, unsigned int nr_vcpus)
{
	struct kvm_cpuid2 *cpuid;
	int most = ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);
	int err = 0;

	if (most > 0 && nr_vcpus > (unsigned int)most) {
		fprintf(stderr, "hvpoke-vmm: %u vCPUs wanted, this host's KVM takes %d\n", nr_vcpus,
			most);
		return -EINVAL;
	}
	vm->vcpus = calloc(nr_vcpus, sizeof(struct vcpu *));
	vm->pause_cpus = calloc(nr_vcpus, sizeof(struct pause_cpu *));
	if (!vm->vcpus || !vm->pause_cpus)
		return failed(-ENOMEM, "cannot make the vCPUs");
	cpuid = cpuid_supported(vm->kvm_fd);
	if (!cpuid)
		return failed(-errno, "KVM does not say which CPUID it supports");
	vm->nr_vcpus = nr_vcpus;
	for (unsigned int i = 0; i < nr_vcpus && !err; i++) {
		err = vcpu_create(&vm->vcpus[i], vm, i, cpuid);
		if (err)
			fprintf(stderr, "hvpoke-vmm: KVM cannot create vCPU %u of %u: %s\n", i,
				nr_vcpus, strerror(-err));
		else
			vm->pause_cpus[i] = &vm->vcpus[i]->pause;
	}
	free(cpuid);
	return err;
}

int vm_create(struct vm *vm, unsigned int nr_vcpus, uint64_t memory)
{
	int fd = vm_open_kvm(), err;

	if (fd < 0)
		return fd;
	err = vm_create_on(vm, fd, nr_vcpus, memory);
	if (err)
		close(fd);
	else
		vm->owns_kvm_fd = true;
	return err;
}

int vm_create_on(struct vm *vm, int kvm_fd, unsigned int nr_vcpus, uint64_t memory)
{
	int err;

	memset(vm, 0, sizeof(*vm));
	vm->kvm_fd = kvm_fd;
	vm->fd = -1;
	vm->memory.fd = -1;
	vm->exit = VM_EXIT_NONE;
	pthread_mutex_init(&vm->operator_lock, NULL);
	vm->exit_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = vm->exit_event < 0 ? failed(-errno, "cannot make an eventfd") : 0;
	if (!err && (!nr_vcpus || nr_vcpus > VMM_MAX_VCPUS)) {
		fprintf(stderr, "hvpoke-vmm: %u vCPUs wanted, possible are 1 to %d\n", nr_vcpus,
			VMM_MAX_VCPUS);
		err = -EINVAL;
	}
	if (!err)
		err = create_vm(vm);
	if (err)
		goto failed;
	want_emulation_failures(vm);
	err = memory_init(&vm->memory, vm->fd, memory);
	if (err) {
		failed(err, "cannot make the guest's memory");
		goto failed;
	}
	err = irqchip_create(vm->fd);
	if (!err)
		err = create_vcpus(vm, nr_vcpus);
	if (err)
		goto failed;
	pause_init(&vm->pause, vm->pause_cpus, nr_vcpus);
	err = doorbell_create(vm);
	if (!err)
		return 0;
	failed(err, "cannot make the doorbell");
failed:
	vm_destroy(vm);
	return err;
}

int vm_start(struct vm *vm)
{
	int err = pause_install_handler();

	for (unsigned int i = 0; i < vm->nr_vcpus && !err && vm->count_int3; i++)
		err = emulate_want_breakpoints(vm->vcpus[i]);
	if (err)
		return failed(err, "KVM does not hand over the guest's breakpoints");
	for (unsigned int i = 0; i < vm->nr_vcpus && !err; i++)
		err = vcpu_start(vm->vcpus[i]);
	if (err) {
		failed(err, "cannot start the vCPUs' threads");
		vm_request_exit(vm, VM_EXIT_HOST);
		vm_join(vm);
	}
	return err;
}

void vm_request_exit(struct vm *vm, enum vm_exit why)
{
	const uint64_t one = 1;
	int running = VM_EXIT_NONE;

	if (!atomic_compare_exchange_strong(&vm->exit, &running, why))
		return;
	pause_exit(&vm->pause);
	/* Cannot fail: an eventfd's counter takes far more than our only write. */
	if (write(vm->exit_event, &one, sizeof(one)) < 0)
		failed(-errno, "cannot signal the end");
}

void vm_join(struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nr_vcpus; i++)
		vcpu_join(vm->vcpus[i]);
}

void vm_destroy(struct vm *vm)
{
	doorbell_destroy(vm);
	for (unsigned int i = 0; i < vm->nr_vcpus; i++)
		vcpu_destroy(vm->vcpus[i]);
	free(vm->vcpus);
	free(vm->pause_cpus);
	vm->vcpus = NULL;
	vm->pause_cpus = NULL;
	vm->nr_vcpus = 0;
	/* After the vCPUs, which have it mapped. */
	if (vm->fd >= 0)
		close(vm->fd);
	if (vm->owns_kvm_fd)
		close(vm->kvm_fd);
	vm->fd = -1;
	vm->kvm_fd = -1;
	memory_release(&vm->memory);
	if (vm->exit_event >= 0)
		close(vm->exit_event);
	vm->exit_event = -1;
	pthread_mutex_destroy(&vm->operator_lock);
}

int vm_pause(struct vm *vm)
{
	int err = -EALREADY;

	pthread_mutex_lock(&vm->operator_lock);
	if (!atomic_load(&vm->operator_paused)) {
		err = pause_begin(&vm->pause, NULL, NULL);
		if (!err)
			atomic_store(&vm->operator_paused, true);
	}
	pthread_mutex_unlock(&vm->operator_lock);
	return err;
}

int vm_resume(struct vm *vm)
{
	int err = -EALREADY;

	pthread_mutex_lock(&vm->operator_lock);
	if (atomic_load(&vm->operator_paused)) {
		atomic_store(&vm->operator_paused, false);
		pause_end(&vm->pause, NULL, NULL);
		err = 0;
	}
	pthread_mutex_unlock(&vm->operator_lock);
	return err;
}

bool vm_is_paused(struct vm *vm)
{
	return atomic_load(&vm->operator_paused);
}

int vm_irq_line(struct vm *vm, unsigned int gsi, bool level)
{
	const struct kvm_irq_level irq = {.irq = gsi, .level = level};

	return ioctl(vm->fd, KVM_IRQ_LINE, &irq) ? -errno : 0;
}
