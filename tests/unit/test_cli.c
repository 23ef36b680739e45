// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The real hvpoke, run against a real control server in this process. What must
 * be said clearly, with an exit code that is not 0: a bad query, an unknown VM, a
 * dead VM's socket, a paused VM.
 */
#include <pty.h>

#include "cli_run.h"
#include "control_server.h"
#include "fake_backend.h"
#include "service.h"

#define SOON_MS 2000 /* whatever is wrong is said within this */

struct fixture {
	struct hvp_service service; /* first: it is the methods' ctx */
	struct fake fake;
	struct server server;
	pthread_t guest;
	atomic_bool guest_runs;
	atomic_bool paused;
	atomic_uint fallback;
};

static bool is_paused(struct hvp_service *service)
{
	return atomic_load(&((struct fixture *)service)->paused);
}

static void set_paused(void *ctx, struct hvp_call *call, bool paused)
{
	struct json_object *result = json_object_new_object();
	struct fixture *f = ctx;

	atomic_store(&f->paused, paused);
	json_object_object_add(result, "state",
			       json_object_new_string(paused ? "paused" : "running"));
	hvp_call_reply(call, result);
}

static void pause_vm(void *ctx, struct hvp_call *call, struct json_object *params)
{
	(void)params;
	set_paused(ctx, call, true);
}

static void resume_vm(void *ctx, struct hvp_call *call, struct json_object *params)
{
	(void)params;
	set_paused(ctx, call, false);
}

static const struct hvp_method methods[] = {
	HVP_SERVICE_METHODS, {"pause", pause_vm}, {"resume", resume_vm}, {NULL, NULL}};

/* The guest: completes whatever it is asked for. */
static void *guest(void *arg)
{
	struct fixture *f = arg;
	struct hvpoke_cmd *cmd = fake_cmd(&f->fake);
	uint64_t id;

	while (atomic_load(&f->guest_runs)) {
		if (fake_ring(&f->fake, HVPOKE_CMD_FETCH) != HVPOKE_OK) {
			usleep(1000);
			continue;
		}
		id = cmd->fetch.id;
		fake_batch(&f->fake, NULL, 0);
		memset(&cmd->complete, 0, sizeof(cmd->complete));
		cmd->complete.id = id;
		cmd->complete.bad_query = HVPOKE_NO_INDEX;
		cmd->complete.matched = 714;
		cmd->complete.changed = 650;
		cmd->complete.sites = 643;
		cmd->complete.guest_ns = 1500000;
		cmd->complete.batches = 1;
		cmd->complete.fallback = atomic_load(&f->fallback);
		fake_ring(&f->fake, HVPOKE_CMD_COMPLETE);
	}
	return NULL;
}

static void start_guest(struct fixture *f)
{
	fake_hello(&f->fake);
	atomic_store(&f->guest_runs, true);
	pthread_create(&f->guest, NULL, guest, f);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_init(&f->fake, FAKE_RAM);
	f->service =
		(struct hvp_service){.name = "vm", .guest = f->fake.guest, .is_paused = is_paused};
	server_start(&f->server, methods, f);
	setenv("HVPOKE_RUNTIME_DIR", f->server.dir, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (atomic_exchange(&f->guest_runs, false))
		pthread_join(f->guest, NULL);
	server_stop(&f->server);
	hvp_service_release(&f->service);
	fake_free(&f->fake);
	free(f);
	return 0;
}

static void shows_a_bad_query(void **state)
{
	struct json_object *object;
	struct run run;

	(void)state;
	run = hvpoke("toggle", "vm", "module foo fun bar +p", NULL, NULL);
	expect(&run, 2, "", "column 12");
	expect(&run, 2, "", "  module foo fun bar +p\n             ^~~\n");
	/* The same when there is no such VM, and when it is down. */
	run = hvpoke("toggle", "nosuch", "!line 3 +p", NULL, NULL);
	expect(&run, 2, "", "  !line 3 +p\n  ^~~~~\n");
	/* The line at fault only, and the mark where it should be, in characters. */
	run = hvpoke("toggle", "vm", "+p\nformat \xc3\xa4\xc3\xb6 nonsense +p\n-p", NULL, NULL);
	expect(&run, 2, "", "  format \xc3\xa4\xc3\xb6 nonsense +p\n            ^~~~~~~~\n");
	run = hvpoke("toggle", "vm", "", NULL, NULL);
	expect(&run, 2, "", "bad query");
	run = hvpoke("toggle", "vm", "format \xff +p", NULL, NULL);
	expect(&run, 2, "", "UTF-8");
	run = hvpoke("toggle", "--json", "vm", "!line 3 +p", NULL);
	expect(&run, 2, "", "!line");
	object = parsed(&run);
	assert_string_equal(error_code(object), "bad-query");
	json_object_put(object);
}

static void shows_an_unknown_vm(void **state)
{
	struct json_object *object;
	struct run run;

	(void)state;
	run = hvpoke("toggle", "nosuch", "+p", NULL, NULL);
	expect(&run, 3, "", "there is no VM \"nosuch\"");
	expect(&run, 3, "", "known: vm\n");
	run = hvpoke("stats", "nosuch", "--json", NULL, NULL);
	expect(&run, 3, "\"known\":[\"vm\"]", "nosuch");
	object = parsed(&run);
	assert_string_equal(error_code(object), "unknown-vm");
	json_object_put(object);
	run = hvpoke("info", "/nonexistent/x.sock", NULL, NULL, NULL);
	expect(&run, 3, "", "/nonexistent/x.sock");
	run = hvpoke("info", "\033[2J", NULL, NULL, NULL);
	expect(&run, 3, "", "\"?[2J\"");
	run = hvpoke("info", "", NULL, NULL, NULL);
	expect(&run, 3, "", "there is no VM \"\"");
}

/* A socket that a crash left behind, in the same runtime directory. */
static void make_dead(struct fixture *f, char *path, size_t size)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(path, size, "%s/crashed.sock", f->server.dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static void shows_a_dead_vm(void **state)
{
	struct fixture *f = *state;
	struct json_object *object;
	char path[128];
	struct run run;

	make_dead(f, path, sizeof(path));
	run = hvpoke("toggle", "crashed", "+p", NULL, NULL);
	expect(&run, 3, "", "VM \"crashed\"");
	expect(&run, 3, "", "not running");
	run = hvpoke("info", path, "--json", NULL, NULL);
	expect(&run, 3, "", "not running");
	object = parsed(&run);
	assert_string_equal(error_code(object), "dead");
	json_object_put(object);
	run = hvpoke("list", NULL, NULL, NULL, NULL);
	expect(&run, 0, "crashed  dead", "");
	expect(&run, 0, "vm       running", "");
	assert_int_equal(unlink(path), 0);
}

/* Somebody holds the socket, but does not serve it. */
static void shows_a_stopped_vm(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct run run;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.90s/stopped.sock", f->server.dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 5), 0);
	run = hvpoke("toggle", "stopped", "+p", NULL, NULL);
	expect(&run, 3, "", "does not answer");
	run = hvpoke("list", NULL, NULL, NULL, NULL);
	expect(&run, 0, "stopped  unreachable", "");
	close(fd);
	assert_int_equal(unlink(addr.sun_path), 0);
}

static void shows_a_paused_vm(void **state)
{
	struct fixture *f = *state;
	struct json_object *object;
	struct run run;

	start_guest(f);
	run = hvpoke("pause", "vm", NULL, NULL, NULL);
	expect(&run, 0, "state  paused\n", "");
	run = hvpoke("toggle", "vm", "+p", NULL, NULL);
	expect(&run, 1, "", "the VM is paused");
	run = hvpoke("toggle", "vm", "+p", "--json", NULL);
	object = parsed(&run);
	assert_string_equal(error_code(object), "paused");
	json_object_put(object);
	run = hvpoke("list", NULL, NULL, NULL, NULL);
	expect(&run, 0, "paused", "");
	run = hvpoke("resume", "vm", NULL, NULL, NULL);
	expect(&run, 0, "state  running\n", "");
	run = hvpoke("toggle", "vm", "+p", NULL, NULL);
	expect(&run, 0, "matched", "");
}

/*
 * Within 2 s. A loaded machine may take longer now and then; a hvpoke that waits for longer by
 * itself does so each time.
 */
static void expect_soon(const char *command, const char *vm, const char *argument)
{
	struct run run;

	for (int i = 0; i < 20; i++) {
		run = hvpoke(command, vm, argument, NULL, NULL);
		assert_int_not_equal(run.code, 0);
		if (run.ms < SOON_MS)
			return;
	}
	fail_msg("hvpoke %s %s: not once within %d ms", command, vm, SOON_MS);
}

static void says_it_soon(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char dead[128];

	make_dead(f, dead, sizeof(dead));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.90s/stopped.sock", f->server.dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 5), 0);
	start_guest(f);
	expect_soon("toggle", "vm", "module foo fun bar +p");
	expect_soon("toggle", "nosuch", "+p");
	expect_soon("toggle", "crashed", "+p");
	expect_soon("toggle", "stopped", "+p");
	atomic_store(&f->paused, true);
	expect_soon("toggle", "vm", "+p");
	close(fd);
	assert_int_equal(unlink(addr.sun_path), 0);
	assert_int_equal(unlink(dead), 0);
}

static void shows_that_there_is_no_agent(void **state)
{
	struct run run;

	(void)state;
	run = hvpoke("toggle", "vm", "+p", NULL, NULL);
	expect(&run, 1, "", "no agent");
	run = hvpoke("idle", "vm", "10", NULL, NULL);
	expect(&run, 1, "", "no agent");
	run = hvpoke("quit", "vm", NULL, NULL, NULL);
	expect(&run, 1, "", "no method \"quit\""); /* this test's VM has none */
}

static void shows_a_timeout(void **state)
{
	struct fixture *f = *state;
	struct run run;

	fake_hello(&f->fake); /* and never a word after that */
	run = hvpoke("toggle", "--timeout", "0.3", "vm", "+p");
	expect(&run, 4, "", "within 0.300 s");
	run = hvpoke("idle", "vm", "10", "--timeout=0.3", NULL);
	expect(&run, 4, "", "within 0.300 s");
}

static void toggles(void **state)
{
	struct fixture *f = *state;
	struct json_object *object;
	struct run run;

	start_guest(f);
	run = hvpoke("toggle", "vm", "module a +p; !func b* -p", NULL, NULL);
	expect(&run, 0, "matched   714\nchanged   650\nsites     643\npauses    1 (", "");
	expect(&run, 0, "IPIs      0\n", "");
	assert_null(strstr(run.out, "fell back"));
	/* A query may look like an option. */
	run = hvpoke("toggle", "vm", "-p", NULL, NULL);
	expect(&run, 0, "via       hvpoke\n", "");
	run = hvpoke("toggle", "vm", "--native", "--", "-p");
	expect(&run, 0, "via       native\n", "");
	atomic_store(&f->fallback, HVPOKE_MISMATCH);
	run = hvpoke("toggle", f->server.path, "+p", NULL, NULL);
	expect(&run, 0, "fell back to the kernel's own way: a site's memory does not hold", "");
	run = hvpoke("--json", "toggle", "vm", "+p", NULL);
	object = parsed(&run);
	assert_int_equal(json_object_get_int(json_object_object_get(object, "sites")), 643);
	json_object_put(object);
	run = hvpoke("idle", "vm", "10", NULL, NULL);
	expect(&run, 0, "ipis   0\nguest  1500.0 us\n", "");
}

static void lists_and_informs(void **state)
{
	struct fixture *f = *state;
	struct json_object *object;
	struct run run;

	fake_hello(&f->fake);
	run = hvpoke("list", NULL, NULL, NULL, NULL);
	expect(&run, 0, "NAME  STATE    PID", "");
	expect(&run, 0, "6.1.0-test\n", "");
	run = hvpoke("list", "--json", NULL, NULL, NULL);
	object = parsed(&run);
	assert_int_equal(json_object_array_length(object), 1);
	json_object_put(object);
	run = hvpoke("info", "vm", NULL, NULL, NULL);
	expect(&run, 0, "agent kernel          6.1.0-test\n", "");
	run = hvpoke("stats", "vm", NULL, NULL, NULL);
	expect(&run, 0, "max pause ", "");
	run = hvpoke("stats", "--json", "vm", NULL, NULL);
	object = parsed(&run);
	json_object_put(object);
	setenv("HVPOKE_RUNTIME_DIR", "/nonexistent", 1);
	run = hvpoke("list", NULL, NULL, NULL, NULL);
	expect(&run, 0, "", "no VM is running");
	run = hvpoke("list", "--json", NULL, NULL, NULL);
	expect(&run, 0, "[]\n", "");
}

static void explains_its_usage(void **state)
{
	static const char *const wrong[][5] = {
		{NULL},
		{"frobnicate"},
		{"info"},
		{"info", "vm", "other"},
		{"info", "vm", "--native"},
		{"info", "--timeout", "1", "vm"},
		{"toggle", "vm"},
		{"toggle", "vm", "module", "a", "+p"},
		{"toggle", "vm", "+p", "--timeout"},
		{"toggle", "vm", "+p", "--timeout", "0"},
		{"toggle", "vm", "+p", "--timeout", "nan"},
		{"toggle", "vm", "+p", "--timeout=1s"},
		{"toggle", "vm", "+p", "--timeout=9999"},
		{"toggle", "vm", "+p", "--frobnicate"},
		{"idle", "vm", "x"},
		{"idle", "vm", "0"},
		{"idle", "vm", "99999999999999999999"},
		{"list", "vm"},
		{"help", "frobnicate"},
	};
	struct run run;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		run = hvpoke(wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3], wrong[i][4]);
		expect(&run, 2, "", "hvpoke: ");
	}
	run = hvpoke("--version", NULL, NULL, NULL, NULL);
	expect(&run, 0, "hvpoke ", "");
	run = hvpoke("help", NULL, NULL, NULL, NULL);
	expect(&run, 0, "toggle", "");
	run = hvpoke("toggle", "--help", NULL, NULL, NULL);
	expect(&run, 0, "usage: hvpoke toggle", "");
	run = hvpoke("help", "idle", NULL, NULL, NULL);
	expect(&run, 0, "usage: hvpoke idle", "");
}

/* On a terminal a long wait shows signs of life, and wipes them away at the end. */
static void shows_progress_on_a_terminal(void **state)
{
	struct fixture *f = *state;
	const char *argv[] = {hvpoke_path(), "toggle", "--timeout", "2.5", "vm", "+p", NULL};
	struct pollfd readable = {.events = POLLIN};
	char text[4096];
	struct run run;
	int master, slave;
	size_t len = 0;
	ssize_t got;

	fake_hello(&f->fake);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	run_with(&run, argv, slave);
	readable.fd = master;
	/* The kernel hands a terminal's output over when it likes: read until the last of it. */
	do {
		assert_int_equal(poll(&readable, 1, LIMIT_MS), 1);
		got = read(master, text + len, sizeof(text) - 1 - len);
		assert_true(got > 0);
		len += (size_t)got;
		text[len] = '\0';
	} while (!strstr(text, "within 2.500 s"));
	assert_non_null(strstr(text, "\rwaiting for the guest... 2 s"));
	assert_non_null(strstr(text, "\r\033[K"));
	assert_int_equal(run.code, 4);
	assert_string_equal(run.out, "");
	close(master);
	close(slave);
}

/* What bash would offer for @words, the last of which is to be completed. */
static struct run complete_words(const char *words)
{
	static const char script[] =
		". configs/completion/hvpoke.bash; read -ra COMP_WORDS <<<\"$1\"; "
		"[[ $1 == *' ' ]] && COMP_WORDS+=(''); "
		"COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hvpoke; "
		"echo \"${COMPREPLY[*]}\"";
	const char *argv[] = {"/bin/bash", "--norc", "-c", script, "bash", words, NULL};
	struct run run;

	run_with(&run, argv, -1);
	return run;
}

static void completes_names(void **state)
{
	static const struct {
		const char *words;
		const char *offers;
	} cases[] = {
		{"hvpoke to", "toggle\n"},
		{"hvpoke info ", "vm\n"}, /* not the crashed one */
		{"hvpoke info v", "vm\n"},
		{"hvpoke info x", "\n"},
		{"hvpoke info vm ", "\n"},
		{"hvpoke list ", "\n"},
		{"hvpoke toggle --native --timeout 5 v", "vm\n"},
		{"hvpoke toggle --timeout ", "\n"},
		{"hvpoke toggle vm --na", "--native\n"},
		{"hvpoke --v", "--version\n"},
		{"hvpoke help idl", "idle\n"},
		{"hvpoke key v", "vm\n"},
		{"hvpoke key vm ", "list on off\n"},
		{"hvpoke scope vm st", "static_keys\n"},
		{"hvpoke queue vm c", "clear commit\n"},
		{"hvpoke queue vm add ", "toggle key event\n"},
		{"hvpoke queue vm add key ", "on off\n"},
		{"hvpoke queue vm show ", "\n"},
		{"hvpoke event --na", "--native\n"},
	};
	struct fixture *f = *state;
	char path[128];
	struct run run;
	size_t i;

	if (access("configs/completion/hvpoke.bash", R_OK))
		fail_msg("run from the top of the repository");
	make_dead(f, path, sizeof(path));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run = complete_words(cases[i].words);
		assert_string_equal(run.err, "");
		assert_string_equal(run.out, cases[i].offers);
	}
	assert_int_equal(unlink(path), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shows_a_bad_query),
		TEST(shows_an_unknown_vm),
		TEST(shows_a_dead_vm),
		TEST(shows_a_stopped_vm),
		TEST(shows_a_paused_vm),
		TEST(says_it_soon),
		TEST(shows_that_there_is_no_agent),
		TEST(shows_a_timeout),
		TEST(toggles),
		TEST(lists_and_informs),
		TEST(explains_its_usage),
		TEST(shows_progress_on_a_terminal),
		TEST(completes_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
