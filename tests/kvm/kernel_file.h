/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_KERNEL_FILE_H
#define TESTS_KVM_KERNEL_FILE_H

#include <stddef.h>

#define KERNEL_ADDR 0x1000000ull

/* Two buffers, one behind the other, into a new file. Failures end the test. */
void write_file(const char *path, const void *head, size_t head_len, const void *body,
		size_t body_len);
/* @code as a vmlinux, whose 64-bit entry is at @entry_offset. */
void write_elf(const char *path, const void *code, size_t code_len, size_t entry_offset);

#endif /* TESTS_KVM_KERNEL_FILE_H */
