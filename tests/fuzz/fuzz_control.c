// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control protocol's server, its methods, and a guest behind them that answers as the input
 * likes. The input is what clients send, but for some control characters:
 *
 *   01    what was said so far arrives (in the middle of a line, too)
 *   02 n  from now on another one of the clients speaks
 *   03    it closes its sending half
 *   04    it hangs up
 *   05    the guest takes the next request
 *   06 n  the guest completes it; the bits of n say how
 *   07 n  the agent says hello or goodbye, the VM is paused or resumed, an event is sent
 *   08    the client stops reading, or reads again
 *   0b n  n minutes pass
 *   0e n  the next byte n * 512 times
 *   0f    the next byte is sent as it is
 *
 * Every line of a client's gets one reply, whatever is in it, and the replies are good JSON with
 * messages that can be shown. (That nothing leaks is libFuzzer's to see.)
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "fuzz.h"
#include "service.h"
#include "text.h"

#define NR_CLIENTS 3
#define CMD	   0x1000
#define RAM	   0x4000
#define MAX_OUT	   (1u << 18)
#define MAX_ROUNDS 100000
#define HOUR_NS	   3600000000000ull

struct peer {
	int fd; /* -1: not connected */
	char *out;
	size_t out_len;
	char *in;
	size_t in_len;
	bool deaf, half_closed;
	size_t line_len; /* of the line that it is about to send */
	bool blank;	 /* nothing but white space is in it */
	unsigned int lines, replies;
};

static struct {
	struct hvp_service service; /* first: the methods' ctx */
	struct hvp_control *control;
	uint8_t *ram;
	bool paused;
	uint64_t fetched;
	uint64_t now_ns;
	struct peer peer[NR_CLIENTS];
	struct sockaddr_un address;
} f;

/* Time passes when the input says so. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){.tv_sec = (time_t)(f.now_ns / 1000000000),
				 .tv_nsec = (long)(f.now_ns % 1000000000)};
	return 0;
}

/* ---- the guest ---- */

static void *translate(void *ctx, gpa_t addr, uint64_t len)
{
	(void)ctx;
	return addr.addr < RAM && len <= RAM - addr.addr ? f.ram + addr.addr : NULL;
}

static int pause_all(void *ctx, struct hvp_pause_times *times)
{
	(void)ctx;
	(void)times;
	return -EBUSY;
}

static void resume_all(void *ctx, struct hvp_pause_times *times)
{
	(void)ctx;
	(void)times;
}

static int notify(void *ctx)
{
	(void)ctx;
	return 0;
}

static const struct hvp_backend backend = {
	.translate = translate,
	.pause = pause_all,
	.resume = resume_all,
	.notify = notify,
};

static struct hvpoke_cmd *command(uint32_t cmd)
{
	struct hvpoke_cmd *page = (void *)(f.ram + CMD);

	memset(page, 0, sizeof(*page));
	page->version = HVPOKE_ABI_VERSION;
	page->cmd = cmd;
	return page;
}

static void ring(void)
{
	hvp_guest_command(f.service.guest, gpa(CMD));
}

static void hello(uint8_t how)
{
	struct hvpoke_hello *hello = &command(HVPOKE_CMD_HELLO)->hello;

	hello->scope = how % 3;
	memset(hello->kernel, how, sizeof(hello->kernel));
	strcpy(hello->agent, "1");
	ring();
}

static void fetch(void)
{
	struct hvpoke_cmd *page = command(HVPOKE_CMD_FETCH);

	ring();
	if (page->status == HVPOKE_OK)
		f.fetched = page->fetch.id;
}

static void add_key(struct hvpoke_complete *answer, const char *name)
{
	struct hvpoke_key key = {.sites = 3, .size = (uint16_t)(sizeof(key) + 32)};
	uint8_t *record = answer->data + answer->data_len;

	memcpy(record, &key, sizeof(key));
	snprintf((char *)record + sizeof(key), 32, "%s", name);
	answer->data_len += key.size;
}

static void complete(uint8_t how)
{
	struct hvpoke_complete *answer = &command(HVPOKE_CMD_COMPLETE)->complete;

	answer->id = f.fetched;
	answer->error = how & 1 ? how >> 1 : 0;
	answer->bad_query = how & 2 ? how : HVPOKE_NO_INDEX;
	answer->fallback = how & 4 ? how % 32 : 0;
	answer->matched = how & 8 ? UINT64_MAX : how;
	answer->guest_ns = answer->matched;
	memset(answer->message, how & 16 ? how : 0, sizeof(answer->message));
	if (how & 32)
		add_key(answer, "sched_schedstats");
	if (how & 64)
		add_key(answer, how & 8 ? "\x1b[2J" : "usbcore:key");
	answer->more = how & 128 ? 5 : 0;
	if (how == 0xff)
		answer->data_len = 0x10000;
	ring();
}

static void happens(uint8_t what)
{
	switch (what % 6) {
	case 0: hello(what / 6); break;
	case 1:
		command(HVPOKE_CMD_BYE);
		ring();
		break;
	case 2: hvp_guest_reset(f.service.guest); break;
	case 3: f.paused = !f.paused; break;
	case 4: hvp_control_event(f.control, "state", json_object_new_object()); break;
	default: f.now_ns += 1000000; break;
	}
}

static bool is_paused(struct hvp_service *service)
{
	(void)service;
	return f.paused;
}

/* ---- the clients ---- */

static bool can_be_shown(const char *text)
{
	if (!hvp_utf8_valid(text, strlen(text)))
		return false;
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void check_error(struct json_object *error)
{
	struct json_object *code, *message;

	CHECK(json_object_object_get_ex(error, "code", &code));
	CHECK(json_object_object_get_ex(error, "message", &message));
	CHECK(json_object_is_type(code, json_type_string) && *json_object_get_string(code));
	CHECK(json_object_is_type(message, json_type_string) && *json_object_get_string(message) &&
	      can_be_shown(json_object_get_string(message)));
}

static void check_line(struct peer *peer, const char *line, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(HVP_CONTROL_MAX_DEPTH + 4);
	struct json_object *message, *body = NULL, *error = NULL;
	bool reply, result;

	CHECK(tokener);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	message = json_tokener_parse_ex(tokener, line, (int)len);
	CHECK(message && json_tokener_get_parse_end(tokener) == len);
	json_tokener_free(tokener);
	CHECK(json_object_is_type(message, json_type_object));
	reply = json_object_object_get_ex(message, "id", &body);
	result = json_object_object_get_ex(message, "result", &body);
	if (reply) {
		CHECK(result != json_object_object_get_ex(message, "error", &error));
		CHECK(!result || json_object_is_type(body, json_type_object));
		if (!result)
			check_error(error);
		peer->replies++;
	} else {
		CHECK(json_object_object_get_ex(message, "event", &body) &&
		      json_object_object_get_ex(message, "data", &body));
	}
	json_object_put(message);
}

static void hang_up(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	free(peer->in);
	free(peer->out);
	*peer = (struct peer){.fd = -1, .blank = true};
}

/* Take what came. False if there is nothing. */
static bool listen_to_server(struct peer *peer)
{
	char *newline;
	ssize_t got;
	size_t at = 0;

	if (peer->fd < 0 || peer->deaf)
		return false;
	if (!peer->in)
		peer->in = malloc(MAX_OUT);
	CHECK(peer->in && peer->in_len < MAX_OUT);
	got = recv(peer->fd, peer->in + peer->in_len, MAX_OUT - peer->in_len, MSG_DONTWAIT);
	if (got == 0 || (got < 0 && errno != EAGAIN))
		hang_up(peer);
	if (got <= 0)
		return false;
	peer->in_len += (size_t)got;
	while ((newline = memchr(peer->in + at, '\n', peer->in_len - at))) {
		check_line(peer, peer->in + at, (size_t)(newline - peer->in) - at);
		at = (size_t)(newline - peer->in) + 1;
	}
	peer->in_len -= at;
	memmove(peer->in, peer->in + at, peer->in_len);
	return true;
}

/*
 * Until nothing moves any more (what expires in one round is sent in the next). A server
 * that is never done would keep a core busy.
 */
static void server_works(void)
{
	struct pollfd waits = {.fd = hvp_control_fd(f.control), .events = POLLIN};
	int rounds = 0;

	for (int idle = 0; idle < 2; idle++) {
		CHECK(rounds++ < MAX_ROUNDS);
		hvp_control_work(f.control);
		for (int i = 0; i < NR_CLIENTS; i++)
			if (listen_to_server(&f.peer[i]))
				idle = -1;
		if (poll(&waits, 1, 0) > 0)
			idle = -1;
	}
}

static void say(struct peer *peer)
{
	size_t sent = 0;
	ssize_t now;

	if (peer->fd < 0 && peer->out_len) {
		peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(peer->fd >= 0);
		CHECK(!connect(peer->fd, (struct sockaddr *)&f.address, sizeof(f.address)));
	}
	while (peer->fd >= 0 && sent < peer->out_len) {
		now = send(peer->fd, peer->out + sent, peer->out_len - sent,
			   MSG_NOSIGNAL | MSG_DONTWAIT);
		if (now > 0)
			sent += (size_t)now;
		else
			break;
		server_works();
	}
	/* The server does not read from those who do not. */
	if (sent < peer->out_len)
		hang_up(peer);
	peer->out_len = 0;
	server_works();
}

static void put(struct peer *peer, char c)
{
	if (!peer->out)
		peer->out = malloc(MAX_OUT);
	CHECK(peer->out);
	if (peer->out_len == MAX_OUT || peer->half_closed)
		return;
	peer->out[peer->out_len++] = c;
	if (c == '\n') {
		peer->lines += !peer->blank || peer->line_len > HVP_CONTROL_MAX_LINE;
		peer->line_len = 0;
		peer->blank = true;
		return;
	}
	peer->line_len++;
	peer->blank &= c == ' ' || c == '\t' || c == '\r';
}

static void half_close(struct peer *peer)
{
	say(peer);
	if (peer->fd < 0 || peer->half_closed)
		return;
	shutdown(peer->fd, SHUT_WR);
	peer->half_closed = true;
	/* Half a line, even a blank one, is complained about. */
	peer->lines += peer->line_len != 0;
	server_works();
}

static void script(struct input *in)
{
	struct peer *peer = &f.peer[0];

	while (in->at < in->end) {
		uint8_t c = input_u8(in);
		unsigned int n;

		switch (c) {
		case 0x01: say(peer); break;
		case 0x02: peer = &f.peer[input_u8(in) % NR_CLIENTS]; break;
		case 0x03: half_close(peer); break;
		case 0x04: hang_up(peer); break;
		case 0x05: fetch(); break;
		case 0x06: complete(input_u8(in)); break;
		case 0x07: happens(input_u8(in)); break;
		case 0x08: peer->deaf = !peer->deaf; break;
		case 0x0b: f.now_ns += input_u8(in) * 60000000000ull; break;
		case 0x0e:
			n = input_u8(in) * 512u;
			c = input_u8(in);
			while (n--)
				put(peer, (char)c);
			break;
		case 0x0f: put(peer, (char)input_u8(in)); break;
		default: put(peer, (char)c);
		}
	}
}

/* All that was asked has been answered, at the latest when its time was over. */
static void check_replies(void)
{
	for (int i = 0; i < NR_CLIENTS; i++) {
		f.peer[i].deaf = false;
		say(&f.peer[i]);
		if (f.peer[i].line_len && !f.peer[i].half_closed)
			put(&f.peer[i], '\n');
		say(&f.peer[i]);
	}
	f.now_ns += 2 * HOUR_NS;
	server_works();
	for (int i = 0; i < NR_CLIENTS; i++)
		if (f.peer[i].fd >= 0)
			CHECK(f.peer[i].replies == f.peer[i].lines);
}

static const struct hvp_method methods[] = {HVP_SERVICE_METHODS, {NULL, NULL}};

static void remove_directory(void)
{
	*strrchr(f.address.sun_path, '/') = '\0';
	rmdir(f.address.sun_path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char dir[] = "/tmp/hvpoke-fuzz-XXXXXX";

	(void)argc;
	(void)argv;
	CHECK(mkdtemp(dir));
	f.address.sun_family = AF_UNIX;
	snprintf(f.address.sun_path, sizeof(f.address.sun_path), "%s/vm.sock", dir);
	f.ram = mmap(NULL, RAM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(f.ram != MAP_FAILED);
	atexit(remove_directory);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	f.now_ns = HOUR_NS;
	f.paused = false;
	f.fetched = 0;
	for (int i = 0; i < NR_CLIENTS; i++)
		f.peer[i] = (struct peer){.fd = -1, .blank = true};
	f.service = (struct hvp_service){
		.name = "vm",
		.guest = hvp_guest_new(&backend, NULL),
		.is_paused = is_paused,
	};
	CHECK(f.service.guest);
	CHECK(!hvp_control_open(&f.control, f.address.sun_path, "vm", methods, &f));
	hello(0);
	script(&in);
	check_replies();
	hvp_control_close(f.control);
	for (int i = 0; i < NR_CLIENTS; i++)
		hang_up(&f.peer[i]);
	hvp_service_release(&f.service);
	hvp_guest_free(f.service.guest);
	return 0;
}
