// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel's file, an ELF vmlinux or a bzImage, as hvpoke-vmm loads it. The first two bytes are
 * the size of an initrd in units of 4 KiB, the rest is the kernel.
 *
 * Nothing is put where no kernel may go, and what the loader says of the image is in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "layout.h"
#include "loader.h"

#define MEMORY (UINT64_C(16) << 20)

static void make_memory(struct memory *memory)
{
	*memory = (struct memory){
		.fd = memfd_create("guest", MFD_CLOEXEC),
		.size = MEMORY,
		.low = MEMORY,
	};
	CHECK(memory->fd >= 0 && !ftruncate(memory->fd, (off_t)MEMORY));
	memory->base = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	CHECK(memory->base != MAP_FAILED);
}

static void check_initrd(struct memory *memory, const struct kernel_image *image, uint64_t pages)
{
	int fd = memfd_create("initrd", MFD_CLOEXEC);
	struct message message = {};
	struct loader_file file;
	uint32_t addr, size;
	char name[64];
	int err;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)(pages * 4096)));
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	CHECK(!loader_open(&file, name, &message));
	err = loader_initrd(memory, &file, image, &addr, &size, &message);
	loader_close(&file);
	CHECK(err ? *message.text : size == pages * 4096);
	if (!err)
		CHECK(addr % 4096 == 0 && addr >= image->end && addr + (uint64_t)size <= MEMORY &&
		      addr + (uint64_t)size - 1 <= image->initrd_max);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	static struct memory memory = {.fd = -1};
	struct kernel_image image = {};
	struct message message = {};
	struct loader_file file;
	uint16_t pages = input_u16(&in);
	size_t len = (size_t)(in.end - in.at);
	char name[64];
	int fd, err;
	off_t first;

	if (memory.fd < 0)
		make_memory(&memory);
	if (size < 2)
		return 0;
	fd = memfd_create("kernel", MFD_CLOEXEC);
	CHECK(fd >= 0 && write(fd, in.at, len) == (ssize_t)len);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	CHECK(!loader_open(&file, name, &message));
	err = loader_load(&memory, &file, &image, &message);
	loader_close(&file);
	CHECK(err <= 0 && (!err || *message.text));
	if (!err) {
		CHECK(image.entry >= LAYOUT_KERNEL_MIN && image.entry < image.end);
		CHECK(image.end <= MEMORY);
		check_initrd(&memory, &image, pages);
	}
	first = lseek(memory.fd, 0, SEEK_DATA);
	CHECK(first < 0 || first >= LAYOUT_KERNEL_MIN);
	CHECK(!fallocate(memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)MEMORY));
	close(fd);
	return 0;
}
