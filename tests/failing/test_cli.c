// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke(1), each of whose calls fails once: it prints what it prints else, or says what is
 * wrong and ends with a code that is not 0. It neither crashes nor prints half of it.
 */
#include "each_call.h"

#include <sys/mman.h>

#include "../unit/cli_run.h"
#include "../unit/service_fixture.h"
#include "audit.h"

static struct fixture *f;
static pthread_t guest;
static atomic_bool guest_runs;
static char path[4200];
static const char *const *command;
static struct hvp_audit *audit;
static char log_dir[64];
static struct run good;

/* What the guest says is the same each time, so that outputs can be compared. */
static void *be_guest(void *arg)
{
	struct hvpoke_complete *complete;
	uint64_t id;
	bool list;

	while (atomic_load(&guest_runs)) {
		if (fake_ring(&f->fake, HVPOKE_CMD_FETCH) != HVPOKE_OK) {
			usleep(1000);
			continue;
		}
		list = fake_cmd(&f->fake)->fetch.flags & HVPOKE_REQ_LIST_KEYS;
		id = fake_cmd(&f->fake)->fetch.id;
		complete = guest_completion(f, id);
		complete->matched = 7;
		complete->guest_ns = 1234567;
		strcpy(complete->message, "hello");
		if (list) {
			fake_add_key(complete, "a_key", true, 3);
			fake_add_key(complete, "mod:b_key", false, 0);
		}
		fake_ring(&f->fake, HVPOKE_CMD_COMPLETE);
	}
	return arg;
}

/* Lines in what FAILING_FD was. */
static unsigned int count_lines(int fd)
{
	char text[4096];
	ssize_t got;
	unsigned int nr = 0;

	lseek(fd, 0, SEEK_SET);
	while ((got = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < got; i++)
			nr += text[i] == '\n';
	return nr;
}

static unsigned int runs(enum failing_how how, unsigned int nth)
{
	static const char *const words[] = {"error", "interrupt", "flaky"};
	const char *argv[10] = {path};
	char value[32], fd_text[16];
	unsigned int failed;
	struct run run;
	int fd = memfd_create("failed", 0);

	assert_true(fd >= 0);
	for (int i = 0; command[i]; i++)
		argv[i + 1] = command[i];
	snprintf(value, sizeof(value), "%s %u", words[how], nth);
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	setenv("FAILING", value, 1);
	setenv("FAILING_FD", fd_text, 1);
	run_with(&run, argv, -1);
	unsetenv("FAILING");
	unsetenv("FAILING_FD");
	failed = count_lines(fd);
	close(fd);
	/* The queue is the server's, and what was added to it does not matter here. */
	hvp_service_release(&f->service);
	if (run.code == good.code && !strcmp(run.out, good.out) && !run.err[0] == !good.code)
		return failed;
	/* The list says of each VM whether it could be asked. */
	if (!run.code && strstr(run.out, "unreachable"))
		return failed;
	if (!run.code || !run.err[0] || !failed || run.code > 4)
		fail_msg("%s, %s: code %d\n--- stdout, expected:\n%s--- came:\n%s--- stderr:\n%s",
			 command[0], value, run.code, good.out, run.out, run.err);
	return failed;
}

static void each_call_of(const char *const *argv)
{
	char name[128] = "hvpoke";

	command = argv;
	for (int i = 0; argv[i]; i++)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), " %s", argv[i]);
	memset(&good, 0, sizeof(good));
	{
		const char *whole[10] = {path};

		for (int i = 0; argv[i]; i++)
			whole[i + 1] = argv[i];
		run_with(&good, whole, -1);
		hvp_service_release(&f->service);
	}
	each_call(name, runs);
}

#define EACH_CALL_OF(...) each_call_of((const char *const[]){__VA_ARGS__, NULL})

static int setup(void **state)
{
	char self[4096] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	/* build/VARIANT/tests/failing/test_cli -> build/VARIANT/failing/hvpoke */
	for (int i = 0; i < 3; i++)
		*strrchr(self, '/') = '\0';
	snprintf(path, sizeof(path), "%s/failing/hvpoke", self);
	/* What a program that ends at once has not given back is no leak. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	service_setup_agent((void **)&f);
	setenv("HVPOKE_RUNTIME_DIR", f->server.dir, 1);
	atomic_store(&guest_runs, true);
	assert_int_equal(pthread_create(&guest, NULL, be_guest, NULL), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	atomic_store(&guest_runs, false);
	pthread_join(guest, NULL);
	return service_teardown(state);
}

/* With a log in which there is a record of each kind. */
static int setup_log(void **state)
{
	const struct hvp_audit_config config = {.dir = log_dir};
	const struct hvp_origin origin = {
		.uid = 1, .pid = 2, .method = "toggle", .what = "+p", .native = true};
	const struct hvp_batch_result done = {
		.bad_index = HVPOKE_NO_INDEX, .written = 1, .paused = true};
	const struct hvp_batch_result refused = {.status = HVPOKE_MISMATCH, .bad_index = 5};
	const struct hvp_outcome outcome = {.guest = {.fallback = HVPOKE_RATE}};

	setup(state);
	strcpy(log_dir, "/tmp/hvpoke-log-XXXXXX");
	assert_non_null(mkdtemp(log_dir));
	assert_int_equal(hvp_audit_open(&audit, &config, "vm"), 0);
	hvp_guest_set_audit(f->fake.guest, audit);
	hvp_audit_batch(audit, &origin, 1, 0, &done);
	hvp_audit_batch(audit, NULL, 1, 0, &refused);
	hvp_audit_batch(audit, NULL, 1, 1, &done);
	hvp_audit_answered(audit, &origin, &outcome, false);
	hvp_audit_unanswered(audit, &origin, "refused", "no-agent");
	return 0;
}

static int teardown_log(void **state)
{
	char file[96];

	teardown(state);
	hvp_audit_close(audit);
	snprintf(file, sizeof(file), "%s/vm.jsonl", log_dir);
	assert_int_equal(unlink(file), 0);
	return rmdir(log_dir);
}

static void showing(void **state)
{
	(void)state;
	EACH_CALL_OF("list");
	EACH_CALL_OF("list", "--json");
	EACH_CALL_OF("info", "vm");
	EACH_CALL_OF("info", "nosuch", "--json");
}

static void changing(void **state)
{
	(void)state;
	EACH_CALL_OF("toggle", "--json", "vm", "module a +p");
	EACH_CALL_OF("key", "vm", "list");
	EACH_CALL_OF("scope", "--json", "vm", "dyndbg");
	EACH_CALL_OF("idle", "vm", "1");
	EACH_CALL_OF("queue", "vm", "commit", "toggle", "module a +p", "key", "on", "a_key");
}

static void logging(void **state)
{
	(void)state;
	EACH_CALL_OF("log", "vm");
	EACH_CALL_OF("log", "--count", "2", "vm", "--json");
	/* It has a record, but it was never applied: there is nothing to be put back. */
	EACH_CALL_OF("undo", "vm", "1", "--json");
}

static void refusing(void **state)
{
	(void)state;
	EACH_CALL_OF("toggle", "vm", "module a fun b +p", "--json");
	EACH_CALL_OF("queue", "vm", "add", "toggle", "module a +p");
	EACH_CALL_OF("queue", "vm", "show", "--json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(showing, setup, teardown),
		cmocka_unit_test_setup_teardown(changing, setup, teardown),
		cmocka_unit_test_setup_teardown(logging, setup_log, teardown_log),
		cmocka_unit_test_setup_teardown(refusing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
