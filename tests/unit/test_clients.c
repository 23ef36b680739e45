// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Thousands of clients, and rude ones: whatever they do, batches go on, honest clients get in
 * after a while, and the process keeps its descriptors.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "control_server.h"
#include "fake_backend.h"

#define LATE_S	  60 /* by which what must happen has happened on any machine */
#define FLOODS	  5
#define EACH	  1000 /* connections of a flood */
#define NOBODY	  65534
#define ECHO	  "{\"id\":1,\"method\":\"echo\",\"params\":{\"text\":\"%s\"}}\n"
#define SUBSCRIBE "{\"id\":1,\"method\":\"subscribe\"}"

static const struct hvp_method methods[] = {{"echo", echo}, {NULL, NULL}};

/* A guest that does batches all the time, as fast as it can. */
static struct {
	struct fake fake;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint batches;
} busy;

static void *do_batches(void *arg)
{
	(void)arg;
	while (!atomic_load(&busy.stop)) {
		if (fake_batch(&busy.fake, NULL, 0) != HVPOKE_OK)
			abort();
		atomic_fetch_add(&busy.batches, 1);
	}
	return NULL;
}

static int setup(void **state)
{
	struct server *server = malloc(sizeof(*server));

	fake_init(&busy.fake, FAKE_RAM);
	fake_hello(&busy.fake);
	atomic_store(&busy.stop, false);
	pthread_create(&busy.thread, NULL, do_batches, NULL);
	server_start(server, methods, NULL);
	*state = server;
	return 0;
}

static int teardown(void **state)
{
	server_stop(*state);
	free(*state);
	atomic_store(&busy.stop, true);
	pthread_join(busy.thread, NULL);
	fake_free(&busy.fake);
	return 0;
}

static void batches_go_on(void)
{
	unsigned int before = atomic_load(&busy.batches);

	for (int i = 0; i < LATE_S * 1000 && atomic_load(&busy.batches) < before + 10; i++)
		usleep(1000);
	assert_true(atomic_load(&busy.batches) >= before + 10);
}

static unsigned int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* A child that does not outlive a test that fails. */
static pid_t spawn(void)
{
	pid_t child = fork();

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

/* In a child, so without asserts. The socket, or -1. */
static int child_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Each does one of: nothing; half a line; questions without reading; hanging up at once. */
static void be_rude(int fd, int how)
{
	static char line[8192];
	ssize_t sent = 0;

	switch (how % 4) {
	case 1: send(fd, ECHO, 10, MSG_NOSIGNAL); break;
	case 2:
		if (!*line)
			snprintf(line, sizeof(line), ECHO, "much text");
		for (int i = 0; i < 1000 && sent >= 0; i++)
			sent = send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 3: close(fd); break;
	}
}

/* Opens @nr connections and keeps what it has until it is killed. Says when it has them all. */
static pid_t flood(const char *path, int nr, int say)
{
	pid_t child = spawn();
	int got = 0;

	if (child)
		return child;
	for (int i = 0; i < nr; i++) {
		int fd = child_connect(path);

		if (fd < 0)
			break;
		be_rude(fd, i);
		got++;
	}
	if (write(say, &got, sizeof(got)) != sizeof(got))
		_exit(1);
	for (;;)
		pause();
}

/* Somebody who tries until there is a place for him, and then gets his answer. */
static void expect_served(const struct server *server)
{
	time_t start = time(NULL);
	struct json_object *first;
	int fd;

	for (;;) {
		fd = raw_connect(server);
		first = raw_message(fd);
		if (first && json_object_object_get(first, "event"))
			break;
		json_object_put(first);
		close(fd);
		assert_true(time(NULL) - start < LATE_S);
		usleep(100000);
	}
	json_object_put(first);
	raw_say(fd, "{\"id\":1,\"method\":\"echo\"}");
	expect_reply(fd, "1", NULL);
	close(fd);
}

static void five_thousand_connections(void **state)
{
	const struct server *server = *state;
	unsigned int before = open_descriptors();
	pid_t child[FLOODS];
	int say[2], nr, all = 0;

	assert_int_equal(pipe(say), 0);
	for (int i = 0; i < FLOODS; i++)
		child[i] = flood(server->path, EACH, say[1]);
	for (int i = 0; i < FLOODS; i++) {
		batches_go_on();
		assert_int_equal(read(say[0], &nr, sizeof(nr)), sizeof(nr));
		all += nr;
	}
	assert_int_equal(all, FLOODS * EACH);
	/* They are all there still, and quiet: three that are honest get in, one after the other. */
	for (int i = 0; i < 3; i++)
		expect_served(server);
	batches_go_on();
	assert_true(open_descriptors() <= before + 2 + HVP_CONTROL_MAX_CLIENTS);
	for (int i = 0; i < FLOODS; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	close(say[0]);
	close(say[1]);
	expect_served(server);
}

/* Every place is taken by somebody who never says a whole line. */
static void quiet_ones_make_room(void **state)
{
	int fds[HVP_CONTROL_MAX_CLIENTS], next;
	struct json_object *error;

	for (int i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++) {
		fds[i] = raw_open(*state);
		raw_send(fds[i], "{\"id\":", i % 2 ? 6 : 0);
	}
	/* Not at once: they may be about to say something. */
	next = raw_connect(*state);
	expect_reply(next, "null", "busy");
	expect_end(next);
	close(next);
	expect_served(*state);
	/* The one that was quiet the longest has been told, and why. */
	error = raw_message(fds[0]);
	assert_non_null(strstr(json_object_to_json_string(error), "idle"));
	json_object_put(error);
	expect_end(fds[0]);
	for (int i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++)
		close(fds[i]);
}

static struct hvp_call *kept[HVP_CONTROL_MAX_CLIENTS];
static unsigned int nr_kept;

static void keep(void *ctx, struct hvp_call *call, struct json_object *params)
{
	(void)ctx;
	(void)params;
	kept[nr_kept++] = call;
}

static const struct hvp_method keeping[] = {{"echo", echo}, {"keep", keep}, {NULL, NULL}};

/* Who waits for an answer, or for events, keeps his place, however quiet. */
static void those_who_wait_stay(void **state)
{
	int fds[HVP_CONTROL_MAX_CLIENTS], half = HVP_CONTROL_SUBSCRIBERS, next;
	struct server server;

	(void)state;
	nr_kept = 0;
	server_start(&server, keeping, NULL);
	for (int i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++) {
		fds[i] = raw_open(&server);
		raw_say(fds[i], i < half ? SUBSCRIBE : "{\"id\":2,\"method\":\"keep\"}");
		if (i < half)
			expect_reply(fds[i], "1", NULL);
	}
	usleep((HVP_CONTROL_QUIET_MS + 500) * 1000);
	next = raw_connect(&server);
	expect_reply(next, "null", "busy");
	close(next);
	server_halt(&server);
	for (unsigned int i = 0; i < nr_kept; i++)
		hvp_call_reply(kept[i], json_object_new_object());
	server_run(&server);
	for (int i = half; i < HVP_CONTROL_MAX_CLIENTS; i++)
		expect_reply(fds[i], "2", NULL);
	for (int i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++)
		close(fds[i]);
	server_stop(&server);
}

/* ... but those who wait for events, which may be for ever, cannot have all places. */
static void subscribers_are_bounded(void **state)
{
	int fds[HVP_CONTROL_SUBSCRIBERS + 1];

	for (int i = 0; i <= HVP_CONTROL_SUBSCRIBERS; i++) {
		fds[i] = raw_open(*state);
		raw_say(fds[i], SUBSCRIBE);
		expect_reply(fds[i], "1", i < HVP_CONTROL_SUBSCRIBERS ? NULL : "busy");
	}
	/* Once more is not one more, and one that goes makes room. */
	raw_say(fds[0], SUBSCRIBE);
	expect_reply(fds[0], "1", NULL);
	close(fds[0]);
	expect_served(*state);
	raw_say(fds[HVP_CONTROL_SUBSCRIBERS], SUBSCRIBE);
	expect_reply(fds[HVP_CONTROL_SUBSCRIBERS], "1", NULL);
	for (int i = 1; i <= HVP_CONTROL_SUBSCRIBERS; i++)
		close(fds[i]);
}

/* A child that is nobody: serves until it is killed. */
static pid_t serve_as_nobody(const struct server *server, int say)
{
	pid_t child = spawn();
	struct server own = *server;
	char byte = 0;

	if (child)
		return child;
	if (setuid(NOBODY) || hvp_control_open(&own.control, own.path, "vm", methods, NULL) ||
	    write(say, &byte, 1) != 1)
		_exit(1);
	for (;;) {
		struct pollfd fd = {.fd = hvp_control_fd(own.control), .events = POLLIN};

		poll(&fd, 1, -1);
		hvp_control_work(own.control);
	}
}

/* Asks again and again on as many connections as it can get, so that it is never quiet. */
static pid_t flood_as_nobody(const struct server *server, int say)
{
	int fds[HVP_CONTROL_MAX_CLIENTS], nr = 0;
	pid_t child = spawn();
	char line[256];

	if (child)
		return child;
	if (setuid(NOBODY))
		_exit(1);
	for (int i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++)
		fds[i] = child_connect(server->path);
	for (;;) {
		for (int i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++) {
			snprintf(line, sizeof(line), ECHO, "on and on");
			send(fds[i], line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
			while (recv(fds[i], line, sizeof(line), MSG_DONTWAIT) > 0)
				nr++;
		}
		if (nr > 2 * HVP_CONTROL_MAX_CLIENTS && say >= 0) {
			if (write(say, line, 1) != 1)
				_exit(1);
			say = -1;
		}
		usleep(10000);
	}
}

/* The VM's user has lost his mind, or his password: root still gets in, at once. */
static void root_has_places_of_its_own(void **state)
{
	pid_t child, flooding;
	struct server server;
	int say[2], fd;
	char byte;

	(void)state;
	if (geteuid())
		skip();
	server_dir(&server);
	assert_int_equal(chown(server.dir, NOBODY, NOBODY), 0);
	assert_int_equal(pipe(say), 0);
	child = serve_as_nobody(&server, say[1]);
	assert_int_equal(read(say[0], &byte, 1), 1);
	flooding = flood_as_nobody(&server, say[1]);
	assert_int_equal(read(say[0], &byte, 1), 1);
	for (int i = 0; i < 10; i++) {
		fd = raw_open(&server);
		raw_say(fd, "{\"id\":1,\"method\":\"echo\"}");
		expect_reply(fd, "1", NULL);
		close(fd);
	}
	kill(flooding, SIGKILL);
	waitpid(flooding, NULL, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(say[0]);
	close(say[1]);
	unlink(server.path);
	assert_int_equal(rmdir(server.dir), 0);
}

/* What else the process needs descriptors for, it gets: a quarter of them, if they are that few. */
static void descriptors_are_left(void **state)
{
	const rlim_t limit = 64, left = limit / 4;
	struct rlimit before, few;
	struct server server;
	int own[left], say[2], nr;
	pid_t child;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = limit;
	assert_int_equal(pipe(say), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	server_start(&server, methods, NULL);
	/* Not more than wait to be accepted: they are all there, whatever becomes of them. */
	child = flood(server.path, 60, say[1]);
	assert_int_equal(read(say[0], &nr, sizeof(nr)), sizeof(nr));
	assert_true(nr > 40);
	usleep(500000);
	for (rlim_t i = 0; i < left; i++) {
		own[i] = dup(0);
		assert_true(own[i] >= 0);
	}
	for (rlim_t i = 0; i < left; i++)
		close(own[i]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	setrlimit(RLIMIT_NOFILE, &before);
	expect_served(&server);
	server_stop(&server);
	close(say[0]);
	close(say[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(five_thousand_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(quiet_ones_make_room, setup, teardown),
		cmocka_unit_test(those_who_wait_stay),
		cmocka_unit_test_setup_teardown(subscribers_are_bounded, setup, teardown),
		cmocka_unit_test(root_has_places_of_its_own),
		cmocka_unit_test(descriptors_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
