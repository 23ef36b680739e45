// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel_file.h"

#include <elf.h>
#include <stdio.h>

#include "kvm_test.h"

void write_file(const char *path, const void *head, size_t head_len, const void *body,
		size_t body_len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(head, 1, head_len, file), head_len);
	assert_int_equal(fwrite(body, 1, body_len, file), body_len);
	assert_int_equal(fclose(file), 0);
}

void write_elf(const char *path, const void *code, size_t code_len, size_t entry_offset)
{
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
	} head = {
		.ehdr =
			{
				.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					    EV_CURRENT},
				.e_type = ET_EXEC,
				.e_machine = EM_X86_64,
				.e_entry = KERNEL_ADDR + entry_offset,
				.e_phoff = sizeof(Elf64_Ehdr),
				.e_phentsize = sizeof(Elf64_Phdr),
				.e_phnum = 1,
			},
		.phdr =
			{
				.p_type = PT_LOAD,
				.p_offset = sizeof(head),
				.p_paddr = KERNEL_ADDR,
				.p_filesz = code_len,
				.p_memsz = code_len,
			},
	};

	write_file(path, &head, sizeof(head), code, code_len);
}
