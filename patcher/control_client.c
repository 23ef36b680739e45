// SPDX-License-Identifier: GPL-2.0-or-later
/* One connection: bytes in, cut into lines; lines out, as fast as they are taken. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_internal.h"

#define FIRST_SIZE 4096u
#define IN_SIZE	   (HVP_CONTROL_MAX_LINE + 1) /* a line and its newline */

struct client *client_new(int fd, uint64_t serial)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client) {
		client->fd = fd;
		client->serial = serial;
	}
	return client;
}

void client_free(struct client *client)
{
	close(client->fd);
	free(client->in);
	free(client->out);
	free(client);
}

/* Room for @need bytes in a buffer, at most @max. */
static bool grow(char **buffer, size_t *size, size_t need, size_t max)
{
	size_t bigger = *size ? *size : FIRST_SIZE;
	char *moved;

	if (need <= *size)
		return true;
	while (bigger < need)
		bigger *= 2;
	if (bigger > max)
		bigger = max;
	if (bigger < need)
		return false;
	moved = realloc(*buffer, bigger);
	if (!moved)
		return false;
	*buffer = moved;
	*size = bigger;
	return true;
}

/* An idle client costs no buffers. */
static void shrink(char **buffer, size_t *size)
{
	free(*buffer);
	*buffer = NULL;
	*size = 0;
}

void client_push(struct client *client, const char *line, size_t len)
{
	if (client->mute || client->dead)
		return;
	if (client->out_sent) {
		memmove(client->out, client->out + client->out_sent,
			client->out_len - client->out_sent);
		client->out_len -= client->out_sent;
		client->out_sent = 0;
	}
	/* No line at all: memory ran out, and an answer that is missing is worse than an end. */
	if (!line ||
	    !grow(&client->out, &client->out_size, client->out_len + len, HVP_CONTROL_MAX_UNSENT)) {
		client->dead = true;
		return;
	}
	memcpy(client->out + client->out_len, line, len);
	client->out_len += len;
}

void client_flush(struct client *client)
{
	ssize_t sent;

	while (client->out_sent < client->out_len && !client->mute) {
		sent = send(client->fd, client->out + client->out_sent,
			    client->out_len - client->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			client->out_sent += (size_t)sent;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			client->mute = true; /* what it sent before is still good */
	}
	client->out_sent = 0;
	client->out_len = 0;
	shrink(&client->out, &client->out_size);
}

void client_read(struct client *client)
{
	ssize_t got;

	if (client->in_at) {
		client->in_len -= client->in_at;
		memmove(client->in, client->in + client->in_at, client->in_len);
		client->in_at = 0;
	}
	if (client->eof || client->in_len == IN_SIZE)
		return;
	if (!grow(&client->in, &client->in_size, client->in_len + 1, IN_SIZE)) {
		client->dead = true;
		return;
	}
	got = recv(client->fd, client->in + client->in_len, client->in_size - client->in_len,
		   MSG_DONTWAIT);
	if (got > 0)
		client->in_len += (size_t)got;
	else if (!got)
		client->eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		client->dead = true;
}

static void complain(struct client *client, const char *code, const char *message)
{
	size_t len;
	char *line = control_error_line("null", code, message, &len);

	client_push(client, line, len);
	free(line);
}

/* All lines are taken; what is left is the beginning of one, if anything. */
static void no_line(struct client *client)
{
	if (client->in_len - client->in_at == IN_SIZE && !client->skipping) {
		complain(client, "too-large", "a request must not be longer than 65536 bytes");
		client->skipping = true;
	}
	if (client->eof && client->in_at < client->in_len && !client->skipping)
		complain(client, "parse-error",
			 "the connection ended in the middle of a request (no newline)");
	if (client->skipping || client->eof)
		client->in_at = client->in_len;
	if (client->in_at == client->in_len) {
		client->in_at = 0;
		client->in_len = 0;
		shrink(&client->in, &client->in_size);
	}
}

const char *client_line(struct client *client, size_t *len)
{
	char *line, *newline;

	/* Who does not take the answers has to wait with the questions. */
	if (client->dead || client->out_len - client->out_sent > BACKLOG)
		return NULL;
	for (;;) {
		line = newline = NULL;
		if (client->in_at < client->in_len) {
			line = client->in + client->in_at;
			newline = memchr(line, '\n', client->in_len - client->in_at);
		}
		if (!newline) {
			no_line(client);
			return NULL;
		}
		client->in_at += (size_t)(newline - line) + 1;
		if (!client->skipping)
			break;
		client->skipping = false;
	}
	*newline = '\0';
	*len = (size_t)(newline - line);
	return line;
}

bool client_done(const struct client *client)
{
	if (client->dead)
		return true;
	if (!client->eof || client->in_at < client->in_len)
		return false;
	/* It may have closed only its own half, and wait for answers and events. */
	return client->mute ||
	       (!client->calls && !client->subscribed && client->out_sent == client->out_len);
}
