/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_CLIENT_H
#define HVP_CLIENT_H

#include <stdint.h>
#include <json-c/json.h>

/* The client's end of the control protocol (proto/control.md). One thread at a time. */
struct hvp_client;

/*
 * Connect to the server at @path and wait for its greeting, @timeout_ms in
 * all. Returns 0, or a negative errno: -ENOENT no socket there, -ECONNREFUSED
 * nobody listens on it, -ETIMEDOUT no greeting in time, -EPROTONOSUPPORT
 * another protocol version, -EPROTO not a control server, -EACCES refused by
 * the server, -EBUSY it has too many clients, ...
 */
int hvp_client_connect(struct hvp_client **out, const char *path, int timeout_ms);
void hvp_client_close(struct hvp_client *client);
/* The greeting's data (borrowed). */
struct json_object *hvp_client_greeting(struct hvp_client *client);

/*
 * Send a request with an id of the client's own, which is returned (> 0), or
 * a negative errno. Takes @params, which may be NULL. A server that has hung up is no
 * error here: hvp_client_answer() gives what it said before that, such as "busy", or -ECONNRESET.
 */
int64_t hvp_client_send(struct hvp_client *client, const char *method, struct json_object *params,
			int timeout_ms);
/*
 * The next message, whatever it is; the caller puts it. 0, -ETIMEDOUT,
 * -ECONNRESET if the server hung up, -EPROTO if what came is not the protocol.
 * A timeout loses nothing: call again.
 */
int hvp_client_receive(struct hvp_client *client, int timeout_ms, struct json_object **message);
/*
 * The answer to request @id: 0 with exactly one of @result and @error set (the
 * caller puts it), or as above. Events and other answers on the way are dropped.
 */
int hvp_client_answer(struct hvp_client *client, int64_t id, int timeout_ms,
		      struct json_object **result, struct json_object **error);
/* Both in one. */
int hvp_client_call(struct hvp_client *client, const char *method, struct json_object *params,
		    int timeout_ms, struct json_object **result, struct json_object **error);

#endif /* HVP_CLIENT_H */
