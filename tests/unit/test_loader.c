// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels, initrds and the zero page: handmade files, whole, hostile and cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bootparams.h"
#include "layout.h"
#include "loader.h"

#define LOW	(32ull << 20)
#define ENTRY	0x1000000ull
#define PAYLOAD 0x3000u /* bytes of a bzImage behind its setup code */

/* Guest memory without KVM: 32 MiB of zeroes below the hole, none above. */
static int setup(void **state)
{
	static struct memory memory;

	memory = (struct memory){
		.fd = memfd_create("guest", MFD_CLOEXEC),
		.size = LOW,
		.low = LOW,
	};
	assert_int_equal(ftruncate(memory.fd, LOW), 0);
	memory.base = mmap(NULL, LOW, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
	assert_true(memory.base != MAP_FAILED);
	*state = &memory;
	return 0;
}

static int teardown(void **state)
{
	struct memory *memory = *state;

	close(memory->fd);
	return munmap(memory->base, LOW);
}

static int load(struct memory *memory, const void *data, size_t len, struct kernel_image *image,
		struct message *message)
{
	struct loader_file file = {.fd = memfd_create("kernel", MFD_CLOEXEC), .path = "kernel"};
	int err;

	assert_true(file.fd >= 0);
	assert_int_equal(write(file.fd, data, len), len);
	message->text[0] = '\0';
	err = loader_load(memory, &file, image, message);
	assert_true(err == 0 || message->text[0]);
	loader_close(&file);
	return err;
}

static void assert_says(const struct message *message, const char *what)
{
	if (!strstr(message->text, what))
		fail_msg("expected \"%s\" in: %s", what, message->text);
}

/* Two segments: text at 16 MiB, and data whose second page is bss. */
struct elf_file {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[3];
	uint8_t text[64];
	uint8_t data[32];
};

static struct elf_file make_elf(void)
{
	struct elf_file file = {
		.ehdr =
			{
				.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					    EV_CURRENT},
				.e_type = ET_EXEC,
				.e_machine = EM_X86_64,
				.e_entry = ENTRY,
				.e_phoff = offsetof(struct elf_file, phdr),
				.e_phentsize = sizeof(Elf64_Phdr),
				.e_phnum = 3,
			},
		.phdr =
			{
				{.p_type = PT_LOAD,
				 .p_offset = offsetof(struct elf_file, text),
				 .p_vaddr = 0xffffffff81000000,
				 .p_paddr = ENTRY,
				 .p_filesz = 64,
				 .p_memsz = 64},
				{.p_type = PT_NOTE, .p_offset = UINT64_MAX, .p_filesz = UINT64_MAX},
				{.p_type = PT_LOAD,
				 .p_offset = offsetof(struct elf_file, data),
				 .p_vaddr = 0xffffffff81200000,
				 .p_paddr = ENTRY + 0x200000,
				 .p_filesz = 32,
				 .p_memsz = 0x2000},
			},
	};

	memset(file.text, 0x90, sizeof(file.text));
	memset(file.data, 0xda, sizeof(file.data));
	return file;
}

static void elf_segments_go_to_their_addresses(void **state)
{
	struct memory *memory = *state;
	struct elf_file file = make_elf();
	struct kernel_image image;
	struct message message;

	assert_int_equal(load(memory, &file, sizeof(file), &image, &message), 0);
	assert_true(image.entry == ENTRY);
	assert_true(image.end == ENTRY + 0x202000);
	assert_memory_equal(memory->base + ENTRY, file.text, 64);
	assert_int_equal(memory->base[ENTRY + 64], 0);
	assert_memory_equal(memory->base + ENTRY + 0x200000, file.data, 32);
	assert_int_equal(memory->base[ENTRY + 0x200000 + 32], 0);
	assert_int_equal(image.header.boot_flag, 0xaa55);
	assert_memory_equal(&image.header.header, "HdrS", 4);
}

/* One field made hostile, and what the message must say of it. */
struct mutation {
	size_t offset;
	size_t size;
	uint64_t value;
	int err;
	const char *says;
};

static void check_mutations(struct memory *memory, const void *good, size_t len,
			    const struct mutation *mutations, size_t nr)
{
	uint8_t *file = malloc(len);
	struct kernel_image image;
	struct message message;

	for (size_t i = 0; i < nr; i++) {
		memcpy(file, good, len);
		memcpy(file + mutations[i].offset, &mutations[i].value, mutations[i].size);
		if (load(memory, file, len, &image, &message) != mutations[i].err)
			fail_msg("mutation %zu: %s", i, message.text);
		if (mutations[i].err)
			assert_says(&message, mutations[i].says);
	}
	free(file);
}

#define EHDR(field) \
	offsetof(struct elf_file, ehdr.field), sizeof(((struct elf_file *)0)->ehdr.field)
#define PHDR(nr, field) \
	offsetof(struct elf_file, phdr[nr].field), sizeof(((struct elf_file *)0)->phdr[nr].field)

static void hostile_elf_headers(void **state)
{
	static const struct mutation mutations[] = {
		{EHDR(e_ident[EI_MAG3]), 'G', -ENOEXEC, "is no kernel"},
		{EHDR(e_ident[EI_CLASS]), ELFCLASS32, -ENOEXEC, "64-bit little endian"},
		{EHDR(e_ident[EI_DATA]), ELFDATA2MSB, -ENOEXEC, "64-bit little endian"},
		{EHDR(e_machine), EM_AARCH64, -ENOEXEC, "machine 183"},
		{EHDR(e_type), ET_REL, -ENOEXEC, "found type 1"},
		{EHDR(e_phnum), 0, -ENOEXEC, "program headers"},
		{EHDR(e_phnum), 65535, -ENOEXEC, "found 65535"},
		{EHDR(e_phentsize), 32, -ENOEXEC, "program headers"},
		{EHDR(e_phoff), UINT64_MAX, -EINVAL, ""},
		{EHDR(e_phoff), 1 << 20, -EINVAL, "ends early"},
		{EHDR(e_entry), 0, -ENOEXEC, "entry 0x0"},
		{EHDR(e_entry), ENTRY + 64, -ENOEXEC, "none of the loaded segments"},
		{EHDR(e_entry), UINT64_MAX, -ENOEXEC, "none of the loaded segments"},
		{PHDR(0, p_paddr), 0, -ENOSPC, "from 0x100000 to 0x2000000"},
		{PHDR(0, p_paddr), LAYOUT_KERNEL_MIN - 1, -ENOSPC, "segment 0"},
		{PHDR(0, p_paddr), UINT64_MAX - 8, -ENOSPC, "segment 0"},
		{PHDR(0, p_paddr), LOW - 63, -ENOSPC, "more memory"},
		{PHDR(0, p_paddr), VMM_HOLE_END, -ENOSPC, "segment 0"},
		{PHDR(2, p_memsz), UINT64_MAX, -ENOSPC, "segment 2"},
		{PHDR(2, p_memsz), LOW, -ENOSPC, "segment 2"},
		{PHDR(2, p_memsz), 31, -ENOEXEC, "outside of the file"},
		{PHDR(2, p_filesz), 33, -ENOEXEC, "outside of the file"},
		{PHDR(2, p_offset), UINT64_MAX, -ENOEXEC, "outside of the file"},
		{PHDR(0, p_memsz), 0, -ENOEXEC, "none of the loaded segments"},
	};
	struct elf_file file = make_elf();

	check_mutations(*state, &file, sizeof(file), mutations,
			sizeof(mutations) / sizeof(*mutations));
}

/* A bzImage with one sector of setup code. */
struct bzimage_file {
	struct {
		uint8_t boot[0x1f1];
		struct setup_header header;
		uint8_t rest[1024 - 0x1f1 - sizeof(struct setup_header)];
	} __attribute__((packed)) setup;
	uint8_t payload[PAYLOAD];
};

static struct bzimage_file make_bzimage(void)
{
	struct bzimage_file file = {
		.setup.header =
			{
				.setup_sects = 1,
				.boot_flag = 0xaa55,
				.jump = 0x6aeb, /* the header ends at 0x202 + 0x6a */
				.version = 0x020f,
				.loadflags = LOADED_HIGH,
				.initrd_addr_max = 0x7fffffff,
				.kernel_alignment = 0x200000,
				.relocatable_kernel = 1,
				.xloadflags = XLF_KERNEL_64,
				.cmdline_size = 2047,
				.pref_address = ENTRY,
				.init_size = 0x400000,
			},
	};

	memcpy(&file.setup.header.header, "HdrS", 4);
	memset(file.payload, 0x5a, sizeof(file.payload));
	memset(file.setup.rest, 0xcc, sizeof(file.setup.rest));
	return file;
}

static void bzimage_goes_where_it_wants(void **state)
{
	struct memory *memory = *state;
	struct bzimage_file file = make_bzimage();
	struct kernel_image image;
	struct message message;

	assert_int_equal(load(memory, &file, sizeof(file), &image, &message), 0);
	assert_true(image.entry == ENTRY + 0x200);
	assert_true(image.end == ENTRY + 0x400000);
	assert_memory_equal(memory->base + ENTRY, file.payload, PAYLOAD);
	assert_int_equal(memory->base[ENTRY + PAYLOAD], 0);
	assert_int_equal(image.header.code32_start, ENTRY);
	/* What follows the header's stated end is code: it must not be taken over. */
	assert_int_equal(image.header.init_size, 0x400000);
	assert_int_equal(((uint8_t *)&image.header)[0x6a + 0x202 - 0x1f1], 0);
}

static void bzimage_moves_if_it_can(void **state)
{
	struct memory *memory = *state;
	struct bzimage_file file = make_bzimage();
	struct kernel_image image;
	struct message message;

	file.setup.header.pref_address = 0x40000000;
	assert_int_equal(load(memory, &file, sizeof(file), &image, &message), 0);
	assert_true(image.entry == 0x200000 + 0x200);
	file.setup.header.relocatable_kernel = 0;
	assert_int_equal(load(memory, &file, sizeof(file), &image, &message), -ENOSPC);
	assert_says(&message, "not relocatable");
}

#define HDR(field)                                         \
	offsetof(struct bzimage_file, setup.header.field), \
		sizeof(((struct bzimage_file *)0)->setup.header.field)

static void hostile_bzimage_headers(void **state)
{
	static const struct mutation mutations[] = {
		{HDR(header), 0, -ENOEXEC, "is no kernel"},
		{HDR(boot_flag), 0, -ENOEXEC, "boot flag"},
		{HDR(version), 0x020b, -ENOEXEC, "found 2.11"},
		{HDR(loadflags), 0, -ENOEXEC, "no 64-bit entry"},
		{HDR(xloadflags), 0, -ENOEXEC, "no 64-bit entry"},
		{HDR(setup_sects), 255, -ENOEXEC, "ends early"},
		{HDR(setup_sects), 0, 0, NULL}, /* means 4 */
		{HDR(init_size), 0xffffffff, -ENOSPC, "more memory"},
		{HDR(init_size), 0, 0, NULL},		  /* the payload's size then */
		{HDR(pref_address), UINT64_MAX, 0, NULL}, /* it is relocatable */
		{HDR(pref_address), 0, 0, NULL},
		{HDR(jump), 0x00eb, -ENOEXEC, "2.12 or newer"}, /* a header of 17 bytes */
		{HDR(jump), 0xffeb, 0, NULL},
	};
	struct bzimage_file file = make_bzimage();

	check_mutations(*state, &file, sizeof(file), mutations,
			sizeof(mutations) / sizeof(*mutations));

	/* Nowhere to go: each alignment that is none, or goes out of memory. */
	file.setup.header.pref_address = 0;
	for (int shift = 0; shift < 32; shift++) {
		uint32_t alignment = shift % 2 ? 1u << shift : 3u << shift;
		struct kernel_image image;
		struct message message;
		int err;

		file.setup.header.kernel_alignment = alignment;
		err = load(*state, &file, sizeof(file), &image, &message);
		assert_int_equal(err, shift % 2 && shift >= 12 && shift < 25 ? 0 : -ENOSPC);
	}
}

static void every_truncation(void **state)
{
	struct elf_file elf = make_elf();
	struct bzimage_file bzimage = make_bzimage();
	struct kernel_image image;
	struct message message;

	for (size_t len = 0; len < sizeof(elf); len++)
		assert_true(load(*state, &elf, len, &image, &message) < 0);
	/* A payload may have any length, but must reach its entry. */
	for (size_t len = 0; len <= 1024 + 0x200; len++)
		assert_true(load(*state, &bzimage, len, &image, &message) < 0);
	assert_int_equal(load(*state, &bzimage, 1024 + 0x201, &image, &message), 0);
}

/* Random changes: any answer, but what is accepted lies in memory. */
static void mutate(struct memory *memory, const void *good, size_t len, size_t head,
		   unsigned int rounds)
{
	unsigned int seed = 1, accepted = 0;
	uint8_t *file = malloc(len);

	for (unsigned int round = 0; round < rounds; round++) {
		struct kernel_image image;
		struct message message;

		memcpy(file, good, len);
		for (unsigned int i = 0; i <= round % 8; i++)
			file[(unsigned int)rand_r(&seed) % head] = (uint8_t)rand_r(&seed);
		if (load(memory, file, len, &image, &message) < 0)
			continue;
		accepted++;
		assert_true(image.entry >= LAYOUT_KERNEL_MIN && image.entry < LOW);
		assert_true(image.end <= LOW);
	}
	assert_in_range(accepted, 1, rounds - 1);
	free(file);
}

static void random_headers(void **state)
{
	struct elf_file elf = make_elf();
	struct bzimage_file bzimage = make_bzimage();

	mutate(*state, &elf, sizeof(elf), offsetof(struct elf_file, text), 20000);
	mutate(*state, &bzimage, sizeof(bzimage), sizeof(bzimage.setup), 20000);
}

static void other_files(void **state)
{
	struct loader_file file;
	struct message message;

	(void)state;
	assert_int_equal(loader_open(&file, "/no/such/kernel", &message), -ENOENT);
	assert_says(&message, "cannot open /no/such/kernel");
	assert_int_equal(loader_open(&file, "/dev/null", &message), -EINVAL);
	assert_says(&message, "not a regular file");
	assert_int_equal(loader_open(&file, "/", &message), -EINVAL);
}

/* A reboot reads the file again, which somebody may have written to. */
static void a_file_that_has_changed(void **state)
{
	struct kernel_image image = {.end = 16 << 20, .initrd_max = 0x7fffffff};
	struct loader_file file = {.fd = memfd_create("initrd", MFD_CLOEXEC), .path = "initrd"};
	struct memory *memory = *state;
	struct message message;
	uint32_t addr, size;

	assert_int_equal(pwrite(file.fd, "longer", 6, 0), 6);
	assert_int_equal(loader_initrd(memory, &file, &image, &addr, &size, &message), 0);
	assert_int_equal(size, 6);
	assert_int_equal(ftruncate(file.fd, 0), 0);
	assert_int_equal(pwrite(file.fd, "new", 3, 0), 3);
	assert_int_equal(loader_initrd(memory, &file, &image, &addr, &size, &message), 0);
	assert_int_equal(size, 3);
	assert_memory_equal(memory->base + addr, "new", 3);
	loader_close(&file);
}

static int load_initrd(struct memory *memory, size_t len, const struct kernel_image *image,
		       uint32_t *addr, uint32_t *size, struct message *message)
{
	struct loader_file file = {.fd = memfd_create("initrd", MFD_CLOEXEC), .path = "initrd"};
	int err;

	assert_int_equal(ftruncate(file.fd, (off_t)len), 0);
	assert_int_equal(pwrite(file.fd, "begin", len < 5 ? len : 5, 0), len < 5 ? len : 5);
	err = loader_initrd(memory, &file, image, addr, size, message);
	loader_close(&file);
	return err;
}

static void initrd_goes_high(void **state)
{
	struct memory *memory = *state;
	struct kernel_image image = {.end = 16 << 20, .initrd_max = 0x7fffffff};
	struct message message;
	uint32_t addr, size;

	assert_int_equal(load_initrd(memory, 5001, &image, &addr, &size, &message), 0);
	assert_int_equal(addr, LOW - 0x2000);
	assert_int_equal(size, 5001);
	assert_memory_equal(memory->base + addr, "begin", 5);
	/* Below the last address that the kernel allows, and not into the kernel. */
	image.initrd_max = (20 << 20) - 1;
	assert_int_equal(load_initrd(memory, 4 << 20, &image, &addr, &size, &message), 0);
	assert_int_equal(addr, 16 << 20);
	assert_int_equal(load_initrd(memory, (4 << 20) + 1, &image, &addr, &size, &message),
			 -ENOSPC);
	assert_says(&message, "does not fit between the kernel's end at 0x1000000 and 0x1400000");
	assert_int_equal(load_initrd(memory, 64 << 20, &image, &addr, &size, &message), -ENOSPC);
	image.initrd_max = 0;
	assert_int_equal(load_initrd(memory, 1, &image, &addr, &size, &message), -ENOSPC);
	assert_int_equal(load_initrd(memory, 0, &image, &addr, &size, &message), -EINVAL);
	assert_says(&message, "is empty");
}

static void zero_page(void **state)
{
	struct memory memory = *(struct memory *)*state;
	struct kernel_image image = {.cmdline_max = 10, .header.version = 0x20f};
	struct boot_params *params = (void *)(memory.base + LAYOUT_ZERO_PAGE);
	struct message message;

	memory.high = 1ull << 30; /* described only, not touched */
	assert_int_equal(bootparams_write(&memory, &image, "0123456789", 0x1f00000, 4000, &message),
			 0);
	assert_string_equal((char *)memory.base + LAYOUT_CMDLINE, "0123456789");
	assert_int_equal(params->hdr.cmd_line_ptr, LAYOUT_CMDLINE);
	assert_int_equal(params->hdr.ramdisk_image, 0x1f00000);
	assert_int_equal(params->hdr.ramdisk_size, 4000);
	assert_int_equal(params->hdr.type_of_loader, 0xff);
	assert_true(params->acpi_rsdp_addr == LAYOUT_ACPI);
	assert_int_equal(params->e820_entries, 5);
	assert_true(params->e820_table[3].addr == LAYOUT_KERNEL_MIN);
	assert_true(params->e820_table[3].addr + params->e820_table[3].size == LOW);
	assert_int_equal(params->e820_table[3].type, 1);
	assert_true(params->e820_table[4].addr == VMM_HOLE_END);
	assert_true(params->e820_table[4].size == 1ull << 30);
	/* Sorted, apart from each other, and no RAM where the tables stand. */
	for (int i = 1; i < params->e820_entries; i++)
		assert_true(params->e820_table[i - 1].addr + params->e820_table[i - 1].size <=
			    params->e820_table[i].addr);
	assert_int_equal(params->e820_table[2].type, 2);
	assert_true(params->e820_table[2].addr <= LAYOUT_ACPI);

	assert_int_equal(bootparams_write(&memory, &image, "0123456789a", 0, 0, &message), -E2BIG);
	assert_says(&message, "has 11 bytes, but this kernel takes at most 10");
	memory.high = 0;
	assert_int_equal(bootparams_write(&memory, &image, "", 0x1234000, 0, &message), 0);
	assert_int_equal(params->e820_entries, 4);
	assert_int_equal(params->hdr.ramdisk_image, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(elf_segments_go_to_their_addresses),
		TEST(hostile_elf_headers),
		TEST(bzimage_goes_where_it_wants),
		TEST(bzimage_moves_if_it_can),
		TEST(hostile_bzimage_headers),
		TEST(every_truncation),
		TEST(random_headers),
		TEST(other_files),
		TEST(a_file_that_has_changed),
		TEST(initrd_goes_high),
		TEST(zero_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
