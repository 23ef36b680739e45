/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_CONTROL_INTERNAL_H
#define HVP_CONTROL_INTERNAL_H

/*
 * What the files of the control server share.
 *
 *   control.c		the server: its descriptors, its clients, its loop
 *   control_socket.c	the listening socket in the file system
 *   control_places.c	who may be connected at the same time
 *   control_client.c	one connection: lines in, lines out
 *   control_request.c	one line: is it a request?
 *   control_call.c	answers and events, on their way to the clients
 *
 * All but the outbox belongs to the server's thread: the one that calls
 * hvp_control_work().
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "control.h"
#include "json_build.h"

/* A client with more than this unsent is not read from until it catches up. */
#define BACKLOG (64u * 1024)

/* One line on its way to a client, or to all that subscribed. */
struct message {
	STAILQ_ENTRY(message) link;
	struct hvp_call *call; /* what it answers; NULL: an event */
	char *line;	       /* with its newline; NULL if memory ran out */
	size_t len;
};

struct hvp_call {
	LIST_ENTRY(hvp_call) link;   /* in control->calls */
	struct hvp_control *control; /* holds a reference */
	uint64_t client;	     /* serial number; the client may be gone */
	struct ucred peer;	     /* that client */
	char *id;		     /* as JSON text */
	struct message answer;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	void (*expired)(struct hvp_call *call, void *arg);
	void *arg;
};

struct client {
	LIST_ENTRY(client) link;
	int fd;
	struct ucred peer;
	uint64_t serial;
	uint64_t heard_ns;  /* when it came, last said a whole line, or was last answered */
	uint32_t interest;  /* the epoll events that are armed */
	unsigned int calls; /* requests not answered yet */
	char *in;	    /* input not taken yet: in[in_at..in_len) */
	size_t in_at, in_len, in_size;
	char *out; /* output not sent yet: out[out_sent..out_len) */
	size_t out_sent, out_len, out_size;
	bool subscribed;
	bool skipping; /* the rest of a line that was too long */
	bool eof;      /* nothing more will come */
	bool mute;     /* nobody reads what we send */
	bool dead;     /* to be released */
};

struct hvp_control {
	atomic_uint refs; /* the owner's, and one for each call */
	int epoll_fd;
	int listen_fd;
	int wake_fd;  /* eventfd: the outbox is not empty */
	int timer_fd; /* the earliest deadline */
	uint64_t armed_ns;
	uint64_t accept_ns; /* out of descriptors: try again then; 0: accepting */
	char *path;
	struct stat inode; /* of the socket, so that only our own is unlinked */
	char *name;
	const struct hvp_method *methods;
	void *ctx;
	uint64_t next_serial;
	unsigned int nr_clients;
	unsigned int nr_subscribed;
	int max_fd; /* the largest descriptor that a client may get */
	LIST_HEAD(, client) clients;
	LIST_HEAD(, hvp_call) calls;

	pthread_mutex_t lock; /* innermost: nothing else is taken under it */
	STAILQ_HEAD(, message) outbox;
	size_t outbox_events; /* bytes of events in it */
	bool closed;
};

/* control_socket.c */
int control_listen(const char *path, struct stat *inode);
/* May whoever is at @fd control the VM? *@peer: who it is. */
bool control_peer_allowed(int fd, struct ucred *peer);

/* control_places.c */
int control_max_fd(void);
/*
 * Is there a place for one more, of @uid? NULL, and a client that was quiet may be gone for it;
 * or why not, for a person.
 */
const char *control_place(struct hvp_control *control, uid_t uid, int fd);
void control_drop(struct hvp_control *control, struct client *client);

/* control_request.c */
struct request {
	struct json_object *root; /* holds the next two */
	const char *method;
	struct json_object *params; /* NULL if there are none */
	char *id;		    /* as JSON text; NULL: none, or no valid one */
	const char *code;	    /* what is wrong, or NULL */
	char message[192];
};
void request_parse(struct request *request, const char *line, size_t len);
void request_release(struct request *request);

/* control_client.c */
struct client *client_new(int fd, uint64_t serial);
void client_free(struct client *client);
/* Append to the output; a client that has too much unsent dies. */
void client_push(struct client *client, const char *line, size_t len);
void client_flush(struct client *client);
/* Read what there is, up to one buffer full. */
void client_read(struct client *client);
/* The next whole line (good until client_read()), or NULL. @len: without the newline. */
const char *client_line(struct client *client, size_t *len);
/* Nothing more will happen to this client. */
bool client_done(const struct client *client);

/* control_call.c */
struct hvp_call *call_new(struct hvp_control *control, struct client *client, char *id);
void call_free(struct hvp_call *call);
void control_unref(struct hvp_control *control);
/* Move the outbox to the clients. */
void control_deliver(struct hvp_control *control);
/* Call expired() where it is due; all: whether due or not. Returns the next deadline, or 0. */
uint64_t control_expire(struct hvp_control *control, bool all);
/* An error that answers no call: @id is JSON text. Returns a line from malloc(), or NULL. */
char *control_error_line(const char *id, const char *code, const char *message, size_t *len);
char *control_event_line(const char *event, struct json_object *data, size_t *len);

#endif /* HVP_CONTROL_INTERNAL_H */
