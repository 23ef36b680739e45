// SPDX-License-Identifier: GPL-2.0-or-later
/* The control protocol's server: its descriptors, its clients and its loop. */
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "control_internal.h"
#include "version.h"

/* What an epoll event is about: one of these, or a client's serial number. */
enum { ON_LISTENER, ON_WAKE, ON_TIMER, FIRST_SERIAL };

#define EVENTS		(FIRST_SERIAL + HVP_CONTROL_MAX_CLIENTS) /* all there can be */
#define ACCEPT_AGAIN_NS 100000000ull

static int watch(struct hvp_control *control, int op, int fd, uint32_t events, uint64_t what)
{
	struct epoll_event event = {.events = events, .data.u64 = what};

	return epoll_ctl(control->epoll_fd, op, fd, &event) ? -errno : 0;
}

static void update_interest(struct hvp_control *control, struct client *client)
{
	size_t unsent = client->out_len - client->out_sent;
	uint32_t wanted = 0;

	if (!client->eof && unsent <= BACKLOG)
		wanted |= EPOLLIN;
	if (unsent)
		wanted |= EPOLLOUT;
	if (wanted == client->interest)
		return;
	client->interest = wanted;
	if (watch(control, EPOLL_CTL_MOD, client->fd, wanted, client->serial))
		client->dead = true;
}

static bool greet(struct hvp_control *control, struct client *client)
{
	struct json_object *data = json_object_new_object();
	size_t len;
	char *line;

	hvp_json_add(data, "protocol", json_object_new_int(HVP_CONTROL_PROTOCOL));
	hvp_json_add(data, "server", json_object_new_string("hvpoke " HVP_VERSION));
	hvp_json_add(data, "vm", json_object_new_string(control->name));
	hvp_json_add(data, "pid", json_object_new_int(getpid()));
	line = control_event_line("hello", data, &len);
	client_push(client, line, len);
	free(line);
	return !client->dead;
}

/* Tell a peer why it is not served, if it can be told without waiting. */
static void turn_away(int fd, const char *code, const char *message)
{
	size_t len;
	char *line = control_error_line("null", code, message, &len);

	/* Its buffer is empty, so the line fits; if not, the end says enough. */
	if (line && send(fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		len = 0;
	free(line);
	close(fd);
}

static void add_client(struct hvp_control *control, int fd)
{
	struct client *client;
	struct ucred peer;
	const char *busy;

	if (!control_peer_allowed(fd, &peer)) {
		turn_away(fd, "forbidden", "only root and the VM's own user may control it");
		return;
	}
	busy = control_place(control, peer.uid, fd);
	if (busy) {
		turn_away(fd, "busy", busy);
		return;
	}
	client = client_new(fd, control->next_serial);
	if (!client) {
		close(fd);
		return;
	}
	client->peer = peer;
	if (!greet(control, client) || watch(control, EPOLL_CTL_ADD, fd, EPOLLIN, client->serial)) {
		client_free(client);
		return;
	}
	client->interest = EPOLLIN;
	client->heard_ns = hvp_now_ns();
	control->next_serial++;
	control->nr_clients++;
	LIST_INSERT_HEAD(&control->clients, client, link);
	client_flush(client);
	update_interest(control, client);
}

static void accept_clients(struct hvp_control *control)
{
	int i, fd;

	for (i = 0; i < HVP_CONTROL_MAX_CLIENTS; i++) {
		fd = accept4(control->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			add_client(control, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			/* Who waits stays readable: looking away saves a spinning core. */
			control->accept_ns = hvp_now_ns() + ACCEPT_AGAIN_NS;
			watch(control, EPOLL_CTL_MOD, control->listen_fd, 0, ON_LISTENER);
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

/* The one method that is the server's own. */
static void subscribe(struct hvp_control *control, struct client *client, struct hvp_call *call,
		      struct json_object *params)
{
	struct json_object *result;

	if (json_object_object_length(params)) {
		hvp_call_fail(call, "bad-params", NULL, "\"subscribe\" takes no parameters");
		return;
	}
	/* Those who wait for events may be quiet for ever: they must not take all places. */
	if (!client->subscribed && control->nr_subscribed == HVP_CONTROL_SUBSCRIBERS) {
		hvp_call_fail(call, "busy", NULL, "%d clients wait for events already",
			      HVP_CONTROL_SUBSCRIBERS);
		return;
	}
	control->nr_subscribed += !client->subscribed;
	client->subscribed = true;
	result = json_object_new_object();
	hvp_json_add(result, "subscribed", json_object_new_boolean(true));
	hvp_call_reply(call, result);
}

static void dispatch(struct hvp_control *control, struct client *client, struct hvp_call *call,
		     const struct request *request, struct json_object *params)
{
	const struct hvp_method *method;

	if (!strcmp(request->method, "subscribe")) {
		subscribe(control, client, call, params);
		return;
	}
	for (method = control->methods; method->name; method++) {
		if (!strcmp(request->method, method->name)) {
			method->handle(control->ctx, call, params);
			return;
		}
	}
	hvp_call_fail(call, "unknown-method", NULL, "there is no method \"%.64s\"",
		      request->method);
}

/* An id that is in use would make two answers look alike. */
static bool id_in_use(struct hvp_control *control, struct client *client, const char *id)
{
	struct hvp_call *call;

	LIST_FOREACH(call, &control->calls, link)
	if (call->client == client->serial && !strcmp(call->id, id))
		return true;
	return false;
}

static void refuse(struct client *client, const char *id, const char *code, const char *message)
{
	size_t len;
	char *line = control_error_line(id, code, message, &len);

	client_push(client, line, len);
	free(line);
}

static void handle_line(struct hvp_control *control, struct client *client, const char *line,
			size_t len)
{
	struct json_object *none = NULL;
	struct request request;
	struct hvp_call *call;

	if (strspn(line, " \t\r") == len)
		return;
	client->heard_ns = hvp_now_ns();
	request_parse(&request, line, len);
	if (!request.params)
		none = json_object_new_object();
	if (request.code) {
		refuse(client, request.id ? request.id : "null", request.code, request.message);
	} else if (id_in_use(control, client, request.id)) {
		refuse(client, "null", "bad-request",
		       "a request with the same \"id\" is still in progress");
	} else if (client->calls >= HVP_CONTROL_MAX_CALLS) {
		refuse(client, request.id, "busy",
		       "32 requests of this connection are in progress already");
	} else if (!request.params && !none) {
		refuse(client, request.id, "internal", "out of memory");
	} else {
		call = call_new(control, client, request.id);
		if (call) {
			request.id = NULL; /* the call's now */
			dispatch(control, client, call, &request,
				 request.params ? request.params : none);
		} else {
			client->dead = true;
		}
	}
	json_object_put(none);
	request_release(&request);
	control_deliver(control);
}

/* Take the lines that came and send what there is to send, until one of them has to wait. */
static void serve(struct hvp_control *control, struct client *client)
{
	const char *line;
	size_t len;

	do {
		while ((line = client_line(client, &len)))
			handle_line(control, client, line, len);
		if (!client->dead)
			client_flush(client);
	} while (client->in_at < client->in_len && !client->dead &&
		 client->out_sent == client->out_len &&
		 memchr(client->in + client->in_at, '\n', client->in_len - client->in_at));
}

static void on_client(struct hvp_control *control, uint64_t serial, uint32_t events)
{
	struct client *client;

	LIST_FOREACH(client, &control->clients, link)
	if (client->serial == serial)
		break;
	if (!client)
		return;
	/* Both halves are closed. What it asked for before that is still done. */
	if (events & (EPOLLHUP | EPOLLERR))
		client->mute = true;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		client_read(client);
}

static void serve_clients(struct hvp_control *control)
{
	struct client *client, *next;

	LIST_FOREACH(client, &control->clients, link)
	serve(control, client);
	control_deliver(control);
	for (client = LIST_FIRST(&control->clients); client; client = next) {
		next = LIST_NEXT(client, link);
		if (!client->dead)
			client_flush(client);
		if (!client_done(client))
			update_interest(control, client);
		if (client_done(client))
			control_drop(control, client);
	}
}

static void run_timers(struct hvp_control *control)
{
	struct itimerspec timer = {0};
	uint64_t next = control_expire(control, false);

	if (control->accept_ns && control->accept_ns <= hvp_now_ns()) {
		control->accept_ns = 0;
		watch(control, EPOLL_CTL_MOD, control->listen_fd, EPOLLIN, ON_LISTENER);
	}
	if (control->accept_ns && (!next || control->accept_ns < next))
		next = control->accept_ns;
	if (next == control->armed_ns)
		return;
	control->armed_ns = next;
	timer.it_value.tv_sec = (time_t)(next / 1000000000);
	timer.it_value.tv_nsec = (long)(next % 1000000000);
	timerfd_settime(control->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

void hvp_control_work(struct hvp_control *control)
{
	struct epoll_event events[EVENTS];
	int i, nr = epoll_wait(control->epoll_fd, events, EVENTS, 0);
	bool knocked = false;

	for (i = 0; i < nr; i++) {
		if (events[i].data.u64 == ON_LISTENER)
			knocked = true;
		else if (events[i].data.u64 == ON_TIMER)
			drain(control->timer_fd);
		else if (events[i].data.u64 != ON_WAKE)
			on_client(control, events[i].data.u64, events[i].events);
	}
	/* Before the outbox is emptied: what is posted from now on wakes us again. */
	drain(control->wake_fd);
	serve_clients(control);
	/* Now, when those who left have made room for those who come. */
	if (knocked)
		accept_clients(control);
	run_timers(control);
}

int hvp_control_fd(struct hvp_control *control)
{
	return control->epoll_fd;
}

static int open_descriptors(struct hvp_control *control)
{
	control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	control->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (control->epoll_fd < 0 || control->wake_fd < 0 || control->timer_fd < 0)
		return -errno;
	control->listen_fd = control_listen(control->path, &control->inode);
	if (control->listen_fd < 0)
		return control->listen_fd;
	if (watch(control, EPOLL_CTL_ADD, control->listen_fd, EPOLLIN, ON_LISTENER) ||
	    watch(control, EPOLL_CTL_ADD, control->wake_fd, EPOLLIN, ON_WAKE) ||
	    watch(control, EPOLL_CTL_ADD, control->timer_fd, EPOLLIN, ON_TIMER))
		return -errno;
	return 0;
}

static void close_descriptors(struct hvp_control *control)
{
	int fds[] = {control->epoll_fd, control->wake_fd, control->timer_fd, control->listen_fd};
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Only while the socket there is the one that we made. */
static void unlink_own(struct hvp_control *control)
{
	struct stat now;

	if (!lstat(control->path, &now) && now.st_dev == control->inode.st_dev &&
	    now.st_ino == control->inode.st_ino)
		unlink(control->path);
}

int hvp_control_open(struct hvp_control **out, const char *path, const char *name,
		     const struct hvp_method *methods, void *ctx)
{
	struct hvp_control *control = calloc(1, sizeof(*control));
	int err = -ENOMEM;

	if (!control)
		return err;
	atomic_init(&control->refs, 1);
	pthread_mutex_init(&control->lock, NULL);
	LIST_INIT(&control->clients);
	LIST_INIT(&control->calls);
	STAILQ_INIT(&control->outbox);
	control->epoll_fd = control->wake_fd = control->timer_fd = control->listen_fd = -1;
	control->methods = methods;
	control->ctx = ctx;
	control->next_serial = FIRST_SERIAL;
	control->max_fd = control_max_fd();
	control->path = strdup(path);
	control->name = strdup(name);
	if (control->path && control->name)
		err = open_descriptors(control);
	if (err) {
		if (control->listen_fd >= 0)
			unlink_own(control);
		close_descriptors(control);
		control_unref(control);
		return err;
	}
	*out = control;
	return 0;
}

void hvp_control_close(struct hvp_control *control)
{
	struct client *client;

	unlink_own(control);
	control_deliver(control);
	/* Here, where the calls cannot go away yet: see control_expire(). */
	control_expire(control, true);
	pthread_mutex_lock(&control->lock);
	control->closed = true;
	pthread_mutex_unlock(&control->lock);
	control_deliver(control);
	while ((client = LIST_FIRST(&control->clients))) {
		LIST_REMOVE(client, link);
		client_flush(client);
		client_free(client);
	}
	close_descriptors(control);
	control_unref(control);
}
