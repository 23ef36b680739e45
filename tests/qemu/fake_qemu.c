// SPDX-License-Identifier: GPL-2.0-or-later
#include "fake_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define WAIT_MS 20000
#define LATE_MS 4000

static const uint8_t nop[HVPOKE_MAX_INSN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jmp[HVPOKE_MAX_INSN] = {0xe9, 0x03, 0x00, 0x00, 0x00};

/* ---- ivshmem, the client's side ---- */

/* One message, and its descriptor or -1. */
static int64_t receive_number(int conn, int *fd)
{
	int64_t number = 0;
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

	assert_int_equal(recvmsg(conn, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL), sizeof(number));
	*fd = -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return number;
}

void fake_qemu_map(struct fake_qemu *fake)
{
	struct stat st;

	assert_int_equal(fstat(fake->memory, &st), 0);
	fake->shm_size = st.st_size;
	fake->shm = mmap(NULL, fake->shm_size, PROT_READ | PROT_WRITE, MAP_SHARED, fake->memory, 0);
	assert_ptr_not_equal(fake->shm, MAP_FAILED);
}

void fake_qemu_take_device(struct fake_qemu *fake)
{
	int none;

	assert_int_equal(receive_number(fake->conn, &none), 0); /* the protocol's version */
	assert_int_equal(none, -1);
	fake->id = receive_number(fake->conn, &none);
	assert_in_range(fake->id, 1, 65535);
	assert_int_equal(none, -1);
	assert_int_equal(receive_number(fake->conn, &fake->memory), -1);
	assert_true(fake->memory >= 0);
	assert_int_equal(receive_number(fake->conn, &fake->doorbell), 0); /* the host's id */
	assert_true(fake->doorbell >= 0);
	assert_int_equal(receive_number(fake->conn, &fake->irq), fake->id);
	assert_true(fake->irq >= 0);
	fake_qemu_map(fake);
}

void fake_qemu_connect_device(struct fake_qemu *fake)
{
	fake->conn = host_connect(fake->host, "ivshmem");
	fake_qemu_take_device(fake);
}

/* ---- the monitor, QEMU's side ---- */

static void say_line(int fd, const char *line)
{
	/* hvpoked may have gone: that is part of some tests. */
	if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		return;
}

/* Takes @result. @then: what follows it at once. */
static void answer(int fd, struct json_object *id, struct json_object *result, const char *then)
{
	struct json_object *object = json_object_new_object();

	char *line;

	json_object_object_add(object, "return", result ? result : json_object_new_object());
	json_object_object_add(object, "id", json_object_get(id));
	assert_true(asprintf(&line, "%s\r\n%s",
			     json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN),
			     then) > 0);
	say_line(fd, line);
	free(line);
	json_object_put(object);
}

static struct json_object *parse(const char *text)
{
	return json_tokener_parse(text);
}

static struct json_object *human(struct fake_qemu *fake, const char *command)
{
	char text[512] = "unknown command\r\n";
	uint64_t gpa;

	if (!strcmp(command, "info mtree -f"))
		snprintf(text, sizeof(text),
			 "FlatView #0\r\n AS \"memory\", root: system\r\n"
			 " Root memory region: system\r\n"
			 "  0000000000000000-%016x (prio 0, ram): pc.ram\r\n"
			 "  00000000fffc0000-00000000ffffffff (prio 0, rom): pc.bios\r\n\r\n",
			 FAKE_RAM - 1);
	else if (sscanf(command, "gpa2hva 0x%" SCNx64, &gpa) == 1 && gpa < FAKE_RAM)
		snprintf(text, sizeof(text),
			 "Host virtual address for 0x%" PRIx64 " (pc.ram) is %p\r\n", gpa,
			 (void *)(fake->ram + gpa));
	return json_object_new_string(text);
}

/* What a stop does, and what goes wrong with it. True if it is to be answered. */
static bool stop(struct fake_qemu *fake)
{
	uint64_t running = hvpoke_shm_word(atomic_load(&fake->seq), HVPOKE_SHM_RUNNING);

	atomic_fetch_add(&fake->stops, 1);
	if (atomic_load(&fake->mood) == FAKE_SILENT)
		return false;
	if (atomic_load(&fake->mood) == FAKE_LATE)
		usleep(LATE_MS * 1000);
	if (atomic_load(&fake->mood) == FAKE_ABANDONS)
		assert_true(__atomic_compare_exchange_n(&fake_mail(fake)->state, &running,
							hvpoke_shm_word(fake->seq,
									HVPOKE_SHM_ABANDONED),
							false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	if (atomic_exchange(&fake->running, false))
		say_line(fake->qmp, "{\"event\":\"STOP\",\"timestamp\":{}}\r\n");
	if (atomic_load(&fake->mood) == FAKE_HANGS_UP) {
		shutdown(fake->qmp, SHUT_RDWR);
		return false;
	}
	if (atomic_load(&fake->mood) == FAKE_BABBLES) {
		say_line(fake->qmp, "{\"return\": [[[[\r\n");
		return false;
	}
	return true;
}

static const char *run_state(struct fake_qemu *fake)
{
	if (atomic_load(&fake->running))
		return "running";
	return atomic_load(&fake->mood) == FAKE_IO_ERROR ? "io-error" : "paused";
}

static void execute(struct fake_qemu *fake, const char *command, struct json_object *arguments,
		    struct json_object *id)
{
	struct json_object *result = NULL;
	const char *then = "";

	if (!strcmp(command, "query-name")) {
		result = json_object_new_object();
		json_object_object_add(result, "name", json_object_new_string(fake->name));
	} else if (!strcmp(command, "query-version")) {
		result = parse("{\"qemu\":{\"major\":7,\"minor\":2,\"micro\":0},\"package\":\"\"}");
	} else if (!strcmp(command, "query-kvm")) {
		result = parse("{\"enabled\":true,\"present\":true}");
	} else if (!strcmp(command, "query-cpus-fast")) {
		result = parse("[{},{}]");
	} else if (!strcmp(command, "query-memory-size-summary")) {
		result = parse("{\"base-memory\":1048576}");
	} else if (!strcmp(command, "query-status")) {
		result = json_object_new_object();
		json_object_object_add(result, "running",
				       json_object_new_boolean(atomic_load(&fake->running)));
		json_object_object_add(result, "status", json_object_new_string(run_state(fake)));
	} else if (!strcmp(command, "human-monitor-command")) {
		result = human(fake, json_object_get_string(
					     json_object_object_get(arguments, "command-line")));
	} else if (!strcmp(command, "stop")) {
		if (!stop(fake))
			return;
	} else if (!strcmp(command, "cont")) {
		atomic_fetch_add(&fake->conts, 1);
		if (!atomic_exchange(&fake->running, true))
			say_line(fake->qmp, "{\"event\":\"RESUME\",\"timestamp\":{}}\r\n");
		if (atomic_load(&fake->mood) == FAKE_PAUSED &&
		    atomic_exchange(&fake->running, false))
			then = "{\"event\":\"STOP\",\"timestamp\":{}}\r\n";
	}
	answer(fake->qmp, id, result, then);
}

static void *serve_monitor(void *arg)
{
	struct fake_qemu *fake = arg;
	FILE *in = fdopen(dup(fake->qmp), "r");
	struct json_object *request;
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, in) > 0) {
		request = parse(line);
		assert_non_null(request);
		execute(fake, json_object_get_string(json_object_object_get(request, "execute")),
			json_object_object_get(request, "arguments"),
			json_object_object_get(request, "id"));
		json_object_put(request);
	}
	free(line);
	fclose(in);
	return NULL;
}

void fake_qemu_answer(struct fake_qemu *fake, int fd)
{
	fake->qmp = fd;
	say_line(fake->qmp, "{\"QMP\":{\"version\":{},\"capabilities\":[\"oob\"]}}\r\n");
	assert_int_equal(pthread_create(&fake->thread, NULL, serve_monitor, fake), 0);
	fake->has_thread = true;
}

void fake_qemu_connect_monitor(struct fake_qemu *fake)
{
	fake_qemu_answer(fake, host_connect(fake->host, "qmp"));
}

void fake_qemu_operator(struct fake_qemu *fake, bool run)
{
	if (atomic_exchange(&fake->running, run) == run)
		return;
	say_line(fake->qmp, run ? "{\"event\":\"RESUME\",\"timestamp\":{}}\r\n"
				: "{\"event\":\"STOP\",\"timestamp\":{}}\r\n");
}

void fake_qemu_monitor(struct fake_qemu *fake)
{
	fake_qemu_connect_monitor(fake);
	WAIT_FOR(__atomic_load_n(&fake_host(fake)->session, __ATOMIC_SEQ_CST), WAIT_MS);
}

void fake_qemu_event(struct fake_qemu *fake, const char *event)
{
	char line[128];

	snprintf(line, sizeof(line), "{\"event\":\"%s\",\"timestamp\":{}}\r\n", event);
	say_line(fake->qmp, line);
}

void fake_qemu_hang_up(struct fake_qemu *fake)
{
	if (!fake->has_thread)
		return;
	shutdown(fake->qmp, SHUT_RDWR);
	pthread_join(fake->thread, NULL);
	close(fake->qmp);
	fake->has_thread = false;
}

void fake_qemu_init(struct fake_qemu *fake, const struct host *host, bool shared)
{
	memset(fake, 0, sizeof(*fake));
	fake->host = host;
	fake->name = "fake";
	fake->session = 1;
	fake->ram_fd = -1;
	atomic_init(&fake->running, true);
	if (shared) {
		fake->ram_fd = memfd_create("ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_int_equal(ftruncate(fake->ram_fd, FAKE_RAM), 0);
		assert_int_equal(fcntl(fake->ram_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	}
	fake->ram = mmap(NULL, FAKE_RAM, PROT_READ | PROT_WRITE,
			 shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fake->ram_fd, 0);
	assert_ptr_not_equal(fake->ram, MAP_FAILED);
}

void fake_qemu_open(struct fake_qemu *fake, const struct host *host, bool shared)
{
	fake_qemu_init(fake, host, shared);
	fake_qemu_connect_device(fake);
}

void fake_qemu_close(struct fake_qemu *fake)
{
	fake_qemu_hang_up(fake);
	close(fake->conn);
	munmap(fake->shm, fake->shm_size);
	close(fake->memory);
	close(fake->doorbell);
	close(fake->irq);
	munmap(fake->ram, FAKE_RAM);
	if (fake->ram_fd >= 0)
		close(fake->ram_fd);
}

/* ---- the agent ---- */

struct hvpoke_shm_host *fake_host(struct fake_qemu *fake)
{
	return (struct hvpoke_shm_host *)(fake->shm + HVPOKE_SHM_HOST);
}

struct hvpoke_shm_mail *fake_mail(struct fake_qemu *fake)
{
	return (struct hvpoke_shm_mail *)(fake->shm + HVPOKE_SHM_MAIL);
}

struct hvpoke_cmd *fake_command(struct fake_qemu *fake)
{
	return (struct hvpoke_cmd *)(fake->shm + HVPOKE_SHM_CMD);
}

uint32_t fake_state(struct fake_qemu *fake)
{
	return hvpoke_shm_state(__atomic_load_n(&fake_mail(fake)->state, __ATOMIC_SEQ_CST));
}

void fake_submit(struct fake_qemu *fake, uint32_t cmd)
{
	struct hvpoke_cmd *page = fake_command(fake);
	uint64_t one = 1;

	page->version = HVPOKE_ABI_VERSION;
	page->cmd = cmd;
	page->status = 0xffffffff;
	page->reserved = 0;
	atomic_fetch_add(&fake->seq, 1);
	__atomic_store_n(&fake_mail(fake)->state,
			 hvpoke_shm_word(atomic_load(&fake->seq), HVPOKE_SHM_SUBMITTED),
			 __ATOMIC_SEQ_CST);
	assert_int_equal(write(fake->doorbell, &one, sizeof(one)), sizeof(one));
}

uint32_t fake_wait(struct fake_qemu *fake)
{
	struct pollfd irq = {.fd = fake->irq, .events = POLLIN};
	uint64_t count;

	while (fake_state(fake) != HVPOKE_SHM_DONE && fake_state(fake) != HVPOKE_SHM_IDLE) {
		assert_int_equal(poll(&irq, 1, WAIT_MS), 1);
		assert_int_equal(read(fake->irq, &count, sizeof(count)), sizeof(count));
	}
	return fake_command(fake)->status;
}

uint32_t fake_command_run(struct fake_qemu *fake, uint32_t cmd)
{
	fake_submit(fake, cmd);
	return fake_wait(fake);
}

/* A list of one page of lists, as many as fit: enough here. */
static uint8_t *lay_out(struct fake_qemu *fake, uint32_t nr, uint64_t *list_at)
{
	struct hvpoke_page_list *list = (void *)(fake->shm + HVPOKE_SHM_ARENA);
	uint32_t pages = (nr + HVPOKE_ENTRIES_PER_PAGE - 1) / HVPOKE_ENTRIES_PER_PAGE;

	memset(list, 0, sizeof(*list));
	for (uint32_t i = 0; i < pages; i++)
		list->page_gpa[i] = HVPOKE_SHM_ARENA + (i + 1ull) * HVPOKE_PAGE_SIZE;
	*list_at = HVPOKE_SHM_ARENA;
	return fake->shm + HVPOKE_SHM_ARENA + HVPOKE_PAGE_SIZE;
}

void fake_hello(struct fake_qemu *fake)
{
	struct hvpoke_hello *hello = &fake_command(fake)->hello;
	struct hvpoke_range *range;

	memset(hello, 0, sizeof(*hello));
	range = (void *)lay_out(fake, 1, (uint64_t *)&hello->ranges_gpa);
	*range = (struct hvpoke_range){.gpa = FAKE_TEXT, .gva = FAKE_TEXT, .len = FAKE_SIZE};
	hello->nr_ranges = 1;
	strcpy(hello->kernel, "6.1-fake");
	strcpy(hello->agent, "1");
	__atomic_store_n(&fake_mail(fake)->session, fake->session, __ATOMIC_SEQ_CST);
	assert_int_equal(fake_command_run(fake, HVPOKE_CMD_HELLO), HVPOKE_OK);
}

struct hvpoke_entry *fake_entries(struct fake_qemu *fake)
{
	return (void *)(fake->shm + HVPOKE_SHM_ARENA + HVPOKE_PAGE_SIZE);
}

/* 64 bytes apart, and 2 bytes before a page's end: every 64th goes on behind it. */
static uint64_t site(uint32_t i)
{
	return FAKE_TEXT + 62 + (uint64_t)i * 64;
}

void fake_batch(struct fake_qemu *fake)
{
	struct hvpoke_batch *batch = &fake_command(fake)->batch;
	struct hvpoke_entry *entry;

	memset(batch, 0, sizeof(*batch));
	entry = (void *)lay_out(fake, FAKE_SITES, (uint64_t *)&batch->entries_gpa);
	batch->nr_entries = FAKE_SITES;
	for (uint32_t i = 0; i < FAKE_SITES; i++) {
		entry[i] = (struct hvpoke_entry){.gpa = site(i), .len = 5};
		if ((site(i) & HVPOKE_PAGE_MASK) + 5 > HVPOKE_PAGE_SIZE)
			entry[i].gpa2 = (site(i) | HVPOKE_PAGE_MASK) + 1;
		memcpy(entry[i].old_insn, nop, 5);
		memcpy(entry[i].new_insn, jmp, 5);
	}
	fake_text(fake->ram);
}

void fake_text(uint8_t *ram)
{
	for (uint32_t i = 0; i < FAKE_SITES; i++)
		memcpy(ram + site(i), nop, 5);
}

uint32_t fake_new_sites(const struct fake_qemu *fake)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < FAKE_SITES; i++) {
		if (!memcmp(fake->ram + site(i), jmp, 5))
			nr++;
		else
			assert_memory_equal(fake->ram + site(i), nop, 5);
	}
	return nr;
}

void fake_qemu_serve(struct fake_qemu *fake, const struct host *host, bool shared)
{
	fake_qemu_open(fake, host, shared);
	fake_qemu_monitor(fake);
	fake_hello(fake);
}
