// SPDX-License-Identifier: GPL-2.0-or-later
/* The log: who may add how much, and the thread that writes it. */
#include "audit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_internal.h"
#include "clock.h"

/* Records that wait to be written. A disk that hangs for longer costs those that come then. */
#define QUEUE_MAX    1024u
#define READ_WAIT_MS 1000
#define THREAD_STACK (256u * 1024) /* json-c recurses by the depth of what it prints: three */
#define NS_PER_MS    1000000ull
#define NS_PER_S     1000000000ull

/* How many batches may be recorded one by one, and those that were not. */
struct quota {
	unsigned int left, most;
	uint64_t each_ns; /* one more */
	uint64_t from_ns; /* when there was one more, the last time */
	/* What the next record of AUDIT_MORE has to say; @since_ns: since when it waits. */
	uint64_t count, sites, since_ns;
	uint32_t status;
};

enum { APPLIED, REFUSED, NR_QUOTAS };

struct hvp_audit {
	struct audit_file file; /* the thread's; others only read */
	bool to_file;
	uint64_t sum_ns;
	void (*confine)(void *ctx);
	void *confine_ctx;
	pthread_t thread;

	pthread_mutex_t lock;  /* innermost; never held over a system call on a file */
	pthread_cond_t change; /* of anything below */
	uint64_t next_id;
	STAILQ_HEAD(, audit_record) queue;
	unsigned int nr_queued;
	bool writing; /* one that is no longer in the queue */
	bool stop;
	struct quota quota[NR_QUOTAS];
	uint64_t lost, lost_total; /* no record says so yet; since the log was opened */

	bool failing; /* the thread's: it has been said */
};

static void deadline(struct timespec *at, uint64_t ns)
{
	at->tv_sec = (time_t)(ns / NS_PER_S);
	at->tv_nsec = (long)(ns % NS_PER_S);
}

/* Under the lock. */
static void lose(struct hvp_audit *audit, uint64_t nr)
{
	audit->lost += nr;
	audit->lost_total += nr;
}

/* Give @record (may be NULL: no memory) its id and its place. Takes it. Under the lock. */
static uint64_t queue(struct hvp_audit *audit, struct audit_record *record)
{
	uint64_t id = audit->next_id++;

	if (!audit->to_file) {
		free(record);
		return id;
	}
	if (!record || audit->nr_queued == QUEUE_MAX) {
		free(record);
		lose(audit, 1);
		return id;
	}
	record->id = id;
	clock_gettime(CLOCK_REALTIME, &record->time);
	STAILQ_INSERT_TAIL(&audit->queue, record, link);
	audit->nr_queued++;
	pthread_cond_broadcast(&audit->change);
	return id;
}

/* May a batch be recorded for itself? Else it is counted. Under the lock. */
static bool take(struct hvp_audit *audit, struct quota *quota, uint32_t sites, uint32_t status)
{
	uint64_t now = hvp_now_ns(), more = (now - quota->from_ns) / quota->each_ns;

	quota->from_ns += more * quota->each_ns;
	quota->left =
		more > quota->most - quota->left ? quota->most : quota->left + (unsigned int)more;
	if (quota->left) {
		quota->left--;
		return true;
	}
	/* Only the first one has the thread look at its clock. */
	if (!quota->count++) {
		quota->since_ns = now;
		pthread_cond_broadcast(&audit->change);
	}
	quota->sites += sites;
	quota->status = status;
	return false;
}

static struct audit_record *record_new(const struct hvp_audit *audit, enum audit_kind kind,
				       const struct hvp_origin *origin)
{
	struct audit_record *record = audit->to_file ? calloc(1, sizeof(*record)) : NULL;

	if (!record)
		return NULL;
	record->kind = kind;
	record->by_client = origin;
	if (origin)
		record->origin = *origin;
	return record;
}

uint64_t hvp_audit_batch(struct hvp_audit *audit, const struct hvp_origin *origin, uint32_t sites,
			 uint64_t undoes, const struct hvp_batch_result *result)
{
	struct audit_record *record;
	struct quota *quota;
	uint64_t id = 0;

	if (!audit)
		return 0;
	quota = &audit->quota[result->status == HVPOKE_OK ? APPLIED : REFUSED];
	record = record_new(audit, AUDIT_BATCH, origin);
	if (record) {
		record->sites = sites;
		record->undoes = undoes;
		record->result = *result;
	}
	pthread_mutex_lock(&audit->lock);
	if (undoes || take(audit, quota, sites, result->status)) {
		id = queue(audit, record);
		record = NULL;
	}
	pthread_mutex_unlock(&audit->lock);
	free(record);
	return id;
}

/* @ended is a string that stays. @record may be NULL. */
static uint64_t add_request(struct hvp_audit *audit, struct audit_record *record, const char *ended)
{
	uint64_t id;

	if (record)
		record->ended = ended;
	pthread_mutex_lock(&audit->lock);
	id = queue(audit, record);
	pthread_mutex_unlock(&audit->lock);
	return id;
}

uint64_t hvp_audit_answered(struct hvp_audit *audit, const struct hvp_origin *origin,
			    const struct hvp_outcome *outcome, bool late)
{
	const struct hvpoke_complete *guest = &outcome->guest;
	struct audit_record *record;

	if (!audit || !origin || !*origin->method)
		return 0;
	record = record_new(audit, AUDIT_REQUEST, origin);
	if (record) {
		record->answered = true;
		record->matched = guest->matched;
		record->changed = guest->changed;
		record->guest_sites = guest->sites;
		record->native_sites = guest->native_sites;
		record->batches = guest->batches;
		record->fallback = guest->fallback;
		record->error = guest->error;
		record->pause_ns = outcome->pause_ns;
		snprintf(record->message, sizeof(record->message), "%.*s",
			 (int)sizeof(guest->message), guest->message);
	}
	if (late)
		return add_request(audit, record, "late");
	return add_request(audit, record, guest->error ? "failed" : "done");
}

uint64_t hvp_audit_unanswered(struct hvp_audit *audit, const struct hvp_origin *origin,
			      const char *why, const char *message)
{
	struct audit_record *record;

	if (!audit || !origin || !*origin->method)
		return 0;
	record = record_new(audit, AUDIT_REQUEST, origin);
	if (record && message)
		snprintf(record->message, sizeof(record->message), "%s", message);
	return add_request(audit, record, why);
}

/* A disk that is full stays so for long: say it when it begins and when it ends. */
static void say(struct hvp_audit *audit, int err)
{
	if (err && !audit->failing)
		fprintf(stderr,
			"hvpoke: cannot write to the log %s: %s; the guest is served as before, "
			"and what cannot be recorded is counted\n",
			audit->file.path, strerrordesc_np(-err));
	else if (!err && audit->failing)
		fprintf(stderr, "hvpoke: the log %s is written again\n", audit->file.path);
	audit->failing = err != 0;
}

static int append(struct hvp_audit *audit, const struct audit_record *record)
{
	size_t len;
	char *line = audit_line(record, &len);
	int err = line ? audit_file_append(&audit->file, line, len) : -ENOMEM;

	free(line);
	say(audit, err);
	return err;
}

/* How many there were of what was not recorded. NULL: no memory for it. Under the lock. */
static struct audit_record *sum_up(struct hvp_audit *audit, struct quota *quota)
{
	struct audit_record *record = calloc(1, sizeof(*record));

	if (record) {
		record->kind = AUDIT_MORE;
		record->id = audit->next_id++;
		record->count = quota->count;
		record->all_sites = quota->sites;
		record->result.status = quota->status;
		clock_gettime(CLOCK_REALTIME, &record->time);
	} else {
		lose(audit, 1);
	}
	quota->count = quota->sites = 0;
	return record;
}

/* The quota whose sum has waited long enough, or NULL; *@due: when the next one has, or 0. */
static struct quota *due_quota(struct hvp_audit *audit, uint64_t *due)
{
	uint64_t now = hvp_now_ns(), at;

	*due = 0;
	for (struct quota *quota = audit->quota; quota < audit->quota + NR_QUOTAS; quota++) {
		at = quota->since_ns + audit->sum_ns;
		if (!quota->count)
			continue;
		if (audit->stop || at <= now)
			return quota;
		if (!*due || at < *due)
			*due = at;
	}
	return NULL;
}

/* The next record, or NULL at the end. Under the lock, which is released while it waits. */
static struct audit_record *next(struct hvp_audit *audit)
{
	struct audit_record *record;
	struct timespec until;
	struct quota *quota;
	uint64_t due;

	for (;;) {
		record = STAILQ_FIRST(&audit->queue);
		if (record) {
			STAILQ_REMOVE_HEAD(&audit->queue, link);
			audit->nr_queued--;
			return record;
		}
		/* Behind the others, so that ids rise from line to line. */
		quota = due_quota(audit, &due);
		record = quota ? sum_up(audit, quota) : NULL;
		if (record)
			return record;
		if (audit->stop && !quota)
			return NULL;
		if (due) {
			deadline(&until, due);
			pthread_cond_timedwait(&audit->change, &audit->lock, &until);
		} else if (!quota) {
			pthread_cond_wait(&audit->change, &audit->lock);
		}
	}
}

static void *run(void *arg)
{
	struct hvp_audit *audit = arg;
	struct audit_record *record;
	int err;

	pthread_setname_np(pthread_self(), "audit");
	if (audit->confine)
		audit->confine(audit->confine_ctx);
	pthread_mutex_lock(&audit->lock);
	while ((record = next(audit))) {
		audit->writing = true;
		record->lost = audit->lost;
		pthread_mutex_unlock(&audit->lock);
		err = append(audit, record);
		pthread_mutex_lock(&audit->lock);
		if (err)
			lose(audit, 1);
		else
			audit->lost -= record->lost;
		free(record);
		audit->writing = false;
		pthread_cond_broadcast(&audit->change);
	}
	pthread_mutex_unlock(&audit->lock);
	return NULL;
}

static int start(struct hvp_audit *audit)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int err;

	err = -pthread_attr_init(&attr);
	if (err)
		return err;
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	/* Signals are other threads'. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&audit->thread, &attr, run, audit);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

static void quota_init(struct quota *quota, unsigned int most, unsigned int each_ms)
{
	*quota = (struct quota){
		.left = most,
		.most = most,
		.each_ns = each_ms * NS_PER_MS,
		.from_ns = hvp_now_ns(),
	};
}

static struct hvp_audit *allocate(const struct hvp_audit_config *config)
{
	struct hvp_audit *audit = calloc(1, sizeof(*audit));
	pthread_condattr_t attr;

	if (!audit)
		return NULL;
	audit->file.fd = -1;
	audit->file.max_bytes = config->max_bytes ? config->max_bytes : HVP_AUDIT_MAX_BYTES;
	audit->file.nr = config->nr_files ? config->nr_files : HVP_AUDIT_NR_FILES;
	audit->sum_ns = (config->sum_ms ? config->sum_ms : HVP_AUDIT_SUM_MS) * NS_PER_MS;
	audit->to_file = config->dir;
	audit->confine = config->confine;
	audit->confine_ctx = config->confine_ctx;
	quota_init(&audit->quota[APPLIED], HVP_AUDIT_APPLIED, HVP_AUDIT_APPLIED_MS);
	quota_init(&audit->quota[REFUSED], HVP_AUDIT_REFUSED, HVP_AUDIT_REFUSED_MS);
	STAILQ_INIT(&audit->queue);
	pthread_mutex_init(&audit->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&audit->change, &attr);
	pthread_condattr_destroy(&attr);
	return audit;
}

static void release(struct hvp_audit *audit)
{
	audit_file_close(&audit->file);
	pthread_cond_destroy(&audit->change);
	pthread_mutex_destroy(&audit->lock);
	free(audit);
}

int hvp_audit_open(struct hvp_audit **out, const struct hvp_audit_config *config, const char *name)
{
	struct hvp_audit *audit = allocate(config);
	uint64_t last_id = 0;
	int err = 0;

	if (!audit)
		return -ENOMEM;
	if (audit->to_file)
		err = audit_file_open(&audit->file, config->dir, name, &last_id);
	audit->next_id = last_id + 1;
	if (!err && audit->to_file)
		err = start(audit);
	if (err) {
		release(audit);
		return err;
	}
	*out = audit;
	return 0;
}

void hvp_audit_close(struct hvp_audit *audit)
{
	if (!audit)
		return;
	if (audit->to_file) {
		pthread_mutex_lock(&audit->lock);
		audit->stop = true;
		pthread_cond_broadcast(&audit->change);
		pthread_mutex_unlock(&audit->lock);
		pthread_join(audit->thread, NULL);
	}
	release(audit);
}

struct json_object *hvp_audit_read(struct hvp_audit *audit, unsigned int max, uint64_t after)
{
	struct timespec until;
	int err = 0;

	if (!audit || !audit->to_file)
		return NULL;
	deadline(&until, hvp_now_ns() + READ_WAIT_MS * NS_PER_MS);
	pthread_mutex_lock(&audit->lock);
	while ((audit->nr_queued || audit->writing) && !err)
		err = pthread_cond_timedwait(&audit->change, &audit->lock, &until);
	pthread_mutex_unlock(&audit->lock);
	return audit_file_read(&audit->file, max < HVP_AUDIT_READ_MAX ? max : HVP_AUDIT_READ_MAX,
			       after);
}

void hvp_audit_state(struct hvp_audit *audit, struct hvp_audit_state *state)
{
	*state = (struct hvp_audit_state){0};
	if (!audit)
		return;
	pthread_mutex_lock(&audit->lock);
	state->path = audit->to_file ? audit->file.path : NULL;
	state->lost = audit->lost_total;
	state->unrecorded = audit->quota[APPLIED].count + audit->quota[REFUSED].count;
	pthread_mutex_unlock(&audit->lock);
}
