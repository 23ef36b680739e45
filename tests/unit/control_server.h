/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TEST_CONTROL_SERVER_H
#define TEST_CONTROL_SERVER_H

/*
 * A control server in a thread of the test, and clients that are nothing but a
 * socket, so that they can be as rude as they like.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control.h"

#define ANSWER_S 10 /* longer than this is a hang */

struct server {
	char dir[64];
	char path[96];
	struct hvp_control *control;
	pthread_t thread;
	int stop;
};

void server_dir(struct server *server);
void server_run(struct server *server);
void server_start(struct server *server, const struct hvp_method *methods, void *ctx);
/* End the loop only, as a VMM does before it closes. */
void server_halt(struct server *server);
void server_stop(struct server *server);
/* Connect, without waiting for the greeting. */
int raw_connect(const struct server *server);
/* A line without its newline, from malloc(); NULL at the end of the connection. Fails on a hang. */
char *raw_line(int fd);
/* The next message; NULL at the end of the connection. */
struct json_object *raw_message(int fd);
void raw_send(int fd, const void *data, size_t len);
void raw_say(int fd, const char *line);
/* Connect and take the greeting. */
int raw_open(const struct server *server);
/* The next message must be a reply to @id (as JSON text) with error @code; NULL: a result. */
void expect_reply(int fd, const char *id, const char *code);
/* The connection must end, maybe after lines that are of no interest. */
void expect_end(int fd);
/* The server still serves: the test of every attack. */
void expect_alive(const struct server *server);
/* A method that answers with its params. */
void echo(void *ctx, struct hvp_call *call, struct json_object *params);

#endif /* TEST_CONTROL_SERVER_H */
