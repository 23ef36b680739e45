// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * loader.c - open a kernel or an initrd, tell kernels apart, copy into guest
 * memory.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"
#include "loader.h"

/* The boot sector's end: 0xAA55, the jump, and "HdrS". */
#define BZIMAGE_MAGIC_OFFSET 0x202
#define BZIMAGE_MAGIC	     "HdrS"

/* It may have been written to since it was opened. */
static int measure(struct loader_file *file, struct message *message)
{
	struct stat st;

	if (fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return message_set(message, -EINVAL, "%s is not a regular file", file->path);
	file->size = (uint64_t)st.st_size;
	return 0;
}

int loader_open(struct loader_file *file, const char *path, struct message *message)
{
	int err;

	/* O_NONBLOCK: a FIFO must give its error, not wait for a writer. */
	*file = (struct loader_file){
		.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
		.path = path,
	};
	if (file->fd < 0)
		return message_set(message, -errno, "cannot open %s: %s", path, strerror(errno));
	err = measure(file, message);
	if (err)
		loader_close(file);
	return err;
}

void loader_close(struct loader_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

int loader_read(const struct loader_file *file, void *buf, uint64_t len, uint64_t offset,
		struct message *message)
{
	uint8_t *at = buf;

	while (len > 0) {
		ssize_t got = pread(file->fd, at, len, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return message_set(message, -errno, "cannot read %s: %s", file->path,
					   strerror(errno));
		if (got == 0)
			return message_set(message, -EINVAL,
					   "%s ends early: %llu more bytes were expected at offset "
					   "%llu",
					   file->path, (unsigned long long)len,
					   (unsigned long long)offset);
		at += got;
		len -= (uint64_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

bool loader_room(const struct memory *memory, uint64_t addr, uint64_t len)
{
	return addr >= LAYOUT_KERNEL_MIN && addr < memory->low && memory_at(memory, gpa(addr), len);
}

/* Small enough to stay in the cache between its two copies. */
#define CHUNK 65536

static bool all_zero(const uint8_t *buf, size_t len)
{
	return buf[0] == 0 && !memcmp(buf, buf + 1, len - 1);
}

int loader_copy(const struct memory *memory, const struct loader_file *file, uint64_t addr,
		uint64_t len, uint64_t offset, struct message *message)
{
	const uint8_t *to = memory_at(memory, gpa(addr), len);
	off_t at = to - memory->base;
	uint8_t buf[CHUNK];

	/*
	 * Written to the memfd rather than read into its mapping: pages that are
	 * written whole are neither cleared first nor faulted in one by one, which
	 * is half of the CPU time.
	 */
	while (len > 0) {
		size_t part = len < sizeof(buf) ? len : sizeof(buf);
		int err = loader_read(file, buf, part, offset, message);

		if (err)
			return err;
		/* Guest memory is zero already, and kernels have MiBs of padding. */
		if (!all_zero(buf, part) && pwrite(memory->fd, buf, part, at) != (ssize_t)part)
			return message_set(message, -ENOMEM,
					   "no memory for the guest to hold %s: %s", file->path,
					   strerror(errno));
		len -= part;
		offset += part;
		at += (off_t)part;
	}
	return 0;
}

static bool has_magic(const uint8_t *head, size_t len, size_t offset, const char *magic)
{
	return len >= offset + strlen(magic) && !memcmp(head + offset, magic, strlen(magic));
}

int loader_load(struct memory *memory, struct loader_file *file, struct kernel_image *image,
		struct message *message)
{
	uint8_t head[BZIMAGE_MAGIC_OFFSET + sizeof(BZIMAGE_MAGIC)] = {};
	size_t len;
	int err;

	err = measure(file, message);
	if (err)
		return err;
	len = file->size < sizeof(head) ? file->size : sizeof(head);
	err = loader_read(file, head, len, 0, message);
	if (err)
		return err;
	if (has_magic(head, len, 0, ELFMAG))
		return loader_elf(memory, file, image, message);
	if (has_magic(head, len, BZIMAGE_MAGIC_OFFSET, BZIMAGE_MAGIC))
		return loader_bzimage(memory, file, image, message);
	return message_set(message, -ENOEXEC,
			   "%s is no kernel: expected an ELF vmlinux or a bzImage, found "
			   "neither magic in its first %zu bytes",
			   file->path, len);
}

int loader_initrd(struct memory *memory, struct loader_file *file, const struct kernel_image *image,
		  uint32_t *addr, uint32_t *size, struct message *message)
{
	uint64_t top, at = 0;
	int err;

	err = measure(file, message);
	if (err)
		return err;
	/* All of memory->low is below 4 GiB, so the sums below fit. */
	top = memory->low;
	if (image->initrd_max < top)
		top = image->initrd_max + 1;
	if (file->size < top)
		at = (top - file->size) & ~0xfffull;
	if (file->size == 0)
		err = message_set(message, -EINVAL, "%s is empty", file->path);
	else if (at < image->end)
		err = message_set(message, -ENOSPC,
				  "%s (%llu bytes) does not fit between the kernel's end at 0x%llx "
				  "and 0x%llx: give the VM more memory",
				  file->path, (unsigned long long)file->size,
				  (unsigned long long)image->end, (unsigned long long)top);
	else
		err = loader_copy(memory, file, at, file->size, 0, message);
	if (!err) {
		*addr = (uint32_t)at;
		*size = (uint32_t)file->size;
	}
	return err;
}
