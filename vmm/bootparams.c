// SPDX-License-Identifier: GPL-2.0-or-later
/* bootparams.c - the zero page, the e820 map and the command line. */
#include <errno.h>
#include <string.h>

#include "bootparams.h"
#include "layout.h"

#define E820_RAM      1
#define E820_RESERVED 2

/* boot.rst: an id for loaders without one assigned. */
#define LOADER_TYPE_UNDEFINED 0xff

static void e820_add(struct boot_params *params, uint64_t start, uint64_t end, uint32_t type)
{
	struct boot_e820_entry *entry = &params->e820_table[params->e820_entries];

	if (end <= start)
		return;
	*entry = (struct boot_e820_entry){.addr = start, .size = end - start, .type = type};
	params->e820_entries++;
}

static void e820_fill(struct boot_params *params, const struct memory *memory)
{
	e820_add(params, 0, LAYOUT_LOW_RAM_END, E820_RAM);
	e820_add(params, LAYOUT_LOW_RAM_END, 0xa0000, E820_RESERVED);
	/* The CPU tables stand here: the kernel must not take it as memory. */
	e820_add(params, LAYOUT_ACPI, LAYOUT_KERNEL_MIN, E820_RESERVED);
	e820_add(params, LAYOUT_KERNEL_MIN, memory->low, E820_RAM);
	e820_add(params, VMM_HOLE_END, VMM_HOLE_END + memory->high, E820_RAM);
}

static int write_cmdline(struct memory *memory, const struct kernel_image *image,
			 const char *cmdline, struct message *message)
{
	size_t len = strlen(cmdline), max = image->cmdline_max;

	if (max > LAYOUT_CMDLINE_LEN - 1)
		max = LAYOUT_CMDLINE_LEN - 1;
	if (len > max)
		return message_set(
			message, -E2BIG,
			"the kernel command line has %zu bytes, but this kernel takes at "
			"most %zu",
			len, max);
	memcpy(memory_at(memory, gpa(LAYOUT_CMDLINE), len + 1), cmdline, len + 1);
	return 0;
}

int bootparams_write(struct memory *memory, const struct kernel_image *image, const char *cmdline,
		     uint32_t initrd_addr, uint32_t initrd_size, struct message *message)
{
	struct boot_params *params;
	int err;

	err = write_cmdline(memory, image, cmdline, message);
	if (err)
		return err;
	params = memory_at(memory, gpa(LAYOUT_ZERO_PAGE), sizeof(*params));
	memset(params, 0, sizeof(*params));
	params->hdr = image->header;
	params->hdr.type_of_loader = LOADER_TYPE_UNDEFINED;
	params->hdr.cmd_line_ptr = LAYOUT_CMDLINE;
	params->hdr.ramdisk_image = initrd_size ? initrd_addr : 0;
	params->hdr.ramdisk_size = initrd_size;
	/* Read by kernels from 2.14 on; older ones scan and find it at the same place. */
	params->acpi_rsdp_addr = LAYOUT_ACPI;
	e820_fill(params, memory);
	return 0;
}
