// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sites - what a Linux 6.1 guest's dynamic debug sites look like in its memory.
 *
 *   sites [--json | --list] [--expect STATE] [--text FILE] VMLINUX [PID [TERM...]]
 *
 * Finds every jump label of a dynamic debug descriptor in VMLINUX by the
 * kernel's own tables (include/linux/jump_label.h, dynamic_debug.h), and looks
 * at the instruction there: in the file, or in the memory of the guest that the
 * hvpoke-vmm process PID runs. It works out the instruction that the kernel
 * itself would have written for the state of the site's key, and compares the
 * bytes. Nothing of hvpoke's own code is in it, so that it can judge what
 * hvpoke did. Built without KASLR the kernel lies at GPA = address -
 * 0xffffffff80000000, and below 3 GiB the offset in the guest's memfd is the GPA.
 *
 *   --json          counts, for programs (default: for people)
 *   --list          a line for each site outside of __init
 *   --expect STATE  exit 1 unless text, key and flag agree everywhere and
 *                   STATE holds: consistent (no more than that), all-on,
 *                   all-off, or on-if (on are exactly those descriptors for
 *                   which each TERM holds: "module PATTERN", "!func PATTERN";
 *                   also file and format)
 *   --text FILE     also write all kernel text there, to compare two states
 *
 * Exit: 0, 1 not as expected, 2 wrong usage or unreadable input.
 */
#include <elf.h>
#include <err.h>
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_BASE 0xffffffff80000000ull
#define GUEST_MEMFD "memfd:hvpoke-guest"

/* struct jump_entry of a CONFIG_HAVE_ARCH_JUMP_LABEL_RELATIVE kernel. */
struct jump_entry {
	int32_t code;
	int32_t target;
	int64_t key; /* bit 0: the branch is the likely one; bit 1: set at boot if __init */
};

/* struct _ddebug: 64 bit, CONFIG_JUMP_LABEL. */
struct descriptor {
	uint64_t modname, function, filename, format;
	uint32_t line_class_flags; /* 18, 6 and 8 bits, the lowest first */
	uint32_t pad;
	int32_t enabled; /* key.enabled */
	uint32_t pad2;
	uint64_t entries;
};
#define DESC_LINE(d)  ((d)->line_class_flags & 0x3ffff)
#define DESC_FLAGS(d) ((d)->line_class_flags >> 24)
#define FLAG_PRINT    1u

/* The kernel's image: the file, and where its memory is read from. */
struct kernel {
	const uint8_t *file;
	size_t file_size;
	const Elf64_Shdr *sections;
	size_t nr_sections;
	const Elf64_Sym *symbols;
	size_t nr_symbols;
	const char *names;
	size_t names_size;
	int memory; /* the guest's memfd; -1: look into the file */
};

struct counts {
	unsigned int descriptors, live_descriptors, descriptors_on, flags_on;
	unsigned int init_sites, live_sites, nop, jmp, other;
	unsigned int wrong;	 /* sites whose bytes are not what their key asks for */
	unsigned int torn;	 /* descriptors whose key and print flag disagree */
	unsigned int unexpected; /* descriptors whose key is not as the terms ask for */
};

enum output { OUTPUT_PEOPLE, OUTPUT_JSON, OUTPUT_LIST };
enum state { STATE_ANY, STATE_CONSISTENT, STATE_ON, STATE_OFF, STATE_ON_IF };

static const uint8_t nop2[] = {0x66, 0x90};
static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

static void open_kernel(struct kernel *kernel, const char *path)
{
	const Elf64_Ehdr *header;
	const Elf64_Shdr *strings;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		err(2, "%s", path);
	kernel->file_size = st.st_size;
	header = mmap(NULL, kernel->file_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (header == MAP_FAILED)
		err(2, "%s", path);
	close(fd);
	if (kernel->file_size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
	    header->e_shoff > kernel->file_size ||
	    header->e_shnum > (kernel->file_size - header->e_shoff) / sizeof(Elf64_Shdr))
		errx(2, "%s is not an x86-64 ELF vmlinux", path);
	kernel->file = (const uint8_t *)header;
	kernel->sections = (const void *)(kernel->file + header->e_shoff);
	kernel->nr_sections = header->e_shnum;
	for (size_t i = 0; i < kernel->nr_sections; i++) {
		const Elf64_Shdr *section = &kernel->sections[i];

		if (section->sh_type != SHT_SYMTAB || section->sh_link >= kernel->nr_sections)
			continue;
		strings = &kernel->sections[section->sh_link];
		kernel->symbols = (const void *)(kernel->file + section->sh_offset);
		kernel->nr_symbols = section->sh_size / sizeof(Elf64_Sym);
		kernel->names = (const char *)kernel->file + strings->sh_offset;
		kernel->names_size = strings->sh_size;
	}
	if (!kernel->symbols)
		errx(2, "%s has no symbols; give the vmlinux, not a stripped copy", path);
}

static uint64_t symbol(const struct kernel *kernel, const char *name)
{
	for (size_t i = 0; i < kernel->nr_symbols; i++) {
		const Elf64_Sym *sym = &kernel->symbols[i];

		if (sym->st_name < kernel->names_size &&
		    !strcmp(kernel->names + sym->st_name, name))
			return sym->st_value;
	}
	errx(2, "the kernel has no symbol %s; is CONFIG_DYNAMIC_DEBUG on?", name);
}

/* The @len bytes at kernel address @addr as the file has them. */
static const void *in_file(const struct kernel *kernel, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < kernel->nr_sections; i++) {
		const Elf64_Shdr *section = &kernel->sections[i];

		if (!(section->sh_flags & SHF_ALLOC) || section->sh_type == SHT_NOBITS)
			continue;
		if (addr >= section->sh_addr && len <= section->sh_size &&
		    addr - section->sh_addr <= section->sh_size - len &&
		    section->sh_offset + section->sh_size <= kernel->file_size)
			return kernel->file + section->sh_offset + (addr - section->sh_addr);
	}
	errx(2, "the file has nothing at %#" PRIx64, addr);
}

/* The same, as it is now. Text may cross sections, so the file serves piecewise. */
static void in_memory(const struct kernel *kernel, uint64_t addr, void *to, size_t len)
{
	ssize_t got;

	if (kernel->memory < 0) {
		memcpy(to, in_file(kernel, addr, len), len);
		return;
	}
	got = pread(kernel->memory, to, len, (off_t)(addr - KERNEL_BASE));
	if (got < 0)
		err(2, "the guest's memory at %#" PRIx64, addr);
	if ((size_t)got != len)
		errx(2, "the guest's memory ends before %#" PRIx64, addr + len);
}

static const char *string_at(const struct kernel *kernel, uint64_t addr)
{
	return in_file(kernel, addr, 1);
}

/* The memfd of hvpoke-vmm's guest, by the name that it was made with. */
static int open_guest(const char *pid)
{
	char dir[64], path[512], link[512];
	struct dirent *entry;
	ssize_t len;
	DIR *fds;
	int fd = -1;

	snprintf(dir, sizeof(dir), "/proc/%s/fd", pid);
	fds = opendir(dir);
	if (!fds)
		err(2, "%s", dir);
	while (fd < 0 && (entry = readdir(fds))) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		len = readlink(path, link, sizeof(link) - 1);
		if (len < 0)
			continue;
		link[len] = '\0';
		if (!strstr(link, GUEST_MEMFD))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err(2, "%s", path);
	}
	closedir(fds);
	if (fd < 0)
		errx(2, "process %s has no guest memory (no descriptor named %s)", pid,
		     GUEST_MEMFD);
	return fd;
}

/* A site's length is that of the instruction which the build left there. */
static unsigned int site_length(const struct kernel *kernel, uint64_t addr)
{
	const uint8_t *insn = in_file(kernel, addr, 5);

	if (insn[0] == 0xeb || !memcmp(insn, nop2, sizeof(nop2)))
		return 2;
	if (insn[0] == 0xe9 || !memcmp(insn, nop5, sizeof(nop5)))
		return 5;
	errx(2, "neither NOP nor JMP in the file at %#" PRIx64, addr);
}

/* What the kernel writes: text_gen_insn() of arch/x86, or x86_nops[]. */
static void make_jmp(uint8_t *insn, unsigned int len, uint64_t addr, uint64_t target)
{
	int32_t distance = (int32_t)(target - (addr + len));

	if (len == 2) {
		insn[0] = 0xeb;
		insn[1] = (uint8_t)distance;
	} else {
		insn[0] = 0xe9;
		memcpy(insn + 1, &distance, sizeof(distance));
	}
}

static void print_format(const char *format)
{
	for (; *format; format++) {
		if (*format == '\n')
			fputs("\\n", stdout);
		else if (*format == '\t')
			fputs("\\t", stdout);
		else if ((unsigned char)*format >= ' ')
			putchar(*format);
	}
}

static void list_site(const struct kernel *kernel, uint64_t addr, const uint8_t *bytes,
		      unsigned int len, const char *what, bool right, const struct descriptor *d)
{
	printf("%016" PRIx64 " %s %s ", addr, what, right ? "right" : "WRONG");
	for (unsigned int i = 0; i < len; i++)
		printf("%02x", bytes[i]);
	printf(" flags=%x key=%d [%s]%s %s:%u \"", DESC_FLAGS(d), d->enabled,
	       string_at(kernel, d->modname), string_at(kernel, d->function),
	       string_at(kernel, d->filename), DESC_LINE(d));
	print_format(string_at(kernel, d->format));
	puts("\"");
}

/* One live site. @branch: bit 0 of the entry's key. */
static void look_at_site(const struct kernel *kernel, uint64_t addr, uint64_t target, bool branch,
			 const struct descriptor *d, bool list, struct counts *counts)
{
	unsigned int len = site_length(kernel, addr);
	uint8_t jmp[5], bytes[5];
	const char *what = "other";
	bool is_nop, is_jmp, right;

	make_jmp(jmp, len, addr, target);
	in_memory(kernel, addr, bytes, len);
	is_nop = !memcmp(bytes, len == 2 ? nop2 : nop5, len);
	is_jmp = !memcmp(bytes, jmp, len);
	/* jump_label_type() of kernel/jump_label.c */
	right = (d->enabled > 0) != branch ? is_jmp : is_nop;

	counts->live_sites++;
	if (is_nop) {
		what = "nop";
		counts->nop++;
	} else if (is_jmp) {
		what = "jmp";
		counts->jmp++;
	} else {
		counts->other++;
	}
	if (!right)
		counts->wrong++;
	if (list)
		list_site(kernel, addr, bytes, len, what, right, d);
}

/* The kernel's match_wildcard(): '*' and '?' only, and all of @text. */
static bool wildcard(const char *pattern, const char *text)
{
	if (*pattern == '*')
		return wildcard(pattern + 1, text) || (*text && wildcard(pattern, text + 1));
	if (!*text)
		return !*pattern;
	return (*pattern == '?' || *pattern == *text) && wildcard(pattern + 1, text + 1);
}

static bool term_holds(const struct kernel *kernel, const struct descriptor *d, const char *term)
{
	bool negated = *term == '!';
	const char *pattern = strchr(term, ' ');
	const char *file = string_at(kernel, d->filename), *base = strrchr(file, '/');
	bool holds;

	term += negated;
	if (pattern++ && !strncmp(term, "module ", 7))
		holds = wildcard(pattern, string_at(kernel, d->modname));
	else if (pattern && !strncmp(term, "func ", 5))
		holds = wildcard(pattern, string_at(kernel, d->function));
	else if (pattern && !strncmp(term, "file ", 5))
		holds = wildcard(pattern, file) || wildcard(pattern, base ? base + 1 : file);
	else if (pattern && !strncmp(term, "format ", 7))
		holds = strstr(string_at(kernel, d->format), pattern);
	else
		errx(2, "a term is [!]module, func, file or format and a pattern, not '%s'", term);
	return holds != negated;
}

static bool terms_hold(const struct kernel *kernel, const struct descriptor *d, char **terms)
{
	for (; *terms; terms++) {
		if (!term_holds(kernel, d, *terms))
			return false;
	}
	return true;
}

static void look(const struct kernel *kernel, bool list, char **terms, struct counts *counts)
{
	uint64_t first = symbol(kernel, "__start___dyndbg"),
		 last = symbol(kernel, "__stop___dyndbg");
	uint64_t entries = symbol(kernel, "__start___jump_table");
	uint64_t entries_end = symbol(kernel, "__stop___jump_table");
	uint64_t init = symbol(kernel, "__init_begin"), init_end = symbol(kernel, "__init_end");
	size_t nr = (last - first) / sizeof(struct descriptor);
	struct descriptor *descriptors = calloc(nr + 1, sizeof(*descriptors));
	bool *live = calloc(nr + 1, sizeof(*live));

	if (!descriptors || !live)
		err(2, "out of memory");
	if ((last - first) % sizeof(struct descriptor))
		errx(2, "the descriptors are not those of Linux 6.1 with CONFIG_JUMP_LABEL");
	in_memory(kernel, first, descriptors, nr * sizeof(*descriptors));

	for (uint64_t at = entries; at < entries_end; at += sizeof(struct jump_entry)) {
		const struct jump_entry *entry = in_file(kernel, at, sizeof(*entry));
		uint64_t key =
			at + offsetof(struct jump_entry, key) + (uint64_t)(entry->key & ~3ll);
		uint64_t code = at + (uint64_t)(int64_t)entry->code;
		uint64_t target =
			at + offsetof(struct jump_entry, target) + (uint64_t)(int64_t)entry->target;
		size_t i = (key - first) / sizeof(struct descriptor);

		if (key < first || key >= last)
			continue;
		if (code >= init && code < init_end) {
			counts->init_sites++;
			continue;
		}
		live[i] = true;
		look_at_site(kernel, code, target, entry->key & 1, &descriptors[i], list, counts);
	}

	counts->descriptors = nr;
	for (size_t i = 0; i < nr; i++) {
		bool on = descriptors[i].enabled > 0;
		bool flag = DESC_FLAGS(&descriptors[i]) & FLAG_PRINT;

		counts->live_descriptors += live[i];
		counts->descriptors_on += on;
		counts->flags_on += flag;
		counts->torn += on != flag;
		counts->unexpected += on != terms_hold(kernel, &descriptors[i], terms);
	}
	free(descriptors);
	free(live);
}

static void report(const struct counts *c, bool json)
{
	const char *format =
		"%u descriptors, %u of them with code outside of __init; %u keys on, %u flags p\n"
		"%u sites (and %u in __init): %u NOP, %u JMP, %u other\n"
		"%u sites not as their key asks for, %u descriptors whose key and flag disagree\n";

	if (json)
		format = "{\"descriptors\": %u, \"live_descriptors\": %u, \"descriptors_on\": %u, "
			 "\"flags_on\": %u, \"live_sites\": %u, \"init_sites\": %u, \"nop\": %u, "
			 "\"jmp\": %u, \"other\": %u, \"wrong\": %u, \"torn\": %u}\n";
	printf(format, c->descriptors, c->live_descriptors, c->descriptors_on, c->flags_on,
	       c->live_sites, c->init_sites, c->nop, c->jmp, c->other, c->wrong, c->torn);
}

static bool as_expected(const struct counts *c, enum state state)
{
	if (state == STATE_ANY)
		return true;
	if (c->wrong || c->torn || c->other)
		return false;
	if (state == STATE_ON)
		return c->descriptors_on == c->descriptors;
	if (state == STATE_ON_IF)
		return c->unexpected == 0;
	return state != STATE_OFF || c->descriptors_on == 0;
}

static void write_text(const struct kernel *kernel, const char *path)
{
	uint64_t addr = symbol(kernel, "_text"), end = symbol(kernel, "_etext");
	FILE *file = fopen(path, "we");
	uint8_t page[4096];

	if (!file)
		err(2, "%s", path);
	while (addr < end) {
		size_t len = end - addr < sizeof(page) ? end - addr : sizeof(page);

		in_memory(kernel, addr, page, len);
		if (fwrite(page, 1, len, file) != len)
			err(2, "%s", path);
		addr += len;
	}
	if (fclose(file))
		err(2, "%s", path);
}

static enum state parse_state(const char *name)
{
	if (!strcmp(name, "consistent"))
		return STATE_CONSISTENT;
	if (!strcmp(name, "all-on"))
		return STATE_ON;
	if (!strcmp(name, "all-off"))
		return STATE_OFF;
	if (!strcmp(name, "on-if"))
		return STATE_ON_IF;
	errx(2, "--expect takes consistent, all-on, all-off or on-if, not %s", name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},	{"json", no_argument, NULL, 'j'},
		{"list", no_argument, NULL, 'l'},	{"expect", required_argument, NULL, 'e'},
		{"text", required_argument, NULL, 't'}, {0},
	};
	struct kernel kernel = {.memory = -1};
	struct counts counts = {0};
	enum output output = OUTPUT_PEOPLE;
	enum state state = STATE_ANY;
	const char *text = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'j': output = OUTPUT_JSON; break;
		case 'l': output = OUTPUT_LIST; break;
		case 'e': state = parse_state(optarg); break;
		case 't': text = optarg; break;
		default: return 2;
		}
	}
	argc -= optind;
	argv += optind;
	if (argc < 1 || (argc > 2 && state != STATE_ON_IF) || (argc <= 2 && state == STATE_ON_IF))
		errx(2,
		     "usage: sites [--json | --list] [--expect STATE] [--text FILE] VMLINUX [PID] "
		     "(and with --expect on-if: TERM...)");
	open_kernel(&kernel, argv[0]);
	if (argc > 1)
		kernel.memory = open_guest(argv[1]);

	look(&kernel, output == OUTPUT_LIST, argc > 2 ? argv + 2 : argv + argc, &counts);
	if (output != OUTPUT_LIST)
		report(&counts, output == OUTPUT_JSON);
	if (text)
		write_text(&kernel, text);
	return as_expected(&counts, state) ? 0 : 1;
}
