// SPDX-License-Identifier: GPL-2.0-or-later
#include "real_qemu.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "client.h"

#define BOOT_MS	 60000
#define MAX_ARGS 64
#define QEMU	 "/usr/bin/qemu-system-x86_64"

/* It is asked to make a machine, run nothing, and end. */
bool real_qemu_has(const char *accel, char *why, size_t size)
{
	char command[256], line[256];
	FILE *said;

	if (access(QEMU, X_OK)) {
		snprintf(why, size, "%s is not there", QEMU);
		return false;
	}
	snprintf(command, sizeof(command),
		 "echo quit | timeout 30 " QEMU " -M q35,accel=%s -m 64 -smp 2 -display none "
		 "-nodefaults -S -monitor stdio 2>&1 >/dev/null",
		 accel);
	snprintf(why, size, "it ends without a word");
	said = popen(command, "re");
	assert_non_null(said);
	while (fgets(line, sizeof(line), said)) {
		line[strcspn(line, "\n")] = '\0';
		if (strstr(line, " warning: "))
			continue;
		snprintf(why, size, "%s", line);
		break;
	}
	while (fgets(line, sizeof(line), said))
		;
	return pclose(said) == 0;
}

static void execute(const struct real_qemu *vm, const char *accel, const char *const *more)
{
	char machine[32], device[128], qmp[128], own[128], console[128], kernel[4096], log[128];
	const char *args[MAX_ARGS] = {
		"qemu-system-x86_64",
		"-M",
		machine,
		"-m",
		"64",
		"-smp",
		"2",
		"-display",
		"none",
		"-nodefaults",
		"-name",
		"guest=tiny",
		"-kernel",
		kernel,
		"-qmp",
		qmp,
		"-qmp",
		own,
		"-debugcon",
		console,
		"-chardev",
		device,
		"-device",
		"ivshmem-doorbell,chardev=hvpoke,vectors=1",
	};
	int nr = 0, fd;

	snprintf(machine, sizeof(machine), "q35,accel=%s", accel);
	snprintf(device, sizeof(device), "socket,id=hvpoke,path=%s/ivshmem", vm->host->dir);
	snprintf(qmp, sizeof(qmp), "unix:%s/qmp,reconnect=1", vm->host->dir);
	snprintf(own, sizeof(own), "unix:%s/operator,server=on,wait=off", vm->host->dir);
	snprintf(console, sizeof(console), "file:%s", vm->console);
	snprintf(kernel, sizeof(kernel), "%s", built("tests/qemu/guest.elf"));
	snprintf(log, sizeof(log), "%s/qemu.log", vm->host->dir);
	while (args[nr])
		nr++;
	while (more && *more && nr < MAX_ARGS - 1)
		args[nr++] = *more++;
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(fd, STDERR_FILENO);
	dup2(fd, STDOUT_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(QEMU, (char *const *)args);
	_exit(127);
}

void real_qemu_start(struct real_qemu *vm, const struct host *host, const char *accel,
		     const char *const *more)
{
	struct message message;
	int fd = -1;

	memset(vm, 0, sizeof(*vm));
	vm->host = host;
	snprintf(vm->console, sizeof(vm->console), "%s/console", host->dir);
	vm->pid = fork();
	assert_true(vm->pid >= 0);
	if (!vm->pid)
		execute(vm, accel, more);
	WAIT_FOR((fd = host_try_connect(host, "operator")) >= 0, BOOT_MS);
	if (qmp_open(&vm->qmp, fd, &message))
		fail_msg("%s", message.text);
	WAIT_FOR(real_qemu_printed(vm, "hello"), BOOT_MS);
}

void real_qemu_stop(struct real_qemu *vm)
{
	qmp_close(&vm->qmp);
	if (vm->pid) {
		kill(vm->pid, SIGKILL);
		waitpid(vm->pid, NULL, 0);
	}
	vm->pid = 0;
}

unsigned int real_qemu_printed(const struct real_qemu *vm, const char *line)
{
	FILE *console = fopen(vm->console, "re");
	unsigned int nr = 0;
	char text[128];

	while (console && fgets(text, sizeof(text), console)) {
		text[strcspn(text, "\n")] = '\0';
		nr += !strcmp(text, line);
	}
	if (console)
		fclose(console);
	return nr;
}

void real_qemu_command(struct real_qemu *vm, const char *command)
{
	struct message message;

	if (qmp_call(&vm->qmp, command, NULL, BOOT_MS, NULL, &message))
		fail_msg("%s", message.text);
}

bool real_qemu_running(struct real_qemu *vm)
{
	struct json_object *status;
	struct message message;
	bool running;

	if (qmp_call(&vm->qmp, "query-status", NULL, BOOT_MS, &status, &message))
		fail_msg("%s", message.text);
	running = json_object_get_boolean(json_object_object_get(status, "running"));
	json_object_put(status);
	return running;
}

bool real_qemu_has_agent(const struct real_qemu *vm)
{
	struct json_object *info, *agent;
	struct hvp_client *client;
	char path[160];
	bool present;

	/* A hvpoked that was killed leaves a socket behind. */
	snprintf(path, sizeof(path), "%s/tiny.sock", vm->host->control_dir);
	if (hvp_client_connect(&client, path, 1000))
		return false;
	hvp_client_close(client);
	info = host_call(vm->host, "tiny", "info", NULL, NULL);
	agent = json_object_object_get(info, "agent");
	present = json_object_get_boolean(json_object_object_get(agent, "present"));
	json_object_put(info);
	return present;
}

/*
 * Until the guest has seen that there is no other request: else its last FETCH might be the first
 * command that the next hvpoked takes.
 */
static struct json_object *ask(struct real_qemu *vm, const char *method, struct json_object *params)
{
	unsigned int served = real_qemu_printed(vm, "served");
	struct json_object *answer = host_call(vm->host, "tiny", method, params, NULL);

	WAIT_FOR(real_qemu_printed(vm, "served") > served, BOOT_MS);
	return answer;
}

uint64_t real_qemu_toggle(struct real_qemu *vm, const char *query, struct json_object **result)
{
	struct json_object *params = json_object_new_object(), *answer;
	uint64_t matched;

	json_object_object_add(params, "query", json_object_new_string(query));
	answer = ask(vm, "toggle", params);
	matched = member(answer, "matched");
	if (result)
		*result = answer;
	else
		json_object_put(answer);
	return matched;
}

uint64_t real_qemu_sites(struct real_qemu *vm)
{
	struct json_object *answer;
	uint64_t sites;

	answer = ask(vm, "idle", json_tokener_parse("{\"ms\":1}"));
	sites = member(answer, "ipis");
	json_object_put(answer);
	return sites;
}
