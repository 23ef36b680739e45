// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke-vmm's sandbox. What each role may not do is tried in a child that is in it, one
 * call a child; what it may do is tried there as well. Then the real program is looked at.
 * (That everything still works in it, the other tests of this directory show.)
 */
#include "kvm_test.h"

#include <asm/unistd.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../as_nobody.h"
#include "../sandboxed.h"
#include "client.h"
#include "kernel_file.h"
#include "vmm_process.h"
#include "vmm_sandbox.h"

extern const uint8_t __start_guest_code[], __stop_guest_code[];

/* All the kernel that is needed. */
GUEST_CODE __attribute__((naked)) static void halt(void)
{
	__asm__ volatile("1:\tcli\n\thlt\n\tjmp 1b");
}

static char dir[] = "/tmp/hvpoke-sandbox-XXXXXX";

enum { MAIN, MAIN_WITH_LOG, VCPU, LOG, NR_ROLES };
static const char *const role_names[] = {
	[MAIN] = "the main thread",
	[MAIN_WITH_LOG] = "the main thread",
	[VCPU] = "a vCPU's thread",
	[LOG] = "the log's thread",
};

struct in_thread {
	struct vmm_sandbox *sandbox;
	deed_fn *deed;
	const void *arg;
};

static void *as_vcpu(void *arg)
{
	struct in_thread *in = arg;

	if (sandbox_role_enter(&in->sandbox->vcpu))
		_exit(WRONG);
	_exit(in->deed(in->arg));
}

static void *as_log(void *arg)
{
	struct in_thread *in = arg;

	vmm_sandbox_confine_log(in->sandbox);
	_exit(in->deed(in->arg));
}

static void start_thread(void *(*start)(void *arg), struct in_thread *in)
{
	pthread_t thread;
	sigset_t all;

	/* As the program's threads are started: signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (pthread_create(&thread, NULL, start, in))
		_exit(WRONG);
	pthread_join(thread, NULL);
}

/* In the child: as hvpoke-vmm does, the vCPU's thread being started by the sandboxed main. */
static void enter_and_do(int role, deed_fn *deed, const void *arg)
{
	struct vmm_sandbox sandbox;
	struct in_thread in = {&sandbox, deed, arg};
	struct message message;
	char path[64];

	snprintf(path, sizeof(path), "%s/vm.sock", dir);
	if (vmm_sandbox_prepare(&sandbox, &message)) {
		fprintf(stderr, "%s\n", message.text);
		_exit(WRONG);
	}
	if (role == LOG || role == MAIN_WITH_LOG)
		snprintf(sandbox.log_dir, sizeof(sandbox.log_dir), "%s", dir);
	if (role == LOG)
		start_thread(as_log, &in);
	if (vmm_sandbox_enter(&sandbox, path, &message)) {
		fprintf(stderr, "%s\n", message.text);
		_exit(WRONG);
	}
	if (role == VCPU)
		start_thread(as_vcpu, &in);
	_exit(deed(arg));
}

/* Of a bit for each role. */
#define MAY_MAIN (1u << MAIN | 1u << MAIN_WITH_LOG)
#define MAY_READ (1u << MAIN_WITH_LOG)
#define MAY_LOG	 (1u << LOG)

#define PTHREAD_NO_THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND)

static void forbidden_calls_end_it(void **state)
{
	static const char *const no_args[] = {NULL};
	const unsigned long passwd = PTR("/etc/passwd"), tmp = PTR("/tmp");
	const struct {
		struct call call;
		unsigned int may; /* the roles that it is not forbidden */
	} calls[] = {
		/* Another program, another process. */
		{CALL(execve, PTR("/bin/true"), PTR(no_args), PTR(no_args)), 0},
		{CALL(execveat, (unsigned long)AT_FDCWD, PTR("/bin/true"), PTR(no_args)), 0},
		{CALL(fork, 0), 0},
		{CALL(vfork, 0), 0},
		{CALL(clone, SIGCHLD), 0},
		{CALL(clone, PTHREAD_NO_THREAD), 0},
		{CALL(clone, CLONE_NEWUSER | SIGCHLD), 0},
		{CALL(kill, 1, 0), 0},
		{CALL(kill, (unsigned long)-1, 0), 0},
		{CALL(tkill, 1, 0), 0},
		{CALL(tgkill, 1, 1, 0), 0},
		{CALL(rt_sigqueueinfo, 1, 0, 0), 0},
		{CALL(pidfd_open, 1, 0), 0},
		{CALL(pidfd_getfd, 0, 0, 0), 0},
		{CALL(pidfd_send_signal, 0, 0, 0), 0},
		{CALL(ptrace, 0), 0},
		{CALL(process_vm_readv, 1, 0, 0, 0, 0, 0), 0},
		{CALL(process_vm_writev, 1, 0, 0, 0, 0, 0), 0},
		{CALL(process_madvise, 1, 0, 0, 0, 0, 0), 0},
		{CALL(kcmp, 1, 1, 0, 0, 0), 0},
		/* Files. */
		{CALL(open, passwd, O_RDONLY), 0},
		{CALL(openat, (unsigned long)AT_FDCWD, passwd, O_RDONLY), MAY_READ | MAY_LOG},
		{CALL(openat, (unsigned long)AT_FDCWD, PTR(dir), O_TMPFILE | O_RDWR, 0600),
		 MAY_LOG},
		{CALL(openat, (unsigned long)AT_FDCWD, passwd, O_RDONLY | O_CREAT), MAY_LOG},
		{CALL(openat, (unsigned long)AT_FDCWD, passwd, O_RDONLY | O_TRUNC), MAY_LOG},
		{CALL(openat, (unsigned long)AT_FDCWD, passwd, O_WRONLY), MAY_LOG},
		{CALL(openat, (unsigned long)AT_FDCWD, PTR("/dev/kvm"), O_RDWR), MAY_LOG},
		{CALL(openat2, (unsigned long)AT_FDCWD, passwd, 0, 0), 0},
		{CALL(open_by_handle_at, 0, 0, 0), 0},
		{CALL(creat, PTR("/tmp/x"), 0600), 0},
		{CALL(rename, passwd, passwd), MAY_LOG},
		{CALL(link, passwd, tmp), 0},
		{CALL(symlink, passwd, tmp), 0},
		{CALL(mkdir, tmp, 0700), 0},
		{CALL(unlinkat, (unsigned long)AT_FDCWD, tmp, 0), 0},
		{CALL(chmod, tmp, 0777), 0},
		{CALL(fchmod, 0, 0777), 0},
		{CALL(chown, tmp, 0, 0), 0},
		{CALL(truncate, tmp, 0), 0},
		{CALL(readlink, PTR("/proc/self/exe"), 0, 0), 0},
		{CALL(getdents64, 0, 0, 0), 0},
		{CALL(fcntl, 2, F_SETFL, 0), 0},
		{CALL(dup2, 0, 1), 0},
		{CALL(sendfile, 0, 0, 0, 0), 0},
		/* The network, other sockets. */
		{CALL(socket, AF_INET, SOCK_STREAM, 0), 0},
		{CALL(socket, AF_UNIX, SOCK_STREAM, 0), 0},
		{CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, 0), 0},
		{CALL(connect, 0, 0, 0), 0},
		{CALL(bind, 0, 0, 0), 0},
		{CALL(listen, 0, 0), 0},
		{CALL(sendmsg, 0, 0, 0), 0},
		{CALL(recvmsg, 0, 0, 0), 0},
		/* Code. */
		{CALL(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1ul, 0),
		 0},
		{CALL(mprotect, PTR(dir) & ~4095ul, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0},
		{CALL(pkey_mprotect, 0, 4096, PROT_EXEC, -1ul), 0},
		{CALL(personality, 0x0400000 /* READ_IMPLIES_EXEC */), 0},
		{CALL(shmat, 0, 0, 0), 0},
		{CALL(remap_file_pages, 0, 0, 0, 0, 0), 0},
		/* The host. */
		{CALL(mount, 0, tmp, 0, 0, 0), 0},
		{CALL(umount2, tmp, 0), 0},
		{CALL(pivot_root, tmp, tmp), 0},
		{CALL(chroot, tmp), 0},
		{CALL(unshare, CLONE_NEWUSER), 0},
		{CALL(setns, 0, 0), 0},
		{CALL(bpf, 0, 0, 0), 0},
		{CALL(perf_event_open, 0, 0, 0, 0, 0), 0},
		{CALL(userfaultfd, 0), 0},
		{CALL(io_uring_setup, 1, 0), 0},
		{CALL(io_setup, 1, 0), 0},
		{CALL(kexec_load, 0, 0, 0, 0), 0},
		{CALL(kexec_file_load, 0, 0, 0, 0, 0), 0},
		{CALL(init_module, 0, 0, 0), 0},
		{CALL(finit_module, 0, 0, 0), 0},
		{CALL(delete_module, 0, 0), 0},
		{CALL(reboot, 0, 0, 0, 0), 0},
		{CALL(iopl, 3), 0},
		{CALL(ioperm, 0, 1, 1), 0},
		{CALL(modify_ldt, 0, 0, 0), 0},
		{CALL(add_key, 0, 0, 0, 0, 0), 0},
		{CALL(keyctl, 0, 0, 0, 0, 0), 0},
		{CALL(request_key, 0, 0, 0, 0), 0},
		{CALL(setuid, 0), 0},
		{CALL(setresuid, 0, 0, 0), 0},
		{CALL(capset, 0, 0), 0},
		{CALL(prctl, 1, 0, 0, 0, 0), 0},
		{CALL(setrlimit, 0, 0), 0},
		{CALL(prlimit64, 0, 0, 0, 0), 0},
		{CALL(sched_setaffinity, 1, 0, 0), 0},
		{CALL(setpriority, 0, 0, 0), 0},
		{CALL(clock_settime, 0, 0), 0},
		{CALL(sethostname, tmp, 1), 0},
		{CALL(syslog, 0, 0, 0), 0},
		/* A device more, and a terminal that is written to as if by its user. */
		{IOCTL(KVM_CREATE_DEVICE), 0},
		{IOCTL(KVM_SET_MSRS), 0},
		{IOCTL(TIOCSTI), 0},
		{IOCTL(KVM_RUN | 1ul << 32), 0},
		/* A filter that is not just one more. */
		{CALL(seccomp, 1, 1 /* SECCOMP_FILTER_FLAG_TSYNC */, 0), 0},
		{CALL(seccomp, 0 /* SECCOMP_SET_MODE_STRICT */, 0, 0), 0},
		/* What the main thread makes machines with, and serves clients with. */
		{IOCTL(KVM_CREATE_VM), MAY_MAIN},
		{IOCTL(KVM_CREATE_VCPU), MAY_MAIN},
		{IOCTL(KVM_SET_USER_MEMORY_REGION), MAY_MAIN},
		{IOCTL(KVM_SET_SREGS), MAY_MAIN},
		{CALL(memfd_create, tmp, 0), MAY_MAIN},
		{CALL(clone, 0x3d0f00), MAY_MAIN},
		{CALL(seccomp, 1, 0, 0), MAY_MAIN},
		{CALL(read, -1ul, 0, 0), MAY_MAIN},
		{CALL(pread64, -1ul, 0, 0, 0), MAY_MAIN},
		{CALL(close, 99), MAY_MAIN | MAY_LOG},
		{CALL(newfstatat, -1ul, 0, 0, 0), MAY_MAIN | MAY_LOG},
		{CALL(unlink, PTR("/nonexistent")), MAY_MAIN | MAY_LOG},
		{CALL(accept4, 0, 0, 0, 0), MAY_MAIN},
		{CALL(sendto, 0, 0, 0, 0, 0, 0), MAY_MAIN},
		{CALL(epoll_ctl, 0, 0, 0, 0), MAY_MAIN},
	};

	(void)state;
	for (int role = 0; role < NR_ROLES; role++)
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
			if (!(calls[i].may & 1u << role))
				assert_forbidden(enter_and_do, role, &calls[i].call, "hvpoke-vmm",
						 role_names[role], VM_EXIT_SANDBOX);
}

/* The 32-bit entry of the kernel has other numbers. */
static int call_as_32_bits(const void *arg)
{
	long nr = 20; /* getpid */

	(void)arg;
	__asm__ volatile("int $0x80" : "+a"(nr) : : "memory");
	return DONE;
}

static int call_as_x32(const void *arg)
{
	(void)arg;
	syscall(__X32_SYSCALL_BIT | SYS_getpid);
	return DONE;
}

static void other_abis_end_it(void **state)
{
	char said[2048];
	int status;

	(void)state;
	for (int role = 0; role < NR_ROLES; role++) {
		status = in_role(enter_and_do, role, call_as_32_bits, NULL, said, sizeof(said));
		/* SIGSEGV where the kernel has no such entry. */
		assert_true(WIFSIGNALED(status));
		assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
		status = in_role(enter_and_do, role, call_as_x32, NULL, said, sizeof(said));
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

static void *allocate(void *arg)
{
	void *memory[64];

	for (size_t i = 0; i < 64; i++) {
		memory[i] = malloc(1000 << i % 12);
		if (!memory[i])
			_exit(WRONG);
	}
	for (size_t i = 0; i < 64; i++)
		free(memory[i]);
	return arg;
}

static int common_deeds(const void *arg)
{
	struct timespec now;
	FILE *out;
	char *text = NULL;
	size_t size;

	(void)arg;
	TRY(!clock_gettime(CLOCK_MONOTONIC, &now));
	TRY(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
	TRY(syscall(SYS_getpid) == getpid());
	TRY(!syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0));
	TRY(!usleep(1));
	TRY(poll(NULL, 0, 0) == 0);
	TRY(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED);
	allocate(NULL);
	out = open_memstream(&text, &size); /* registers.c */
	TRY(out);
	TRY(fprintf(out, "%*d", 100000, 1) == 100000);
	TRY(!fclose(out));
	free(text);
	return DONE;
}

static int kvm_deeds(const void *arg)
{
	struct timespec now = {};

	(void)arg;
	/* KVM's calls: not here, but not forbidden either. */
	errno = 0;
	TRY(ioctl(-1, KVM_RUN, 0) && errno == EBADF);
	TRY(ioctl(-1, KVM_IRQ_LINE, 0) && errno == EBADF);
	TRY(ioctl(-1, KVM_KVMCLOCK_CTRL, 0) && errno == EBADF);
	TRY(ioctl(-1, KVM_GET_REGS, 0) && errno == EBADF);
	TRY(ioctl(-1, KVM_SET_VCPU_EVENTS, 0) && errno == EBADF);
	TRY(time(NULL) && gmtime(&now.tv_sec)); /* the real-time clock's */
	return DONE;
}

/* With arenas of their own, malloc would look for the number of CPUs, in /sys. */
static int many_threads(const void *arg)
{
	pthread_t threads[40];

	(void)arg;
	for (size_t i = 0; i < 40; i++)
		TRY(!pthread_create(&threads[i], NULL, allocate, NULL));
	for (size_t i = 0; i < 40; i++)
		TRY(!pthread_join(threads[i], NULL));
	return DONE;
}

/* The socket in the end, and nothing that is elsewhere. */
static int unlink_socket(const void *arg)
{
	const char *elsewhere = arg;
	char path[64];

	snprintf(path, sizeof(path), "%s/vm.sock", dir);
	TRY(!unlink(path));
	TRY(unlink(elsewhere) < 0 && errno == EACCES);
	return DONE;
}

static int cannot_clone3(const void *arg)
{
	(void)arg;
	errno = 0;
	TRY(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
	return DONE;
}

static void allowed_calls_work(void **state)
{
	(void)state;
	for (int role = 0; role < NR_ROLES; role++) {
		assert_done(enter_and_do, role, common_deeds, NULL);
		assert_done(enter_and_do, role, sandboxed_sort, NULL);
		if (role != LOG)
			assert_done(enter_and_do, role, kvm_deeds, NULL);
	}
	assert_done(enter_and_do, MAIN, many_threads, NULL);
	assert_done(enter_and_do, MAIN, cannot_clone3, NULL);
}

static bool have_landlock(void)
{
	return syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) > 0;
}

/* What audit_file.c does, on either thread; and what of it must not be elsewhere. */
static int read_the_log(const void *arg)
{
	char path[64], text[8];
	int fd;

	(void)arg;
	snprintf(path, sizeof(path), "%s/log", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	TRY(fd >= 0);
	TRY(pread(fd, text, sizeof(text), 0) == 4);
	TRY(!close(fd));
	TRY(open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES);
	return DONE;
}

static int write_the_log(const void *arg)
{
	char path[64], to[64];
	int fd;

	(void)arg;
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(to, sizeof(to), "%s/log.1", dir);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	TRY(fd >= 0);
	TRY(write(fd, "more", 4) == 4);
	TRY(!ftruncate(fd, 4));
	TRY(!close(fd));
	TRY(!rename(path, to));
	TRY(!unlink(to));
	TRY(open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES);
	TRY(open("/tmp/hvpoke-x", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
	return DONE;
}

static void landlock_leaves_the_log(void **state)
{
	char path[64];

	(void)state;
	if (!have_landlock()) {
		fprintf(stderr, "skipped: this kernel has no Landlock, or it is switched off\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/log", dir);
	write_file(path, "log\n", 4, "", 0);
	assert_done(enter_and_do, MAIN_WITH_LOG, read_the_log, NULL);
	assert_done(enter_and_do, LOG, write_the_log, NULL);
	assert_int_equal(access(path, F_OK), -1);
}

static void landlock_leaves_the_socket(void **state)
{
	char elsewhere[] = "/tmp/hvpoke-elsewhere-XXXXXX", path[64];
	int fd = mkstemp(elsewhere);

	(void)state;
	if (!have_landlock()) {
		unlink(elsewhere);
		fprintf(stderr, "skipped: this kernel has no Landlock, or it is switched off\n");
		skip();
	}
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/vm.sock", dir);
	write_file(path, "", 0, "", 0);
	assert_done(enter_and_do, MAIN, unlink_socket, elsewhere);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(unlink(elsewhere), 0);
}

static bool says(struct json_object *object, const char *key)
{
	struct json_object *value = json_object_object_get(object, key);

	assert_true(json_object_is_type(value, json_type_boolean));
	return json_object_get_boolean(value);
}

static void expect_info(const char *name, bool sandboxed)
{
	struct json_object *result = NULL, *error = NULL, *sandbox;
	struct hvp_client *client;
	char path[64];

	snprintf(path, sizeof(path), "%s/%s.sock", dir, name);
	assert_int_equal(hvp_client_connect(&client, path, 30000), 0);
	assert_int_equal(hvp_client_call(client, "info", NULL, 30000, &result, &error), 0);
	sandbox = json_object_object_get(result, "sandbox");
	assert_int_equal(says(sandbox, "seccomp"), sandboxed);
	assert_int_equal(says(sandbox, "capabilities_dropped"), sandboxed);
	assert_int_equal(says(sandbox, "landlock"), sandboxed && have_landlock());
	json_object_put(result);
	/* Its files are opened for it. */
	assert_int_equal(hvp_client_call(client, "log", NULL, 30000, &result, &error), 0);
	assert_true(
		json_object_is_type(json_object_object_get(result, "records"), json_type_array));
	json_object_put(result);
	json_object_put(error);
	hvp_client_close(client);
}

/* Waits for the control socket to appear: then all has been given up but the roles of vCPUs. */
static void wait_for_socket(const char *name)
{
	struct hvp_client *client;
	char path[64];

	snprintf(path, sizeof(path), "%s/%s.sock", dir, name);
	for (int tries = 0; tries < 6000; tries++) {
		if (!hvp_client_connect(&client, path, 30000)) {
			hvp_client_close(client);
			return;
		}
		usleep(10000);
	}
	fail_msg("%s has not come", path);
}

static char elf_path[64];

#define START(vmm, ...)                                                                           \
	vmm_start(vmm,                                                                            \
		  (const char *const[]){"--memory", "64M", "--kernel", elf_path, "--name", "box", \
					"--vcpus", "2", "--audit", dir, ##__VA_ARGS__, NULL},     \
		  0)

static void the_program_is_in_it(void **state)
{
	struct vmm_process vmm;
	unsigned int deeper;

	(void)state;
	NEED_REAL_KVM();
	NEED_SANDBOX();
	START(&vmm);
	wait_for_socket("box");
	expect_info("box", true);
	/* Main, the log's, and the vCPUs', which have main's filter and their own. */
	assert_int_equal(assert_tasks_are_sandboxed(vmm.pid, 0, &deeper), 4);
	assert_int_equal(deeper, 2);
	kill(vmm.pid, SIGTERM);
	assert_int_equal(vmm_finish(&vmm, 30), 0);
	assert_string_equal(vmm.err_text, "");
}

static void without_it_it_says_so(void **state)
{
	struct vmm_process vmm;

	(void)state;
	NEED_REAL_KVM();
	START(&vmm, "--no-sandbox");
	wait_for_socket("box");
	expect_info("box", false);
	kill(vmm.pid, SIGTERM);
	assert_int_equal(vmm_finish(&vmm, 30), 0);
	assert_non_null(strstr(vmm.err_text, "without the sandbox"));
	assert_null(strchr(vmm.err_text, '\n')[1] ? "more than a line" : NULL);
}

/* Past the modes of file and directory there is still the kernel's word on who it is. */
static void nobody_may_not_control_it(void **state)
{
	struct vmm_process vmm;
	char path[64];

	(void)state;
	NEED_KVM();
	if (geteuid()) {
		fprintf(stderr, "skipped: only root can become somebody else\n");
		skip();
	}
	START(&vmm);
	wait_for_socket("box");
	snprintf(path, sizeof(path), "%s/box.sock", dir);
	assert_int_equal(knock_as_nobody(path), KNOCK_NO_ENTRY);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(knock_as_nobody(path), KNOCK_NO_ENTRY);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(knock_as_nobody(path), KNOCK_FORBIDDEN);
	assert_int_equal(chmod(dir, 0700), 0);
	kill(vmm.pid, SIGTERM);
	assert_int_equal(vmm_finish(&vmm, 30), 0);
}

static int setup(void **state)
{
	size_t entry = (size_t)((const uint8_t *)(uintptr_t)halt - __start_guest_code);

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("HVPOKE_RUNTIME_DIR", dir, 1);
	snprintf(elf_path, sizeof(elf_path), "%s/vmlinux", dir);
	write_elf(elf_path, __start_guest_code, (size_t)(__stop_guest_code - __start_guest_code),
		  entry);
	return 0;
}

static int teardown(void **state)
{
	char path[64];

	(void)state;
	unlink(elf_path);
	snprintf(path, sizeof(path), "%s/box.jsonl", dir);
	unlink(path);
	/* Fails if a socket was left behind. */
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_calls_end_it),
		cmocka_unit_test(other_abis_end_it),
		cmocka_unit_test(allowed_calls_work),
		cmocka_unit_test(landlock_leaves_the_socket),
		cmocka_unit_test(landlock_leaves_the_log),
		cmocka_unit_test(the_program_is_in_it),
		cmocka_unit_test(without_it_it_says_so),
		cmocka_unit_test(nobody_may_not_control_it),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
