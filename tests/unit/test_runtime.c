// SPDX-License-Identifier: GPL-2.0-or-later
/* Where control sockets are: from the environment, and never where others could put theirs. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/hvpoke-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	unsetenv("XDG_RUNTIME_DIR");
	return setenv("HVPOKE_RUNTIME_DIR", dir, 1);
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void knows_names(void **state)
{
	char path[PATH_MAX], expected[128], name[HVP_NAME_MAX + 2];

	(void)state;
	assert_true(hvp_name_valid("a-B_0.x"));
	assert_false(hvp_name_valid(""));
	assert_false(hvp_name_valid(".a"));
	assert_false(hvp_name_valid("-a"));
	assert_false(hvp_name_valid("a/b"));
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_false(hvp_name_valid(name));
	name[sizeof(name) - 2] = '\0';
	assert_true(hvp_name_valid(name));
	assert_int_equal(hvp_runtime_socket(path, sizeof(path), "../a"), -EINVAL);
	assert_int_equal(hvp_runtime_socket(path, sizeof(path), "vm"), 0);
	snprintf(expected, sizeof(expected), "%s/vm%s", dir, HVP_SOCKET_SUFFIX);
	assert_string_equal(path, expected);
	assert_int_equal(hvp_runtime_socket(path, strlen(expected), "vm"), -ENAMETOOLONG);
}

/* What it says to a user that is not root, as whom the test may run. */
static int of_user(bool xdg, char *path, size_t size)
{
	bool root = !geteuid();
	int err;

	unsetenv("HVPOKE_RUNTIME_DIR");
	if (xdg)
		setenv("XDG_RUNTIME_DIR", "/run/user/65534", 1);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	err = hvp_runtime_dir(path, size);
	if (root)
		assert_int_equal(seteuid(0), 0);
	unsetenv("XDG_RUNTIME_DIR");
	return err;
}

static void follows_the_environment(void **state)
{
	char path[256];

	(void)state;
	assert_int_equal(of_user(true, path, sizeof(path)), 0);
	assert_string_equal(path, "/run/user/65534/hvpoke");
	assert_int_equal(of_user(false, path, sizeof(path)), -ENOENT);
	/* Set to nothing is not set. */
	setenv("HVPOKE_RUNTIME_DIR", "", 1);
	if (!geteuid()) {
		assert_int_equal(hvp_runtime_dir(path, sizeof(path)), 0);
		assert_string_equal(path, "/run/hvpoke");
	}
	setenv("HVPOKE_RUNTIME_DIR", dir, 1);
	assert_int_equal(hvp_runtime_dir(path, strlen(dir)), -ENAMETOOLONG);
	/* No directory, no socket in it. */
	unsetenv("HVPOKE_RUNTIME_DIR");
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(hvp_runtime_socket(path, sizeof(path), "vm"), -ENOENT);
	assert_int_equal(hvp_runtime_make_dir(), -ENOENT);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
}

static void finds_the_log(void **state)
{
	const char *home = getenv("HOME");
	char path[256], *kept = home ? strdup(home) : NULL;
	bool root = !geteuid();

	(void)state;
	assert_int_equal(hvp_runtime_log_dir(path, sizeof(path)), 0);
	assert_int_equal(strncmp(path, dir, strlen(dir)), 0);
	assert_string_equal(path + strlen(dir), "/log");
	assert_int_equal(hvp_runtime_log_dir(path, strlen(dir)), -ENAMETOOLONG);
	unsetenv("HVPOKE_RUNTIME_DIR");
	if (root) {
		assert_int_equal(hvp_runtime_log_dir(path, sizeof(path)), 0);
		assert_string_equal(path, "/var/log/hvpoke");
		assert_int_equal(seteuid(65534), 0);
	}
	setenv("HOME", "/home/me", 1);
	setenv("XDG_STATE_HOME", "/home/me/state", 1);
	assert_int_equal(hvp_runtime_log_dir(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/me/state/hvpoke");
	unsetenv("XDG_STATE_HOME");
	assert_int_equal(hvp_runtime_log_dir(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/me/.local/state/hvpoke");
	unsetenv("HOME");
	assert_int_equal(hvp_runtime_log_dir(path, sizeof(path)), -ENOENT);
	if (root)
		assert_int_equal(seteuid(0), 0);
	if (kept)
		setenv("HOME", kept, 1);
	free(kept);
}

static void trusts_no_directory_of_others(void **state)
{
	char path[96];

	(void)state;
	assert_int_equal(hvp_runtime_make_dir(), 0);
	assert_int_equal(chmod(dir, 0720), 0);
	assert_int_equal(hvp_runtime_make_dir(), -EPERM);
	assert_int_equal(chmod(dir, 0702), 0);
	assert_int_equal(hvp_runtime_make_dir(), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
	if (!geteuid()) {
		assert_int_equal(chown(dir, 65534, (gid_t)-1), 0);
		assert_int_equal(hvp_runtime_make_dir(), -EPERM);
		assert_int_equal(chown(dir, 0, (gid_t)-1), 0);
	}
	snprintf(path, sizeof(path), "%s/new", dir);
	setenv("HVPOKE_RUNTIME_DIR", path, 1);
	assert_int_equal(hvp_runtime_make_dir(), 0);
	assert_int_equal(rmdir(path), 0);
	setenv("HVPOKE_RUNTIME_DIR", "/nowhere/at/all", 1);
	assert_int_equal(hvp_runtime_make_dir(), -ENOENT);
	setenv("HVPOKE_RUNTIME_DIR", "/dev/null", 1);
	assert_int_equal(hvp_runtime_make_dir(), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(knows_names, setup, teardown),
		cmocka_unit_test_setup_teardown(follows_the_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_the_log, setup, teardown),
		cmocka_unit_test_setup_teardown(trusts_no_directory_of_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
