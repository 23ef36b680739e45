// SPDX-License-Identifier: GPL-2.0-or-later
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int add_slot(int vm_fd, uint32_t slot, uint64_t guest, uint64_t len, void *host)
{
	const struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = guest,
		.memory_size = len,
		.userspace_addr = (uintptr_t)host,
	};

	if (!len)
		return 0;
	return ioctl(vm_fd, KVM_SET_USER_MEMORY_REGION, &region) ? -errno : 0;
}

/* Its size is sealed: nobody who is given the descriptor can make us fault on our own guest. */
static int make_memfd(uint64_t size)
{
	int fd = memfd_create("hvpoke-guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int memory_init(struct memory *memory, int vm_fd, uint64_t size)
{
	void *base;
	int err;

	*memory = (struct memory){.fd = -1};
	if (!size || size % 4096 || size > INT64_MAX)
		return -EINVAL;
	memory->fd = make_memfd(size);
	if (memory->fd < 0)
		return memory->fd;
	/* Not reserved and not touched: the host gives a page when the guest first uses it. */
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory->fd, 0);
	if (base == MAP_FAILED) {
		err = -errno;
		goto release;
	}
	memory->base = base;
	memory->size = size;
	memory->low = size < VMM_HOLE_START ? size : VMM_HOLE_START;
	memory->high = size - memory->low;
	/* A core dump of ours is about us, and not gigabytes of guest. Best effort. */
	madvise(base, size, MADV_DONTDUMP);

	err = add_slot(vm_fd, 0, 0, memory->low, memory->base);
	if (!err)
		err = add_slot(vm_fd, 1, VMM_HOLE_END, memory->high, memory->base + memory->low);
	if (!err)
		return 0;
release:
	memory_release(memory);
	return err;
}

void memory_release(struct memory *memory)
{
	if (memory->base)
		munmap(memory->base, memory->size);
	if (memory->fd >= 0)
		close(memory->fd);
	*memory = (struct memory){.fd = -1};
}

static bool inside(uint64_t addr, uint64_t len, uint64_t start, uint64_t size)
{
	return addr >= start && addr - start < size && len <= size - (addr - start);
}

void *memory_at(const struct memory *memory, gpa_t addr, uint64_t len)
{
	if (!len)
		len = 1;
	if (inside(addr.addr, len, 0, memory->low))
		return memory->base + addr.addr;
	if (inside(addr.addr, len, VMM_HOLE_END, memory->high))
		return memory->base + memory->low + (addr.addr - VMM_HOLE_END);
	return NULL;
}
