// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked short of something: of disk for its journal, of descriptors; or interrupted all
 * the time. What cannot be done is refused, nothing is lost, and it goes on when there is enough
 * again. The QEMU is played by the test (fake_qemu.h).
 */
#include "fake_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "fault.h"

static struct host host;
static struct fake_qemu fake;
static char state_dir[80];

static int setup(void **state)
{
	(void)state;
	host_init(&host);
	snprintf(state_dir, sizeof(state_dir), "%s/state", host.dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	host_assert_alive(&host);
	host_stop(&host, SIGTERM);
	umount2(state_dir, MNT_DETACH);
	host_free(&host);
	return 0;
}

/* A disk of its own for what hvpoked keeps, of @pages pages. */
static void disk_of(unsigned int pages, unsigned long flags)
{
	char options[64];

	snprintf(options, sizeof(options), "mode=0700,size=%uk", pages * 4);
	if (mount("none", state_dir, "tmpfs", flags, options) == 0)
		return;
	if (flags || errno != EPERM)
		fail_msg("no tmpfs at %s: %s", state_dir, strerror(errno));
	print_message("skipped: a tmpfs cannot be mounted here\n");
	host_start(&host);
	skip();
}

static void served(void)
{
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	assert_true(atomic_load(&fake.running));
}

/* The record fits, the journal does not: the batch is refused before the pause. */
static void disk_full_of_the_journal(void **state)
{
	(void)state;
	assert_int_equal(mkdir(state_dir, 0700), 0);
	disk_of(4, 0);
	host_start(&host);
	fake_qemu_serve(&fake, &host, false);
	for (int i = 0; i < 3; i++) {
		fake_batch(&fake);
		assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_HOST_ERROR);
		assert_int_equal(fake_new_sites(&fake), 0);
	}
	assert_int_equal(atomic_load(&fake.stops), 0);
	assert_true(host_logged(&host, "no batch is written while there is no journal"));
	/* Somebody makes room. */
	disk_of(64, MS_REMOUNT);
	served();
	fake_qemu_close(&fake);
}

/* Nor does the record: the device is refused, and hvpoked goes on. */
static void disk_full_of_the_record(void **state)
{
	char filler[4096] = "", path[128];
	int fd;

	(void)state;
	assert_int_equal(mkdir(state_dir, 0700), 0);
	disk_of(16, 0);
	host_start(&host);
	snprintf(path, sizeof(path), "%s/.filler", state_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, filler, sizeof(filler)) > 0)
		;
	close(fd);
	fd = host_connect(&host, "ivshmem");
	assert_int_equal(recv(fd, filler, 1, 0), 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
	fake_qemu_serve(&fake, &host, false);
	served();
	fake_qemu_close(&fake);
}

static void set_descriptors(unsigned int nr)
{
	struct rlimit limit;

	assert_int_equal(prlimit(host.pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = nr;
	assert_int_equal(prlimit(host.pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* Its first number that is free: the limit is on those, not on how many there are. */
static unsigned int free_descriptor(void)
{
	unsigned int nr = 0;
	struct stat st;
	char path[64];

	do {
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)host.pid, nr++);
	} while (!lstat(path, &st));
	return nr - 1;
}

static bool turned_away(const char *name)
{
	int fd = host_connect(&host, name);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char byte;
	bool away = poll(&poll_fd, 1, 20000) == 1 && recv(fd, &byte, 1, 0) == 0;

	close(fd);
	return away;
}

/* Who connects is turned away at once; who is there already is served. */
static void no_descriptor_for_a_new_guest(void **state)
{
	(void)state;
	host_start(&host);
	fake_qemu_serve(&fake, &host, true);
	set_descriptors(free_descriptor());
	for (int i = 0; i < 8; i++)
		assert_true(turned_away(i % 2 ? "ivshmem" : "qmp"));
	assert_true(host_logged(&host, "a QEMU is not served"));
	served();
	set_descriptors(1024);
	fake_qemu_hang_up(&fake);
	WAIT_FOR(!__atomic_load_n(&fake_host(&fake)->session, __ATOMIC_SEQ_CST), 20000);
	fake_qemu_monitor(&fake);
	fake_hello(&fake);
	served();
	fake_qemu_close(&fake);
}

/*
 * A guest that a former hvpoked left paused cannot be taken over for want of descriptors: what is
 * known of it stays, and it is tried again when its monitor connects again.
 */
static void no_descriptor_to_take_over(void **state)
{
	(void)state;
	snprintf(host.fault, sizeof(host.fault), "paused 1 0");
	host_start(&host);
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	fake_submit(&fake, HVPOKE_CMD_BATCH);
	host_wait_killed(&host);
	fake_qemu_hang_up(&fake);
	__atomic_store_n(&fake_host(&fake)->session, 0, __ATOMIC_SEQ_CST);
	snprintf(host.fault, sizeof(host.fault), "take-over 1 %d", EMFILE);
	host_start(&host);
	for (int i = 0; i < 3; i++)
		assert_true(turned_away("qmp"));
	assert_false(atomic_load(&fake.running));
	host_stop(&host, SIGTERM);
	/* Just the once. */
	snprintf(host.fault, sizeof(host.fault), "take-over 1 %d", -EMFILE);
	host_start(&host);
	assert_true(host_logged(&host, strerror(EMFILE)));
	assert_false(atomic_load(&fake.running));
	fake_qemu_monitor(&fake);
	assert_int_equal(fake_wait(&fake), HVPOKE_HOST_ERROR);
	assert_true(atomic_load(&fake.running));
	assert_int_equal(fake_new_sites(&fake), 0);
	fake_hello(&fake);
	served();
	fake_qemu_close(&fake);
}

static atomic_bool enough;

/* Stopped and let go: epoll_wait() returns with EINTR then, handler or not. */
static void *interrupt(void *arg)
{
	(void)arg;
	while (!atomic_load(&enough)) {
		kill(host.pid, SIGSTOP);
		kill(host.pid, SIGCONT);
		usleep(500);
	}
	return NULL;
}

static void interrupted_all_the_time(void **state)
{
	pthread_t thread;

	(void)state;
	host_start(&host);
	atomic_store(&enough, false);
	assert_int_equal(pthread_create(&thread, NULL, interrupt, NULL), 0);
	for (int guest = 0; guest < 3; guest++) {
		fake_qemu_serve(&fake, &host, guest % 2);
		for (int i = 0; i < 30; i++)
			served();
		fake_qemu_close(&fake);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	host_assert_alive(&host);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(disk_full_of_the_journal),	     TEST(disk_full_of_the_record),
		TEST(no_descriptor_for_a_new_guest), TEST(no_descriptor_to_take_over),
		TEST(interrupted_all_the_time),
	};

	if (!FAULTS_BUILT_IN) {
		puts("1..0 # SKIP this build has no fault points");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
