// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What hvpoke-vmm costs beside its guest: resident memory, and CPU time from its
 * start to the guest's first instruction. Both as the kernel accounts for them,
 * read from outside. The guest is an ELF kernel of a few instructions that
 * writes a byte to the serial port and halts. Prints a JSON object.
 *
 *   vmm_cost [PROGRAM]   (default: ../../hvpoke-vmm beside this one)
 */
#include <elf.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	     21
#define KERNEL_ADDR  0x1000000
#define SIGN_OF_LIFE '!'

/* The least that is a vmlinux: one header, one segment. */
static const struct kernel {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	uint8_t code[16];
} kernel = {
	.ehdr =
		{
			.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_entry = KERNEL_ADDR,
			.e_phoff = offsetof(struct kernel, phdr),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
		},
	.phdr =
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = offsetof(struct kernel, code),
			.p_paddr = KERNEL_ADDR,
			.p_vaddr = KERNEL_ADDR,
			.p_filesz = sizeof(kernel.code),
			.p_memsz = sizeof(kernel.code),
			.p_align = 1,
		},
	.code =
		{
			0xb0, SIGN_OF_LIFE,	/* mov $'!', %al */
			0x66, 0xba, 0xf8, 0x03, /* mov $0x3f8, %dx */
			0xee,			/* out %al, (%dx) */
			0xf4,			/* hlt */
			0xeb, 0xfd,		/* jmp to the hlt */
		},
};

struct cost {
	double cpu_us;
	uint64_t resident_kib;
};

/* Does not return. */
static void run_vmm(const char *program, const char *image, int output)
{
	if (dup2(output, STDOUT_FILENO) < 0)
		_exit(1);
	execl(program, program, "--name", "cost", "--memory", "512M", "--vcpus", "2", "--kernel",
	      image, "--serial", "stdio", "--serial-input", "none", NULL);
	_exit(1);
}

static bool wait_for_life(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	char byte;

	while (poll(&pollfd, 1, 10000) == 1 && read(fd, &byte, 1) == 1)
		if (byte == SIGN_OF_LIFE)
			return true;
	return false;
}

/* All that is resident but the guest's memory, shared libraries in full. */
static uint64_t resident_kib(pid_t pid)
{
	char path[64], line[512];
	unsigned long long kib;
	uint64_t sum = 0;
	bool guest = false;
	FILE *smaps;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	smaps = fopen(path, "r");
	if (!smaps)
		return 0;
	while (fgets(line, sizeof(line), smaps)) {
		/* A mapping's first line has its addresses, with a dash. */
		if (strchr(line, '-') && strspn(line, "0123456789abcdef-") > 8)
			guest = strstr(line, "memfd:hvpoke-guest");
		else if (!guest && sscanf(line, "Rss: %llu kB", &kib) == 1)
			sum += kib;
	}
	fclose(smaps);
	return sum;
}

static bool measure(const char *program, const char *image, struct cost *cost)
{
	struct timespec cpu = {0};
	clockid_t clock;
	bool ok = false;
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		return false;
	pid = fork();
	if (pid == 0)
		run_vmm(program, image, fd[1]);
	close(fd[1]);
	if (pid < 0)
		return false;
	/* It stands in HLT from here on: nothing is added while we read. */
	if (wait_for_life(fd[0]) && !clock_getcpuclockid(pid, &clock) &&
	    !clock_gettime(clock, &cpu)) {
		cost->cpu_us = (double)cpu.tv_sec * 1e6 + (double)cpu.tv_nsec / 1e3;
		cost->resident_kib = resident_kib(pid);
		ok = cost->resident_kib > 0;
	}
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	close(fd[0]);
	return ok;
}

static int by_cpu(const void *a, const void *b)
{
	double x = ((const struct cost *)a)->cpu_us, y = ((const struct cost *)b)->cpu_us;

	return (x > y) - (x < y);
}

/* The program beside this one, unless @argument names another. */
static bool find_program(char *path, size_t size, const char *argument)
{
	static const char beside[] = "/../../hvpoke-vmm";
	ssize_t len;
	char *slash;

	if (argument)
		return snprintf(path, size, "%s", argument) < (int)size;
	len = readlink("/proc/self/exe", path, size - sizeof(beside));
	if (len < 0)
		return false;
	path[len] = '\0';
	slash = strrchr(path, '/');
	memcpy(slash, beside, sizeof(beside));
	return true;
}

int main(int argc, char **argv)
{
	struct cost cost[ROUNDS];
	char program[4096], image[64], dir[] = "/tmp/hvpoke-cost-XXXXXX";
	int fd = memfd_create("kernel", 0);
	uint64_t most = 0;

	if (fd < 0 || write(fd, &kernel, sizeof(kernel)) != sizeof(kernel) ||
	    !find_program(program, sizeof(program), argc > 1 ? argv[1] : NULL))
		return 1;
	/* Its control sockets go where nobody looks for VMs. */
	if (!mkdtemp(dir) || setenv("HVPOKE_RUNTIME_DIR", dir, 1))
		return 1;
	snprintf(image, sizeof(image), "/proc/%d/fd/%d", getpid(), fd);
	for (int i = 0; i < ROUNDS; i++) {
		if (!measure(program, image, &cost[i])) {
			fprintf(stderr, "vmm_cost: %s did not get its guest to run\n", program);
			rmdir(dir);
			return 1;
		}
		if (cost[i].resident_kib > most)
			most = cost[i].resident_kib;
	}
	rmdir(dir);
	qsort(cost, ROUNDS, sizeof(cost[0]), by_cpu);
	printf("{\"resident_kib\": %llu, \"start_cpu_us\": %.0f, \"start_cpu_us_max\": %.0f, "
	       "\"rounds\": %d}\n",
	       (unsigned long long)most, cost[ROUNDS / 2].cpu_us, cost[ROUNDS - 1].cpu_us, ROUNDS);
	return 0;
}
