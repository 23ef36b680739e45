/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_LOADER_H
#define VMM_LOADER_H

#include <stdbool.h>
#include <stdint.h>
#include <asm/bootparam.h>

#include "memory.h"
#include "message.h"

/*
 * Kernels are entered by the 64-bit boot protocol of
 * Documentation/arch/x86/boot.rst: long mode, identity mapping, RSI = zero
 * page. Guest memory is zero when a loader starts: it clears nothing.
 */
struct kernel_image {
	uint64_t entry;		    /* GPA of the 64-bit entry */
	uint64_t end;		    /* GPA behind what the kernel needs before it maps memory */
	uint64_t initrd_max;	    /* GPA of the last byte that an initrd may have */
	uint32_t cmdline_max;	    /* bytes, without the NUL */
	struct setup_header header; /* as the zero page is to hold it */
};

/* A file to be loaded, as often as the guest reboots. @path is borrowed, for messages. */
struct loader_file {
	int fd; /* -1: there is none */
	const char *path;
	uint64_t size; /* when it was last begun with */
};

/* A regular file. 0, or a negative errno with @message set. */
int loader_open(struct loader_file *file, const char *path, struct message *message);
void loader_close(struct loader_file *file);

/*
 * Load a kernel, an ELF vmlinux or a bzImage. Nothing in the file
 * is trusted. Returns 0, or a negative errno with @message set.
 */
int loader_load(struct memory *memory, struct loader_file *file, struct kernel_image *image,
		struct message *message);

/*
 * Load @file as high below 4 GiB's hole as @image allows, page aligned.
 * Returns 0 with @addr and @size set, or a negative errno with @message set.
 */
int loader_initrd(struct memory *memory, struct loader_file *file, const struct kernel_image *image,
		  uint32_t *addr, uint32_t *size, struct message *message);
/* Read exactly @len bytes from @offset; a shorter file is an error. */
int loader_read(const struct loader_file *file, void *buf, uint64_t len, uint64_t offset,
		struct message *message);

/*
 * Where a kernel may go: above the first MiB, below the hole. False unless all
 * of the range is there; longmode.h maps that part of memory.
 */
bool loader_room(const struct memory *memory, uint64_t addr, uint64_t len);
/* Copy @len bytes from @offset to guest address @addr, a range that is in memory. */
int loader_copy(const struct memory *memory, const struct loader_file *file, uint64_t addr,
		uint64_t len, uint64_t offset, struct message *message);

/* The two formats. @file begins with the format's magic. */
int loader_elf(struct memory *memory, const struct loader_file *file, struct kernel_image *image,
	       struct message *message);
int loader_bzimage(struct memory *memory, const struct loader_file *file,
		   struct kernel_image *image, struct message *message);

#endif /* VMM_LOADER_H */
