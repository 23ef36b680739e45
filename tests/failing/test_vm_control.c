// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control socket of a VM of hvpoke-vmm: pause, resume, quit, and where it is. Then all
 * of that with each call failing once: a VM that was paused by a request that failed would
 * stay so.
 */
#include "each_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "../unit/control_server.h"
#include "vm_control.h"

#define MEMORY (16u << 20)

static struct machine machine;
static struct config config;
static struct console console;
static struct vmm_sandbox sandbox;
static struct vm_control control;
static struct loop loop;
static struct loop_watch stop;
static struct server place; /* its directory and path only */
static pthread_t thread;

/* Played, if there is none (tests/kvm/played). */
static bool have_kvm(void)
{
	if (!access("/dev/kvm", R_OK | W_OK))
		return true;
	fprintf(stderr, "skipped: /dev/kvm cannot be used: %s\n", strerror(errno));
	return false;
}

static void on_stop(void *ctx, uint32_t events)
{
	(void)events;
	((struct loop *)ctx)->stop = true;
}

static void *run_loop(void *arg)
{
	assert_int_equal(loop_run(arg), 0);
	return NULL;
}

/* A VM whose vCPUs do not run: what is asked here needs none. */
static void make(void)
{
	memset(&machine, 0, sizeof(machine));
	memset(&control, 0, sizeof(control));
	server_dir(&place);
	setenv("HVPOKE_RUNTIME_DIR", place.dir, 1);
	assert_int_equal(config_init(&config), 0);
	free(config.name);
	config.name = strdup("vm");
	config.kernel = strdup("/kernel");
	config.audit = strdup("none");
	console = (struct console){.in = -1, .out = -1, .pty = 7, .pty_path = "/dev/pts/7"};
	assert_int_equal(vm_create(&machine.vm, 2, MEMORY), 0);
	assert_int_equal(loop_init(&loop), 0);
	control = (struct vm_control){.config = &config,
				      .machine = &machine,
				      .console = &console,
				      .sandbox = &sandbox,
				      .loop = &loop};
}

static void unmake(void)
{
	vm_destroy(&machine.vm);
	loop_release(&loop);
	config_release(&config);
	assert_int_equal(rmdir(place.dir), 0);
}

static void start(void)
{
	stop = (struct loop_watch){eventfd(0, EFD_CLOEXEC), on_stop, &loop};
	assert_int_equal(loop_add(&loop, &stop, EPOLLIN), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_loop, &loop), 0);
}

static void halt(void)
{
	eventfd_write(stop.fd, 1);
	pthread_join(thread, NULL);
	loop_remove(&loop, &stop);
	close(stop.fd);
	vm_control_settle(&control);
	vm_control_close(&control);
}

static void ask(int fd, const char *method, const char *code)
{
	char line[128];

	snprintf(line, sizeof(line), "{\"id\":1,\"method\":\"%s\"}", method);
	raw_say(fd, line);
	expect_reply(fd, "1", code);
}

static void obeys(void **state)
{
	struct message message;
	int fd;

	(void)state;
	if (!have_kvm())
		skip();
	make();
	assert_int_equal(vm_control_open(&control, &message), 0);
	start();
	fd = raw_open(&place);
	ask(fd, "info", NULL);
	ask(fd, "stats", NULL);
	ask(fd, "resume", "not-paused");
	ask(fd, "pause", NULL);
	assert_true(vm_is_paused(&machine.vm));
	ask(fd, "pause", "paused");
	ask(fd, "info", NULL);
	ask(fd, "resume", NULL);
	assert_false(vm_is_paused(&machine.vm));
	raw_say(fd, "{\"id\":1,\"method\":\"pause\",\"params\":{\"a\":1}}");
	expect_reply(fd, "1", "bad-params");
	raw_say(fd, "{\"id\":1,\"method\":\"resume\",\"params\":{\"a\":1}}");
	expect_reply(fd, "1", "bad-params");
	raw_say(fd, "{\"id\":1,\"method\":\"quit\",\"params\":{\"a\":1}}");
	expect_reply(fd, "1", "bad-params");
	ask(fd, "quit", NULL);
	assert_int_equal(atomic_load(&machine.vm.exit), VM_EXIT_SHUTDOWN);
	assert_true(control.quit);
	ask(fd, "pause", "ending");
	close(fd);
	halt();
	unmake();
}

/* A vCPU that does not stop: the pause is undone, and the client is told. */
static void says_that_a_pause_failed(void **state)
{
	struct message message;
	int fd;

	(void)state;
	if (!have_kvm())
		skip();
	make();
	assert_int_equal(vm_control_open(&control, &message), 0);
	start();
	fd = raw_open(&place);
	/* One that counts as running, and is not there. */
	atomic_fetch_add(&machine.vm.pause.running, 1);
	machine.vm.pause.timeout_ns = 1000000;
	ask(fd, "pause", "timeout");
	assert_false(vm_is_paused(&machine.vm));
	assert_int_equal(atomic_load(&machine.vm.pause.gate), 0);
	atomic_fetch_sub(&machine.vm.pause.running, 1);
	ask(fd, "pause", NULL);
	ask(fd, "resume", NULL);
	close(fd);
	halt();
	unmake();
}

static void expect_no(const char *words)
{
	struct message message = {};

	assert_true(vm_control_open(&control, &message) < 0);
	if (!strstr(message.text, words))
		fail_msg("expected \"%s\", came: %s", words, message.text);
}

static void says_where_it_cannot_be(void **state)
{
	struct message message;
	struct vm_control other;
	char deep[200];

	(void)state;
	if (!have_kvm())
		skip();
	make();
	assert_int_equal(vm_control_open(&control, &message), 0);
	other = control;
	control.server = NULL;
	control.audit = NULL;
	expect_no("runs already");
	control = other;
	vm_control_close(&control);

	config.control = strdup("/nowhere/at/all");
	expect_no("cannot listen at /nowhere/at/all");
	free(config.control);
	config.control = NULL;

	memset(deep, 'a', sizeof(deep));
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	setenv("HVPOKE_RUNTIME_DIR", deep, 1);
	expect_no("no place for the control socket");
	/* The directory fits, and the socket in it does not. */
	snprintf(deep, sizeof(deep), "%s/%080d", place.dir, 0);
	setenv("HVPOKE_RUNTIME_DIR", deep, 1);
	expect_no("too long");
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(chmod(place.dir, 0777), 0);
	setenv("HVPOKE_RUNTIME_DIR", place.dir, 1);
	expect_no("it must be ours");
	assert_int_equal(chmod(place.dir, 0700), 0);
	free(config.audit);
	config.audit = strdup("/dev/null/log");
	expect_no("cannot write a log in /dev/null/log");
	unmake();
}

static unsigned int opens(enum failing_how how, unsigned int nth)
{
	struct message message = {};
	unsigned int failed;
	int err, fd;

	make();
	failing_begin(how, nth, true);
	err = vm_control_open(&control, &message);
	failed = failing_end();
	assert_true(err <= 0);
	if (err) {
		assert_true(message.text[0]);
		assert_int_equal(vm_control_open(&control, &message), 0);
	}
	start();
	fd = raw_open(&place);
	ask(fd, "info", NULL);
	close(fd);
	halt();
	unmake();
	return failed;
}

/* True: a result. The VM's state is what the last result said, or the connection ended. */
static bool try(int *fd, const char *method)
{
	char line[128];
	struct json_object *message;
	bool good;

	snprintf(line, sizeof(line), "{\"id\":1,\"method\":\"%s\"}\n", method);
	message = send(*fd, line, strlen(line), MSG_NOSIGNAL) > 0 ? raw_message(*fd) : NULL;
	good = message && json_object_object_get(message, "result");
	if (!message) {
		close(*fd);
		*fd = raw_open(&place);
	}
	json_object_put(message);
	return good;
}

static unsigned int pauses(enum failing_how how, unsigned int nth)
{
	struct message message;
	unsigned int failed, wrong = 0;
	int fd;

	make();
	assert_int_equal(vm_control_open(&control, &message), 0);
	start();
	fd = raw_open(&place);
	failing_begin(how, nth, true);
	wrong += !try(&fd, "info");
	wrong += !try(&fd, "stats");
	wrong += !try(&fd, "pause");
	wrong += !try(&fd, "resume");
	failed = failing_end();
	/* A pause whose answer failed was made all the same, and then the resume found it. */
	assert_true(wrong <= 2 * failed);
	if (vm_is_paused(&machine.vm))
		assert_true(try(&fd, "resume"));
	assert_false(vm_is_paused(&machine.vm));
	assert_true(try(&fd, "pause"));
	assert_true(try(&fd, "resume"));
	close(fd);
	halt();
	unmake();
	return failed;
}

static void failing(void **state)
{
	(void)state;
	if (!have_kvm())
		skip();
	each_call("hvpoke-vmm, the control socket is made", opens);
	each_call("hvpoke-vmm, info, stats, pause and resume", pauses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(obeys),
		cmocka_unit_test(says_that_a_pause_failed),
		cmocka_unit_test(says_where_it_cannot_be),
		cmocka_unit_test(failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
