// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked against a QEMU that the test plays itself (fake_qemu.h): the ivshmem protocol, the
 * mailbox, KVM's way of writing, the control socket.
 */
#include "fake_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct host host;

static int setup(void **state)
{
	(void)state;
	host_init(&host);
	host_start(&host);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	host_assert_alive(&host);
	host_free(&host);
	return 0;
}

static void header_and_memory(void **state)
{
	struct fake_qemu fake;

	(void)state;
	fake_qemu_open(&fake, &host, false);
	assert_memory_equal(fake_host(&fake)->magic, HVPOKE_SHM_MAGIC, sizeof(HVPOKE_SHM_MAGIC));
	assert_int_equal(fake_host(&fake)->version, HVPOKE_SHM_VERSION);
	assert_int_equal(fake_host(&fake)->abi_version, HVPOKE_ABI_VERSION);
	assert_int_equal(fake_host(&fake)->size, HVPOKE_SHM_SIZE);
	assert_int_equal(fake.shm_size, HVPOKE_SHM_SIZE);
	/* The magic is there, but nobody to serve it before a monitor is. */
	assert_int_equal(fake_host(&fake)->session, 0);
	/* A QEMU that shrinks it must not be able to kill us. */
	assert_int_equal(ftruncate(fake.memory, 4096), -1);
	assert_int_equal(errno, EPERM);
	fake_qemu_close(&fake);
}

/* What a guest of another process is given, told over a pipe. */
struct other {
	int64_t id;
	uint64_t ino;
};

static void guests_are_apart(void **state)
{
	struct other mine, other;
	struct fake_qemu fake;
	struct stat st;
	int pipes[2], status;
	pid_t child;

	(void)state;
	fake_qemu_open(&fake, &host, false);
	fstat(fake.memory, &st);
	mine = (struct other){.id = fake.id, .ino = st.st_ino};
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		fake_qemu_open(&fake, &host, false);
		fstat(fake.memory, &st);
		other = (struct other){.id = fake.id, .ino = st.st_ino};
		_exit(write(pipes[1], &other, sizeof(other)) != sizeof(other));
	}
	assert_int_equal(read(pipes[0], &other, sizeof(other)), sizeof(other));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_not_equal(mine.id, other.id);
	assert_int_not_equal(mine.ino, other.ino);
	close(pipes[0]);
	close(pipes[1]);
	fake_qemu_close(&fake);
}

static void second_device_is_refused(void **state)
{
	struct fake_qemu fake;
	char byte;
	int second;

	(void)state;
	fake_qemu_open(&fake, &host, false);
	second = host_connect(&host, "ivshmem");
	assert_int_equal(recv(second, &byte, 1, 0), 0);
	close(second);
	/* The first goes on. */
	fake_qemu_monitor(&fake);
	fake_hello(&fake);
	fake_qemu_close(&fake);
}

static void device_comes_again(void **state)
{
	struct fake_qemu fake;

	(void)state;
	for (int i = 0; i < 20; i++) {
		fake_qemu_open(&fake, &host, false);
		fake_qemu_close(&fake);
	}
}

static void batch_is_written(bool shared)
{
	struct fake_qemu fake;

	fake_qemu_serve(&fake, &host, shared);
	assert_int_equal(host_maps(&host, "/memfd:ram"), shared);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	assert_int_equal(fake_command(&fake)->batch.written, FAKE_SITES);
	assert_int_equal(atomic_load(&fake.stops), 1);
	assert_int_equal(atomic_load(&fake.conts), 1);
	assert_true(atomic_load(&fake.running));
	/* Again: now they hold the new bytes, and nothing is written. */
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_MISMATCH);
	assert_int_equal(fake_command(&fake)->batch.bad_index, 0);
	fake_qemu_close(&fake);
}

static void batch_by_process_vm(void **state)
{
	(void)state;
	batch_is_written(false);
}

static void batch_by_mapping(void **state)
{
	(void)state;
	batch_is_written(true);
}

static void mismatch_writes_nothing(void **state)
{
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	/* The last byte of one that straddles. */
	fake.ram[fake_entries(&fake)[63].gpa2 + 2] ^= 1;
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_MISMATCH);
	assert_int_equal(fake_command(&fake)->batch.bad_index, 63);
	fake.ram[fake_entries(&fake)[63].gpa2 + 2] ^= 1;
	assert_int_equal(fake_new_sites(&fake), 0);
	assert_true(atomic_load(&fake.running));
	fake_qemu_close(&fake);
}

/* Flash and what else is not RAM cannot be registered as text. */
static void rom_is_not_ram(void **state)
{
	struct hvpoke_range *range;
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	range = (void *)fake_entries(&fake);
	*range = (struct hvpoke_range){.gpa = 0xfffc0000, .gva = 0xfffc0000, .len = 4096};
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_HELLO), HVPOKE_BAD_GPA);
	*range = (struct hvpoke_range){.gpa = FAKE_RAM - 4096, .gva = 0, .len = 8192};
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_HELLO), HVPOKE_BAD_GPA);
	fake_qemu_close(&fake);
}

/* What QEMU cannot write to itself, although we could: it is a mistake in its map. */
static void read_only_is_not_ram(void **state)
{
	struct hvpoke_range *range;
	struct fake_qemu fake;

	(void)state;
	fake_qemu_open(&fake, &host, false);
	assert_int_equal(mprotect(fake.ram + FAKE_TEXT, 4096, PROT_READ), 0);
	fake_qemu_monitor(&fake);
	range = (void *)fake_entries(&fake);
	*range = (struct hvpoke_range){.gpa = FAKE_TEXT, .gva = FAKE_TEXT, .len = FAKE_SIZE};
	fake_command(&fake)->hello.nr_ranges = 1;
	fake_command(&fake)->hello.ranges_gpa = HVPOKE_SHM_ARENA;
	((struct hvpoke_page_list *)(fake.shm + HVPOKE_SHM_ARENA))->page_gpa[0] =
		HVPOKE_SHM_ARENA + HVPOKE_PAGE_SIZE;
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_HELLO), HVPOKE_BAD_GPA);
	assert_int_equal(mprotect(fake.ram + FAKE_TEXT, 4096, PROT_READ | PROT_WRITE), 0);
	fake_hello(&fake);
	fake_qemu_close(&fake);
}

static void abandoned_batch_is_not_written(void **state)
{
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, true);
	fake_batch(&fake);
	atomic_store(&fake.mood, FAKE_ABANDONS);
	fake_submit(&fake, HVPOKE_CMD_BATCH);
	fake_wait(&fake);
	/* The host has given the command page back. */
	assert_int_equal(fake_state(&fake), HVPOKE_SHM_IDLE);
	assert_int_equal(fake_new_sites(&fake), 0);
	assert_true(atomic_load(&fake.running));
	atomic_store(&fake.mood, FAKE_WELL);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	fake_qemu_close(&fake);
}

static void withdrawn_batch_is_not_taken(void **state)
{
	struct fake_qemu fake;
	uint64_t one = 1;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	/* Submitted and withdrawn again before the doorbell. */
	fake_command(&fake)->cmd = HVPOKE_CMD_BATCH;
	fake_mail(&fake)->state = hvpoke_shm_word(++fake.seq, HVPOKE_SHM_IDLE);
	assert_int_equal(write(fake.doorbell, &one, sizeof(one)), sizeof(one));
	fake_hello(&fake);
	assert_int_equal(fake_new_sites(&fake), 0);
	fake_qemu_close(&fake);
}

static void operators_pause_stays(void **state)
{
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	/* The operator was faster than the batch that the guest had rung for. */
	atomic_store(&fake.running, false);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	assert_int_equal(atomic_load(&fake.conts), 0);
	assert_false(atomic_load(&fake.running));
	fake_qemu_close(&fake);
}

static bool is_paused(void)
{
	struct json_object *info = host_call(&host, "fake", "info", NULL, NULL);
	const char *now = json_object_get_string(json_object_object_get(info, "state"));
	bool paused = !strcmp(now, "paused");

	json_object_put(info);
	return paused;
}

/* What has been read together with an answer is not left until QEMU says more. */
static void operators_pause_right_behind_ours(void **state)
{
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	atomic_store(&fake.mood, FAKE_PAUSED);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	WAIT_FOR(is_paused(), 2000);
	fake_qemu_close(&fake);
}

static void control_socket(void **state)
{
	struct json_object *info, *error = NULL;
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	info = host_call(&host, "fake", "info", NULL, NULL);
	assert_int_equal(member(info, "pid"), getpid());
	assert_int_equal(member(info, "vcpus"), 2);
	assert_int_equal(member(info, "memory"), FAKE_RAM);
	assert_string_equal(json_object_get_string(json_object_object_get(info, "accelerator")),
			    "kvm");
	json_object_put(info);
	json_object_put(host_call(&host, "fake", "pause", NULL, NULL));
	assert_false(atomic_load(&fake.running));
	host_call(&host, "fake", "idle", json_tokener_parse("{\"ms\":1}"), &error);
	assert_string_equal(json_object_get_string(json_object_object_get(error, "code")),
			    "paused");
	json_object_put(error);
	host_call(&host, "fake", "pause", NULL, &error);
	assert_string_equal(json_object_get_string(json_object_object_get(error, "code")),
			    "paused");
	json_object_put(error);
	json_object_put(host_call(&host, "fake", "resume", NULL, NULL));
	assert_true(atomic_load(&fake.running));
	fake_qemu_close(&fake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(header_and_memory),
		TEST(guests_are_apart),
		TEST(second_device_is_refused),
		TEST(device_comes_again),
		TEST(batch_by_process_vm),
		TEST(batch_by_mapping),
		TEST(mismatch_writes_nothing),
		TEST(rom_is_not_ram),
		TEST(read_only_is_not_ram),
		TEST(abandoned_batch_is_not_written),
		TEST(withdrawn_batch_is_not_taken),
		TEST(operators_pause_stays),
		TEST(operators_pause_right_behind_ours),
		TEST(control_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
