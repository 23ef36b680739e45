// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "longmode.h"

#define PAGE	   4096u
#define GDT_GPA	   0x1000u
#define TABLES_GPA 0x2000u
#define IDT_GPA	   0x8000u
#define IDT_SIZE   (256 * 16u)
#define SHARED_GPA 0x10000u
#define STACKS_GPA 0x100000u
#define CODE_GPA   0x200000u
#define HEAP_GPA   0x400000u

/* The linker's names for the ends of the section. */
extern const uint8_t __start_guest_code[], __stop_guest_code[];

static const struct longmode longmode = {
	.tables = {TABLES_GPA},
	.gdt = {GDT_GPA},
};

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "guest: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

bool guest_have_kvm(void)
{
	if (!access("/dev/kvm", R_OK | W_OK))
		return true;
	fprintf(stderr, "skipped: /dev/kvm cannot be used: %s\n", strerror(errno));
	return false;
}

bool guest_kvm_is_played(void)
{
	return dlsym(RTLD_DEFAULT, "played_kvm") != NULL;
}

static uint32_t port_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return UINT32_MAX;
}

static void port_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		     uint32_t value)
{
	struct guest *guest = dev;
	unsigned int none = 0;

	(void)offset;
	(void)size;
	if (value && atomic_compare_exchange_strong(&guest->failed_line, &none, value))
		guest->failed_cpu = vcpu->id;
	vm_request_exit(&guest->vm, VM_EXIT_SHUTDOWN);
}

static const struct port_ops port_ops = {
	.in = port_in,
	.out = port_out,
};

void *guest_at(struct guest *guest, uint64_t addr, uint64_t size)
{
	void *host = memory_at(&guest->vm.memory, gpa(addr), size);

	if (!host)
		die("no memory at 0x%llx, %llu bytes", (unsigned long long)addr,
		    (unsigned long long)size);
	return host;
}

/* Same offset in its page as in the program, so that alignments hold. */
uint64_t guest_code_gpa(const void *fn)
{
	return CODE_GPA + ((uintptr_t)__start_guest_code & (PAGE - 1)) +
	       (uint64_t)((const uint8_t *)fn - __start_guest_code);
}

void guest_create(struct guest *guest, unsigned int nr_vcpus, uint64_t memory)
{
	size_t code_len = (size_t)(__stop_guest_code - __start_guest_code);
	int err;

	memset(guest, 0, sizeof(*guest));
	err = vm_create(&guest->vm, nr_vcpus, memory);
	if (err)
		die("no VM with %u vCPUs: %s", nr_vcpus, strerror(-err));
	/* A machine that does much else may not run a vCPU's thread for a second. */
	guest->vm.pause.timeout_ns = 20 * PAUSE_TIMEOUT_NS;
	guest->heap = HEAP_GPA;
	guest->shared = guest_at(guest, SHARED_GPA, GUEST_SHARED_SIZE);
	memcpy(guest_at(guest, guest_code_gpa(__start_guest_code), code_len), __start_guest_code,
	       code_len);
	if (longmode_write(&guest->vm.memory, &longmode) ||
	    bus_add(&guest->vm.bus, GUEST_PORT, 4, &port_ops, guest))
		die("cannot set up the guest");
}

void guest_enter(struct guest *guest, unsigned int cpu, guest_fn fn)
{
	struct vcpu *vcpu = guest->vm.vcpus[cpu];
	/* As after a call: 8 bytes, the return address 0, below a multiple of 16. */
	uint64_t stack = STACKS_GPA + (cpu + 1ull) * PAGE - 8;
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	int err;

	err = longmode_enter(vcpu, &longmode, guest_code_gpa((const void *)fn), SHARED_GPA, stack);
	if (!err)
		err = vcpu_get_regs(vcpu, &regs);
	regs.rdi = cpu;
	if (!err)
		err = vcpu_set_regs(vcpu, &regs);
	if (!err)
		err = vcpu_get_sregs(vcpu, &sregs);
	sregs.idt.base = IDT_GPA;
	sregs.idt.limit = IDT_SIZE - 1;
	if (!err)
		err = vcpu_set_sregs(vcpu, &sregs);
	if (err)
		die("vCPU %u's registers: %s", cpu, strerror(-err));
}

void guest_enter_all(struct guest *guest, guest_fn fn)
{
	for (unsigned int i = 0; i < guest->vm.nr_vcpus; i++)
		guest_enter(guest, i, fn);
}

/* A 64-bit interrupt gate (SDM vol. 3A, 6.14.1). */
void guest_set_handler(struct guest *guest, uint8_t vector, void (*fn)(void))
{
	uint64_t *gate = guest_at(guest, IDT_GPA + vector * 16u, 16);
	uint64_t entry = guest_code_gpa((const void *)fn);

	gate[0] =
		(entry & 0xffff) | LONGMODE_CS << 16 | 0x8eull << 40 | (entry >> 16 & 0xffff) << 48;
	gate[1] = entry >> 32;
}

void guest_start(struct guest *guest)
{
	int err = vm_start(&guest->vm);

	if (err)
		die("the guest does not start: %s", strerror(-err));
}

/* What the vCPUs do at the moment, for somebody who wonders why they do not end. */
static void print_states(struct guest *guest)
{
	fprintf(stderr, "guest: gate %x, running %u, states", atomic_load(&guest->vm.pause.gate),
		atomic_load(&guest->vm.pause.running));
	for (unsigned int i = 0; i < guest->vm.nr_vcpus; i++)
		fprintf(stderr, " %d", atomic_load(&guest->vm.vcpus[i]->pause.state));
	fprintf(stderr, "\n");
}

void guest_finish(struct guest *guest, unsigned int seconds)
{
	struct pollfd end = {.fd = guest->vm.exit_event, .events = POLLIN};

	if (poll(&end, 1, (int)seconds * 1000) != 1) {
		print_states(guest);
		die("not done within %u s", seconds);
	}
	vm_join(&guest->vm);
	if (guest->failed_line)
		die("vCPU %u failed the assertion in line %u", guest->failed_cpu,
		    guest->failed_line);
	if (guest->vm.exit != VM_EXIT_SHUTDOWN)
		die("ended with %d, expected %d", guest->vm.exit, VM_EXIT_SHUTDOWN);
}

void guest_stop(struct guest *guest)
{
	vm_request_exit(&guest->vm, VM_EXIT_SHUTDOWN);
	guest_finish(guest, 10);
}

void guest_destroy(struct guest *guest)
{
	vm_destroy(&guest->vm);
}

uint64_t guest_alloc(struct guest *guest, uint64_t size)
{
	uint64_t addr = guest->heap;

	size = (size + PAGE - 1) / PAGE * PAGE;
	guest_at(guest, addr, size);
	guest->heap += size;
	return addr;
}

void guest_map(struct guest *guest, const uint64_t *addr, unsigned int nr)
{
	const uint64_t bits = 0x63; /* present, writable, accessed, dirty */
	uint64_t *top = guest_at(guest, TABLES_GPA, PAGE);
	uint64_t table[3]; /* page directory pointers, page directory, page table */

	for (int level = 0; level < 3; level++)
		table[level] = guest_alloc(guest, PAGE);
	top[GUEST_MAP_VA >> 39] = table[0] | bits;
	*(uint64_t *)guest_at(guest, table[0], PAGE) = table[1] | bits;
	*(uint64_t *)guest_at(guest, table[1], PAGE) = table[2] | bits;
	for (unsigned int i = 0; i < nr; i++)
		((uint64_t *)guest_at(guest, table[2], PAGE))[i] = addr[i] | bits;
}

/* Where @size bytes at @addr, contiguous, are named in a list: the list's address. */
static uint64_t make_list(struct guest *guest, uint64_t addr, uint64_t size)
{
	uint64_t pages = (size + PAGE - 1) / PAGE;
	uint64_t nr_lists = (pages + HVPOKE_LIST_PAGES - 1) / HVPOKE_LIST_PAGES;
	uint64_t list_gpa = guest_alloc(guest, nr_lists * PAGE);
	struct hvpoke_page_list *list = guest_at(guest, list_gpa, nr_lists * PAGE);

	for (uint64_t i = 0; i < pages; i++)
		list[i / HVPOKE_LIST_PAGES].page_gpa[i % HVPOKE_LIST_PAGES] = addr + i * PAGE;
	for (uint64_t i = 1; i < nr_lists; i++)
		list[i - 1].next_gpa = list_gpa + i * PAGE;
	return list_gpa;
}

static struct hvpoke_cmd *make_cmd(struct guest *guest, uint32_t command, uint32_t *pfn)
{
	uint64_t page = guest_alloc(guest, PAGE);
	struct hvpoke_cmd *cmd = guest_at(guest, page, PAGE);

	cmd->version = HVPOKE_ABI_VERSION;
	cmd->cmd = command;
	*pfn = (uint32_t)(page / PAGE);
	return cmd;
}

struct hvpoke_cmd *guest_cmd(struct guest *guest, uint32_t pfn)
{
	return guest_at(guest, (uint64_t)pfn * PAGE, PAGE);
}

static void hello(struct guest *guest, const struct hvpoke_range *range, uint32_t nr,
		  uint32_t scope)
{
	uint64_t ranges = guest_alloc(guest, PAGE);
	struct hvpoke_cmd *cmd;
	uint32_t status, pfn;

	memcpy(guest_at(guest, ranges, PAGE), range, nr * sizeof(*range));
	cmd = make_cmd(guest, HVPOKE_CMD_HELLO, &pfn);
	cmd->hello.scope = scope;
	cmd->hello.nr_ranges = nr;
	cmd->hello.ranges_gpa = make_list(guest, ranges, PAGE);
	strcpy(cmd->hello.kernel, "a guest of our own");
	strcpy(cmd->hello.agent, "tests/kvm");
	status = hvp_guest_command(guest->vm.guest, gpa((uint64_t)pfn * PAGE));
	if (status != HVPOKE_OK)
		die("HELLO: %s", hvpoke_status_text(status));
}

void guest_hello_ranges(struct guest *guest, const struct hvpoke_range *range, uint32_t nr)
{
	hello(guest, range, nr, HVPOKE_SCOPE_DYNDBG);
}

void guest_hello(struct guest *guest, uint64_t text, uint64_t len)
{
	guest_hello_scope(guest, text, len, HVPOKE_SCOPE_DYNDBG);
}

void guest_hello_scope(struct guest *guest, uint64_t text, uint64_t len, uint32_t scope)
{
	const struct hvpoke_range range = {.gpa = text, .gva = text, .len = len};

	hello(guest, &range, 1, scope);
}

uint32_t guest_batch(struct guest *guest, const struct hvpoke_entry *entry, uint32_t nr)
{
	struct hvpoke_cmd *cmd;
	uint64_t entries;
	uint32_t pfn;

	cmd = make_cmd(guest, HVPOKE_CMD_BATCH, &pfn);
	cmd->batch.nr_entries = nr;
	if (!nr)
		return pfn;
	entries = guest_alloc(guest, nr * sizeof(*entry));
	memcpy(guest_at(guest, entries, nr * sizeof(*entry)), entry, nr * sizeof(*entry));
	cmd->batch.entries_gpa = make_list(guest, entries, nr * sizeof(*entry));
	return pfn;
}

void guest_wait_for(struct guest *guest, const atomic_uint *counter, unsigned int value,
		    unsigned int seconds)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	for (unsigned int ms = 0; ms < seconds * 1000; ms++) {
		if (atomic_load(counter) >= value)
			return;
		if (guest->vm.exit != VM_EXIT_NONE)
			guest_finish(guest, 1);
		nanosleep(&nap, NULL);
	}
	print_states(guest);
	die("a counter is at %u after %u s, expected %u", atomic_load(counter), seconds, value);
}
