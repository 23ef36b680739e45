// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A VMM killed at every step of a batch (patcher/fault.h). Its guest goes with it, so there is
 * no text to be repaired; but its control socket stays behind, and that must not be in the way of
 * the next one of its name, nor of another VM.
 */
#include "kvm_test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "fault.h"
#include "runtime.h"

#define SITES	 256u
#define INSN_LEN 5u
#define SECONDS	 120

static const uint8_t nop[INSN_LEN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jmp[INSN_LEN] = {0xe9, 0x10, 0x00, 0x00, 0x00};
static char dir[] = "/tmp/hvpoke-crash-XXXXXX";

struct shared {
	uint32_t pfn;
};

GUEST_CODE static void ring(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	if (cpu)
		for (;;)
			;
	guest_ring(s->pfn);
	guest_done();
}

/* One batch, on the second of 2 vCPUs' time. True if all of it was written. */
static bool run_batch(void)
{
	struct hvpoke_entry entry[SITES];
	struct shared *shared;
	struct guest guest;
	uint64_t text;
	bool ok = true;

	guest_create(&guest, 2, 16 << 20);
	shared = guest.shared;
	text = guest_alloc(&guest, SITES * 64);
	guest_hello(&guest, text, SITES * 64);
	for (uint32_t i = 0; i < SITES; i++) {
		memcpy(guest_at(&guest, text + i * 64, INSN_LEN), nop, INSN_LEN);
		entry[i] = (struct hvpoke_entry){.gpa = text + i * 64, .len = INSN_LEN};
		memcpy(entry[i].old_insn, nop, INSN_LEN);
		memcpy(entry[i].new_insn, jmp, INSN_LEN);
	}
	shared->pfn = guest_batch(&guest, entry, SITES);
	guest_enter_all(&guest, ring);
	guest_start(&guest);
	guest_finish(&guest, SECONDS);
	for (uint32_t i = 0; i < SITES; i++)
		ok &= !memcmp(guest_at(&guest, text + i * 64, INSN_LEN), jmp, INSN_LEN);
	ok &= guest_cmd(&guest, shared->pfn)->status == HVPOKE_OK;
	guest_destroy(&guest);
	return ok;
}

/* A VMM in a process of its own: says that it listens, waits to be told, and runs a batch. */
struct vmm {
	pid_t pid;
	int says, told; /* our ends */
};

static void be_vmm(const char *name, const char *fault, int says, int told)
{
	static const struct hvp_method none[] = {{}};
	struct hvp_control *control;
	char path[108], byte;
	bool ok;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fault)
		setenv("HVPOKE_FAULT", fault, 1);
	if (hvp_runtime_socket(path, sizeof(path), name) ||
	    hvp_control_open(&control, path, name, none, NULL))
		_exit(2);
	if (write(says, "", 1) != 1 || read(told, &byte, 1) != 1)
		_exit(3);
	ok = run_batch();
	hvp_control_close(control);
	_exit(ok ? 0 : 4);
}

static void start(struct vmm *vmm, const char *name, const char *fault)
{
	int says[2], told[2];
	char byte;

	assert_int_equal(pipe(says), 0);
	assert_int_equal(pipe(told), 0);
	vmm->pid = fork();
	assert_true(vmm->pid >= 0);
	if (!vmm->pid)
		be_vmm(name, fault, says[1], told[0]);
	close(says[1]);
	close(told[0]);
	vmm->says = says[0];
	vmm->told = told[1];
	/* 0: it could not begin, because of what the last one left. */
	assert_int_equal(read(vmm->says, &byte, 1), 1);
}

/* Let it run its batch. How it ends: an exit code, or minus a signal. */
static int finish(struct vmm *vmm)
{
	int status;

	assert_int_equal(write(vmm->told, "", 1), 1);
	assert_int_equal(waitpid(vmm->pid, &status, 0), vmm->pid);
	close(vmm->told);
	close(vmm->says);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool listens(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	assert_int_equal(hvp_runtime_socket(address.sun_path, sizeof(address.sun_path), name), 0);
	err = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return !err;
}

static unsigned int nr_files(void)
{
	struct dirent *entry;
	unsigned int nr = 0;
	DIR *files = opendir(dir);

	assert_non_null(files);
	while ((entry = readdir(files)))
		nr += entry->d_name[0] != '.';
	closedir(files);
	return nr;
}

static void killed_at_every_step(void **state)
{
	static const char *const faults[] = {
		"doorbell 1 0", "copied 1 0",	    "checked 1 0",	  "paused 1 0",
		"verified 1 0", "site-written 1 0", "site-written 128 0", "site-written 256 0",
		"written 1 0",	"resumed 1 0",	    "answered 1 0",
	};
	struct vmm other, victim;

	(void)state;
	NEED_KVM();
	start(&other, "other", NULL);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		print_message("# killed at %s\n", faults[i]);
		start(&victim, "victim", faults[i]);
		assert_int_equal(finish(&victim), -SIGKILL);
		assert_false(listens("victim"));
		assert_true(listens("other"));
		/* The next one of its name. */
		start(&victim, "victim", NULL);
		assert_true(listens("victim"));
		assert_int_equal(finish(&victim), 0);
		assert_int_equal(nr_files(), 1);
	}
	assert_int_equal(finish(&other), 0);
	assert_int_equal(nr_files(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_every_step),
	};
	int failed;

	if (!FAULTS_BUILT_IN) {
		puts("1..0 # SKIP this build has no fault points");
		return 0;
	}
	if (!mkdtemp(dir) || setenv("HVPOKE_RUNTIME_DIR", dir, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
