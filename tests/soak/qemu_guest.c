// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "../qemu/fake_qemu.h"
#include "guests.h"
#include "orders.h"

#define WAIT_MS 20000

_Static_assert(ORDER_SITES == FAKE_SITES, "the orders' batch is fake_batch()'s");

pid_t qemu_guest_start(const struct host *host, const char *name)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		/* The guest's memory is its own process's: this one goes on as another program. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "day", "guest", name, host->dir, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static uint32_t batch(struct fake_qemu *fake, uint32_t order, struct hvpoke_complete *answer)
{
	uint32_t wanted, status, written;

	fake_batch(fake);
	wanted = order_spoil(order, &fake_command(fake)->batch, fake_entries(fake), FAKE_TEXT);
	status = fake_command_run(fake, HVPOKE_CMD_BATCH);
	written = fake_new_sites(fake);
	if (written != (status == HVPOKE_OK ? ORDER_SITES : 0))
		answer->error = EILSEQ;
	if (wanted != HVPOKE_OK && status != wanted)
		answer->error = EILSEQ;
	answer->sites += written;
	answer->batches += status == HVPOKE_OK;
	return status;
}

/* The order of the request that waits, done and answered; NR_ORDERS if none waits. */
static uint32_t serve(struct fake_qemu *fake)
{
	struct hvpoke_complete answer = {.bad_query = HVPOKE_NO_INDEX};
	const struct hvpoke_fetch *fetch = &fake_command(fake)->fetch;
	uint32_t order = ORDER_BATCH;

	if (fake_command_run(fake, HVPOKE_CMD_FETCH) != HVPOKE_OK)
		return NR_ORDERS;
	answer.id = fetch->id;
	if (!(fetch->flags & HVPOKE_REQ_COUNT_IDLE)) {
		order = ((const struct hvpoke_query *)fetch->data)->first_line;
		answer.fallback = batch(fake, order, &answer);
		for (int i = 0; i < OWN_BATCHES; i++) {
			answer.matched++;
			answer.changed += batch(fake, ORDER_BATCH, &answer) == HVPOKE_OK;
		}
	}
	fake_command(fake)->complete = answer;
	/* BAD_REQUEST: the client had no patience. */
	fake_command_run(fake, HVPOKE_CMD_COMPLETE);
	return order;
}

static void obey(struct fake_qemu *fake, uint32_t order)
{
	switch (order) {
	case ORDER_HELLO: fake_hello(fake); break;
	case ORDER_RELOAD:
		fake_command_run(fake, HVPOKE_CMD_BYE);
		fake->session++;
		fake_hello(fake);
		break;
	case ORDER_RESET:
		fake_qemu_event(fake, "RESET");
		/* Before there is another agent, as when a kernel has to boot first. */
		WAIT_FOR(fake_command_run(fake, HVPOKE_CMD_FETCH) == HVPOKE_NOT_HELLO, WAIT_MS);
		fake->session++;
		fake_hello(fake);
		break;
	case ORDER_MONITOR:
		fake_qemu_hang_up(fake);
		WAIT_FOR(!__atomic_load_n(&fake_host(fake)->session, __ATOMIC_SEQ_CST), WAIT_MS);
		fake_qemu_monitor(fake);
		fake_hello(fake);
		break;
	}
}

void qemu_guest_main(const char *name, const char *dir)
{
	uint64_t seen = 0, now;
	struct host host = {};
	struct fake_qemu fake;
	uint32_t order;

	snprintf(host.dir, sizeof(host.dir), "%s", dir);
	fake_qemu_open(&fake, &host, false);
	fake.name = name;
	fake_qemu_monitor(&fake);
	fake_hello(&fake);
	for (;;) {
		struct pollfd irq = {.fd = fake.irq, .events = POLLIN};

		now = __atomic_load_n(&fake_host(&fake)->requests, __ATOMIC_SEQ_CST);
		if (now == seen) {
			/* A command that waited may have taken the count of a request's interrupt. */
			poll(&irq, 1, 2);
			continue;
		}
		seen = now;
		while ((order = serve(&fake)) < NR_ORDERS) {
			if (order == ORDER_AGAIN)
				_exit(0);
			obey(&fake, order);
		}
	}
}
