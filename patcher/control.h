/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_CONTROL_H
#define HVP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

/* The protocol's version and limits, as proto/control.md promises them. */
#define HVP_CONTROL_PROTOCOL	1
#define HVP_CONTROL_MAX_LINE	(64u * 1024) /* bytes of a request without its newline */
#define HVP_CONTROL_MAX_DEPTH	16	     /* nested arrays and objects */
#define HVP_CONTROL_MAX_CLIENTS 64
#define HVP_CONTROL_FOR_ROOT	8	       /* of these, if the server is somebody else's */
#define HVP_CONTROL_SUBSCRIBERS 32	       /* of these, so many may wait for events */
#define HVP_CONTROL_QUIET_MS	5000	       /* one that is quiet as long may have to make room */
#define HVP_CONTROL_SPARE_FDS	64	       /* descriptors that no client gets */
#define HVP_CONTROL_MAX_CALLS	32	       /* requests in flight of one client */
#define HVP_CONTROL_MAX_UNSENT	(1024u * 1024) /* bytes; a client that reads less is dropped */

/*
 * The control protocol's server (proto/control.md): one UNIX socket, any
 * number of clients, newline-delimited JSON. It runs no thread: put the epoll
 * descriptor of hvp_control_fd() into an event loop and call
 * hvp_control_work() when it is readable.
 */
struct hvp_control;
struct hvp_call; /* one request that waits for its reply */

/*
 * A method gets its call and the request's params (borrowed; never NULL, an
 * empty object if there were none). It answers with exactly one of
 * hvp_call_reply() and hvp_call_fail(), now or later, from any thread (the
 * server wakes itself). The call is gone after that. If its client has hung
 * up meanwhile, the answer is dropped quietly.
 */
struct hvp_method {
	const char *name;
	void (*handle)(void *ctx, struct hvp_call *call, struct json_object *params);
};

void hvp_call_reply(struct hvp_call *call, struct json_object *result); /* takes result */
/* Who asks: as the kernel said when the client connected (SO_PEERCRED). */
void hvp_call_peer(const struct hvp_call *call, uint32_t *uid, int32_t *pid);
/*
 * @code: a stable word for programs (proto/control.md lists them); @data may be
 * NULL, else taken.
 */
void hvp_call_fail(struct hvp_call *call, const char *code, struct json_object *data,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Give an unanswered call @ms from now. When they are over, or the server is
 * closed, @expired is called on the server's thread, and either answers the
 * call or leaves it to another thread that is just about to answer, or just
 * did: which of the two, @expired has to find out. Only from the method's
 * handler, before another thread gets to know the call.
 * @arg is from malloc() and freed with the call, also if @expired never runs.
 */
void hvp_call_set_timeout(struct hvp_call *call, unsigned int ms,
			  void (*expired)(struct hvp_call *call, void *arg), void *arg);

/*
 * Listen at @path (mode 0600; a dead socket there is replaced, a live one is
 * -EADDRINUSE). @name is the VM's, for the greeting. @methods ends with a NULL
 * name and outlives the server. Peers that are neither root nor our own user
 * are refused (SO_PEERCRED).
 * Returns 0 or a negative errno.
 */
int hvp_control_open(struct hvp_control **out, const char *path, const char *name,
		     const struct hvp_method *methods, void *ctx);
int hvp_control_fd(struct hvp_control *control);
/* Do what can be done without blocking. */
void hvp_control_work(struct hvp_control *control);
/* Send an event to every client that subscribed; any thread. Takes @data. */
void hvp_control_event(struct hvp_control *control, const char *event, struct json_object *data);
/*
 * Close and unlink. Calls with a timeout expire now; others that are still
 * open must be answered some time (that is dropped), or they leak.
 */
void hvp_control_close(struct hvp_control *control);

#endif /* HVP_CONTROL_H */
