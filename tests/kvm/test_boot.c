// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The real program, hvpoke-vmm, from its command line to its exit code. Its
 * kernel is the code in this file, as an ELF and as a bzImage: it says hello
 * with its command line, whose first letter tells it what to do then.
 */
#include "kvm_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <asm/bootparam.h>

#include "client.h"
#include "kvm_backend.h"
#include "kernel_file.h"
#include "vmm_process.h"

#define COM1 0x3f8

extern const uint8_t __start_guest_code[], __stop_guest_code[];

/* Guest side. */

GUEST_INLINE void outb(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "d"(port) : "memory");
}

GUEST_INLINE uint8_t inb(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "d"(port) : "memory");
	return value;
}

GUEST_INLINE void put(uint8_t byte)
{
	/* As a kernel's driver: wait while the transmitter is busy. */
	while (!(inb(COM1 + 5) & 0x20))
		;
	outb(COM1, byte);
}

GUEST_INLINE void power_off(void)
{
	uint16_t control = 5 << 10 | 1 << 13; /* SLP_TYP of \_S5, SLP_EN */

	__asm__ volatile("outw %0, %1" : : "a"(control), "d"((uint16_t)0x604) : "memory");
}

GUEST_INLINE void echo(void)
{
	uint8_t byte = 0;

	while (byte != 'q') {
		while (!(inb(COM1 + 5) & 0x01))
			;
		byte = inb(COM1);
		put(byte);
	}
	power_off();
}

GUEST_INLINE void triple_fault(void)
{
	uint8_t no_idt[10];

	for (int i = 0; i < 10; i++)
		no_idt[i] = 0;
	__asm__ volatile("lidt %0\n\tud2" : : "m"(no_idt));
}

GUEST_CODE static void kernel(const struct boot_params *params)
{
	const uint8_t *cmdline = (const uint8_t *)(uintptr_t)params->hdr.cmd_line_ptr;
	const uint8_t *initrd = (const uint8_t *)(uintptr_t)params->hdr.ramdisk_image;

	put('h');
	put('i');
	put(' ');
	for (const uint8_t *c = cmdline; *c; c++)
		put(*c);
	put('\n');
	if (cmdline[0] == 'p')
		power_off();
	if (cmdline[0] == 'i') {
		for (uint32_t i = 0; i < params->hdr.ramdisk_size; i++)
			put(initrd[i]);
		power_off();
	}
	if (cmdline[0] == 'k')
		outb(0x64, 0xfe);
	if (cmdline[0] == 'r')
		outb(0xcf9, 0x06);
	if (cmdline[0] == 't')
		triple_fault();
	if (cmdline[0] == 'e')
		echo();
	while (cmdline[0] == 's')
		put('s');
	for (;;)
		__asm__ volatile("cli; hlt");
}

/* The 64-bit boot protocol's entry: the zero page is in RSI. */
GUEST_CODE __attribute__((naked)) static void entry(void)
{
	__asm__ volatile("mov %%rsi, %%rdi\n\tjmp %P0" : : "i"(kernel));
}

/* Host side. */

static char dir[] = "/tmp/hvpoke-boot-XXXXXX";
static char elf_path[64], bzimage_path[64], initrd_path[64];

static void write_bzimage(size_t code_len, size_t entry_offset)
{
	uint8_t head[1024 + 0x200 + 5] = {}; /* two sectors, the 32-bit entry's room, a jump */
	struct setup_header header = {
		.setup_sects = 1,
		.boot_flag = 0xaa55,
		.jump = 0x6aeb,
		.version = 0x020f,
		.loadflags = LOADED_HIGH,
		.initrd_addr_max = 0x7fffffff,
		.kernel_alignment = 0x200000,
		.xloadflags = XLF_KERNEL_64,
		.cmdline_size = 2047,
		.pref_address = KERNEL_ADDR,
		.init_size = 0x10000,
	};
	uint32_t distance = (uint32_t)entry_offset;

	memcpy(&header.header, "HdrS", 4);
	memcpy(head + 0x1f1, &header, sizeof(header));
	head[1024 + 0x200] = 0xe9; /* jmp rel32, to the code behind it */
	memcpy(head + 1024 + 0x201, &distance, sizeof(distance));
	write_file(bzimage_path, head, sizeof(head), __start_guest_code, code_len);
}

static int setup(void **state)
{
	size_t code_len = (size_t)(__stop_guest_code - __start_guest_code);
	size_t entry_offset = (size_t)((const uint8_t *)(uintptr_t)entry - __start_guest_code);

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(elf_path, sizeof(elf_path), "%s/vmlinux", dir);
	snprintf(bzimage_path, sizeof(bzimage_path), "%s/bzImage", dir);
	snprintf(initrd_path, sizeof(initrd_path), "%s/initrd", dir);
	setenv("HVPOKE_RUNTIME_DIR", dir, 1);
	write_elf(elf_path, __start_guest_code, code_len, entry_offset);
	write_bzimage(code_len, entry_offset);
	write_file(initrd_path, "initial RAM", 11, " disk\n", 6);
	return 0;
}

static int teardown(void **state)
{
	char command[80];

	(void)state;
	unlink(elf_path);
	unlink(bzimage_path);
	unlink(initrd_path);
	/* The VMs' logs outlive them. */
	snprintf(command, sizeof(command), "rm -rf %s/log", dir);
	assert_int_equal(system(command), 0);
	/* Fails if a socket was left behind. */
	return rmdir(dir);
}

#define START(vmm, path, cmdline, ...)                                                             \
	vmm_start(vmm,                                                                             \
		  (const char *const[]){"--memory", "64M", "--kernel", path, "--cmdline", cmdline, \
					##__VA_ARGS__, NULL},                                      \
		  0)

static void assert_says(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("expected \"%s\" in: %s", what, text);
}

static void boots_and_powers_off(void **state)
{
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	START(&vmm, elf_path, "power off, ELF");
	assert_int_equal(vmm_finish(&vmm, 20), 0);
	assert_string_equal(vmm.out_text, "hi power off, ELF\n");
	assert_string_equal(vmm.err_text, "");
	START(&vmm, bzimage_path, "power off, bzImage", "--vcpus", "4");
	assert_int_equal(vmm_finish(&vmm, 20), 0);
	assert_string_equal(vmm.out_text, "hi power off, bzImage\n");
	assert_string_equal(vmm.err_text, "");
}

/* As many vCPUs as there can be; memory on both sides of the hole. */
static void largest_machine(void **state)
{
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	START(&vmm, elf_path, "power off", "--vcpus", "255", "--memory", "5G");
	assert_int_equal(vmm_finish(&vmm, 60), 0);
	assert_string_equal(vmm.out_text, "hi power off\n");
	assert_string_equal(vmm.err_text, "");
}

static void passes_the_initrd(void **state)
{
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	START(&vmm, elf_path, "initrd", "--initrd", initrd_path);
	assert_int_equal(vmm_finish(&vmm, 20), 0);
	assert_string_equal(vmm.out_text, "hi initrd\ninitial RAM disk\n");
}

static void reboot_exits_or_restarts(void **state)
{
	static const char *const ways[] = {"keyboard controller", "reset register"};
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	for (int i = 0; i < 2; i++) {
		START(&vmm, elf_path, ways[i], "--on-reboot", "exit");
		assert_int_equal(vmm_finish(&vmm, 20), 0);
		assert_int_equal(strncmp(vmm.out_text, "hi ", 3), 0);
		assert_null(strstr(vmm.out_text + 3, "hi "));

		START(&vmm, elf_path, ways[i]);
		assert_true(vmm_expect(&vmm, "hi ", 20));
		for (int round = 0; round < 3; round++) {
			/* Another hello: the guest has begun anew. */
			vmm.out_len = 0;
			vmm.out_text[0] = '\0';
			assert_true(vmm_expect(&vmm, ways[i], 20));
		}
		kill(vmm.pid, SIGTERM);
		assert_int_equal(vmm_finish(&vmm, 20), 0);
	}
}

static void triple_fault_prints_registers(void **state)
{
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	START(&vmm, elf_path, "triple fault", "--vcpus", "3");
	assert_int_equal(vmm_finish(&vmm, 20), VM_EXIT_TRIPLE_FAULT);
	assert_says(vmm.err_text, "triple fault");
	assert_says(vmm.err_text, "vCPU 0:");
	assert_says(vmm.err_text, "vCPU 2:");
	assert_says(vmm.err_text,
		    strcmp(kvm_backend(), "svm") ? "rip  0000000001" : "has reset this vCPU");
	/* What the guest wrote before is not lost. */
	assert_string_equal(vmm.out_text, "hi triple fault\n");
}

static void signals_end_an_idle_guest(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	for (int i = 0; i < 3; i++) {
		START(&vmm, elf_path, "halt", "--vcpus", "2");
		assert_true(vmm_expect(&vmm, "hi halt\n", 20));
		kill(vmm.pid, signals[i]);
		assert_int_equal(vmm_finish(&vmm, 5), 0);
	}
}

static void input_reaches_the_guest(void **state)
{
	char text[2000];
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	/* Many times what the UART takes at once. */
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('A' + i % 26);
	text[sizeof(text) - 1] = 'q';
	START(&vmm, elf_path, "echo");
	assert_int_equal(write(vmm.in, text, sizeof(text)), sizeof(text));
	assert_int_equal(vmm_finish(&vmm, 20), 0);
	assert_int_equal(vmm.out_len, 8 + sizeof(text));
	assert_memory_equal(vmm.out_text, "hi echo\n", 8);
	assert_memory_equal(vmm.out_text + 8, text, sizeof(text));
}

static struct json_object *call(struct hvp_client *client, const char *method)
{
	struct json_object *result = NULL, *error = NULL;
	int err = hvp_client_call(client, method, NULL, 5000, &result, &error);

	if (err || error)
		fail_msg("%s: %d %s", method, err, json_object_to_json_string(error));
	return result;
}

static const char *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no \"%s\" in %s", key, json_object_to_json_string(object));
	return json_object_get_string(value);
}

/*
 * Nobody reads the guest's output, of which there is no end: the VM must still
 * pause, resume and quit at once.
 */
static void unread_output_holds_nothing_up(void **state)
{
	struct json_object *result, *error = NULL;
	struct vmm_process vmm;
	struct hvp_client *client;
	char path[64];

	(void)state;
	NEED_KVM();
	START(&vmm, elf_path, "spam", "--vcpus", "2", "--name", "boot");
	snprintf(path, sizeof(path), "%s/boot.sock", dir);
	assert_true(vmm_expect(&vmm, "hi spam\n", 20));
	usleep(1500000); /* the pipe is full, and the patience over */
	assert_int_equal(hvp_client_connect(&client, path, 5000), 0);
	for (int round = 0; round < 20; round++) {
		json_object_put(call(client, "pause"));
		result = call(client, "info");
		assert_string_equal(get(result, "state"), "paused");
		json_object_put(result);
		assert_int_equal(hvp_client_call(client, "pause", NULL, 5000, &result, &error), 0);
		assert_string_equal(get(error, "code"), "paused");
		json_object_put(error);
		json_object_put(call(client, "resume"));
		usleep(1000);
	}
	/* It goes on for a reader that comes back. */
	vmm.out_len = 0;
	vmm.out_text[0] = '\0';
	assert_true(vmm_expect(&vmm, "ssssssss", 10));
	json_object_put(call(client, "pause"));
	json_object_put(call(client, "quit")); /* a paused VM, too, ends */
	hvp_client_close(client);
	assert_int_equal(vmm_finish(&vmm, 5), 0);
}

static void tells_about_itself(void **state)
{
	struct json_object *result;
	struct vmm_process vmm, second;
	struct hvp_client *client;
	char path[64];

	(void)state;
	NEED_KVM();
	START(&vmm, elf_path, "halt", "--vcpus", "2", "--name", "boot");
	snprintf(path, sizeof(path), "%s/boot.sock", dir);
	assert_true(vmm_expect(&vmm, "hi halt\n", 20));
	assert_int_equal(hvp_client_connect(&client, path, 5000), 0);
	result = call(client, "info");
	assert_string_equal(get(result, "name"), "boot");
	assert_string_equal(get(result, "state"), "running");
	assert_string_equal(get(result, "vcpus"), "2");
	assert_string_equal(get(result, "memory"), "67108864");
	assert_non_null(get(result, "kvm_backend"));
	json_object_put(result);
	result = call(client, "stats");
	assert_string_equal(get(result, "int3_patch"), "0");
	assert_string_equal(get(result, "serial_lost"), "0");
	assert_true(atol(get(result, "start_cpu_us")) > 0);
	json_object_put(result);

	/* A name is taken only once, and the one that has it is not disturbed, nor is its log. */
	snprintf(path, sizeof(path), "%s/second", dir);
	START(&second, elf_path, "halt", "--name", "boot", "--audit", path);
	assert_int_equal(vmm_finish(&second, 20), VM_EXIT_HOST);
	assert_says(second.err_text, "a VM named boot runs already");
	assert_int_equal(access(path, F_OK), -1);
	json_object_put(call(client, "quit"));
	hvp_client_close(client);
	assert_int_equal(vmm_finish(&vmm, 5), 0);
}

static void refuses_what_is_no_kernel(void **state)
{
	struct vmm_process vmm;

	(void)state;
	NEED_KVM();
	START(&vmm, initrd_path, "p");
	assert_int_equal(vmm_finish(&vmm, 20), VM_EXIT_USAGE);
	assert_says(vmm.err_text, "is no kernel");
	START(&vmm, "/no/such/kernel", "p");
	assert_int_equal(vmm_finish(&vmm, 20), VM_EXIT_USAGE);
	assert_says(vmm.err_text, "cannot open /no/such/kernel");
}

static void says_what_it_lacks(void **state)
{
	struct vmm_process vmm;

	(void)state;
	vmm_start(&vmm, (const char *const[]){NULL}, 0);
	assert_int_equal(vmm_finish(&vmm, 20), VM_EXIT_USAGE);
	assert_says(vmm.err_text, "no kernel to boot");
	vmm_start(&vmm, (const char *const[]){"--vcpus", "0", NULL}, 0);
	assert_int_equal(vmm_finish(&vmm, 20), VM_EXIT_USAGE);
	assert_says(vmm.err_text, "expected 1 to 255");
}

/* As a user that may not open /dev/kvm (or where there is none at all). */
static void says_that_kvm_is_missing(void **state)
{
	struct vmm_process vmm;

	(void)state;
	if (getuid() != 0 || guest_kvm_is_played())
		skip(); /* only root can become somebody else; everybody may use one that is played */
	vmm_start(&vmm,
		  (const char *const[]){"--kernel", "/proc/version", "--control", "/tmp/x", NULL},
		  65534);
	assert_int_equal(vmm_finish(&vmm, 20), VM_EXIT_HOST);
	assert_says(vmm.err_text, "/dev/kvm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boots_and_powers_off),
		cmocka_unit_test(largest_machine),
		cmocka_unit_test(passes_the_initrd),
		cmocka_unit_test(reboot_exits_or_restarts),
		cmocka_unit_test(triple_fault_prints_registers),
		cmocka_unit_test(signals_end_an_idle_guest),
		cmocka_unit_test(input_reaches_the_guest),
		cmocka_unit_test(unread_output_holds_nothing_up),
		cmocka_unit_test(tells_about_itself),
		cmocka_unit_test(refuses_what_is_no_kernel),
		cmocka_unit_test(says_what_it_lacks),
		cmocka_unit_test(says_that_kvm_is_missing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
