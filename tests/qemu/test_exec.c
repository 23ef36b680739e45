// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A QEMU that executes another program: its process id stays, and whoever has its monitor goes
 * on answering. The other program, which may have more rights, has the very instructions that a
 * batch expects at the very addresses. Not one of them may be written.
 */
#include "fake_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "process.h"

static struct host host;
/* Ours: the monitor's and the agent's side. Its process is @child. */
static struct fake_qemu fake;
static pid_t child;
static int to_child[2], from_child[2];

static void tell(const int pipe_fd[2])
{
	assert_int_equal(write(pipe_fd[1], "", 1), 1);
}

static void wait_told(const int pipe_fd[2])
{
	char byte;

	assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
}

/* The program that is executed: old bytes at @address, which nobody is to touch. */
static int victim(const char *address, const char *in, const char *out)
{
	uint8_t *ram = (uint8_t *)strtoull(address, NULL, 16);
	static uint8_t before[FAKE_RAM];
	char byte;

	if (mmap(ram, FAKE_RAM, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != ram)
		return 2;
	fake_text(ram);
	memcpy(before, ram, FAKE_RAM);
	if (write(atoi(out), "", 1) != 1 || read(atoi(in), &byte, 1) != 1)
		return 3;
	return memcmp(before, ram, FAKE_RAM) ? 4 : 0;
}

static void execute_victim(void)
{
	char address[32], in[16], out[16];

	snprintf(address, sizeof(address), "%" PRIxPTR, (uintptr_t)fake.ram);
	snprintf(in, sizeof(in), "%d", to_child[0]);
	snprintf(out, sizeof(out), "%d", from_child[1]);
	execl("/proc/self/exe", "victim", address, in, out, (char *)NULL);
	_exit(127);
}

/* What the process that is to be served does. Its descriptors are told over @from_child. */
static void be_qemu(bool early)
{
	struct fake_qemu own = fake;
	int fds[5];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (early) {
		/* Connects, and is somebody else before hvpoked has looked. */
		fds[0] = host_connect(&host, "ivshmem");
		fds[1] = host_connect(&host, "qmp");
	} else {
		fake_qemu_connect_device(&own);
		fds[0] = own.conn;
		fds[1] = host_connect(&host, "qmp");
		fds[2] = own.memory;
		fds[3] = own.doorbell;
		fds[4] = own.irq;
	}
	if (write(from_child[1], fds, sizeof(fds)) != sizeof(fds))
		_exit(126);
	wait_told(to_child);
	execute_victim();
}

static int get_fd(int pidfd, int fd)
{
	int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	assert_true(got >= 0);
	return got;
}

static void start_child(bool early)
{
	int fds[5], pidfd;

	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(from_child), 0);
	/* The same addresses in both of us; ours is never written to. */
	fake_qemu_init(&fake, &host, false);
	fake_text(fake.ram);
	if (early)
		assert_int_equal(kill(host.pid, SIGSTOP), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		be_qemu(early);
	assert_int_equal(read(from_child[0], fds, sizeof(fds)), sizeof(fds));
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	fake.conn = get_fd(pidfd, fds[0]);
	fake.qmp = get_fd(pidfd, fds[1]);
	if (early) {
		tell(to_child);
		wait_told(from_child);
		assert_int_equal(kill(host.pid, SIGCONT), 0);
		fake_qemu_take_device(&fake);
	} else {
		fake.memory = get_fd(pidfd, fds[2]);
		fake.doorbell = get_fd(pidfd, fds[3]);
		fake.irq = get_fd(pidfd, fds[4]);
		fake_qemu_map(&fake);
	}
	close(pidfd);
	fake_qemu_answer(&fake, fake.qmp);
	WAIT_FOR(__atomic_load_n(&fake_host(&fake)->session, __ATOMIC_SEQ_CST), 20000);
}

/* How many sites of the child's hold new bytes. */
static uint32_t new_sites_of_child(void)
{
	struct iovec local = {.iov_base = fake.ram, .iov_len = FAKE_RAM};
	int memory = process_memory(child);

	assert_true(memory >= 0);
	assert_int_equal(process_read(memory, &local, &local, 1), 0);
	close(memory);
	return fake_new_sites(&fake);
}

/* Nothing of the victim was written. */
static void victim_is_whole(void)
{
	int status;

	tell(to_child);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_int_equal(status, 0);
}

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
	kill(host.pid, SIGCONT);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	host_assert_alive(&host);
	host_free(&host);
	return 0;
}

static void qemu_executes_another_program(void **state)
{
	(void)state;
	start_child(false);
	fake_hello(&fake);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(new_sites_of_child(), FAKE_SITES);
	tell(to_child);
	wait_told(from_child);
	assert_int_equal(new_sites_of_child(), 0);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_HOST_ERROR);
	assert_true(atomic_load(&fake.running));
	victim_is_whole();
	fake_qemu_close(&fake);
}

/* Before hvpoked has got to it: what it opens then is the other program's memory. */
static void qemu_executes_it_at_once(void **state)
{
	struct hvpoke_range *range;
	struct hvpoke_hello *hello;

	(void)state;
	start_child(true);
	/* The agent may not even register: there is no RAM. */
	hello = &fake_command(&fake)->hello;
	memset(hello, 0, sizeof(*hello));
	hello->nr_ranges = 1;
	hello->ranges_gpa = HVPOKE_SHM_ARENA;
	((struct hvpoke_page_list *)(fake.shm + HVPOKE_SHM_ARENA))->page_gpa[0] =
		HVPOKE_SHM_ARENA + HVPOKE_PAGE_SIZE;
	range = (void *)fake_entries(&fake);
	*range = (struct hvpoke_range){.gpa = FAKE_TEXT, .gva = FAKE_TEXT, .len = FAKE_SIZE};
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_HELLO), HVPOKE_BAD_GPA);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_NOT_HELLO);
	victim_is_whole();
	fake_qemu_close(&fake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(qemu_executes_another_program),
		TEST(qemu_executes_it_at_once),
	};

	if (argc == 4 && !strcmp(argv[0], "victim"))
		return victim(argv[1], argv[2], argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
