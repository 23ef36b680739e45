// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The log: what is in a record, ids over restarts, rotation, a full disk, a guest that
 * sends batches without end; and the method log over a real socket.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>

#include "audit.h"
#include "service_fixture.h"
#include "text.h"

/* A log in a directory of its own. */
struct log {
	char dir[64];
	char path[PATH_MAX];
	struct hvp_audit_config config;
	struct hvp_audit *audit;
};

static void log_open(struct log *log)
{
	assert_int_equal(hvp_audit_open(&log->audit, &log->config, "vm"), 0);
}

static void log_reopen(struct log *log)
{
	hvp_audit_close(log->audit);
	log_open(log);
}

static int setup(void **state)
{
	struct log *log = calloc(1, sizeof(*log));

	strcpy(log->dir, "/tmp/hvpoke-audit-XXXXXX");
	assert_non_null(mkdtemp(log->dir));
	snprintf(log->path, sizeof(log->path), "%s/vm.jsonl", log->dir);
	log->config.dir = log->dir;
	log_open(log);
	*state = log;
	return 0;
}

static void remove_files(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
}

static int teardown(void **state)
{
	struct log *log = *state;

	hvp_audit_close(log->audit);
	remove_files(log->dir);
	assert_int_equal(rmdir(log->dir), 0);
	free(log);
	return 0;
}

static uint64_t add(struct log *log, enum hvpoke_status status, uint32_t sites)
{
	struct hvp_batch_result result = {.status = status, .bad_index = HVPOKE_NO_INDEX};

	return hvp_audit_batch(log->audit, NULL, sites, 0, &result);
}

/* A request, which is recorded whatever its number. */
static uint64_t ask(struct log *log, const char *what)
{
	struct hvp_origin origin = {.uid = 7, .pid = 8, .method = "toggle"};

	hvp_origin_add(&origin, what);
	return hvp_audit_unanswered(log->audit, &origin, "refused", "no-agent");
}

static struct json_object *read_log(struct log *log, unsigned int max, uint64_t after)
{
	struct json_object *records = hvp_audit_read(log->audit, max, after);

	assert_non_null(records);
	return records;
}

static size_t count(struct log *log)
{
	struct json_object *records = read_log(log, HVP_AUDIT_READ_MAX, 0);
	size_t nr = json_object_array_length(records);

	json_object_put(records);
	return nr;
}

static struct json_object *at(struct json_object *records, size_t index)
{
	assert_true(index < json_object_array_length(records));
	return json_object_array_get_idx(records, index);
}

static uint64_t number(struct json_object *record, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(record, key, &value))
		fail_msg("no %s in %s", key, json_object_to_json_string(record));
	return json_object_get_uint64(value);
}

static void records_a_batch(void **state)
{
	const struct hvp_origin origin = {
		.uid = 1000, .pid = 4711, .method = "toggle", .what = "module \"a\" +p"};
	const struct hvp_batch_result applied = {
		.bad_index = HVPOKE_NO_INDEX,
		.written = 711,
		.paused = true,
		.pause_ns = 158345,
		.apply_ns = 7001,
	};
	const struct hvp_batch_result refused = {.status = HVPOKE_MISMATCH, .bad_index = 5};
	struct log *log = *state;
	struct json_object *records, *record;

	assert_int_equal(hvp_audit_batch(log->audit, &origin, 711, 0, &applied), 1);
	assert_int_equal(hvp_audit_batch(log->audit, NULL, 9, 0, &refused), 2);
	assert_int_equal(hvp_audit_batch(log->audit, NULL, 711, 1, &applied), 3);
	records = read_log(log, 10, 0);
	assert_int_equal(json_object_array_length(records), 3);
	record = at(records, 0);
	expect_text(record, "id", "1");
	expect_text(record, "kind", "\"batch\"");
	expect_text(record, "by", "\"client\"");
	expect_text(record, "uid", "1000");
	expect_text(record, "pid", "4711");
	expect_text(record, "method", "\"toggle\"");
	expect_text(record, "what", "\"module \\\"a\\\" +p\"");
	expect_text(record, "sites", "711");
	expect_text(record, "written", "711");
	expect_text(record, "status", "\"OK\"");
	expect_text(record, "pause_us", "158.345");
	expect_text(record, "apply_us", "7.001");
	assert_false(json_object_object_get_ex(record, "bad_index", NULL));
	assert_int_equal(json_object_get_string_len(json_object_object_get(record, "time")),
			 strlen("2026-12-01T07:31:29.123Z"));
	record = at(records, 1);
	expect_text(record, "by", "\"guest\"");
	expect_text(record, "status", "\"MISMATCH\"");
	expect_text(record, "bad_index", "5");
	expect_text(record, "written", "0");
	assert_false(json_object_object_get_ex(record, "pause_us", NULL));
	expect_text(at(records, 2), "undoes", "1");
	json_object_put(records);
}

static void records_requests(void **state)
{
	const struct hvp_origin origin = {.method = "key", .what = "on x", .native = true};
	const struct hvp_origin unnamed = {.method = ""};
	struct hvp_outcome outcome = {.guest = {.matched = 3,
						.sites = 4,
						.native_sites = 4,
						.fallback = HVPOKE_RATE,
						.error = 22}};
	struct log *log = *state;
	struct json_object *records;

	/* As a guest may write it: with an escape sequence, and no NUL. */
	memset(outcome.guest.message, 0x1b, sizeof(outcome.guest.message));
	assert_int_equal(hvp_audit_answered(log->audit, &origin, &outcome, false), 1);
	outcome.guest.error = 0;
	assert_int_equal(hvp_audit_answered(log->audit, &origin, &outcome, false), 2);
	assert_int_equal(hvp_audit_answered(log->audit, &origin, &outcome, true), 3);
	assert_int_equal(hvp_audit_unanswered(log->audit, &origin, "lost", NULL), 4);
	/* What is not to be recorded, and a VM without a log. */
	assert_int_equal(hvp_audit_answered(log->audit, &unnamed, &outcome, false), 0);
	assert_int_equal(hvp_audit_unanswered(log->audit, NULL, "lost", NULL), 0);
	assert_int_equal(hvp_audit_unanswered(NULL, &origin, "lost", NULL), 0);
	records = read_log(log, 10, 0);
	assert_int_equal(json_object_array_length(records), 4);
	expect_text(at(records, 0), "kind", "\"request\"");
	expect_text(at(records, 0), "ended", "\"failed\"");
	expect_text(at(records, 0), "via", "\"native\"");
	expect_text(at(records, 0), "fallback", "\"RATE\"");
	expect_text(at(records, 0), "errno", "22");
	expect_text(at(records, 0), "native_sites", "4");
	assert_int_equal(
		json_object_get_string(json_object_object_get(at(records, 0), "message"))[0], '?');
	expect_text(at(records, 1), "ended", "\"done\"");
	expect_text(at(records, 2), "ended", "\"late\"");
	expect_text(at(records, 3), "ended", "\"lost\"");
	json_object_put(records);
}

/* Of each status, and of a number that is none: a guest may say anything of its fallback. */
static void names_each_status(void **state)
{
#define NAME_AND_VALUE(name, value, text) {#name, value},
	static const struct {
		const char *name;
		uint32_t value;
	} statuses[] = { HVPOKE_STATUSES(NAME_AND_VALUE){"UNKNOWN", 12345} };
#undef NAME_AND_VALUE
	const size_t nr = sizeof(statuses) / sizeof(*statuses);
	const struct hvp_origin origin = {.method = "key"};
	struct log *log = *state;
	struct json_object *records;
	char quoted[64];

	/* 0 is OK, of which there is no fallback. */
	for (size_t i = 1; i < nr; i++) {
		struct hvp_outcome outcome = {.guest = {.fallback = statuses[i].value}};

		hvp_audit_answered(log->audit, &origin, &outcome, false);
	}
	assert_int_equal(statuses[0].value, 0);
	records = read_log(log, 100, 0);
	assert_int_equal(json_object_array_length(records), nr - 1);
	for (size_t i = 1; i < nr; i++) {
		snprintf(quoted, sizeof(quoted), "\"%s\"", statuses[i].name);
		expect_text(at(records, i - 1), "fallback", quoted);
	}
	json_object_put(records);
}

/* What a client asks for may be long, and in any script. */
static void cuts_what_was_asked_for(void **state)
{
	struct hvp_origin origin = {.method = "toggle"};
	size_t i;

	(void)state;
	for (i = 0; i < 300; i++)
		hvp_origin_add(&origin, "\xc3\xa4"); /* two bytes */
	assert_true(hvp_utf8_valid(origin.what, strlen(origin.what)));
	assert_true(strlen(origin.what) < sizeof(origin.what));
	assert_string_equal(origin.what + strlen(origin.what) - 5, "\xc3\xa4...");
	hvp_origin_add(&origin, "x");
	assert_string_equal(origin.what + strlen(origin.what) - 3, "...");
	/* As full as it can be, and in the middle of a character. */
	for (i = 1; i < 4; i++) {
		memset(&origin.what, 0, sizeof(origin.what));
		memset(origin.what, 'x', sizeof(origin.what) - sizeof("...") - i);
		hvp_origin_add(&origin, "\xf0\x9f\x98\x80");
		assert_true(hvp_utf8_valid(origin.what, strlen(origin.what)));
		assert_string_equal(origin.what + sizeof(origin.what) - sizeof("...") - i, "...");
		hvp_origin_add(&origin, "behind");
		assert_null(strstr(origin.what, "behind"));
	}
	memset(origin.what, 'x', sizeof(origin.what) - 1);
	hvp_origin_add(&origin, "y");
	assert_null(strchr(origin.what, 'y'));
}

static void is_for_its_owner_only(void **state)
{
	struct log *log = *state;
	struct hvp_audit *other = NULL;
	struct stat st;

	ask(log, "x");
	assert_int_equal(count(log), 1);
	assert_int_equal(stat(log->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* A directory where others can put files of theirs, and a link in place of the file. */
	assert_int_equal(chmod(log->dir, 0777), 0);
	assert_int_equal(hvp_audit_open(&other, &log->config, "other"), -EPERM);
	assert_int_equal(chmod(log->dir, 0700), 0);
	snprintf(log->path, sizeof(log->path), "%s/link.jsonl", log->dir);
	assert_int_equal(symlink("/etc/passwd", log->path), 0);
	assert_int_equal(hvp_audit_open(&other, &log->config, "link"), -ELOOP);
}

/* Directories that cannot be a log's, and files that are not one. */
static void needs_a_directory(void **state)
{
	static char deep[PATH_MAX + 8];
	struct hvp_audit_config config = {.dir = deep};
	struct hvp_audit *other = NULL;
	struct log *log = *state;

	memset(deep, 'a', sizeof(deep) - 1);
	assert_int_equal(hvp_audit_open(&other, &config, "vm"), -ENAMETOOLONG);
	/* One that can be, but for the file's name. */
	memset(deep, '/', PATH_MAX - 10);
	snprintf(deep + PATH_MAX - 10 - 1 - strlen(log->dir), 64, "%s", log->dir);
	assert_int_equal(hvp_audit_open(&other, &config, "name"), -ENAMETOOLONG);
	snprintf(deep, sizeof(deep), "%s/vm.jsonl/log", log->dir);
	assert_int_equal(hvp_audit_open(&other, &config, "vm"), -ENOTDIR);
	snprintf(deep, sizeof(deep), "%s/vm.jsonl", log->dir);
	assert_int_equal(hvp_audit_open(&other, &config, "vm"), -ENOTDIR);
	/* A FIFO in place of the file, at which nobody reads, and a directory. */
	snprintf(deep, sizeof(deep), "%s/fifo.jsonl", log->dir);
	assert_int_equal(mkfifo(deep, 0600), 0);
	assert_int_equal(hvp_audit_open(&other, &log->config, "fifo"), -ENXIO);
	snprintf(deep, sizeof(deep), "%s/dir.jsonl", log->dir);
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_int_equal(hvp_audit_open(&other, &log->config, "dir"), -EISDIR);
	assert_int_equal(rmdir(deep), 0);
}

/* Whatever has been written into it by hand. */
static void passes_over_what_is_no_record(void **state)
{
	struct log *log = *state;
	struct json_object *records;
	FILE *file;

	ask(log, "x");
	assert_int_equal(count(log), 1);
	file = fopen(log->path, "a");
	assert_non_null(file);
	fputs("nonsense\n\n[1]\n7\n{}\n{\"id\":\"9\"}\n{\"id\":null}\n{\"id\":1}\n", file);
	assert_int_equal(fclose(file), 0);
	log_reopen(log);
	assert_int_equal(ask(log, "y"), 2);
	records = read_log(log, 100, 0);
	assert_int_equal(json_object_array_length(records), 2);
	json_object_put(records);
	/* The current file is another user's now. */
	if (geteuid())
		skip();
	assert_int_equal(chown(log->path, 65534, (gid_t)-1), 0);
	assert_int_equal(count(log), 0);
	assert_int_equal(hvp_audit_open(&(struct hvp_audit *){NULL}, &log->config, "vm"), -EPERM);
	assert_int_equal(chown(log->path, 0, (gid_t)-1), 0);
	assert_int_equal(count(log), 2);
}

static void ids_go_on(void **state)
{
	struct log *log = *state;
	struct json_object *records;
	int fd;

	assert_int_equal(add(log, HVPOKE_OK, 1), 1);
	assert_int_equal(ask(log, "x"), 2);
	log_reopen(log);
	assert_int_equal(add(log, HVPOKE_OK, 1), 3);
	/* Killed in the middle of a line: that line is lost, and no other. */
	assert_int_equal(count(log), 3);
	fd = open(log->path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "{\"id\":4,\"ti", 11), 11);
	close(fd);
	log_reopen(log);
	assert_int_equal(add(log, HVPOKE_OK, 1), 4);
	records = read_log(log, 10, 0);
	assert_int_equal(json_object_array_length(records), 4);
	assert_int_equal(number(at(records, 3), "id"), 4);
	json_object_put(records);
	records = read_log(log, 2, 0);
	assert_int_equal(json_object_array_length(records), 2);
	assert_int_equal(number(at(records, 0), "id"), 3);
	json_object_put(records);
	records = read_log(log, 10, 3);
	assert_int_equal(json_object_array_length(records), 1);
	json_object_put(records);
}

static size_t files(struct log *log, uint64_t *bytes)
{
	DIR *dir = opendir(log->dir);
	struct dirent *entry;
	struct stat st;
	size_t nr = 0;

	*bytes = 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(fstatat(dirfd(dir), entry->d_name, &st, 0), 0);
		*bytes += (uint64_t)st.st_size;
		nr++;
	}
	closedir(dir);
	return nr;
}

static void rotates(void **state)
{
	struct log *log = *state;
	struct json_object *records;
	uint64_t bytes, last = 0, id;
	size_t i;

	log->config.max_bytes = 2000;
	log->config.nr_files = 3;
	log_reopen(log);
	for (i = 0; i < 200; i++) {
		id = ask(log, "some words");
		/* So that the queue is never full, however slow the disk. */
		if (i % 50 == 0)
			json_object_put(read_log(log, 1, 0));
	}
	records = read_log(log, HVP_AUDIT_READ_MAX, 0);
	assert_int_equal(files(log, &bytes), 3);
	assert_in_range(bytes, 3000, 6000);
	/* The newest are there, without a gap, from the oldest file to the newest. */
	assert_true(json_object_array_length(records) > 10);
	for (i = 0; i < json_object_array_length(records); i++) {
		if (last)
			assert_int_equal(number(at(records, i), "id"), last + 1);
		last = number(at(records, i), "id");
	}
	assert_int_equal(last, id);
	json_object_put(records);
	/* The last id is found when the current file is new, too. */
	assert_int_equal(unlink(log->path), 0);
	log_reopen(log);
	assert_in_range(ask(log, "y"), last / 2, last + 1);

	log->config.nr_files = 1;
	log_reopen(log);
	for (i = 0; i < 20; i++)
		ask(log, "some words");
	assert_true(count(log) > 0);
}

static void flood(struct log *log, enum hvpoke_status status, unsigned int most)
{
	struct hvp_audit_state before, after;
	struct json_object *records;
	size_t nr = count(log);
	unsigned int i;

	hvp_audit_state(log->audit, &before);
	for (i = 0; i < most + 10000; i++)
		add(log, status, 2);
	records = read_log(log, HVP_AUDIT_READ_MAX, 0);
	/* A slow machine may have earned a few more meanwhile. */
	assert_in_range(json_object_array_length(records) - nr, most, most + 2000);
	json_object_put(records);
	hvp_audit_state(log->audit, &after);
	assert_in_range(after.unrecorded - before.unrecorded, 8000, 10000);
}

/* Refused or not, batches without end are summed up; requests are not. */
static void sums_up_a_flood(void **state)
{
	struct log *log = *state;
	struct json_object *records, *last;
	uint64_t bytes;
	int i;

	log->config.sum_ms = 3600000;
	log_reopen(log);
	flood(log, HVPOKE_BAD_OPCODE, HVP_AUDIT_REFUSED);
	flood(log, HVPOKE_OK, HVP_AUDIT_APPLIED);
	files(log, &bytes);
	assert_in_range(bytes, 1, 2u << 20);
	for (i = 0; i < 100; i++)
		ask(log, "x");
	records = read_log(log, 1, 0);
	expect_text(at(records, 0), "kind", "\"request\"");
	json_object_put(records);
	/* At the latest at the end it is said how many there were. */
	log_reopen(log);
	records = read_log(log, 2, 0);
	for (i = 0; i < 2; i++) {
		last = at(records, (size_t)i);
		expect_text(last, "kind", "\"more\"");
		assert_in_range(number(last, "count"), 8000, 10000);
		assert_int_equal(number(last, "sites"), 2 * number(last, "count"));
	}
	json_object_put(records);
}

/* By itself, when its time has come. */
static void sums_up_in_time(void **state)
{
	struct log *log = *state;
	struct json_object *records;
	bool seen = false;
	int i;

	log->config.sum_ms = 20;
	log_reopen(log);
	for (i = 0; i < 100; i++)
		add(log, HVPOKE_BUSY, 0);
	for (i = 0; i < ANSWER_S * 100 && !seen; i++) {
		usleep(10000);
		records = read_log(log, 1, 0);
		seen = !strcmp(
			json_object_get_string(json_object_object_get(at(records, 0), "kind")),
			"more");
		if (seen)
			expect_text(at(records, 0), "status", "\"BUSY\"");
		json_object_put(records);
	}
	assert_true(seen);
}

/* A disk of 64 KiB. */
static void survives_a_full_disk(void **state)
{
	struct hvp_audit_state audit_state;
	struct log *log = *state;
	struct json_object *records;
	char fill[PATH_MAX + 16];
	static char junk[4096];
	uint64_t last;
	int fd, i;

	if (mount("tmpfs", log->dir, "tmpfs", 0, "size=64k,mode=0700"))
		skip(); /* not root, or no tmpfs here */
	log_reopen(log);
	ask(log, "before");
	assert_int_equal(count(log), 1);
	snprintf(fill, sizeof(fill), "%s/fill", log->dir);
	fd = open(fill, O_WRONLY | O_CREAT | O_APPEND, 0600);
	while (write(fd, junk, sizeof(junk)) > 0)
		;
	/* The rest of its last page is there, no more. */
	for (i = 0; i < 100; i++)
		ask(log, "while it is full");
	count(log);
	hvp_audit_state(log->audit, &audit_state);
	assert_in_range(audit_state.lost, 1, 100);
	/* A new log on a full disk is there, and begins when it can. */
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	last = ask(log, "after");
	records = read_log(log, HVP_AUDIT_READ_MAX, 0);
	i = (int)json_object_array_length(records);
	assert_int_equal(number(at(records, (size_t)i - 1), "id"), last);
	assert_int_equal(number(at(records, (size_t)i - 1), "lost_before"), audit_state.lost);
	assert_int_equal(i + (int)audit_state.lost, 102);
	json_object_put(records);
	/* What has been said once is not said again. */
	last = ask(log, "later");
	records = read_log(log, 1, last - 1);
	assert_false(json_object_object_get_ex(at(records, 0), "lost_before", NULL));
	json_object_put(records);
	hvp_audit_close(log->audit);
	assert_int_equal(umount2(log->dir, MNT_DETACH), 0);
	log_open(log);
}

static void without_a_file(void **state)
{
	const struct hvp_audit_config none = {0};
	struct hvp_batch_result result = {.bad_index = HVPOKE_NO_INDEX};
	struct hvp_audit *audit;

	(void)state;
	assert_int_equal(hvp_audit_open(&audit, &none, "vm"), 0);
	assert_int_equal(hvp_audit_batch(audit, NULL, 1, 0, &result), 1);
	assert_int_equal(hvp_audit_batch(audit, NULL, 1, 0, &result), 2);
	assert_null(hvp_audit_read(audit, 1, 0));
	hvp_audit_close(audit);
	hvp_audit_close(NULL);
}

static void *adds(void *arg)
{
	struct log *log = arg;

	for (int i = 0; i < 200; i++)
		ask(log, "from a thread");
	return NULL;
}

/* Rotating under them, read while it is written. */
static void from_many_threads(void **state)
{
	struct log *log = *state;
	struct json_object *records;
	pthread_t thread[3];
	uint64_t last = 0;
	size_t i;

	log->config.max_bytes = 10000;
	log->config.nr_files = 100;
	log_reopen(log);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, adds, log), 0);
	for (i = 0; i < 20; i++)
		json_object_put(read_log(log, 100, 0));
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	records = read_log(log, HVP_AUDIT_READ_MAX, 0);
	assert_int_equal(json_object_array_length(records), 600);
	for (i = 0; i < 600; i++) {
		assert_int_equal(number(at(records, i), "id"), last + 1);
		last++;
	}
	json_object_put(records);
}

/* Over the socket. */
static void log_method(void **state)
{
	void *service_state;
	struct json_object *result, *record;
	void *log_state;
	struct fixture *f;
	struct log *log;
	uint64_t id;

	(void)state;
	setup(&log_state);
	log = log_state;
	service_setup(&service_state);
	f = service_state;
	raw_say(f->fd, "{\"id\":1,\"method\":\"log\"}");
	expect_reply(f->fd, "1", "no-log");
	hvp_guest_set_audit(f->fake.guest, log->audit);
	raw_say(f->fd, "{\"id\":1,\"method\":\"log\",\"params\":{\"count\":0}}");
	expect_reply(f->fd, "1", "bad-params");
	raw_say(f->fd, "{\"id\":1,\"method\":\"log\",\"params\":{\"after\":-1}}");
	expect_reply(f->fd, "1", "bad-params");
	raw_say(f->fd, "{\"id\":1,\"method\":\"log\",\"params\":{\"x\":-1}}");
	expect_reply(f->fd, "1", "bad-params");

	/* A request that never got as far as the guest, one that did, and its batch. */
	raw_say(f->fd, "{\"id\":1,\"method\":\"toggle\",\"params\":{\"query\":\"+p\"}}");
	expect_reply(f->fd, "1", "no-agent");
	fake_hello(&f->fake);
	raw_say(f->fd, "{\"id\":1,\"method\":\"key\",\"params\":{\"name\":\"k\",\"enable\":true,"
		       "\"via\":\"native\"}}");
	id = guest_fetch(f, 1);
	assert_int_equal(fake_batch(&f->fake, NULL, 0), HVPOKE_OK);
	guest_completion(f, id);
	guest_complete(f);
	expect_reply(f->fd, "1", NULL);
	assert_int_equal(fake_batch(&f->fake, NULL, 0), HVPOKE_OK);
	raw_say(f->fd, "{\"id\":1,\"method\":\"queue-commit\",\"params\":{\"changes\":["
		       "{\"change\":\"toggle\",\"query\":\"file a.c +p\"},"
		       "{\"change\":\"event\",\"glob\":\"sched:*\",\"enable\":false}],"
		       "\"timeout_ms\":1}}");
	expect_reply(f->fd, "1", "timeout");

	raw_say(f->fd, "{\"id\":1,\"method\":\"log\"}");
	result = next(f, "result");
	expect_text(result, "lost", "0");
	record = json_object_object_get(result, "records");
	assert_int_equal(json_object_array_length(record), 5);
	expect_text(at(record, 0), "ended", "\"refused\"");
	expect_text(at(record, 0), "message", "\"no-agent\"");
	expect_text(at(record, 0), "what", "\"+p\"");
	assert_int_equal(number(at(record, 0), "pid"), getpid());
	assert_int_equal(number(at(record, 0), "uid"), getuid());
	expect_text(at(record, 1), "kind", "\"batch\"");
	expect_text(at(record, 1), "by", "\"client\"");
	expect_text(at(record, 1), "what", "\"on k\"");
	expect_text(at(record, 2), "kind", "\"request\"");
	expect_text(at(record, 2), "via", "\"native\"");
	expect_text(at(record, 2), "ended", "\"done\"");
	expect_text(at(record, 3), "by", "\"guest\"");
	expect_text(at(record, 4), "ended", "\"timeout\"");
	expect_text(at(record, 4), "what", "\"toggle file a.c +p; event off sched:*\"");
	json_object_put(result);
	service_teardown(&service_state);
	teardown(&log_state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_a_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(records_requests, setup, teardown),
		cmocka_unit_test(cuts_what_was_asked_for),
		cmocka_unit_test_setup_teardown(is_for_its_owner_only, setup, teardown),
		cmocka_unit_test_setup_teardown(names_each_status, setup, teardown),
		cmocka_unit_test_setup_teardown(needs_a_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(passes_over_what_is_no_record, setup, teardown),
		cmocka_unit_test_setup_teardown(ids_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(rotates, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_up_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_up_in_time, setup, teardown),
		cmocka_unit_test_setup_teardown(survives_a_full_disk, setup, teardown),
		cmocka_unit_test(without_a_file),
		cmocka_unit_test_setup_teardown(from_many_threads, setup, teardown),
		cmocka_unit_test(log_method),
	};

	/* Mounts are nobody else's business. Without the rights there are none. */
	if (!unshare(CLONE_NEWNS))
		assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
