// SPDX-License-Identifier: GPL-2.0-or-later
#include "vmm_process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

static void die(const char *what)
{
	fprintf(stderr, "vmm_process: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* build/VARIANT/tests/kvm/test_x -> build/VARIANT/hvpoke-vmm */
static void program_path(char *path, size_t size)
{
	char self[2048];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		die("/proc/self/exe");
	self[len] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(self, '/') = '\0';
	snprintf(path, size, "%s/hvpoke-vmm", self);
}

static void child(const char *path, const char *const *args, const int fds[3], uid_t uid)
{
	char *argv[24] = {(char *)(uintptr_t) "hvpoke-vmm"};
	int nr = 1;

	/* What plays KVM makes guest memory executable. */
	if (guest_kvm_is_played())
		argv[nr++] = (char *)(uintptr_t) "--no-sandbox";
	while (*args && nr < 23)
		argv[nr++] = (char *)(uintptr_t)*args++;
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			_exit(126);
	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		_exit(126);
	/* A test that dies takes its VM with it; after the change of user, which clears this. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(path, argv);
	_exit(127);
}

void vmm_start(struct vmm_process *vmm, const char *const *args, uid_t uid)
{
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		die("pipe");
	vmm_start_to(vmm, args, uid, out[1]);
	close(out[1]);
	vmm->out = out[0];
}

void vmm_start_to(struct vmm_process *vmm, const char *const *args, uid_t uid, int out)
{
	int in[2], err[2];
	char path[4096];

	memset(vmm, 0, sizeof(*vmm));
	program_path(path, sizeof(path));
	if (pipe2(in, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("pipe");
	vmm->pid = fork();
	if (vmm->pid < 0)
		die("fork");
	if (vmm->pid == 0)
		child(path, args, (int[]){in[0], out, err[1]}, uid);
	close(in[0]);
	close(err[1]);
	vmm->in = in[1];
	vmm->out = -1;
	vmm->err = err[0];
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* Text beyond the buffer is read and dropped. False at the stream's end. */
static bool collect(int fd, char *text, size_t size, size_t *len)
{
	char buf[4096];
	ssize_t got = read(fd, buf, sizeof(buf));
	size_t fits;

	if (got <= 0)
		return false;
	fits = (size_t)got < size - 1 - *len ? (size_t)got : size - 1 - *len;
	memcpy(text + *len, buf, fits);
	*len += fits;
	text[*len] = '\0';
	return true;
}

/* What --no-sandbox has it say first, which no test asks for. */
static void drop_warning(struct vmm_process *vmm)
{
	static const char warning[] = "hvpoke-vmm: without the sandbox:";
	char *end = strchr(vmm->err_text, '\n');

	if (!guest_kvm_is_played() || !end || strncmp(vmm->err_text, warning, strlen(warning)) != 0)
		return;
	vmm->err_len -= (size_t)(end + 1 - vmm->err_text);
	memmove(vmm->err_text, end + 1, vmm->err_len + 1);
}

/* One round of reading, until @deadline at most. False if both streams have ended, or it passed. */
static bool pump(struct vmm_process *vmm, long long deadline)
{
	struct pollfd fds[2] = {
		{.fd = vmm->out, .events = POLLIN},
		{.fd = vmm->err, .events = POLLIN},
	};
	long long left = deadline - now_ms();

	if ((vmm->out < 0 && vmm->err < 0) || left <= 0)
		return false;
	if (poll(fds, 2, (int)left) <= 0)
		return false;
	if (fds[0].revents &&
	    !collect(vmm->out, vmm->out_text, sizeof(vmm->out_text), &vmm->out_len)) {
		close(vmm->out);
		vmm->out = -1;
	}
	if (fds[1].revents &&
	    !collect(vmm->err, vmm->err_text, sizeof(vmm->err_text), &vmm->err_len)) {
		close(vmm->err);
		vmm->err = -1;
	}
	drop_warning(vmm);
	return true;
}

bool vmm_expect(struct vmm_process *vmm, const char *text, unsigned int seconds)
{
	long long deadline = now_ms() + seconds * 1000ll;

	while (!strstr(vmm->out_text, text))
		if (!pump(vmm, deadline))
			return false;
	return true;
}

int vmm_finish(struct vmm_process *vmm, unsigned int seconds)
{
	long long deadline = now_ms() + seconds * 1000ll;
	bool killed = false;
	int status;

	while (pump(vmm, deadline))
		;
	if (vmm->out >= 0 || vmm->err >= 0) {
		killed = true;
		kill(vmm->pid, SIGKILL);
	}
	if (waitpid(vmm->pid, &status, 0) < 0)
		die("waitpid");
	close(vmm->in);
	if (vmm->out >= 0)
		close(vmm->out);
	if (vmm->err >= 0)
		close(vmm->err);
	if (killed)
		return -2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
