// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way to hvpoked through QEMU's ivshmem-doorbell, as proto/hvpoke_shm.h
 * tells: the mailbox, and who is there. shm_device.c has the PCI side.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/string.h>

#include "hvpoke.h"
#include "shm.h"
#include "transport.h"

/*
 * A host that has not answered is not asked again for so long. Else whoever patches one site
 * after another (256 kprobes, say) would wait for a dead host at each, with text_mutex held.
 */
#define SILENT_MS 2000

struct hvp_shm hvp_shm = {
	.lock = __MUTEX_INITIALIZER(hvp_shm.lock),
};

static struct hvpoke_shm_host *host(void)
{
	return hvp_shm.bar + HVPOKE_SHM_HOST;
}

static struct hvpoke_shm_mail *mail(void)
{
	return hvp_shm.bar + HVPOKE_SHM_MAIL;
}

/* A guest with one CPU has its lock prefixes taken out: not this one's. */
static bool exchange(u64 from, u64 to)
{
	return sync_cmpxchg(&mail()->state, from, to) == from;
}

/* What a former kernel or module has left in the mailbox. */
static void settle(void)
{
	u64 word, to;
	u32 state;

	do {
		word = READ_ONCE(mail()->state);
		state = hvpoke_shm_state(word);
		/* Only the host can let go of a command that it has taken. */
		to = HVPOKE_SHM_IDLE;
		if (state == HVPOKE_SHM_RUNNING || state == HVPOKE_SHM_APPLIED ||
		    state == HVPOKE_SHM_ABANDONED)
			to = HVPOKE_SHM_ABANDONED;
		to = hvpoke_shm_word(hvpoke_shm_seq(word), to);
	} while (!exchange(word, to));
}

void hvp_shm_begin(void)
{
	settle();
	hvp_shm.greeted = 0;
	hvp_shm.answered = 0;
	WRITE_ONCE(hvp_shm.silent, 0);
	/* Any number but 0 that no other load of the agent has. */
	WRITE_ONCE(mail()->session, get_random_u64() | 1);
}

void hvp_shm_end(void)
{
	WRITE_ONCE(mail()->session, 0);
}

/* The list's own pages come first, then those that it leads to. */
static u64 lay_out(const struct hvp_pages *pages, unsigned int nr)
{
	unsigned int lists = DIV_ROUND_UP(nr, HVPOKE_LIST_PAGES), i;
	u64 at = HVPOKE_SHM_ARENA, page = at + (u64)lists * HVPOKE_PAGE_SIZE;
	struct hvpoke_page_list *list = NULL;

	if (page + (u64)nr * HVPOKE_PAGE_SIZE > hvp_shm.size)
		return 0;
	for (i = 0; i < nr; i++, page += HVPOKE_PAGE_SIZE) {
		if (i % HVPOKE_LIST_PAGES == 0) {
			list = hvp_shm.bar + at;
			at += HVPOKE_PAGE_SIZE;
			list->next_gpa = nr - i > HVPOKE_LIST_PAGES ? at : 0;
		}
		list->page_gpa[i % HVPOKE_LIST_PAGES] = page;
		memcpy(hvp_shm.bar + page, hvp_pages_at(pages, i), HVPOKE_PAGE_SIZE);
	}
	return HVPOKE_SHM_ARENA;
}

static u64 shm_lay_out(const struct hvp_pages *pages, unsigned int nr)
{
	u64 at = HVPOKE_SHM_ARENA;

	mutex_lock(&hvp_shm.lock);
	/* Of a device that is away nobody reads; shm_send() says so. */
	if (hvp_shm.bar)
		at = lay_out(pages, nr);
	mutex_unlock(&hvp_shm.lock);
	return at;
}

/*
 * Until the host is done with command @seq. It is asked for the state now and
 * then, since a wakeup from another CPU's interrupt would be one more
 * function-call interrupt of the kind that is to be avoided. While the host has
 * the guest paused its clock stands still.
 */
static u32 wait_done(u64 seq)
{
	ktime_t take = ktime_add_ms(ktime_get(), HVPOKE_SHM_TAKE_MS);
	ktime_t run = ktime_add_ms(take, HVPOKE_SHM_RUN_MS);
	u64 word, idle = hvpoke_shm_word(seq, HVPOKE_SHM_IDLE);
	u64 abandoned = hvpoke_shm_word(seq, HVPOKE_SHM_ABANDONED);

	for (;; usleep_range(20, 50)) {
		word = smp_load_acquire(&mail()->state); /* the answer is read after it */
		if (hvpoke_shm_seq(word) != seq)
			return HVPOKE_HOST_ERROR;
		switch (hvpoke_shm_state(word)) {
		case HVPOKE_SHM_SUBMITTED:
			if (ktime_after(ktime_get(), take) && exchange(word, idle))
				return HVPOKE_TIMED_OUT;
			break;
		case HVPOKE_SHM_RUNNING:
			if (ktime_after(ktime_get(), run) && exchange(word, abandoned))
				return HVPOKE_TIMED_OUT;
			break;
		case HVPOKE_SHM_APPLIED:
			/* Written it is, whatever else became of the host. */
			if (ktime_after(ktime_get(), run) && exchange(word, abandoned))
				return HVPOKE_OK;
			break;
		case HVPOKE_SHM_DONE: return HVPOKE_OK;
		default: return HVPOKE_HOST_ERROR;
		}
	}
}

static u32 send(struct hvpoke_cmd *cmd)
{
	struct hvpoke_cmd *page = hvp_shm.bar + HVPOKE_SHM_CMD;
	u64 word = READ_ONCE(mail()->state), seq = hvpoke_shm_seq(word) + 1;
	u32 status;

	/* Of the last command the host has not let go yet. */
	if (hvpoke_shm_state(word) != HVPOKE_SHM_IDLE)
		return HVPOKE_BUSY;
	memcpy(page, cmd, sizeof(*cmd));
	if (!exchange(word, hvpoke_shm_word(seq, HVPOKE_SHM_SUBMITTED)))
		return HVPOKE_HOST_ERROR;
	iowrite32(READ_ONCE(host()->doorbell), hvp_shm.registers + HVPOKE_SHM_DOORBELL_REG);
	status = wait_done(seq);
	word = hvpoke_shm_word(seq, HVPOKE_SHM_DONE);
	/* Likewise. */
	if (smp_load_acquire(&mail()->state) != word)
		return status;
	memcpy(cmd, page, sizeof(*cmd));
	exchange(word, hvpoke_shm_word(seq, HVPOKE_SHM_IDLE));
	return cmd->status;
}

static bool is_silent(u64 session)
{
	return READ_ONCE(hvp_shm.silent) == session && ktime_before(ktime_get(), hvp_shm.until);
}

static u32 shm_send(struct hvpoke_cmd *cmd)
{
	u64 session, requests;
	u32 status, command = cmd->cmd;

	mutex_lock(&hvp_shm.lock);
	status = HVPOKE_NO_HOST;
	if (!hvp_shm.bar)
		goto out;
	session = READ_ONCE(host()->session);
	requests = READ_ONCE(host()->requests);
	if (!session)
		goto out;
	status = HVPOKE_NOT_HELLO;
	if (command != HVPOKE_CMD_HELLO && session != hvp_shm.greeted)
		goto out;
	status = HVPOKE_TIMED_OUT;
	if (is_silent(session))
		goto out;
	status = send(cmd);
	if (status == HVPOKE_TIMED_OUT) {
		hvp_shm.until = ktime_add_ms(ktime_get(), SILENT_MS);
		WRITE_ONCE(hvp_shm.silent, session);
	}
	if (command == HVPOKE_CMD_HELLO && status == HVPOKE_OK)
		WRITE_ONCE(hvp_shm.greeted, session);
	if (command == HVPOKE_CMD_FETCH && status == HVPOKE_NO_REQUEST)
		WRITE_ONCE(hvp_shm.answered, requests);
out:
	mutex_unlock(&hvp_shm.lock);
	return status;
}

static bool shm_greeted(void)
{
	bool greeted = false;

	mutex_lock(&hvp_shm.lock);
	if (hvp_shm.bar)
		greeted = hvp_shm.greeted && READ_ONCE(host()->session) == hvp_shm.greeted;
	mutex_unlock(&hvp_shm.lock);
	return greeted;
}

/*
 * From the interrupt, which comes for each answer, too. The device cannot go
 * away before its interrupt.
 */
bool hvp_shm_wants(const struct hvpoke_shm_host *host)
{
	WRITE_ONCE(hvp_shm.silent, 0); /* it is alive */
	return READ_ONCE(host->session) != READ_ONCE(hvp_shm.greeted) ||
	       READ_ONCE(host->requests) != READ_ONCE(hvp_shm.answered);
}

/* The device's interrupt is there as long as the device. */
static int shm_listen(void)
{
	return 0;
}

static const struct hvp_transport shm = {
	.lay_out = shm_lay_out,
	.send = shm_send,
	.greeted = shm_greeted,
	.listen = shm_listen,
	.deafen = hvp_shm_deafen,
	.close = hvp_shm_close,
};

int __init hvp_shm_open(const struct hvp_transport **transport)
{
	*transport = &shm;
	return hvp_shm_find();
}
