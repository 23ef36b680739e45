// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who gets a place at the server, and who has to make room: nobody can keep all others out by
 * connecting, nor use up the process's descriptors.
 */
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "control_internal.h"

#define QUIET_NS (HVP_CONTROL_QUIET_MS * 1000000ull)

/* The kernel gives the lowest descriptor that is free: so the largest tells how many there are. */
int control_max_fd(void)
{
	struct rlimit limit;
	rlim_t spare = HVP_CONTROL_SPARE_FDS;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	if (spare > limit.rlim_cur / 4)
		spare = limit.rlim_cur / 4;
	return (int)(limit.rlim_cur - spare) - 1;
}

void control_drop(struct hvp_control *control, struct client *client)
{
	LIST_REMOVE(client, link);
	control->nr_clients--;
	if (client->subscribed)
		control->nr_subscribed--;
	client_free(client);
}

/* The one that has been quiet the longest, and waits for nothing. NULL: they are all busy. */
static struct client *find_quiet(struct hvp_control *control)
{
	uint64_t now = hvp_now_ns();
	struct client *client, *found = NULL;

	LIST_FOREACH(client, &control->clients, link)
	{
		if (client->calls || client->subscribed || now - client->heard_ns < QUIET_NS)
			continue;
		if (!found || client->heard_ns < found->heard_ns)
			found = client;
	}
	return found;
}

static bool make_room(struct hvp_control *control)
{
	struct client *client = find_quiet(control);
	size_t len;
	char *line;

	if (!client)
		return false;
	line = control_error_line("null", "busy",
				  "this connection was idle, and somebody else needs its place",
				  &len);
	client_push(client, line, len);
	free(line);
	client_flush(client);
	control_drop(control, client);
	return true;
}

const char *control_place(struct hvp_control *control, uid_t uid, int fd)
{
	unsigned int places = HVP_CONTROL_MAX_CLIENTS;

	if (fd > control->max_fd)
		return "this process is short of descriptors; try again later";
	/* Whoever runs the VM may be out of hand: root must get in to end it. */
	if (uid && geteuid())
		places -= HVP_CONTROL_FOR_ROOT;
	if (control->nr_clients < places || make_room(control))
		return NULL;
	return "as many clients as there may be are connected already; try again later";
}
