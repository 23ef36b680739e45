// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoked in a thread of this process, with a QEMU that the test plays, each of whose calls
 * fails once while a batch is written. The batch is written whole or not at all, the
 * guest runs in the end, and the next one is served.
 */
#include "each_call.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "../qemu/fake_qemu.h"
#include "server.h"

#define AGENT_MS 2000 /* what an agent waits before it takes a batch back */

static struct host host;
static struct server server;
static struct loop loop;
static struct loop_watch stop;
static pthread_t thread;

static void on_stop(void *ctx, uint32_t events)
{
	(void)events;
	((struct loop *)ctx)->stop = true;
}

static void *serve(void *arg)
{
	assert_int_equal(loop_run(arg), 0);
	return NULL;
}

static void start(void)
{
	const struct vm_config guests = {
		.shm_size = HVPOKE_SHM_SIZE, .limits = HVP_LIMITS_DEFAULT, .audit = {.dir = NULL}};
	struct message message;

	host_init(&host);
	assert_int_equal(mkdir(host.control_dir, 0700), 0);
	assert_int_equal(loop_init(&loop), 0);
	stop = (struct loop_watch){eventfd(0, EFD_CLOEXEC), on_stop, &loop};
	assert_int_equal(loop_add(&loop, &stop, EPOLLIN), 0);
	if (server_open(&server, &loop, host.dir, &guests, &message))
		fail_msg("%s", message.text);
	assert_int_equal(pthread_create(&thread, NULL, serve, &loop), 0);
}

static void end(void)
{
	eventfd_write(stop.fd, 1);
	pthread_join(thread, NULL);
	server_close(&server);
	close(stop.fd);
	loop_release(&loop);
	host_free(&host);
}

/* As the agent does: after a while it takes back what was not answered. */
static void run_batch(struct fake_qemu *fake)
{
	int64_t until = deadline_in(AGENT_MS);
	struct hvpoke_shm_mail *mail = fake_mail(fake);
	uint64_t seq, word;

	fake_submit(fake, HVPOKE_CMD_BATCH);
	seq = atomic_load(&fake->seq);
	while (fake_state(fake) != HVPOKE_SHM_DONE && fake_state(fake) != HVPOKE_SHM_IDLE &&
	       deadline_left(until))
		usleep(1000);
	word = hvpoke_shm_word(seq, HVPOKE_SHM_SUBMITTED);
	__atomic_compare_exchange_n(&mail->state, &word, hvpoke_shm_word(seq, HVPOKE_SHM_IDLE),
				    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	until = deadline_in(20000);
	while (fake_state(fake) != HVPOKE_SHM_DONE && fake_state(fake) != HVPOKE_SHM_IDLE &&
	       deadline_left(until))
		usleep(1000);
}

static unsigned int batch(enum failing_how how, unsigned int nth, bool shared)
{
	struct fake_qemu fake;
	unsigned int failed;
	uint32_t new_sites;

	start();
	fake_qemu_serve(&fake, &host, shared);
	fake_batch(&fake);
	failing_begin(how, nth, true);
	run_batch(&fake);
	failed = failing_end();
	/* A monitor that is given up is connected again, by "reconnect=1". */
	for (int i = 0; i < 100 && !atomic_load(&fake.running); i++)
		usleep(10000);
	if (!atomic_load(&fake.running)) {
		fake_qemu_hang_up(&fake);
		fake_qemu_monitor(&fake);
	}
	WAIT_FOR(atomic_load(&fake.running), 20000);
	new_sites = fake_new_sites(&fake);
	if (new_sites && new_sites != FAKE_SITES)
		fail_msg("%u of %u sites are written", new_sites, FAKE_SITES);
	fake_qemu_close(&fake);
	/* Whatever became of that one. */
	fake_qemu_serve(&fake, &host, shared);
	fake_batch(&fake);
	assert_int_equal(fake_command_run(&fake, HVPOKE_CMD_BATCH), HVPOKE_OK);
	assert_int_equal(fake_new_sites(&fake), FAKE_SITES);
	assert_true(atomic_load(&fake.running));
	fake_qemu_close(&fake);
	end();
	return failed;
}

/* Most of its calls are alike, some for each site: of those every 37th. */
static unsigned int batch_private(enum failing_how how, unsigned int nth)
{
	return batch(how, nth > 40 ? 40 + (nth - 40) * 37 : nth, false);
}

static unsigned int batch_shared(enum failing_how how, unsigned int nth)
{
	return batch(how, nth, true);
}

static void writing(void **state)
{
	(void)state;
	each_call("hvpoked, a batch of 1,024 sites, by system calls", batch_private);
	each_call("hvpoked, a batch of 1,024 sites, by a mapping", batch_shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
