// SPDX-License-Identifier: GPL-2.0-or-later
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_run.h"

/* Next to our own build/<variant>/tests/unit/test_cli. */
const char *hvpoke_path(void)
{
	static char path[PATH_MAX + 16];
	char self[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%s/hvpoke", dirname(dirname(dirname(self))));
	if (access(path, X_OK))
		fail_msg("%s is not built: make programs", path);
	return path;
}

static void slurp(int fd, char *text, size_t size)
{
	ssize_t got = pread(fd, text, size - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	close(fd);
}

void run_with(struct run *run, const char *const *argv, int err_fd)
{
	int out = memfd_create("out", 0), err = err_fd >= 0 ? err_fd : memfd_create("err", 0);
	struct timespec start, end;
	int status;
	pid_t child;

	clock_gettime(CLOCK_MONOTONIC, &start);
	child = fork();
	if (!child) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(WIFEXITED(status));
	run->code = WEXITSTATUS(status);
	run->ms = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
	slurp(out, run->out, sizeof(run->out));
	if (err_fd < 0)
		slurp(err, run->err, sizeof(run->err));
}

struct run hvpoke(const char *a, const char *b, const char *c, const char *d, const char *e)
{
	const char *argv[] = {hvpoke_path(), a, b, c, d, e, NULL};
	struct run run;

	run_with(&run, argv, -1);
	return run;
}

void expect(const struct run *run, int code, const char *in_out, const char *in_err)
{
	if (run->code != code || !strstr(run->out, in_out) || !strstr(run->err, in_err))
		fail_msg("exit code %d (expected %d)\n--- stdout, expected \"%s\":\n%s"
			 "--- stderr, expected \"%s\":\n%s",
			 run->code, code, in_out, run->out, in_err, run->err);
	assert_in_range(run->ms, 0, LIMIT_MS);
}

struct json_object *parsed(const struct run *run)
{
	struct json_object *object = json_tokener_parse(run->out);

	if (!object)
		fail_msg("not JSON: %s", run->out);
	return object;
}

const char *error_code(struct json_object *object)
{
	return json_object_get_string(
		json_object_object_get(json_object_object_get(object, "error"), "code"));
}
