// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "client.h"

#define START_MS 60000
#define END_MS	 60000
#define CALL_MS	 60000

const char *built(const char *name)
{
	static char path[PATH_MAX];
	char self[PATH_MAX] = "", *end;

	/* build/VARIANT/tests/qemu/test_name */
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (int i = 0; i < 3; i++) {
		end = strrchr(self, '/');
		assert_non_null(end);
		*end = '\0';
	}
	assert_true(snprintf(path, sizeof(path), "%s/%s", self, name) < (int)sizeof(path));
	return path;
}

void host_init(struct host *host)
{
	memset(host, 0, sizeof(*host));
	strcpy(host->dir, "/tmp/hvpoked-test-XXXXXX");
	assert_non_null(mkdtemp(host->dir));
	assert_int_equal(chmod(host->dir, 0755), 0);
	snprintf(host->control_dir, sizeof(host->control_dir), "%s/vms", host->dir);
	snprintf(host->log, sizeof(host->log), "%s/log", host->dir);
	assert_int_equal(setenv("HVPOKE_RUNTIME_DIR", host->control_dir, 1), 0);
}

static bool listens(const struct host *host, const char *name)
{
	int fd = host_try_connect(host, name);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void host_start(struct host *host)
{
	int log;

	assert_int_equal(host->pid, 0);
	log = open(host->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(log >= 0);
	host->pid = fork();
	assert_true(host->pid >= 0);
	if (!host->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(log, STDERR_FILENO);
		if (host->fault[0])
			setenv("HVPOKE_FAULT", host->fault, 1);
		execl(built("hvpoked"), "hvpoked", "--socket-dir", host->dir, (char *)NULL);
		_exit(127);
	}
	close(log);
	host->fault[0] = '\0';
	/* The monitors' socket comes last. */
	WAIT_FOR(listens(host, "qmp"), START_MS);
}

static void print_log(const struct host *host)
{
	char line[1024];
	FILE *log = fopen(host->log, "re");

	while (log && fgets(line, sizeof(line), log))
		print_message("%s", line);
	if (log)
		fclose(log);
}

void host_assert_alive(struct host *host)
{
	int status;

	if (waitpid(host->pid, &status, WNOHANG) == 0)
		return;
	print_log(host);
	host->pid = 0;
	fail_msg("hvpoked has ended with status %#x", status);
}

/* Until it ends, as a process killed by @signal, or (SIGTERM) with exit code 0. */
static void wait_end(struct host *host, int signal)
{
	int64_t until = deadline_in(END_MS);
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(host->pid, &status, WNOHANG)) == 0 && deadline_left(until))
		usleep(2000);
	if (ended != host->pid || (signal == SIGTERM && status) ||
	    (signal == SIGKILL && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))) {
		print_log(host);
		fail_msg("hvpoked did not end as it should: status %#x", status);
	}
	host->pid = 0;
}

void host_stop(struct host *host, int signal)
{
	assert_int_equal(kill(host->pid, signal), 0);
	wait_end(host, signal);
}

void host_wait_killed(struct host *host)
{
	wait_end(host, SIGKILL);
}

bool host_logged(const struct host *host, const char *text)
{
	FILE *log = fopen(host->log, "re");
	bool found = false;
	char line[1024];

	while (log && fgets(line, sizeof(line), log))
		found |= strstr(line, text) != NULL;
	if (log)
		fclose(log);
	return found;
}

void host_free(struct host *host)
{
	char command[128];

	if (host->pid)
		host_stop(host, SIGTERM);
	snprintf(command, sizeof(command), "rm -rf %s", host->dir);
	assert_int_equal(system(command), 0);
}

bool host_maps(const struct host *host, const char *file)
{
	char path[64], line[512];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)host->pid);
	maps = fopen(path, "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, file) != NULL;
	fclose(maps);
	return found;
}

int host_try_connect(const struct host *host, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", host->dir, name);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

int host_connect(const struct host *host, const char *name)
{
	int fd = host_try_connect(host, name);

	assert_true(fd >= 0);
	return fd;
}

struct json_object *host_call(const struct host *host, const char *vm, const char *method,
			      struct json_object *params, struct json_object **error)
{
	struct json_object *result = NULL, *failed = NULL;
	struct hvp_client *client;
	char path[160];
	int err;

	snprintf(path, sizeof(path), "%s/%s.sock", host->control_dir, vm);
	err = hvp_client_connect(&client, path, START_MS);
	if (err) {
		print_log(host);
		fail_msg("cannot connect to %s: %s", path, strerror(-err));
	}
	err = hvp_client_call(client, method, params, CALL_MS, &result, &failed);
	hvp_client_close(client);
	if (err) {
		print_log(host);
		fail_msg("%s: %s", method, strerror(-err));
	}
	if (failed && !error) {
		print_log(host);
		fail_msg("%s: %s", method, json_object_to_json_string(failed));
	}
	if (error)
		*error = failed;
	return result;
}

uint64_t member(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no \"%s\" in %s", key, json_object_to_json_string(object));
	return json_object_get_uint64(value);
}
