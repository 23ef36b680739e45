// SPDX-License-Identifier: GPL-2.0-or-later
/* main.c - hvpoked: the command line, the directories, the signals. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest_limits.h"

#include "hvpoke_shm.h"
#include "hvpoked_sandbox.h"
#include "listen.h"
#include "log.h"
#include "runtime.h"
#include "server.h"
#include "version.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

#define DEFAULT_DIR "/run/hvpoked"
/* What libvirt runs QEMU as, on Debian. */
#define DEFAULT_GROUP "libvirt-qemu"

struct arguments {
	const char *dir;
	const char *group; /* NULL: the default one, if there is such a group */
	uint64_t shm_size;
	struct hvp_limits limits;
	const char *log_dir; /* NULL: the default one */
	bool no_sandbox;
	uint64_t log_mib, log_files;
};

static const char usage[] =
	"usage: hvpoked [--socket-dir DIR] [--group GROUP] [--shared-memory MIB]\n"
	"Serves QEMU guests; hvpoked(8) explains.\n"
	"\n"
	"  --socket-dir DIR      where QEMU connects to: DIR/ivshmem and DIR/qmp (" DEFAULT_DIR
	")\n"
	"  --group GROUP         who may connect besides root (" DEFAULT_GROUP ")\n"
	"  --shared-memory MIB   memory that each guest shares with us, a power of two (4)\n"
	"  --log-dir DIR|none    where the log of what was patched is (/var/log/hvpoke)\n"
	"  --log-size MIB        when a file of it is full (4)\n"
	"  --log-files N         how many files are kept of each guest (4)\n"
	"  --no-sandbox          keep all rights, also those that nothing here needs\n"
	"\n"
	"Of each guest; what is more than that, the guest does itself:\n"
	"  --max-sites N         largest batch to take (1048576)\n"
	"  --max-requests N      requests that may wait for it (64)\n"
	"  --max-pauses N        batches to take in limit-seconds; 0: no bound (10000)\n"
	"  --max-paused-ms MS    time to pause it in limit-seconds; 0: no bound (9000)\n"
	"  --limit-seconds S     what the two before are counted over (10)\n";

static const struct number_option {
	const char *name;
	size_t offset; /* in struct arguments */
	uint64_t min, max;
} number_options[] = {
	{"max-sites", offsetof(struct arguments, limits.max_sites), 0, HVPOKE_MAX_SITES},
	{"max-requests", offsetof(struct arguments, limits.max_requests), 1, HVP_MOST_REQUESTS},
	{"max-pauses", offsetof(struct arguments, limits.max_pauses), 0, HVP_MOST_PAUSES},
	{"max-paused-ms", offsetof(struct arguments, limits.max_paused_ms), 0, HVP_MOST_PAUSED_MS},
	{"limit-seconds", offsetof(struct arguments, limits.seconds), 1, HVP_MOST_LIMIT_SECONDS},
	{"log-size", offsetof(struct arguments, log_mib), 1, 1 << 20},
	{"log-files", offsetof(struct arguments, log_files), 1, 1000},
};
#define NUMBER_OPTION 256 /* getopt's value for the first of them */

static int wrong(const char *problem, const char *what)
{
	say(LOG_ERR, "%s%s; \"hvpoked --help\" says how to use it", problem, what);
	return USAGE;
}

static int take_number(struct arguments *arguments, const struct number_option *option)
{
	unsigned long long value;
	char expected[96], *end;

	errno = 0;
	value = strtoull(optarg, &end, 10);
	/* strtoull() takes a sign. */
	if (*end || *optarg < '0' || *optarg > '9' || errno || value < option->min ||
	    value > option->max) {
		snprintf(expected, sizeof(expected), "--%s must be %llu to %llu, not ",
			 option->name, (unsigned long long)option->min,
			 (unsigned long long)option->max);
		return wrong(expected, optarg);
	}
	*(uint64_t *)((char *)arguments + option->offset) = value;
	return DONE;
}

/* DONE, USAGE, or -1: all has been said. */
static int parse(struct arguments *arguments, int argc, char **argv)
{
	static const struct option options[] = {
		{"socket-dir", required_argument, NULL, 'd'},
		{"group", required_argument, NULL, 'g'},
		{"shared-memory", required_argument, NULL, 'm'},
		{"log-dir", required_argument, NULL, 'l'},
		{"no-sandbox", no_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{"max-sites", required_argument, NULL, NUMBER_OPTION},
		{"max-requests", required_argument, NULL, NUMBER_OPTION + 1},
		{"max-pauses", required_argument, NULL, NUMBER_OPTION + 2},
		{"max-paused-ms", required_argument, NULL, NUMBER_OPTION + 3},
		{"limit-seconds", required_argument, NULL, NUMBER_OPTION + 4},
		{"log-size", required_argument, NULL, NUMBER_OPTION + 5},
		{"log-files", required_argument, NULL, NUMBER_OPTION + 6},
		{},
	};
	unsigned long long mib;
	char *end;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (option) {
		case 'd': arguments->dir = optarg; break;
		case 'g': arguments->group = optarg; break;
		case 's': arguments->no_sandbox = true; break;
		case 'l':
			if (strcmp(optarg, "none") != 0 && optarg[0] != '/')
				return wrong("--log-dir must be none, or the whole path of a "
					     "directory, not ",
					     optarg);
			arguments->log_dir = optarg;
			break;
		case 'm':
			mib = strtoull(optarg, &end, 10);
			if (*end || mib < HVPOKE_SHM_MIN_SIZE >> 20 ||
			    mib > HVPOKE_SHM_MAX_SIZE >> 20 || mib & (mib - 1))
				return wrong("--shared-memory must be 1, 2, 4, 8, 16, 32 or 64, "
					     "not ",
					     optarg);
			arguments->shm_size = mib << 20;
			break;
		case 'h': fputs(usage, stdout); return -1;
		case 'v': puts("hvpoked " HVP_VERSION); return -1;
		case ':': return wrong("a value is missing after ", argv[optind - 1]);
		case NUMBER_OPTION ... NUMBER_OPTION + 6:
			if (take_number(arguments, &number_options[option - NUMBER_OPTION]))
				return USAGE;
			break;
		default: return wrong("unknown option ", argv[optind - 1]);
		}
	}
	return optind < argc ? wrong("unexpected argument ", argv[optind]) : DONE;
}

static int choose_group(const struct arguments *arguments)
{
	const char *name = arguments->group ? arguments->group : DEFAULT_GROUP;
	struct group *group = getgrnam(name);

	if (!group && arguments->group) {
		say(LOG_ERR, "there is no group \"%s\"", name);
		return FAILED;
	}
	/* Without the rights to give files away it is for our own user's guests. */
	if (group && !geteuid())
		listen_allow_group(group->gr_gid);
	return DONE;
}

/* QEMU's user must be able to enter it, but not to write there. Its lock, or -1. */
static int take_dir(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;
	int lock;

	if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
		say(LOG_ERR, "cannot make the directory %s: %s", dir, strerrordesc_np(errno));
		return -1;
	}
	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) ||
	    st.st_mode & (S_IWGRP | S_IWOTH)) {
		say(LOG_ERR, "%s must be a directory of ours that nobody else can write to", dir);
		return -1;
	}
	snprintf(path, sizeof(path), "%s/lock", dir);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0) {
		say(LOG_ERR, "cannot open %s: %s", path, strerrordesc_np(errno));
		return -1;
	}
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		say(LOG_ERR, "another hvpoked serves %s already", dir);
		close(lock);
		return -1;
	}
	return lock;
}

static void on_signal(void *ctx, uint32_t events)
{
	struct loop *loop = ctx;

	(void)events;
	loop->stop = true;
}

static int watch_signals(struct loop *loop, struct loop_watch *watch)
{
	sigset_t mask;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	*watch = (struct loop_watch){
		.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK),
		.ready = on_signal,
		.ctx = loop,
	};
	return watch->fd < 0 ? -errno : loop_add(loop, watch, EPOLLIN);
}

/* A guest takes a dozen descriptors; the default allows for some 80 guests. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	/* Without it there are fewer guests; each that there is none for is told so. */
	if (setrlimit(RLIMIT_NOFILE, &limit))
		say(LOG_WARNING, "cannot raise the limit of descriptors: %s",
		    strerrordesc_np(errno));
}

static int enter_sandbox(const struct arguments *arguments, struct hvpoked_sandbox *sandbox)
{
	struct message message;

	if (arguments->no_sandbox)
		say(LOG_WARNING, "without the sandbox: a QEMU that takes hvpoked over may do "
				 "whatever the user may who started it");
	if (!SANDBOX_POSSIBLE || arguments->no_sandbox || !hvpoked_sandbox_enter(sandbox, &message))
		return 0;
	say(LOG_ERR, "%s; --no-sandbox runs without", message.text);
	return -EPERM;
}

static int serve(const struct arguments *arguments)
{
	struct hvpoked_sandbox sandbox = {};
	struct loop_watch signals = {.fd = -1};
	struct message message = {};
	struct vm_config guests = {
		.shm_size = arguments->shm_size,
		.limits = arguments->limits,
		.audit = {.dir = arguments->log_dir,
			  .max_bytes = arguments->log_mib << 20,
			  .nr_files = (unsigned int)arguments->log_files},
		.sandbox = &sandbox,
	};
	struct server server;
	struct loop loop;
	int err;

	err = loop_init(&loop);
	if (!err)
		err = watch_signals(&loop, &signals);
	if (err) {
		say(LOG_ERR, "cannot set up the event loop: %s", strerrordesc_np(-err));
		return FAILED;
	}
	/* Before the first guest's thread. */
	if (enter_sandbox(arguments, &sandbox)) {
		close(signals.fd);
		loop_release(&loop);
		return FAILED;
	}
	if (sandbox.on) {
		guests.audit.confine = hvpoked_sandbox_confine;
		guests.audit.confine_ctx = &sandbox.log;
	}
	err = server_open(&server, &loop, arguments->dir, &guests, &message);
	if (err) {
		say(LOG_ERR, "%s", message.text);
	} else {
		say(LOG_INFO, "ready: QEMU connects to %s and %s", server.ivshmem_path,
		    server.qmp_path);
		err = loop_run(&loop);
	}
	server_close(&server);
	hvpoked_sandbox_release(&sandbox);
	close(signals.fd);
	loop_release(&loop);
	return err ? FAILED : DONE;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.dir = DEFAULT_DIR,
		.shm_size = HVPOKE_SHM_SIZE,
		.limits = HVP_LIMITS_DEFAULT,
		.log_mib = HVP_AUDIT_MAX_BYTES >> 20,
		.log_files = HVP_AUDIT_NR_FILES,
	};
	int err = parse(&arguments, argc, argv), lock;
	char log_dir[PATH_MAX];

	if (err)
		return err < 0 ? DONE : err;
	raise_descriptors();
	err = hvp_runtime_make_dir();
	if (err) {
		say(LOG_ERR,
		    "no directory for the control sockets: %s; set HVPOKE_RUNTIME_DIR or "
		    "XDG_RUNTIME_DIR",
		    strerrordesc_np(-err));
		return FAILED;
	}
	if (!arguments.log_dir && !hvp_runtime_log_dir(log_dir, sizeof(log_dir)))
		arguments.log_dir = log_dir;
	else if (arguments.log_dir && !strcmp(arguments.log_dir, "none"))
		arguments.log_dir = NULL;
	err = choose_group(&arguments);
	if (err)
		return err;
	lock = take_dir(arguments.dir);
	if (lock < 0)
		return FAILED;
	err = serve(&arguments);
	close(lock);
	return err;
}
