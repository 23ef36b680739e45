/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SOAK_CLIENTS_H
#define TESTS_SOAK_CLIENTS_H

#include <stdbool.h>

#include <json-c/json.h>

/*
 * Clients of a VM's control socket (proto/control.md), of all manners. What must not happen
 * fails the test.
 */

/*
 * One request on a connection of its own. The result, which the caller puts, or NULL with the
 * error's code in @code, "gone" if nobody is there. Takes @params.
 */
#define CLIENT_CODE 32
struct json_object *client_call(const char *path, const char *method, struct json_object *params,
				char code[CLIENT_CODE]);
/* The same, which must succeed; the result is put. */
void client_do(const char *path, const char *method, struct json_object *params);
/* Wait until an agent is registered there. */
void client_wait_for_agent(const char *path);
/* As somebody who looks at the VM once a minute. */
void client_look(const char *path);
/* Three changes of a queue, as one request. */
void client_queue(const char *path);
/* An operator's pause, in which the guest cannot be asked. */
void client_pause(const char *path);
/* Asks for something that the guest must answer, and hangs up. */
void client_hang_up(const char *path);
/* Lines that are no requests, each of which gets an error; then one that is. Their number. */
unsigned int client_babble(const char *path);
/* Asks, and does not read the answers: its connection. Later it does, and hangs up. */
int client_dawdle(const char *path);
void client_catch_up(int fd);
/* More connections than there may be; then all of them go. Their number. */
unsigned int client_crowd(const char *path);

#endif /* TESTS_SOAK_CLIENTS_H */
