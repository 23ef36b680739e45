// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client's end of the control protocol, with a server that says what the input does, in
 * pieces that a byte 01 ends. Nobody ever waits: where the client would, the next piece comes, and
 * when there is none any more, the time is over.
 *
 * A call ends with an error, or with exactly one object.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "fuzz.h"

static struct sockaddr_un address;
static int listener, server = -1;
static const uint8_t *at, *end;
static uint64_t now_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __real_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now_ns += 1000;
	*now = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000),
				 .tv_nsec = (long)(now_ns % 1000000000)};
	return 0;
}

static bool say_piece(void)
{
	const uint8_t *stop = at < end ? memchr(at, 0x01, (size_t)(end - at)) : NULL;

	if (server < 0 || at >= end)
		return false;
	if (!stop)
		stop = end;
	if (stop > at)
		send(server, at, (size_t)(stop - at), MSG_NOSIGNAL | MSG_DONTWAIT);
	at = stop + 1;
	return true;
}

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	CHECK(timeout >= 0);
	if (!__real_poll(fds, nr, 0) && !say_piece())
		now_ns += (uint64_t)timeout * 1000000;
	return __real_poll(fds, nr, 0);
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int err = __real_connect(fd, addr, len);

	if (!err) {
		server = accept(listener, NULL, NULL);
		CHECK(server >= 0);
		say_piece();
	}
	return err;
}

static void remove_directory(void)
{
	unlink(address.sun_path);
	*strrchr(address.sun_path, '/') = '\0';
	rmdir(address.sun_path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char dir[] = "/tmp/hvpoke-fuzz-XXXXXX";

	(void)argc;
	(void)argv;
	CHECK(mkdtemp(dir));
	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/vm.sock", dir);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(listener >= 0);
	CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!listen(listener, 1));
	atexit(remove_directory);
	return 0;
}

static int call(struct hvp_client *client, const char *method)
{
	struct json_object *result = NULL, *error = NULL;
	int err = hvp_client_call(client, method, NULL, 5000, &result, &error);

	CHECK(err <= 0);
	CHECK(!err == (result || error) && !(result && error));
	CHECK(err || json_object_is_type(result ? result : error, json_type_object));
	json_object_put(result);
	json_object_put(error);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *message;
	struct hvp_client *client;

	at = data;
	end = data + size;
	now_ns = 1000000000000;
	if (!hvp_client_connect(&client, address.sun_path, 5000)) {
		CHECK(json_object_is_type(hvp_client_greeting(client), json_type_object));
		while (!call(client, "info"))
			;
		while (!hvp_client_receive(client, 10, &message)) {
			CHECK(json_object_is_type(message, json_type_object));
			json_object_put(message);
		}
		hvp_client_close(client);
	}
	if (server >= 0)
		close(server);
	server = -1;
	return 0;
}
