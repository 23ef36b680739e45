// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked killed at every step of a batch (patcher/fault.h), and started again: the guest
 * runs, its text is whole old or whole new, its agent is told which, and what somebody else did
 * meanwhile stands. The QEMU is played by the test (fake_qemu.h).
 */
#include "fake_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"

#define PARTS	(FAKE_SITES + FAKE_SITES / 64) /* of a batch: those across a page's end are two */
#define WAIT_MS 20000

static struct host host;
static struct fake_qemu fake;

static int setup(void **state)
{
	(void)state;
	host_init(&host);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_qemu_close(&fake);
	host_assert_alive(&host);
	host_free(&host);
	return 0;
}

/* The next hvpoked is to come by @point for the @nth time, and no further. */
static void set_fault(const char *point, unsigned int nth, int err)
{
	snprintf(host.fault, sizeof(host.fault), "%s %u %d", point, nth, err);
}

/* A new hvpoked, to which the monitor connects again as QEMU does. */
static void restart_host(void)
{
	fake_qemu_hang_up(&fake);
	__atomic_store_n(&fake_host(&fake)->session, 0, __ATOMIC_SEQ_CST);
	host_start(&host);
}

static void restart(void)
{
	restart_host();
	fake_qemu_monitor(&fake);
}

/* Serve the guest, and be killed at @point of the first batch. */
static void killed_at(const char *point, unsigned int nth, bool shared)
{
	set_fault(point, nth, 0);
	host_start(&host);
	fake_qemu_serve(&fake, &host, shared);
	fake_batch(&fake);
	fake_submit(&fake, HVPOKE_CMD_BATCH);
	host_wait_killed(&host);
}

/* The agent is answered as it should be; and the next batch is like any other. */
static void settled(uint32_t status, uint32_t new_sites)
{
	assert_int_equal(fake_wait(&fake), status);
	assert_int_equal(fake_state(&fake), HVPOKE_SHM_DONE);
	assert_int_equal(fake_new_sites(&fake), new_sites);
	assert_true(atomic_load(&fake.running));
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_NOT_HELLO);
	fake_hello(&fake);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	assert_true(atomic_load(&fake.running));
}

/* The steps of a batch. @first, @each: which pass is that of the first batch, how many a batch has. */
static const struct step {
	const char *point;
	unsigned int first, each;
	bool written;
} steps[] = {
	{"taken", 2, 1, false}, /* the first is the HELLO */
	{"copied", 1, 1, false},
	{"checked", 1, 1, false},
	{"journal-begun", 1, 1, false},
	{"stop", 1, 1, false}, /* sent, not answered */
	{"paused", 1, 1, false},
	{"verified", 1, 1, false},
	{"part-written", 1, PARTS, false},
	{"part-written", 64, PARTS, false}, /* half of a site that goes on behind a page's end */
	{"part-written", PARTS / 2, PARTS, false},
	{"part-written", PARTS, PARTS, false},
	{"written", 1, 1, false},
	{"applied", 1, 1, true},
	{"journal-ended", 1, 1, true},
	{"cont", 1, 1, true}, /* sent, not answered */
	{"resumed", 1, 1, true},
	{"answered", 2, 1, true},
};

/* In its batch number @batch, from 0. */
static void every_step(unsigned int batch, bool shared)
{
	const struct step *step;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		step = &steps[i];
		print_message("# killed at %s %u of batch %u\n", step->point, step->first, batch);
		if (i)
			fake_qemu_close(&fake);
		if (host.pid)
			host_stop(&host, SIGTERM);
		set_fault(step->point, step->first + batch * step->each, 0);
		host_start(&host);
		fake_qemu_serve(&fake, &host, shared);
		for (unsigned int before = 0; before < batch; before++) {
			fake_batch(&fake);
			assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
		}
		fake_batch(&fake);
		fake_submit(&fake, HVPOKE_CMD_BATCH);
		host_wait_killed(&host);
		restart();
		settled(step->written ? HVPOKE_OK : HVPOKE_HOST_ERROR,
			step->written ? FAKE_SITES : 0);
	}
}

static void every_step_by_process(void **state)
{
	(void)state;
	every_step(0, false);
}

static void every_step_by_mapping(void **state)
{
	(void)state;
	every_step(0, true);
}

static void every_step_of_a_later_batch(void **state)
{
	(void)state;
	every_step(2, false);
}

/* Killed again while it repairs, as often as one likes. */
static void killed_in_the_repair(void **state)
{
	static const struct {
		const char *point;
		unsigned int nth;
	} repairs[] = {
		{"repair-begun", 1}, {"part-written", 1}, {"part-written", PARTS / 3},
		{"repaired", 1},     {"cont", 1},
	};

	(void)state;
	killed_at("part-written", PARTS / 2, false);
	for (size_t i = 0; i < sizeof(repairs) / sizeof(*repairs); i++) {
		set_fault(repairs[i].point, repairs[i].nth, 0);
		restart_host();
		fake_qemu_connect_monitor(&fake);
		host_wait_killed(&host);
	}
	restart();
	settled(HVPOKE_HOST_ERROR, 0);
}

/* An operator, paused before the batch came: hvpoked pauses nothing, and resumes nothing. */
static void operators_pause_stays(void **state)
{
	static const char *const points[] = {"journal-begun", "paused", "part-written", "applied"};
	unsigned int conts;

	(void)state;
	for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
		if (i) {
			fake_qemu_close(&fake);
			host_stop(&host, SIGTERM);
		}
		set_fault(points[i], 1, 0);
		host_start(&host);
		fake_qemu_serve(&fake, &host, false);
		fake_qemu_operator(&fake, false);
		/* Known, before the batch is. */
		assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_FETCH), HVPOKE_NO_REQUEST);
		conts = atomic_load(&fake.conts);
		fake_batch(&fake);
		fake_submit(&fake, HVPOKE_CMD_BATCH);
		host_wait_killed(&host);
		restart();
		assert_int_equal(fake_wait(&fake), i == 3 ? HVPOKE_OK : HVPOKE_HOST_ERROR);
		assert_int_equal(fake_new_sites(&fake), i == 3 ? FAKE_SITES : 0);
		assert_false(atomic_load(&fake.running));
		assert_int_equal(atomic_load(&fake.conts), conts);
	}
}

/* It stands still, but not for our stop: it has run since, until a disk failed. */
static void other_reasons_to_stand_still_stay(void **state)
{
	(void)state;
	killed_at("paused", 1, false);
	atomic_store(&fake.mood, FAKE_IO_ERROR);
	restart();
	assert_int_equal(fake_wait(&fake), HVPOKE_HOST_ERROR);
	assert_false(atomic_load(&fake.running));
	assert_int_equal(atomic_load(&fake.conts), 0);
}

/* Let run by an operator with half a batch written: it is stopped for the repair. */
static void operator_lets_it_run(void **state)
{
	unsigned int stops;

	(void)state;
	killed_at("part-written", PARTS / 2, false);
	stops = atomic_load(&fake.stops);
	atomic_store(&fake.running, true);
	restart();
	assert_int_equal(atomic_load(&fake.stops), stops + 1);
	assert_int_equal(atomic_load(&fake.conts), 1);
	settled(HVPOKE_HOST_ERROR, 0);
}

/* What is neither the old nor the new text: nothing is touched, and the guest runs. */
static void text_is_left_alone(void)
{
	static uint8_t before[FAKE_RAM];

	memcpy(before, fake.ram, FAKE_RAM);
	restart();
	assert_memory_equal(fake.ram, before, FAKE_RAM);
	assert_true(atomic_load(&fake.running));
	fake_hello(&fake);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
}

static void agent_gave_up(void **state)
{
	(void)state;
	killed_at("part-written", PARTS / 2, false);
	/* Let run by an operator; its agent waited in vain, and its kernel has written the rest. */
	atomic_store(&fake.running, true);
	__atomic_store_n(&fake_mail(&fake)->state,
			 hvpoke_shm_word(atomic_load(&fake.seq), HVPOKE_SHM_ABANDONED),
			 __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < FAKE_SITES; i++) {
		const struct hvpoke_entry *entry = &fake_entries(&fake)[i];

		memcpy(fake.ram + entry->gpa, entry->new_insn, entry->len);
	}
	text_is_left_alone();
}

static void another_agent_is_there(void **state)
{
	(void)state;
	killed_at("part-written", PARTS / 2, true);
	atomic_store(&fake.running, true);
	__atomic_store_n(&fake_mail(&fake)->session, 7, __ATOMIC_SEQ_CST);
	text_is_left_alone();
}

static void another_command_is_there(void **state)
{
	(void)state;
	killed_at("part-written", PARTS / 2, false);
	atomic_store(&fake.running, true);
	__atomic_store_n(&fake_mail(&fake)->state,
			 hvpoke_shm_word(atomic_fetch_add(&fake.seq, 1) + 1, HVPOKE_SHM_RUNNING),
			 __ATOMIC_SEQ_CST);
	text_is_left_alone();
}

/* The guest was reset, and has something else there: one such site is enough. */
static void another_text_is_there(void **state)
{
	(void)state;
	killed_at("part-written", PARTS / 2, false);
	fake.ram[fake_entries(&fake)[FAKE_SITES - 1].gpa + 1] = 0xcc;
	text_is_left_alone();
}

static void damaged(off_t len, const char *with)
{
	char path[128];
	int fd;

	killed_at("part-written", PARTS / 2, false);
	snprintf(path, sizeof(path), "%s/state/%d", host.dir, (int)getpid());
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	/* The entries begin behind a page. */
	if (with)
		assert_int_equal(pwrite(fd, with, strlen(with), 4096 + len), strlen(with));
	else
		assert_int_equal(ftruncate(fd, 4096 + len), 0);
	close(fd);
	restart();
	assert_int_equal(fake_wait(&fake), HVPOKE_HOST_ERROR);
	assert_true(atomic_load(&fake.running));
	assert_true(host_logged(&host, "is left as it is"));
	assert_in_range(fake_new_sites(&fake), 1, FAKE_SITES - 1);
}

/* Cut off in the middle of an entry, or with other bytes in one: nothing of it is believed. */
static void journal_is_damaged(void **state)
{
	(void)state;
	damaged(sizeof(struct hvpoke_entry) * FAKE_SITES / 2 + 7, NULL);
	fake_qemu_close(&fake);
	host_stop(&host, SIGTERM);
	assert_int_equal(unlink(host.log), 0);
	damaged(sizeof(struct hvpoke_entry) * 100 + 18, "x");
}

/* The process is another one by now: its journal is dropped. */
static void process_is_gone(void **state)
{
	char from[128], to[128];

	(void)state;
	host_start(&host);
	fake_qemu_serve(&fake, &host, false);
	host_stop(&host, SIGKILL);
	/* Of a process that has never been. */
	snprintf(from, sizeof(from), "%s/state/%d", host.dir, (int)getpid());
	snprintf(to, sizeof(to), "%s/state/4194303", host.dir);
	assert_int_equal(rename(from, to), 0);
	host_start(&host);
	assert_int_equal(access(to, F_OK), -1);
}

/*
 * Alive, but the writing fails in the middle, and so does the undoing: the guest stands still
 * until it is repaired, which is tried whenever a monitor connects.
 */
static void half_a_batch_is_never_run(void **state)
{
	(void)state;
	set_fault("part-written", PARTS / 2, ENOMEM);
	host_start(&host);
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	fake_submit(&fake, HVPOKE_CMD_BATCH);
	WAIT_FOR(!__atomic_load_n(&fake_host(&fake)->session, __ATOMIC_SEQ_CST), WAIT_MS);
	assert_false(atomic_load(&fake.running));
	assert_int_equal(fake_state(&fake), HVPOKE_SHM_RUNNING);
	fake_qemu_hang_up(&fake);
	fake_qemu_connect_monitor(&fake);
	WAIT_FOR(host_logged(&host, "cannot be undone yet"), WAIT_MS);
	assert_false(atomic_load(&fake.running));
	assert_int_equal(fake_state(&fake), HVPOKE_SHM_RUNNING);
	assert_int_equal(atomic_load(&fake.conts), 0);
	host_stop(&host, SIGKILL);
	restart();
	settled(HVPOKE_HOST_ERROR, 0);
}

/* If it can be undone it is: all is old, and the guest runs. */
static void failed_write_is_undone(bool shared)
{
	set_fault("part-written", PARTS / 2, -ENOMEM);
	host_start(&host);
	fake_qemu_serve(&fake, &host, shared);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_HOST_ERROR);
	assert_int_equal(fake_new_sites(&fake), 0);
	assert_true(atomic_load(&fake.running));
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
}

static void failed_write_by_process_is_undone(void **state)
{
	(void)state;
	failed_write_is_undone(false);
}

static void failed_write_by_mapping_is_undone(void **state)
{
	(void)state;
	failed_write_is_undone(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_step_by_process),
		TEST(every_step_by_mapping),
		TEST(every_step_of_a_later_batch),
		TEST(killed_in_the_repair),
		TEST(operators_pause_stays),
		TEST(other_reasons_to_stand_still_stay),
		TEST(operator_lets_it_run),
		TEST(agent_gave_up),
		TEST(another_agent_is_there),
		TEST(another_command_is_there),
		TEST(another_text_is_there),
		TEST(journal_is_damaged),
		TEST(process_is_gone),
		TEST(half_a_batch_is_never_run),
		TEST(failed_write_by_process_is_undone),
		TEST(failed_write_by_mapping_is_undone),
	};

	if (!FAULTS_BUILT_IN) {
		puts("1..0 # SKIP this build has no fault points");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
