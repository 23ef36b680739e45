// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The remote serial protocol, as far as it is needed (GDB manual, appendix "Remote
 * Serial Protocol"): packets "$payload#sum". QEMU's stub has no no-ack mode
 * (QStartNoAckMode gets the empty answer up to at least 7.2), but it does not insist
 * either: a new packet counts as the acknowledgement of its last answer. So
 * none is sent, and its own ('+') are skipped; on a UNIX socket nothing is lost.
 */
#include "gdbstub.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "fault.h"
#include "listen.h"
#include "log.h"

#define PACKET_MAX 96 /* of a write: address, length, GDB_WRITE_MAX bytes in hex */
#define OUT_SIZE   16384
#define OPEN_MS	   5000

/* The answers, as they come: a little state machine over the bytes. */
struct answers {
	enum { BETWEEN, INSIDE, SUM1, SUM2 } state;
	char kind[2]; /* the first two bytes of the payload */
	uint32_t len; /* of the payload */
	uint32_t ok, refused;
};

static void answer_end(struct answers *answers)
{
	if (answers->len == 2 && answers->kind[0] == 'O' && answers->kind[1] == 'K') {
		answers->ok++;
		fault("part-written");
	} else if (!answers->len || answers->kind[0] == 'E') {
		answers->refused++;
	}
	/* Anything else is the report of a stop, which nobody asked for. */
}

static void answer_byte(struct answers *answers, char byte)
{
	switch (answers->state) {
	case BETWEEN:
		if (byte == '$') {
			answers->state = INSIDE;
			answers->len = 0;
		}
		break;
	case INSIDE:
		if (byte == '#') {
			answers->state = SUM1;
			break;
		}
		if (answers->len < sizeof(answers->kind))
			answers->kind[answers->len] = byte;
		answers->len++;
		break;
	case SUM1: answers->state = SUM2; break;
	case SUM2:
		answers->state = BETWEEN;
		answer_end(answers);
		break;
	}
}

/* Take what has come. 0 or -ECONNRESET. */
static int read_answers(struct gdbstub *gdb, struct answers *answers)
{
	char in[4096];
	ssize_t got;

	for (;;) {
		got = recv(gdb->fd, in, sizeof(in), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (got <= 0)
			return -ECONNRESET;
		for (ssize_t i = 0; i < got; i++)
			answer_byte(answers, in[i]);
	}
}

static size_t packet(char *out, const char *payload)
{
	uint8_t sum = 0;

	for (const char *at = payload; *at; at++)
		sum += (uint8_t)*at;
	return sprintf(out, "$%s#%02x", payload, sum);
}

static size_t write_packet(char *out, const struct gdb_write *write)
{
	char payload[PACKET_MAX];
	size_t len = snprintf(payload, sizeof(payload), "M%" PRIx64 ",%x:", write->gpa, write->len);

	for (uint32_t i = 0; i < write->len; i++)
		len += snprintf(payload + len, sizeof(payload) - len, "%02x", write->bytes[i]);
	return packet(out, payload);
}

/* What is to be sent, made as there is room for it. */
struct outgoing {
	const struct gdb_write *write;
	uint32_t nr, made;
	size_t at, len;
	char buffer[OUT_SIZE];
};

static int send_some(struct gdbstub *gdb, struct outgoing *out)
{
	ssize_t sent;

	if (out->at == out->len) {
		out->at = out->len = 0;
		while (out->made < out->nr && OUT_SIZE - out->len > 2 * PACKET_MAX)
			out->len += write_packet(out->buffer + out->len, &out->write[out->made++]);
	}
	if (out->at == out->len)
		return 0;
	sent = send(gdb->fd, out->buffer + out->at, out->len - out->at,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	out->at += sent;
	return 0;
}

int gdbstub_write(struct gdbstub *gdb, const struct gdb_write *write, uint32_t nr, int timeout_ms)
{
	struct outgoing out = {.write = write, .nr = nr};
	int64_t deadline = deadline_in(timeout_ms);
	struct pollfd poll_fd = {.fd = gdb->fd};
	struct answers answers = {};
	int err = gdb->fd < 0 ? -ECONNRESET : 0;

	while (!err && answers.ok + answers.refused < nr) {
		err = send_some(gdb, &out);
		/* QEMU stops reading while we do not: always do both. */
		if (!err)
			err = read_answers(gdb, &answers);
		if (err || answers.ok + answers.refused >= nr)
			break;
		if (!deadline_left(deadline))
			return -ETIMEDOUT;
		poll_fd.events = POLLIN;
		if (out.at < out.len || out.made < out.nr)
			poll_fd.events |= POLLOUT;
		poll(&poll_fd, 1, deadline_left(deadline));
	}
	if (err)
		return err;
	return answers.refused ? -EREMOTEIO : 0;
}

int gdbstub_drain(struct gdbstub *gdb)
{
	struct answers answers = {};

	return gdb->fd < 0 ? -ECONNRESET : read_answers(gdb, &answers);
}

void gdbstub_close(struct gdbstub *gdb)
{
	if (gdb->fd >= 0)
		close(gdb->fd);
	gdb->fd = -1;
}

/*
 * Is somebody at the gdbstub? QEMU calls its end "gdb". What a former hvpoked, or a
 * connection that broke, has left there is taken away (*@leftover).
 */
static int check_free(struct qmp *qmp, const char *path, bool *leftover, struct message *message)
{
	struct json_object *list, *entry, *label, *file, *open;
	int err = qmp_call(qmp, "query-chardev", NULL, QMP_TIMEOUT_MS, &list, message);
	const char *name;

	if (err)
		return err;
	for (size_t i = 0; !err && json_object_is_type(list, json_type_array) &&
			   i < json_object_array_length(list);
	     i++) {
		entry = json_object_array_get_idx(list, i);
		label = json_object_object_get(entry, "label");
		file = json_object_object_get(entry, "filename");
		open = json_object_object_get(entry, "frontend-open");
		name = json_object_get_string(file);
		if (!label || !name || strcmp(json_object_get_string(label), "gdb") != 0)
			continue;
		*leftover = true;
		if (json_object_get_boolean(open) && strncmp(name, "disconnected:", 13) != 0 &&
		    !strstr(name, path))
			err = message_set(message, -EBUSY,
					  "QEMU's gdbstub is in use (%s), and without it no text "
					  "can be written under TCG: detach that debugger",
					  name);
	}
	json_object_put(list);
	return err;
}

/* Physical addresses, not those of whatever the first CPU has mapped. */
static int physical_mode(struct gdbstub *gdb)
{
	struct pollfd poll_fd = {.fd = gdb->fd, .events = POLLIN};
	int64_t deadline = deadline_in(OPEN_MS);
	struct answers answers = {};
	char out[PACKET_MAX];
	size_t len = packet(out, "Qqemu.PhyMemMode:1");
	int err = 0;

	if (send(gdb->fd, out, len, MSG_NOSIGNAL) != (ssize_t)len)
		return -ECONNRESET;
	while (!err && !answers.ok && !answers.refused) {
		if (!deadline_left(deadline))
			return -ETIMEDOUT;
		poll(&poll_fd, 1, deadline_left(deadline));
		err = read_answers(gdb, &answers);
	}
	if (err)
		return err;
	return answers.ok ? 0 : -EOPNOTSUPP;
}

static int accept_qemu(struct gdbstub *gdb, int listener, pid_t pid, struct message *message)
{
	struct pollfd poll_fd = {.fd = listener, .events = POLLIN};
	int64_t deadline = deadline_in(OPEN_MS);
	struct peer peer;
	int err;

	do {
		if (poll(&poll_fd, 1, deadline_left(deadline)) <= 0)
			return message_set(message, -ETIMEDOUT,
					   "QEMU's gdbstub did not connect to hvpoked");
		err = listen_accept(listener, &peer);
		if (!err && peer.pid != pid)
			close(peer.fd);
	} while (err || peer.pid != pid);
	gdb->fd = peer.fd;
	err = physical_mode(gdb);
	if (!err)
		return 0;
	gdbstub_close(gdb);
	return message_set(message, err, "QEMU's gdbstub does not take physical addresses: %s",
			   strerrordesc_np(-err));
}

/* "gdbserver @where". The human monitor has no errors, only words for them. */
static int gdbserver(struct qmp *qmp, const char *where, struct message *message)
{
	char *command, *said;
	int err;

	if (asprintf(&command, "gdbserver %s", where) < 0)
		return message_set(message, -ENOMEM, "out of memory");
	err = qmp_human(qmp, command, &said, message);
	free(command);
	if (err)
		return err;
	if (strstr(said, "Could not"))
		err = message_set(message, -EREMOTEIO, "QEMU's gdbstub did not start: %s", said);
	free(said);
	return err;
}

void gdbstub_abort(struct gdbstub *gdb, struct qmp *qmp)
{
	struct message message;

	if (gdb->fd < 0)
		return;
	gdbstub_close(gdb);
	if (gdbserver(qmp, "none", &message))
		say(LOG_ERR, "cannot stop QEMU's gdbstub: %s", message.text);
}

int gdbstub_open(struct gdbstub *gdb, struct qmp *qmp, pid_t pid, const char *path,
		 struct message *message)
{
	bool leftover = false;
	char where[128];
	int listener, err;

	err = check_free(qmp, path, &leftover, message);
	if (!err && leftover)
		err = gdbserver(qmp, "none", message);
	if (err)
		return err;
	listener = listen_at(path);
	if (listener < 0)
		return message_set(message, listener, "cannot listen at %s: %s", path,
				   strerrordesc_np(-listener));
	snprintf(where, sizeof(where), "unix:%s", path);
	err = gdbserver(qmp, where, message);
	if (!err)
		err = accept_qemu(gdb, listener, pid, message);
	unlink(path);
	close(listener);
	return err;
}
