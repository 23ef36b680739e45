// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * loader_elf.c - a vmlinux: each PT_LOAD goes to its physical address, and
 * the ELF entry is the kernel's startup_64 at its physical address
 * (arch/x86/kernel/vmlinux.lds.S, phys_startup_64).
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "layout.h"
#include "loader.h"

/* vmlinux has 5 to 6; more than this is no kernel. */
#define MAX_SEGMENTS 64

/* What a kernel takes without a header that says so: COMMAND_LINE_SIZE is 2048. */
#define VMLINUX_CMDLINE_MAX 2047
/* boot.rst: what a loader assumes if initrd_addr_max is not known to be higher. */
#define VMLINUX_INITRD_MAX 0x7fffffffu

static int check_header(const struct loader_file *file, const Elf64_Ehdr *ehdr,
			struct message *message)
{
	const char *path = file->path;

	if (ehdr->e_ident[EI_CLASS] != ELFCLASS64 || ehdr->e_machine != EM_X86_64 ||
	    ehdr->e_ident[EI_DATA] != ELFDATA2LSB)
		return message_set(
			message, -ENOEXEC,
			"%s: expected a 64-bit little endian x86-64 ELF, found class %u, "
			"data %u, machine %u",
			path, ehdr->e_ident[EI_CLASS], ehdr->e_ident[EI_DATA], ehdr->e_machine);
	if (ehdr->e_type != ET_EXEC && ehdr->e_type != ET_DYN)
		return message_set(message, -ENOEXEC,
				   "%s: expected an executable ELF (type 2 or 3), found type %u",
				   path, ehdr->e_type);
	if (ehdr->e_phentsize != sizeof(Elf64_Phdr) || ehdr->e_phnum == 0 ||
	    ehdr->e_phnum > MAX_SEGMENTS)
		return message_set(message, -ENOEXEC,
				   "%s: expected 1 to %d program headers of %zu bytes, found %u of "
				   "%u",
				   path, MAX_SEGMENTS, sizeof(Elf64_Phdr), ehdr->e_phnum,
				   ehdr->e_phentsize);
	return 0;
}

static int load_segment(struct memory *memory, const struct loader_file *file,
			const Elf64_Phdr *phdr, unsigned int nr, struct message *message)
{
	if (phdr->p_filesz > phdr->p_memsz || phdr->p_offset > file->size ||
	    phdr->p_filesz > file->size - phdr->p_offset)
		return message_set(message, -ENOEXEC,
				   "%s: segment %u (0x%llx bytes at offset 0x%llx, 0x%llx in "
				   "memory) lies outside of the file's 0x%llx bytes",
				   file->path, nr, (unsigned long long)phdr->p_filesz,
				   (unsigned long long)phdr->p_offset,
				   (unsigned long long)phdr->p_memsz,
				   (unsigned long long)file->size);
	if (!loader_room(memory, phdr->p_paddr, phdr->p_memsz))
		return message_set(message, -ENOSPC,
				   "%s: segment %u wants 0x%llx bytes at physical address 0x%llx, "
				   "but memory for kernels goes from 0x%x to 0x%llx: give the VM "
				   "more memory, or another kernel",
				   file->path, nr, (unsigned long long)phdr->p_memsz,
				   (unsigned long long)phdr->p_paddr, LAYOUT_KERNEL_MIN,
				   (unsigned long long)memory->low);
	return loader_copy(memory, file, phdr->p_paddr, phdr->p_filesz, phdr->p_offset, message);
}

/* The setup header that a bzImage would have brought; boot.rst has the fields. */
static void make_setup_header(struct setup_header *header)
{
	memset(header, 0, sizeof(*header));
	header->boot_flag = 0xaa55;
	memcpy(&header->header, "HdrS", 4);
	header->version = 0x020f;
	header->loadflags = LOADED_HIGH;
	header->kernel_alignment = 0x200000;
	header->cmdline_size = VMLINUX_CMDLINE_MAX;
	header->initrd_addr_max = VMLINUX_INITRD_MAX;
}

int loader_elf(struct memory *memory, const struct loader_file *file, struct kernel_image *image,
	       struct message *message)
{
	Elf64_Phdr phdrs[MAX_SEGMENTS];
	bool entry_found = false;
	Elf64_Ehdr ehdr;
	int err;

	err = loader_read(file, &ehdr, sizeof(ehdr), 0, message);
	if (!err)
		err = check_header(file, &ehdr, message);
	if (!err)
		err = loader_read(file, phdrs, ehdr.e_phnum * sizeof(*phdrs), ehdr.e_phoff,
				  message);
	if (err)
		return err;

	memset(image, 0, sizeof(*image));
	for (unsigned int i = 0; i < ehdr.e_phnum; i++) {
		const Elf64_Phdr *phdr = &phdrs[i];

		if (phdr->p_type != PT_LOAD || phdr->p_memsz == 0)
			continue;
		err = load_segment(memory, file, phdr, i, message);
		if (err)
			return err;
		/* The sum cannot wrap: the range was found in memory. */
		if (phdr->p_paddr + phdr->p_memsz > image->end)
			image->end = phdr->p_paddr + phdr->p_memsz;
		if (ehdr.e_entry >= phdr->p_paddr && ehdr.e_entry - phdr->p_paddr < phdr->p_filesz)
			entry_found = true;
	}
	if (!entry_found)
		return message_set(message, -ENOEXEC,
				   "%s: the entry 0x%llx lies in none of the loaded segments",
				   file->path, (unsigned long long)ehdr.e_entry);
	image->entry = ehdr.e_entry;
	image->initrd_max = VMLINUX_INITRD_MAX;
	image->cmdline_max = VMLINUX_CMDLINE_MAX;
	make_setup_header(&image->header);
	return 0;
}
