// SPDX-License-Identifier: GPL-2.0-or-later
/* Who may connect to hvpoked, and what it has given up by then. */
#include "fake_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "../as_nobody.h"
#include "../sandboxed.h"
#include "hvpoked_sandbox.h"

static struct host host;
static struct fake_qemu fake;

/* A guest that is served, so that all kinds of threads and sockets are there. */
static int setup(void **state)
{
	(void)state;
	host_init(&host);
	host_start(&host);
	fake_qemu_serve(&fake, &host, false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_qemu_close(&fake);
	host_free(&host);
	return 0;
}

#define NEED_ROOT()                                                            \
	do {                                                                   \
		if (geteuid()) {                                               \
			print_message("only root can become somebody else\n"); \
			skip();                                                \
		}                                                              \
	} while (0)

static void nobody_is_no_qemu(void **state)
{
	static const char *const names[] = {"ivshmem", "qmp"};
	char path[128];
	struct stat st;

	(void)state;
	NEED_ROOT();
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", host.dir, names[i]);
		/* The directory is open: it is the socket's own mode that keeps nobody out. */
		assert_int_equal(stat(host.dir, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0755);
		assert_int_equal(knock_as_nobody(path), KNOCK_NO_ENTRY);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0007, 0);
	}
}

static void nobody_is_no_operator(void **state)
{
	char path[160];

	(void)state;
	NEED_ROOT();
	snprintf(path, sizeof(path), "%s/fake.sock", host.control_dir);
	assert_int_equal(chmod(host.control_dir, 0755), 0);
	assert_int_equal(knock_as_nobody(path), KNOCK_NO_ENTRY);
	/* Past the mode there is still the kernel's word on who it is. */
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(knock_as_nobody(path), KNOCK_FORBIDDEN);
}

static void all_threads_are_sandboxed(void **state)
{
	const unsigned long long five = 1ull << CAP_SYS_PTRACE | 1ull << CAP_SYS_ADMIN |
					1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_DAC_OVERRIDE |
					1ull << CAP_CHOWN;
	struct json_object *info, *sandbox;
	unsigned int deeper, nr;

	(void)state;
	NEED_SANDBOX();
	nr = assert_tasks_are_sandboxed(host.pid, five, &deeper);
	/* The guest's and its log's, at least; all but the main thread have filters of their own. */
	assert_true(nr >= 3);
	assert_int_equal(deeper, nr - 1);
	info = host_call(&host, "fake", "info", NULL, NULL);
	sandbox = json_object_object_get(info, "sandbox");
	assert_true(json_object_get_boolean(json_object_object_get(sandbox, "seccomp")));
	json_object_put(info);
}

enum { MAIN, GUEST, LOG, NR_ROLES };
static const char *const role_names[] = {"the main thread", "a guest's thread", "a log's thread"};

struct in_thread {
	struct sandbox_role *role;
	deed_fn *deed;
	const void *arg;
};

static void *in_thread(void *arg)
{
	struct in_thread *in = arg;

	hvpoked_sandbox_confine(in->role);
	_exit(in->deed(in->arg));
}

static void enter_and_do(int role, deed_fn *deed, const void *arg)
{
	struct hvpoked_sandbox sandbox;
	struct in_thread in = {role == GUEST ? &sandbox.guest : &sandbox.log, deed, arg};
	struct message message;
	pthread_t thread;
	sigset_t all;

	if (hvpoked_sandbox_enter(&sandbox, &message))
		_exit(WRONG);
	if (role != MAIN) {
		/* As the program's threads are started: signals are the main thread's. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
		if (pthread_create(&thread, NULL, in_thread, &in))
			_exit(WRONG);
		pthread_join(thread, NULL);
	}
	_exit(deed(arg));
}

#define MAY(role) (1u << (role))

static void forbidden_calls_end_it(void **state)
{
	static const char *const no_args[] = {NULL};
	const unsigned long passwd = PTR("/etc/passwd"), tmp = PTR("/tmp");
	const struct {
		struct call call;
		unsigned int may; /* the roles that it is not forbidden */
	} calls[] = {
		{CALL(execve, PTR("/bin/true"), PTR(no_args), PTR(no_args)), 0},
		{CALL(fork, 0), 0},
		{CALL(clone, SIGCHLD), 0},
		{CALL(kill, 1, 0), 0},
		{CALL(tgkill, 1, 1, 0), 0},
		{CALL(pidfd_send_signal, 0, 0, 0), 0},
		{CALL(ptrace, PTRACE_ATTACH, 1, 0, 0), 0},
		{CALL(process_vm_writev, 1, 0, 0, 0, 0, 0), 0},
		{CALL(socket, 2 /* AF_INET */, SOCK_STREAM, 0), 0},
		{CALL(socket, 16 /* AF_NETLINK */, SOCK_RAW, 0), 0},
		{CALL(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1ul, 0),
		 0},
		{CALL(mprotect, 0, 4096, PROT_EXEC), 0},
		{CALL(mount, 0, tmp, 0, 0, 0), 0},
		{CALL(umount2, tmp, 0), 0},
		{CALL(chroot, tmp), 0},
		{CALL(unshare, CLONE_NEWNS), 0},
		{CALL(setns, 0, 0), 0},
		{CALL(bpf, 0, 0, 0), 0},
		{CALL(perf_event_open, 0, 0, 0, 0, 0), 0},
		{CALL(userfaultfd, 0), 0},
		{CALL(io_uring_setup, 1, 0), 0},
		{CALL(kexec_load, 0, 0, 0, 0), 0},
		{CALL(init_module, 0, 0, 0), 0},
		{CALL(finit_module, 0, 0, 0), 0},
		{CALL(reboot, 0, 0, 0, 0), 0},
		{CALL(iopl, 3), 0},
		{CALL(keyctl, 0, 0, 0, 0, 0), 0},
		{CALL(setuid, 0), 0},
		{CALL(capset, 0, 0), 0},
		{CALL(prctl, 4 /* PR_SET_DUMPABLE */, 0), 0},
		{CALL(prlimit64, 0, 7, tmp, 0), 0},
		{CALL(link, passwd, tmp), 0},
		{CALL(symlink, passwd, tmp), 0},
		{CALL(ioctl, 0, 0x5412 /* TIOCSTI */, 0), 0},
		/* What only the main thread has. */
		{CALL(pidfd_open, 1, 0), MAY(MAIN)},
		{CALL(pidfd_getfd, 0, 0, 0), MAY(MAIN)},
		{CALL(sendmsg, 0, 0, 0), MAY(MAIN)},
		{CALL(memfd_create, tmp, 0), MAY(MAIN)},
		{CALL(getdents64, 0, 0, 0), MAY(MAIN)},
		/* What the log's does not have. */
		{CALL(clone, 0x3d0f00), MAY(MAIN) | MAY(GUEST)},
		{CALL(socket, AF_UNIX, SOCK_STREAM, 0), MAY(MAIN) | MAY(GUEST)},
		{CALL(accept4, 0, 0, 0, 0), MAY(MAIN) | MAY(GUEST)},
		{CALL(pwrite64, -1ul, 0, 0, 0), MAY(MAIN) | MAY(GUEST)},
		{CALL(chown, tmp, 0, 0), MAY(MAIN) | MAY(GUEST)},
	};

	(void)state;
	NEED_SANDBOX();
	for (int role = 0; role < NR_ROLES; role++)
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
			if (!(calls[i].may & 1u << role))
				assert_forbidden(enter_and_do, role, &calls[i].call, "hvpoked",
						 role_names[role], HVPOKED_EXIT_SANDBOX);
}

/* What hvpoked is for takes looking into another process. */
static pid_t parent;

static int look_into_our_parent(const void *arg)
{
	char path[64], byte;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)parent);
	fd = open(path, O_RDWR | O_CLOEXEC);
	TRY(fd >= 0);
	TRY(pread(fd, &byte, 1, (off_t)(uintptr_t)arg) == 1 && byte == '!');
	TRY(!close(fd));
	return DONE;
}

static void it_still_reaches_its_guests(void **state)
{
	static char mark = '!';

	(void)state;
	NEED_SANDBOX();
	NEED_ROOT();
	parent = getpid();
	assert_done(enter_and_do, GUEST, look_into_our_parent, &mark);
}

static void allowed_calls_work(void **state)
{
	(void)state;
	NEED_SANDBOX();
	for (int role = 0; role < NR_ROLES; role++)
		assert_done(enter_and_do, role, sandboxed_sort, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_no_qemu),
		cmocka_unit_test(nobody_is_no_operator),
		cmocka_unit_test(all_threads_are_sandboxed),
		cmocka_unit_test(forbidden_calls_end_it),
		cmocka_unit_test(it_still_reaches_its_guests),
		cmocka_unit_test(allowed_calls_work),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
