// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A monitor and a guest that do all the wrong things, and a hvpoked that ends at the wrong
 * moment; the QEMU is played by the test (fake_qemu.h).
 */
#include "fake_qemu.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

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

static void silent_monitor_fails_the_batch(void **state)
{
	struct fake_qemu fake;
	int64_t start;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	atomic_store(&fake.mood, FAKE_SILENT);
	start = deadline_in(0);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_PAUSE_FAILED);
	assert_in_range(deadline_in(0) - start, 1000, 5000);
	assert_int_equal(fake_new_sites(&fake), 0);
	/* It may have stopped all the same: so it was told to go on. */
	WAIT_FOR(atomic_load(&fake.conts) == 1, 5000);
	atomic_store(&fake.mood, FAKE_WELL);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	fake_qemu_close(&fake);
}

static const char *state_of(const char *vm)
{
	static char state[32];
	struct json_object *error = NULL, *info = host_call(&host, vm, "info", NULL, &error);

	assert_non_null(info);
	snprintf(state, sizeof(state), "%s",
		 json_object_get_string(json_object_object_get(info, "state")));
	json_object_put(info);
	return state;
}

/* It stops, but only when nobody waits for that any more: it must not stay so. */
static void late_stop_is_undone(void **state)
{
	struct fake_qemu fake;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	atomic_store(&fake.mood, FAKE_LATE);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_PAUSE_FAILED);
	assert_int_equal(fake_new_sites(&fake), 0);
	/* The stop and its event, then the cont that waits behind it. */
	WAIT_FOR(atomic_load(&fake.conts) == 1, 20000);
	assert_int_equal(atomic_load(&fake.stops), 1);
	assert_true(atomic_load(&fake.running));
	WAIT_FOR(!strcmp(state_of("fake"), "running"), 20000);
	atomic_store(&fake.mood, FAKE_WELL);
	/* Its late answers are not taken for those of the next one. */
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	assert_true(atomic_load(&fake.running));
	/* What an operator pauses later stays paused. */
	fake_qemu_operator(&fake, false);
	WAIT_FOR(!strcmp(state_of("fake"), "paused"), 20000);
	assert_int_equal(atomic_load(&fake.conts), 2);
	fake_qemu_close(&fake);
}

/* The monitor is gone with the guest paused: as soon as there is one again, it runs. */
static void lost_monitor_does_not_leave_it_paused(enum fake_mood mood)
{
	struct fake_qemu fake;
	uint64_t session;

	fake_qemu_serve(&fake, &host, false);
	session = fake_host(&fake)->session;
	fake_batch(&fake);
	atomic_store(&fake.mood, mood);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_HOST_ERROR);
	assert_int_equal(fake_new_sites(&fake), 0);
	fake_qemu_hang_up(&fake);
	WAIT_FOR(!__atomic_load_n(&fake_host(&fake)->session, __ATOMIC_SEQ_CST), 5000);
	atomic_store(&fake.mood, FAKE_WELL);
	fake_qemu_monitor(&fake);
	assert_true(atomic_load(&fake.running));
	assert_int_not_equal(fake_host(&fake)->session, session);
	/* A new session wants a new hello. */
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_NOT_HELLO);
	fake_hello(&fake);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	fake_qemu_close(&fake);
}

static void monitor_hangs_up(void **state)
{
	(void)state;
	lost_monitor_does_not_leave_it_paused(FAKE_HANGS_UP);
}

static void monitor_babbles(void **state)
{
	(void)state;
	lost_monitor_does_not_leave_it_paused(FAKE_BABBLES);
}

static void garbage_for_a_monitor(void **state)
{
	static const char *const lines[] = {
		"",
		"\n\n\n",
		"hello\n",
		"{\"QMP\":",
		"{\"QMP\":{}}\n{\"return\":5,\"id\":99}\n{\"error\":null,\"id\":1}\n",
		"{\"QMP\":{}}\n{\"return\":{},\"id\":1}\n{\"return\":[],\"id\":2}\n",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
		"{\"event\":{}}\n{\"event\":\"STOP\",\"data\":7}\n\"x\"\n",
	};
	struct fake_qemu fake;
	int fd;

	(void)state;
	fake_qemu_open(&fake, &host, false);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		fd = host_connect(&host, "qmp");
		send(fd, lines[i], strlen(lines[i]), MSG_NOSIGNAL);
		usleep(20000);
		close(fd);
	}
	host_assert_alive(&host);
	fake_qemu_monitor(&fake);
	fake_hello(&fake);
	fake_qemu_close(&fake);
}

/* A monitor that never ends its line. */
static void endless_line(void **state)
{
	static char many[65536];
	struct pollfd poll_fd = {.events = POLLOUT};
	struct fake_qemu fake;
	size_t sent = 0;

	(void)state;
	fake_qemu_open(&fake, &host, false);
	poll_fd.fd = host_connect(&host, "qmp");
	memset(many, 'x', sizeof(many));
	while (sent < 64u << 20 && poll(&poll_fd, 1, 5000) == 1 && !(poll_fd.revents & POLLHUP) &&
	       send(poll_fd.fd, many, sizeof(many), MSG_NOSIGNAL) > 0)
		sent += sizeof(many);
	assert_true(sent < 64u << 20);
	close(poll_fd.fd);
	fake_qemu_monitor(&fake);
	fake_hello(&fake);
	fake_qemu_close(&fake);
}

struct flood {
	int fd;
	size_t sent;
};

/* Events without end, faster than they can be read. */
static void *flood(void *arg)
{
	static const char event[] = "{\"event\":\"RTC_CHANGE\",\"data\":{}}\n";
	static char many[(sizeof(event) - 1) * 2048];
	struct flood *flood = arg;
	int room = 16 << 20;
	ssize_t sent;

	/* So much that the reader cannot see it empty before the next send. */
	setsockopt(flood->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	for (size_t i = 0; i < sizeof(many); i++)
		many[i] = event[i % (sizeof(event) - 1)];
	while ((sent = send(flood->fd, many + flood->sent % sizeof(many),
			    sizeof(many) - flood->sent % sizeof(many), MSG_NOSIGNAL)) > 0)
		flood->sent += sent;
	return NULL;
}

/* It keeps its own guest's thread busy, but not for ever with one thing, nor anybody else. */
static void monitor_never_stops_talking(void **state)
{
	struct fake_qemu fake;
	struct flood events;
	pthread_t thread;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	events = (struct flood){.fd = fake.qmp};
	assert_int_equal(pthread_create(&thread, NULL, flood, &events), 0);
	usleep(300000);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_FETCH), HVPOKE_NO_REQUEST);
	host_stop(&host, SIGTERM);
	pthread_join(thread, NULL);
	assert_true(events.sent > 1 << 20);
	fake_qemu_close(&fake);
	host_start(&host);
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* A guest that does with its memory whatever it likes. Nothing outside of the text changes. */
static void garbage_for_a_guest(void **state)
{
	static uint8_t before[FAKE_RAM];
	struct fake_qemu fake;
	uint64_t *word, one = 1;

	(void)state;
	fake_qemu_serve(&fake, &host, false);
	fake_batch(&fake);
	memcpy(before, fake.ram, FAKE_RAM);
	for (int i = 0; i < 3000; i++) {
		for (int changes = random_u64() % 8; changes >= 0; changes--) {
			word = (uint64_t *)(fake.shm + random_u64() % 0x6000 / 8 * 8);
			*word = random_u64() % 3 ? random_u64() % 0x40000 : random_u64();
		}
		fake_command(&fake)->version = HVPOKE_ABI_VERSION;
		fake_command(&fake)->reserved = 0;
		fake_command(&fake)->cmd = random_u64() % 6;
		__atomic_store_n(&fake_mail(&fake)->state, random_u64() % 5 ? 1 : random_u64(),
				 __ATOMIC_SEQ_CST);
		assert_int_equal(write(fake.doorbell, &one, sizeof(one)), sizeof(one));
		if (random_u64() % 2)
			usleep(random_u64() % 300);
	}
	host_assert_alive(&host);
	assert_memory_equal(fake.ram, before, FAKE_TEXT);
	assert_memory_equal(fake.ram + FAKE_TEXT + FAKE_SIZE, before + FAKE_TEXT + FAKE_SIZE,
			    FAKE_RAM - FAKE_TEXT - FAKE_SIZE);
	fake_qemu_close(&fake);
}

/* hvpoked is restarted: the descriptors come back from the process that still has them. */
static void host_restarts(int signal)
{
	struct fake_qemu fake;
	uint64_t session;

	fake_qemu_serve(&fake, &host, true);
	session = fake_host(&fake)->session;
	host_stop(&host, signal);
	if (signal == SIGTERM)
		assert_int_equal(fake_host(&fake)->session, 0);
	fake_qemu_hang_up(&fake);
	host_start(&host);
	fake_host(&fake)->session = 0; /* so that the new one's can be waited for */
	fake_qemu_monitor(&fake);
	assert_int_not_equal(fake_host(&fake)->session, session);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_NOT_HELLO);
	fake_hello(&fake);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	fake_qemu_close(&fake);
}

static void restart_by_term(void **state)
{
	(void)state;
	host_restarts(SIGTERM);
}

static void restart_by_kill(void **state)
{
	(void)state;
	host_restarts(SIGKILL);
}

/* Killed with a batch in hand: its agent is told, once, and exactly what became of it. */
static void restart_settles_the_mailbox(void **state)
{
	static const struct {
		enum hvpoke_shm_state left, becomes;
		uint32_t status;
	} cases[] = {
		{HVPOKE_SHM_IDLE, HVPOKE_SHM_IDLE, 77},
		{HVPOKE_SHM_RUNNING, HVPOKE_SHM_DONE, HVPOKE_HOST_ERROR},
		{HVPOKE_SHM_APPLIED, HVPOKE_SHM_DONE, HVPOKE_OK},
		{HVPOKE_SHM_DONE, HVPOKE_SHM_DONE, 77},
		{HVPOKE_SHM_ABANDONED, HVPOKE_SHM_IDLE, 77},
		/* Taken as if just rung: an unknown agent's batch. */
		{HVPOKE_SHM_SUBMITTED, HVPOKE_SHM_DONE, HVPOKE_NOT_HELLO},
	};
	struct fake_qemu fake;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		fake_qemu_serve(&fake, &host, false);
		host_stop(&host, SIGKILL);
		fake_qemu_hang_up(&fake);
		fake_batch(&fake);
		fake_command(&fake)->cmd = HVPOKE_CMD_BATCH;
		fake_command(&fake)->status = 77;
		fake_mail(&fake)->state = hvpoke_shm_word(5, cases[i].left);
		fake_host(&fake)->session = 0;
		host_start(&host);
		fake_qemu_monitor(&fake);
		WAIT_FOR(fake_mail(&fake)->state == hvpoke_shm_word(5, cases[i].becomes), 5000);
		assert_int_equal(fake_command(&fake)->status, cases[i].status);
		fake_qemu_close(&fake);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(silent_monitor_fails_the_batch),
		TEST(late_stop_is_undone),
		TEST(monitor_hangs_up),
		TEST(monitor_babbles),
		TEST(garbage_for_a_monitor),
		TEST(endless_line),
		TEST(monitor_never_stops_talking),
		TEST(garbage_for_a_guest),
		TEST(restart_by_term),
		TEST(restart_by_kill),
		TEST(restart_settles_the_mailbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
