// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * loader_bzimage.c - a bzImage: the setup header tells where its protected
 * mode part may go; that part is entered at +0x200 in long mode
 * (Documentation/arch/x86/boot.rst, "64-bit Boot Protocol").
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "layout.h"
#include "loader.h"

#define SECTOR	     512u
#define HEADER_START 0x1f1u /* setup_sects, the header's first field */
#define HEADER_JUMP  0x200u /* byte 1 of the jump says where the header ends */
#define ENTRY_64     0x200u

/* xloadflags, and with it XLF_KERNEL_64, came with 2.12. */
#define MIN_VERSION 0x020c

static int read_header(const struct loader_file *file, struct setup_header *header,
		       struct message *message)
{
	uint8_t raw[HEADER_START + sizeof(*header)];
	uint64_t len, want = sizeof(raw);
	int err;

	/* A small file is fine for now; what is needed of it is checked below. */
	if (file->size < want)
		want = file->size;
	memset(raw, 0, sizeof(raw));
	err = loader_read(file, raw, want, 0, message);
	if (err)
		return err;
	/* Fields behind the end that the kernel states are code: not for the zero page. */
	len = HEADER_JUMP + 2u + raw[HEADER_JUMP + 1];
	if (len > want)
		len = want;
	memset(header, 0, sizeof(*header));
	memcpy(header, raw + HEADER_START, len - HEADER_START);
	return 0;
}

static int check_header(const struct loader_file *file, const struct setup_header *header,
			struct message *message)
{
	const char *path = file->path;

	if (header->boot_flag != 0xaa55)
		return message_set(message, -ENOEXEC, "%s: expected boot flag 0xaa55, found 0x%x",
				   path, header->boot_flag);
	if (header->version < MIN_VERSION)
		return message_set(message, -ENOEXEC,
				   "%s: expected boot protocol 2.12 or newer (Linux 3.8), found "
				   "%u.%u",
				   path, header->version >> 8, header->version & 0xff);
	if (!(header->loadflags & LOADED_HIGH) || !(header->xloadflags & XLF_KERNEL_64))
		return message_set(message, -ENOEXEC,
				   "%s: the kernel has no 64-bit entry (loadflags 0x%x, xloadflags "
				   "0x%x): expected a 64-bit bzImage",
				   path, header->loadflags, header->xloadflags);
	return 0;
}

/*
 * Where the kernel goes: where it wants to be, else, if it can be moved, the
 * lowest aligned address. It decompresses in place within init_size bytes.
 */
static int choose_address(const struct memory *memory, const struct loader_file *file,
			  const struct setup_header *header, uint64_t size, uint64_t *addr,
			  struct message *message)
{
	uint64_t align = header->kernel_alignment;

	*addr = header->pref_address;
	if (loader_room(memory, *addr, size))
		return 0;
	if (header->relocatable_kernel && align >= 0x1000 && !(align & (align - 1))) {
		*addr = (LAYOUT_KERNEL_MIN + align - 1) & ~(align - 1);
		if (loader_room(memory, *addr, size))
			return 0;
	}
	return message_set(message, -ENOSPC,
			   "%s: the kernel wants 0x%llx bytes at 0x%llx (alignment 0x%llx, %s), "
			   "but memory for kernels goes from 0x%x to 0x%llx: give the VM more "
			   "memory",
			   file->path, (unsigned long long)size,
			   (unsigned long long)header->pref_address, (unsigned long long)align,
			   header->relocatable_kernel ? "relocatable" : "not relocatable",
			   LAYOUT_KERNEL_MIN, (unsigned long long)memory->low);
}

int loader_bzimage(struct memory *memory, const struct loader_file *file,
		   struct kernel_image *image, struct message *message)
{
	struct setup_header header;
	uint64_t setup, payload, size, addr;
	int err;

	err = read_header(file, &header, message);
	if (!err)
		err = check_header(file, &header, message);
	if (err)
		return err;

	/* 0 means 4, for kernels older than any of us. */
	setup = (uint64_t)((header.setup_sects ? header.setup_sects : 4) + 1) * SECTOR;
	if (file->size < setup + ENTRY_64 + 1)
		return message_set(message, -ENOEXEC,
				   "%s ends early: %llu bytes, of which %llu are setup code",
				   file->path, (unsigned long long)file->size,
				   (unsigned long long)setup);
	payload = file->size - setup;
	size = payload > header.init_size ? payload : header.init_size;
	err = choose_address(memory, file, &header, size, &addr, message);
	if (!err)
		err = loader_copy(memory, file, addr, payload, setup, message);
	if (err)
		return err;

	header.code32_start = (uint32_t)addr;
	*image = (struct kernel_image){
		.entry = addr + ENTRY_64,
		.end = addr + size,
		.initrd_max = header.initrd_addr_max,
		.cmdline_max = header.cmdline_size,
		.header = header,
	};
	return 0;
}
