// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu_world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../qemu/ivshmem.h"
#include "../../qemu/log.h"

struct world world;

static char dir[] = "/tmp/hvpoke-fuzz-XXXXXX";
static char state_dir[64];

/* ---- in the place of the system ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __real_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_process_memory(pid_t pid);
int __wrap_hvp_audit_open(struct hvp_audit **out, const struct hvp_audit_config *config,
			  const char *name);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	/* Whoever asks again and again until it is over waits too. */
	world.now_ns += 1000;
	*now = (struct timespec){.tv_sec = (time_t)(world.now_ns / 1000000000),
				 .tv_nsec = (long)(world.now_ns % 1000000000)};
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	int ready = __real_poll(fds, nr, 0);

	CHECK(timeout >= 0 || ready);
	if (!ready)
		world.now_ns += (uint64_t)timeout * 1000000;
	return ready;
}

/* In the place of qemu/log.c: put together, and dropped. */
void say(int priority, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	(void)priority;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
}

/* The VM's thread is this one: world_run(). */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	(void)attr;
	(void)run;
	(void)arg;
	*thread = pthread_self();
	return 0;
}

/* It has a thread of its own, and another life than the guest's. */
int __wrap_hvp_audit_open(struct hvp_audit **out, const struct hvp_audit_config *config,
			  const char *name)
{
	(void)out;
	(void)config;
	(void)name;
	return -ENOSYS;
}

static FILE *open_maps(void)
{
	FILE *maps = fmemopen(NULL, 1 << 16, "w+");
	struct stat st;

	CHECK(maps && !fstat(world.shm_file, &st));
	if (world.maps)
		fprintf(maps, "%.*s\n", 1 << 15, world.maps);
	else
		fprintf(maps, "%" PRIx64 "-%" PRIx64 " rw-%c %" PRIx64 " 00:01 42 /memfd:ram\n",
			WORLD_HVA, WORLD_HVA + WORLD_RAM, world.shared ? 's' : 'p', WORLD_HVA);
	fprintf(maps, "710000000000-710000100000 rw-s 00000000 00:01 %lu /memfd:hvpoke\n",
		(unsigned long)st.st_ino);
	rewind(maps);
	return maps;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char maps[64];

	snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)getpid());
	return strcmp(path, maps) != 0 ? __real_fopen(path, mode) : open_maps();
}

int __wrap_open(const char *path, int flags, ...)
{
	if (strstr(path, "/map_files/"))
		return fcntl(world.process, F_DUPFD_CLOEXEC, 0);
	return __real_open(path, flags, 0600);
}

int __wrap_process_memory(pid_t pid)
{
	(void)pid;
	return fcntl(world.process, F_DUPFD_CLOEXEC, 0);
}

/* ---- the monitor ---- */

void world_say(const char *text, size_t len)
{
	if (world.monitor >= 0 &&
	    __real_send(world.monitor, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) < (ssize_t)len)
		world.lied = true; /* cut off */
}

void world_hang_up(void)
{
	if (world.monitor >= 0)
		close(world.monitor);
	world.monitor = -1;
}

void world_answer(const char *value, int64_t id)
{
	char *line;
	int len = asprintf(&line, "{\"return\":%s,\"id\":%" PRId64 "}\r\n", value, id);

	CHECK(len > 0);
	world_say(line, (size_t)len);
	free(line);
}

static void say_line(const char *line)
{
	world_say(line, strlen(line));
}

static void answer_human(const char *command, int64_t id)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[512] = "\"\"";
	uint64_t gpa;

	if (!strcmp(command, "info mtree -f"))
		snprintf(text, sizeof(text),
			 "\"FlatView #0\\r\\n AS \\\"memory\\\", root: system\\r\\n Root memory "
			 "region: system\\r\\n  0000000000000000-%016x (prio 0, ram): pc.ram\\r\\n"
			 "  00000000fffc0000-00000000ffffffff (prio 0, rom): pc.bios\\r\\n\\r\\n\"",
			 WORLD_RAM - 1);
	else if (sscanf(command, "gpa2hva 0x%" SCNx64, &gpa) == 1 && gpa < WORLD_RAM)
		snprintf(text, sizeof(text),
			 "\"Host virtual address for 0x%" PRIx64 " (pc.ram) is 0x%" PRIx64
			 "\\r\\n\"",
			 gpa, (uint64_t)WORLD_HVA + gpa);
	else if (!strncmp(command, "gdbserver unix:", 15)) {
		snprintf(address.sun_path, sizeof(address.sun_path), "%s", command + 15);
		if (world.gdb >= 0)
			close(world.gdb);
		world.gdb = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(world.gdb >= 0);
		if (connect(world.gdb, (struct sockaddr *)&address, sizeof(address)))
			world.lied = true;
		if (world.running)
			say_line("{\"event\":\"STOP\"}\r\n");
		world.running = false;
	}
	world_answer(text, id);
}

static void run_guest(bool run)
{
	if (run != world.running)
		say_line(run ? "{\"event\":\"RESUME\"}\r\n" : "{\"event\":\"STOP\"}\r\n");
	world.running = run;
}

void world_answer_well(const char *command, int64_t id)
{
	static const struct {
		const char *command, *value;
	} fixed[] = {
		{"query-name", "{\"name\":\"fuzzed\"}"},
		{"query-version",
		 "{\"qemu\":{\"major\":7,\"minor\":2,\"micro\":0},\"package\":\"\"}"},
		{"query-cpus-fast", "[{},{}]"},
		{"query-memory-size-summary", "{\"base-memory\":262144}"},
		{"query-chardev", "[]"},
	};

	if (!strcmp(command, "query-kvm")) {
		world_answer(world.kvm ? "{\"enabled\":true}" : "{\"enabled\":false}", id);
		return;
	}
	if (!strcmp(command, "query-status")) {
		world_answer(world.running ? "{\"running\":true,\"status\":\"running\"}"
					   : "{\"running\":false,\"status\":\"paused\"}",
			     id);
		return;
	}
	world.stops += !strcmp(command, "stop");
	world.conts += !strcmp(command, "cont");
	if (!strcmp(command, "stop") || !strcmp(command, "cont"))
		run_guest(command[0] == 'c');
	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		if (!strcmp(command, fixed[i].command)) {
			world_answer(fixed[i].value, id);
			return;
		}
	}
	world_answer("{}", id);
}

static void on_command(const char *line, size_t len)
{
	char *text = fuzz_string((const uint8_t *)line, len);
	struct json_object *request = json_tokener_parse(text), *arguments, *word;
	const char *command;
	int64_t id;

	CHECK(json_object_is_type(request, json_type_object));
	command = json_object_get_string(json_object_object_get(request, "execute"));
	id = json_object_get_int64(json_object_object_get(request, "id"));
	arguments = json_object_object_get(request, "arguments");
	word = arguments ? json_object_object_get(arguments, "command-line") : NULL;
	if (word)
		command = json_object_get_string(word);
	if (!world.ask || !world.ask(command, id)) {
		if (word)
			answer_human(command, id);
		else
			world_answer_well(command, id);
	}
	json_object_put(request);
	free(text);
}

/* ---- the gdbstub ---- */

static void gdb_say(const char *text)
{
	if (world.gdb >= 0)
		__real_send(world.gdb, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* "M" writes to memory; all else is fine, too. */
static void write_memory(const char *payload)
{
	unsigned int len, byte;
	uint64_t gpa;
	int at = 0;

	if (sscanf(payload, "M%" SCNx64 ",%x:%n", &gpa, &len, &at) != 2 || !at)
		return;
	CHECK(gpa < WORLD_RAM && len <= WORLD_RAM - gpa && strlen(payload + at) == 2 * (size_t)len);
	/* A guest that runs does not see such a write as a whole. */
	CHECK(!world.running || world.lied);
	for (unsigned int i = 0; i < len; i++) {
		CHECK(sscanf(payload + at + 2 * (size_t)i, "%2x", &byte) == 1);
		world.ram[gpa + i] = (uint8_t)byte;
	}
}

static void on_packets(const char *bytes, size_t len)
{
	char *text = fuzz_string((const uint8_t *)bytes, len), *at = text, *end;

	while ((at = strchr(at, '$'))) {
		end = strchr(at, '#');
		CHECK(end && strlen(end) >= 3);
		*end = '\0';
		if (!world.packet || !world.packet(at + 1)) {
			write_memory(at + 1);
			gdb_say("+$OK#9a");
		}
		at = end + 3;
	}
	free(text);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	if (world.vm && fd == world.vm->qmp.fd) {
		if (world.monitor < 0) {
			errno = EPIPE;
			return -1;
		}
		on_command(bytes, len);
		return (ssize_t)len;
	}
	if (world.vm && fd == world.vm->text.gdb.fd) {
		on_packets(bytes, len);
		return (ssize_t)len;
	}
	return __real_send(fd, bytes, len, flags);
}

/* ---- its life ---- */

static void remove_directories(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command))
		return;
}

static void prepare(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	CHECK(mkdtemp(dir));
	atexit(remove_directories);
	snprintf(state_dir, sizeof(state_dir), "%s/state", dir);
	CHECK(!mkdir(state_dir, 0700) && !setenv("HVPOKE_RUNTIME_DIR", dir, 1));
}

/* The QEMU's address space, as a file: what is mapped there has the addresses as its offsets. */
static void make_process(void)
{
	uint64_t len = world.ram_file_len ? world.ram_file_len : WORLD_RAM;

	world.process = memfd_create("process", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(world.process >= 0 && !ftruncate(world.process, (off_t)(WORLD_HVA + len)) &&
	      !fcntl(world.process, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	world.ram = mmap(NULL, WORLD_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, world.process,
			 (off_t)WORLD_HVA);
	CHECK(world.ram != MAP_FAILED);
}

/* What hvpoked sends to the device: the third descriptor is the one of the memory. */
static int take_number(int *fd)
{
	int64_t number;
	struct iovec iov = {.iov_base = &number, .iov_len = sizeof(number)};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	struct cmsghdr *header;

	*fd = -1;
	if (recvmsg(world.device, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(number))
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return 0;
}

static void take_greeting(void)
{
	int fd;

	for (int i = 0; !take_number(&fd); i++) {
		if (i == 2)
			world.shm_file = fd;
		else if (fd >= 0)
			close(fd);
	}
	CHECK(world.shm_file >= 0);
	world.shm = mmap(NULL, WORLD_SHM, PROT_READ | PROT_WRITE, MAP_SHARED, world.shm_file, 0);
	CHECK(world.shm != MAP_FAILED);
}

void world_begin(void)
{
	/* The VM keeps a pointer to it. */
	static const struct vm_config config = {
		.state_dir = state_dir,
		.socket_dir = dir,
		.shm_size = WORLD_SHM,
		.finished = -1,
		.limits = HVP_LIMITS_DEFAULT,
	};
	int conn[2];

	prepare();
	world.vm = NULL;
	world.running = true;
	world.lied = false;
	world.stops = world.conts = 0;
	world.now_ns = 1000000000000;
	world.monitor = world.gdb = world.shm_file = -1;
	make_process();
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, conn));
	world.device = conn[0];
	world.vm = vm_new(&config, conn[1], getpid(), IVSHMEM_FIRST_ID);
	CHECK(world.vm);
	take_greeting();
}

void world_connect_monitor(void)
{
	int conn[2], room = 1 << 20;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, conn));
	setsockopt(conn[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	world_hang_up();
	world.monitor = conn[0];
	if (!world.ask || !world.ask("greeting", 0))
		say_line("{\"QMP\":{\"version\":{},\"capabilities\":[\"oob\"]}}\r\n");
	vm_tell(world.vm, VM_MONITOR, conn[1]);
	world_run();
}

void world_run(void)
{
	struct epoll_event event;

	for (int i = 0; i < 1000 && !world.vm->loop.stop; i++) {
		struct loop_watch *watch;

		if (epoll_wait(world.vm->loop.epoll, &event, 1, 0) != 1)
			return;
		watch = event.data.ptr;
		watch->ready(watch->ctx, event.events);
	}
	CHECK(world.vm->loop.stop);
}

static void close_all(void)
{
	const int fds[] = {world.monitor, world.device, world.gdb, world.process, world.shm_file};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void world_end(void)
{
	if (world.vm->ready)
		vm_monitor_lost(world.vm);
	vm_free(world.vm);
	world.vm = NULL;
	munmap(world.ram, WORLD_RAM);
	munmap(world.shm, WORLD_SHM);
	close_all();
}

/* ---- the agent ---- */

struct hvpoke_shm_mail *world_mail(void)
{
	return (void *)(world.shm + HVPOKE_SHM_MAIL);
}

struct hvpoke_cmd *world_cmd(void)
{
	return (void *)(world.shm + HVPOKE_SHM_CMD);
}

void world_submit(uint32_t cmd)
{
	uint64_t seq = hvpoke_shm_seq(world_mail()->state) + 1, one = 1;

	world_cmd()->version = HVPOKE_ABI_VERSION;
	world_cmd()->cmd = cmd;
	world_cmd()->reserved = 0;
	world_mail()->state = hvpoke_shm_word(seq, HVPOKE_SHM_SUBMITTED);
	CHECK(write(world.vm->doorbell, &one, sizeof(one)) == sizeof(one));
	world_run();
}

void *world_list(void)
{
	struct hvpoke_page_list *list = (void *)(world.shm + HVPOKE_SHM_ARENA);

	memset(list, 0, sizeof(*list));
	for (uint32_t i = 0; i < 4; i++)
		list->page_gpa[i] = HVPOKE_SHM_ARENA + (i + 1ull) * HVPOKE_PAGE_SIZE;
	return world.shm + HVPOKE_SHM_ARENA + HVPOKE_PAGE_SIZE;
}

void world_hello(void)
{
	struct hvpoke_hello *hello = &world_cmd()->hello;
	struct hvpoke_range *range = world_list();

	memset(hello, 0, sizeof(*hello));
	*range = (struct hvpoke_range){.gpa = WORLD_TEXT, .gva = WORLD_TEXT, .len = WORLD_LEN};
	hello->nr_ranges = 1;
	hello->ranges_gpa = HVPOKE_SHM_ARENA;
	world_mail()->session = 1;
	world_submit(HVPOKE_CMD_HELLO);
}
