/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_BOOTPARAMS_H
#define VMM_BOOTPARAMS_H

#include <stdint.h>

#include "loader.h"
#include "memory.h"
#include "message.h"

/*
 * Write the command line and the zero page (boot.rst, zero-page.rst) with the
 * memory map. @initrd_size may be 0. Returns 0 with the zero page at
 * LAYOUT_ZERO_PAGE, or -E2BIG with @message set: the command line is longer
 * than the kernel takes.
 */
int bootparams_write(struct memory *memory, const struct kernel_image *image, const char *cmdline,
		     uint32_t initrd_addr, uint32_t initrd_size, struct message *message);

#endif /* VMM_BOOTPARAMS_H */
