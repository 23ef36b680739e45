// SPDX-License-Identifier: GPL-2.0-or-later
/* The listening socket: its mode, dead and live ones, foreign peers, very many clients. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../as_nobody.h"
#include "control_server.h"

static const struct hvp_method methods[] = {{"echo", echo}, {NULL, NULL}};

static int setup(void **state)
{
	struct server *server = malloc(sizeof(*server));

	server_start(server, methods, NULL);
	*state = server;
	return 0;
}

static int teardown(void **state)
{
	server_stop(*state);
	free(*state);
	return 0;
}

/* A socket at @path that nobody listens on, as a crash leaves it. */
static void leave_dead_socket(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
}

static void is_for_the_owner_only(void **state)
{
	struct server server;
	mode_t mask = umask(0);
	struct stat st;

	(void)state;
	server_start(&server, methods, NULL);
	assert_int_equal(umask(mask), 0); /* and ours was left alone */
	assert_int_equal(stat(server.path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	server_stop(&server);
}

static atomic_bool watching;
static atomic_int seen_open; /* how often the file was there with another mode than 0600 */

static void *watch_mode(void *arg)
{
	struct stat st;

	while (atomic_load(&watching))
		if (!lstat(arg, &st) && (st.st_mode & 0777) != 0600)
			atomic_fetch_add(&seen_open, 1);
	return NULL;
}

/* Not even for a moment is it open to others, whatever the umask. */
static void is_never_open_to_others(void **state)
{
	struct server server;
	mode_t mask = umask(0);
	pthread_t watcher;
	int i;

	(void)state;
	server_dir(&server);
	atomic_store(&watching, true);
	pthread_create(&watcher, NULL, watch_mode, server.path);
	for (i = 0; i < 2000; i++) {
		assert_int_equal(
			hvp_control_open(&server.control, server.path, "vm", methods, NULL), 0);
		hvp_control_close(server.control);
	}
	atomic_store(&watching, false);
	pthread_join(watcher, NULL);
	umask(mask);
	assert_int_equal(atomic_load(&seen_open), 0);
	rmdir(server.dir);
}

static void replaces_a_dead_socket(void **state)
{
	struct server server;

	(void)state;
	server_dir(&server);
	leave_dead_socket(server.path);
	assert_int_equal(hvp_control_open(&server.control, server.path, "vm", methods, NULL), 0);
	server_run(&server);
	expect_alive(&server);
	server_stop(&server);
}

static void leaves_a_live_socket_alone(void **state)
{
	const struct server *server = *state;
	struct hvp_control *second;

	assert_int_equal(hvp_control_open(&second, server->path, "vm", methods, NULL), -EADDRINUSE);
	expect_alive(server);
}

static void leaves_other_files_alone(void **state)
{
	struct hvp_control *control;
	struct server server;
	char name[200];
	int fd;

	(void)state;
	server_dir(&server);
	fd = open(server.path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(hvp_control_open(&control, server.path, "vm", methods, NULL), -EEXIST);
	assert_int_equal(unlink(server.path), 0);
	memset(name, 'x', sizeof(name) - 1);
	memcpy(name, "/tmp/", 5);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(hvp_control_open(&control, name, "vm", methods, NULL), -ENAMETOOLONG);
	assert_int_equal(hvp_control_open(&control, "/nonexistent/vm.sock", "vm", methods, NULL),
			 -ENOENT);
	rmdir(server.dir);
}

/* Somebody took our socket away and put a new one there: it is not ours to remove. */
static void unlinks_only_its_own(void **state)
{
	struct server server;

	(void)state;
	server_start(&server, methods, NULL);
	assert_int_equal(unlink(server.path), 0);
	leave_dead_socket(server.path);
	server_halt(&server);
	hvp_control_close(server.control);
	assert_int_equal(unlink(server.path), 0);
	rmdir(server.dir);
}

struct contender {
	const char *path;
	pthread_barrier_t *start;
	struct hvp_control *control;
	int err;
};

static void *contend(void *arg)
{
	struct contender *contender = arg;

	pthread_barrier_wait(contender->start);
	contender->err =
		hvp_control_open(&contender->control, contender->path, "vm", methods, NULL);
	return NULL;
}

/* Several servers find the same dead socket at the same time: one gets the place. */
static void lets_one_of_many_have_the_path(void **state)
{
	struct contender contenders[4];
	pthread_barrier_t start;
	pthread_t threads[4];
	struct server server;
	int round, i, won;

	(void)state;
	server_dir(&server);
	pthread_barrier_init(&start, NULL, 4);
	for (round = 0; round < 200; round++) {
		leave_dead_socket(server.path);
		for (i = 0; i < 4; i++) {
			contenders[i] = (struct contender){.path = server.path, .start = &start};
			pthread_create(&threads[i], NULL, contend, &contenders[i]);
		}
		for (i = 0, won = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			if (contenders[i].err)
				assert_int_equal(contenders[i].err, -EADDRINUSE);
			else
				won++;
		}
		assert_int_equal(won, 1);
		for (i = 0; i < 4; i++)
			if (!contenders[i].err)
				hvp_control_close(contenders[i].control);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(rmdir(server.dir), 0);
}

static void turns_other_users_away(void **state)
{
	const struct server *server = *state;

	if (geteuid())
		skip();
	/* Past the file's mode there is still SO_PEERCRED. */
	assert_int_equal(chmod(server->dir, 0755), 0);
	assert_int_equal(chmod(server->path, 0666), 0);
	assert_int_equal(knock_as_nobody(server->path), KNOCK_FORBIDDEN);
	expect_alive(server);
}

static void serves_1000_connections_in_a_row(void **state)
{
	int i;

	for (i = 0; i < 1000; i++)
		expect_alive(*state);
}

/* 200 at once: 64 are served, the others told so, and later there is room again. */
static void bounds_the_clients(void **state)
{
	int fds[200], i, served = 0, busy = 0;

	for (i = 0; i < 200; i++) {
		struct json_object *first;

		fds[i] = raw_connect(*state);
		first = raw_message(fds[i]);
		assert_non_null(first);
		if (json_object_object_get(first, "event")) {
			served++;
		} else {
			struct json_object *error = json_object_object_get(first, "error");

			assert_string_equal(
				json_object_get_string(json_object_object_get(error, "code")),
				"busy");
			assert_null(raw_line(fds[i]));
			busy++;
		}
		json_object_put(first);
	}
	assert_int_equal(served, HVP_CONTROL_MAX_CLIENTS);
	assert_int_equal(busy, 200 - HVP_CONTROL_MAX_CLIENTS);
	for (i = 0; i < 200; i++)
		close(fds[i]);
	expect_alive(*state);
}

/* No descriptor left to accept with: who knocks waits, and is served when there is one. */
static void waits_for_descriptors(void **state)
{
	struct rlimit before, none;
	struct timespec start, end;
	struct json_object *first;
	int next, fd;

	getrlimit(RLIMIT_NOFILE, &before);
	fd = raw_connect(*state);
	json_object_put(raw_message(fd));
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	next = dup(fd);
	close(next);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	close(fd);
	fd = raw_connect(*state);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	usleep(300000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	setrlimit(RLIMIT_NOFILE, &before);
	/* It did not burn a core meanwhile: under 100 ms of CPU in 300 ms. */
	assert_true((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 <
		    100);
	first = raw_message(fd);
	assert_non_null(json_object_object_get(first, "event"));
	json_object_put(first);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_for_the_owner_only),
		cmocka_unit_test(is_never_open_to_others),
		cmocka_unit_test(replaces_a_dead_socket),
		cmocka_unit_test_setup_teardown(leaves_a_live_socket_alone, setup, teardown),
		cmocka_unit_test(leaves_other_files_alone),
		cmocka_unit_test(unlinks_only_its_own),
		cmocka_unit_test(lets_one_of_many_have_the_path),
		cmocka_unit_test_setup_teardown(turns_other_users_away, setup, teardown),
		cmocka_unit_test_setup_teardown(serves_1000_connections_in_a_row, setup, teardown),
		cmocka_unit_test_setup_teardown(bounds_the_clients, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_for_descriptors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
