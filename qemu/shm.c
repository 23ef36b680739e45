// SPDX-License-Identifier: GPL-2.0-or-later
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct hvpoke_shm_host *host_page(const struct shm *shm)
{
	return (struct hvpoke_shm_host *)(shm->mem + HVPOKE_SHM_HOST);
}

static struct hvpoke_shm_mail *mail_page(const struct shm *shm)
{
	return (struct hvpoke_shm_mail *)(shm->mem + HVPOKE_SHM_MAIL);
}

static int map(struct shm *shm)
{
	struct stat st;
	void *mem;

	if (fstat(shm->fd, &st) < 0)
		return -errno;
	if (st.st_size < HVPOKE_SHM_MIN_SIZE || st.st_size > HVPOKE_SHM_MAX_SIZE)
		return -EINVAL;
	mem = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);
	if (mem == MAP_FAILED)
		return -errno;
	shm->mem = mem;
	shm->size = st.st_size;
	shm->ino = st.st_ino;
	return 0;
}

int shm_create(struct shm *shm, uint64_t size, uint32_t doorbell)
{
	struct hvpoke_shm_host *host;
	int err = 0;

	*shm = (struct shm){.fd = memfd_create("hvpoke", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	if (shm->fd < 0)
		return -errno;
	if (ftruncate(shm->fd, size) < 0 || fcntl(shm->fd, F_ADD_SEALS, SEALS) < 0)
		err = -errno;
	if (!err)
		err = map(shm);
	if (err) {
		shm_release(shm);
		return err;
	}
	host = host_page(shm);
	*host = (struct hvpoke_shm_host){
		.magic = HVPOKE_SHM_MAGIC,
		.version = HVPOKE_SHM_VERSION,
		.abi_version = HVPOKE_ABI_VERSION,
		.size = size,
		.doorbell = doorbell,
	};
	return 0;
}

int shm_attach(struct shm *shm, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), err;

	*shm = (struct shm){.fd = fd};
	err = seals < 0 || (seals & SEALS) != SEALS ? -EINVAL : map(shm);
	if (err)
		shm_release(shm);
	return err;
}

void shm_release(struct shm *shm)
{
	if (shm->mem)
		munmap(shm->mem, shm->size);
	if (shm->fd >= 0)
		close(shm->fd);
	*shm = (struct shm){.fd = -1};
}

void *shm_at(const struct shm *shm, uint64_t offset, uint64_t len)
{
	if (offset >= shm->size || len > shm->size - offset)
		return NULL;
	return shm->mem + offset;
}

static bool exchange(struct shm *shm, __u64 from, __u64 to)
{
	return __atomic_compare_exchange_n(&mail_page(shm)->state, &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static uint64_t with_state(uint64_t word, enum hvpoke_shm_state state)
{
	return hvpoke_shm_word(hvpoke_shm_seq(word), state);
}

/* What a host that is no more had in hand. @status: what its agent is to hear. */
static void settle_as(struct shm *shm, uint64_t word, uint32_t status)
{
	struct hvpoke_cmd *cmd = (struct hvpoke_cmd *)(shm->mem + HVPOKE_SHM_CMD);

	__atomic_store_n(&cmd->status, status, __ATOMIC_RELAXED);
	exchange(shm, word, with_state(word, HVPOKE_SHM_DONE));
}

static void settle(struct shm *shm)
{
	/* The agent may change it meanwhile, once: to ABANDONED. */
	for (int i = 0; i < 2; i++) {
		uint64_t word = __atomic_load_n(&mail_page(shm)->state, __ATOMIC_SEQ_CST);

		switch (hvpoke_shm_state(word)) {
		case HVPOKE_SHM_RUNNING: settle_as(shm, word, HVPOKE_HOST_ERROR); break;
		case HVPOKE_SHM_APPLIED: settle_as(shm, word, HVPOKE_OK); break;
		case HVPOKE_SHM_ABANDONED:
			exchange(shm, word, with_state(word, HVPOKE_SHM_IDLE));
			break;
		default: break; /* the agent's turn, or not a state at all: its own business */
		}
	}
}

void shm_session_begin(struct shm *shm)
{
	uint64_t session = 0;

	settle(shm);
	while (!session)
		if (getrandom(&session, sizeof(session), 0) != sizeof(session))
			session = 0;
	__atomic_store_n(&host_page(shm)->session, session, __ATOMIC_SEQ_CST);
}

void shm_session_end(struct shm *shm)
{
	__atomic_store_n(&host_page(shm)->session, 0, __ATOMIC_SEQ_CST);
}

void shm_announce_request(struct shm *shm)
{
	__atomic_fetch_add(&host_page(shm)->requests, 1, __ATOMIC_SEQ_CST);
}

uint64_t shm_agent_session(const struct shm *shm)
{
	return __atomic_load_n(&mail_page(shm)->session, __ATOMIC_SEQ_CST);
}

bool shm_take(struct shm *shm, uint64_t *word)
{
	uint64_t now = __atomic_load_n(&mail_page(shm)->state, __ATOMIC_SEQ_CST);

	if (hvpoke_shm_state(now) != HVPOKE_SHM_SUBMITTED)
		return false;
	*word = with_state(now, HVPOKE_SHM_RUNNING);
	return exchange(shm, now, *word);
}

bool shm_is_wanted(const struct shm *shm, uint64_t word)
{
	return __atomic_load_n(&mail_page(shm)->state, __ATOMIC_SEQ_CST) == word;
}

void shm_applied(struct shm *shm, uint64_t word)
{
	exchange(shm, word, with_state(word, HVPOKE_SHM_APPLIED));
}

void shm_finish(struct shm *shm, uint64_t word)
{
	if (exchange(shm, word, with_state(word, HVPOKE_SHM_DONE)) ||
	    exchange(shm, with_state(word, HVPOKE_SHM_APPLIED), with_state(word, HVPOKE_SHM_DONE)))
		return;
	exchange(shm, with_state(word, HVPOKE_SHM_ABANDONED), with_state(word, HVPOKE_SHM_IDLE));
}
