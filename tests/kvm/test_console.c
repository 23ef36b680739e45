// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke-vmm with a console that takes nothing: a pipe and a terminal that nobody reads, a
 * terminal that was stopped with ^S. The guest floods the serial port, without ever looking whether
 * that takes more, and makes batches in between, and an operator pauses and resumes: all of it goes
 * on, and so does the output when it is taken again.
 */
#include "kvm_test.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "kernel_file.h"
#include "vmm_process.h"

#define LATE	 120 /* s, by which what must happen has happened on any machine */
#define ROUNDS	 5
#define XOFF	 "\x13"
#define XON	 "\x11"
#define CALL_MS	 60000
#define OUT_CHAR '.'

extern const uint8_t __start_guest_code[], __stop_guest_code[];

/* Guest side. */

#define CMD  0x2000000
#define LIST 0x2001000
#define DATA 0x2002000
#define TEXT 0x2003000

GUEST_INLINE void say_hello(void)
{
	volatile struct hvpoke_cmd *cmd = (volatile struct hvpoke_cmd *)CMD;
	volatile struct hvpoke_page_list *list = (volatile struct hvpoke_page_list *)LIST;
	volatile struct hvpoke_range *range = (volatile struct hvpoke_range *)DATA;

	list->page_gpa[0] = DATA;
	range->gpa = TEXT;
	range->gva = TEXT;
	range->len = 4096;
	cmd->version = HVPOKE_ABI_VERSION;
	cmd->cmd = HVPOKE_CMD_HELLO;
	cmd->hello.nr_ranges = 1;
	cmd->hello.ranges_gpa = LIST;
	guest_ring(CMD / 4096);
}

GUEST_INLINE void put_some(void)
{
	for (int i = 0; i < 1024; i++)
		__asm__ volatile("outb %0, %1"
				 :
				 : "a"((uint8_t)OUT_CHAR), "d"((uint16_t)0x3f8)
				 : "memory");
}

/* NOP to JMP and back, as often as it goes. */
GUEST_INLINE void make_batches(void)
{
	volatile struct hvpoke_cmd *cmd = (volatile struct hvpoke_cmd *)CMD;
	volatile struct hvpoke_entry *entry = (volatile struct hvpoke_entry *)DATA;
	volatile uint8_t *text = (volatile uint8_t *)TEXT;

	text[0] = 0x66;
	text[1] = 0x90;
	entry->gpa = TEXT;
	entry->gpa2 = 0;
	entry->len = 2;
	entry->kind = HVPOKE_SITE_INSN;
	for (int i = 0; i < HVPOKE_MAX_INSN; i++) {
		entry->old_insn[i] = 0;
		entry->new_insn[i] = 0;
	}
	entry->reserved[0] = 0;
	entry->reserved[1] = 0;
	for (;;) {
		entry->old_insn[0] = text[0];
		entry->old_insn[1] = text[1];
		entry->new_insn[0] = text[0] == 0x66 ? 0xeb : 0x66;
		entry->new_insn[1] = text[0] == 0x66 ? 0x00 : 0x90;
		cmd->cmd = HVPOKE_CMD_BATCH;
		cmd->batch.nr_entries = 1;
		cmd->batch.flags = 0;
		cmd->batch.entries_gpa = LIST;
		guest_ring(CMD / 4096);
		put_some();
	}
}

GUEST_CODE static void kernel(void)
{
	say_hello();
	make_batches();
}

/* Host side. */

static char dir[] = "/tmp/hvpoke-console-XXXXXX";
static char elf_path[64], socket_path[64];

static int setup(void **state)
{
	size_t code_len = (size_t)(__stop_guest_code - __start_guest_code);

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(elf_path, sizeof(elf_path), "%s/vmlinux", dir);
	snprintf(socket_path, sizeof(socket_path), "%s/console.sock", dir);
	setenv("HVPOKE_RUNTIME_DIR", dir, 1);
	write_elf(elf_path, __start_guest_code, code_len,
		  (size_t)((const uint8_t *)(uintptr_t)kernel - __start_guest_code));
	return 0;
}

static int teardown(void **state)
{
	char command[80];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct vmm_process vmm;

static struct json_object *call(struct hvp_client *client, const char *method)
{
	struct json_object *result = NULL, *error = NULL;
	int err = hvp_client_call(client, method, NULL, CALL_MS, &result, &error);

	if (err || error) {
		vmm_finish(&vmm, 5);
		fail_msg("%s: %d %s; it said: %s", method, err, json_object_to_json_string(error),
			 vmm.err_text);
	}
	return result;
}

static uint64_t get(struct hvp_client *client, const char *method, const char *key)
{
	struct json_object *result = call(client, method), *value = NULL;
	uint64_t number;

	assert_true(json_object_object_get_ex(result, key, &value));
	number = json_object_get_uint64(value);
	json_object_put(result);
	return number;
}

static void grows(struct hvp_client *client, const char *key)
{
	uint64_t before = get(client, "stats", key);
	time_t start = time(NULL);

	while (get(client, "stats", key) == before) {
		assert_true(time(NULL) - start < LATE);
		usleep(10000);
	}
}

/* Started with its output to @out, or elsewhere: its client, when it is there. */
static struct hvp_client *start(int out, const char *serial)
{
	struct hvp_client *client;
	time_t begin = time(NULL);

	vmm_start_to(&vmm,
		     (const char *const[]){"--memory", "64M", "--kernel", elf_path, "--vcpus", "2",
					   "--name", "console", "--serial", serial, "--max-pauses",
					   "0", "--max-paused-ms", "0", NULL},
		     0, out);
	while (hvp_client_connect(&client, socket_path, CALL_MS)) {
		assert_true(time(NULL) - begin < LATE);
		usleep(10000);
	}
	return client;
}

/* Until nothing more goes into @out. */
static void wait_until_full(int out)
{
	struct pollfd fd = {.fd = out, .events = POLLOUT};
	time_t begin = time(NULL);

	while (poll(&fd, 1, 0) > 0) {
		assert_true(time(NULL) - begin < LATE);
		usleep(10000);
	}
}

static void goes_on(struct hvp_client *client)
{
	struct json_object *info;
	uint64_t batches;

	for (int i = 0; i < ROUNDS; i++) {
		grows(client, "batches");
		json_object_put(call(client, "pause"));
		info = call(client, "info");
		assert_string_equal(json_object_get_string(json_object_object_get(info, "state")),
				    "paused");
		json_object_put(info);
		batches = get(client, "stats", "batches");
		assert_true(get(client, "stats", "batches") == batches);
		json_object_put(call(client, "resume"));
	}
}

static void ends(struct hvp_client *client)
{
	json_object_put(call(client, "pause"));
	json_object_put(call(client, "quit"));
	hvp_client_close(client);
	assert_int_equal(vmm_finish(&vmm, LATE), 0);
}

/* Some of the guest's output, and then some that was not written yet when we began. */
static void output_comes_again(int fd, size_t much)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	size_t got = 0;
	char buf[4096];
	ssize_t n;

	while (got < much) {
		assert_int_equal(poll(&ready, 1, LATE * 1000), 1);
		n = read(fd, buf, sizeof(buf));
		assert_true(n > 0);
		assert_non_null(memchr(buf, OUT_CHAR, (size_t)n));
		got += (size_t)n;
	}
}

static void pipe_that_nobody_reads(void **state)
{
	struct hvp_client *client;
	int fds[2];

	(void)state;
	NEED_KVM();
	assert_int_equal(pipe(fds), 0);
	/* As little as there can be: with what the VMM keeps it is 24 KiB. */
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 4096) >= 4096);
	client = start(fds[1], "stdio");
	wait_until_full(fds[1]);
	goes_on(client);
	output_comes_again(fds[0], 32 << 10);
	goes_on(client);
	ends(client);
	close(fds[0]);
	close(fds[1]);
}

static void terminal_that_nobody_reads(void **state)
{
	struct hvp_client *client;
	int master, slave;

	(void)state;
	NEED_KVM();
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	client = start(slave, "stdio");
	wait_until_full(slave);
	goes_on(client);
	output_comes_again(master, 96 << 10);
	goes_on(client);
	ends(client);
	close(master);
	close(slave);
}

/* ^S in the middle of it, with a reader that reads. */
static void terminal_that_is_stopped(void **state)
{
	struct hvp_client *client;
	int master, slave;

	(void)state;
	NEED_KVM();
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	client = start(slave, "stdio");
	output_comes_again(master, 32 << 10);
	assert_int_equal(write(master, XOFF, 1), 1);
	wait_until_full(slave);
	goes_on(client);
	assert_int_equal(write(master, XON, 1), 1);
	output_comes_again(master, 32 << 10);
	ends(client);
	close(master);
	close(slave);
}

static void own_pty_that_nobody_opens(void **state)
{
	struct hvp_client *client;

	(void)state;
	NEED_KVM();
	client = start(STDERR_FILENO, "pty");
	goes_on(client);
	ends(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipe_that_nobody_reads),
		cmocka_unit_test(terminal_that_nobody_reads),
		cmocka_unit_test(terminal_that_is_stopped),
		cmocka_unit_test(own_pty_that_nobody_opens),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
