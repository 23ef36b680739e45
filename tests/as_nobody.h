/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_AS_NOBODY_H
#define TESTS_AS_NOBODY_H

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY	65534
#define KNOCK_S 30 /* who has not said a word by then will say none */

/* Silent: let in, and neither greeted nor sent away. */
enum knock { KNOCK_SERVED, KNOCK_FORBIDDEN, KNOCK_NO_ENTRY, KNOCK_SILENT, KNOCK_FAILED };

/* In a process that is nobody for good. */
static inline enum knock knock(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = KNOCK_S};
	char text[512] = "";
	size_t len = 0;
	ssize_t got;
	int fd;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return KNOCK_FAILED;
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return errno == EACCES ? KNOCK_NO_ENTRY : KNOCK_FAILED;
	/* Who is served is greeted, and not hung up on: so no more than the first line is read. */
	do {
		got = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		len += got > 0 ? (size_t)got : 0;
	} while (got > 0 && !memchr(text, '\n', len));
	if (got < 0 && errno == EAGAIN)
		return KNOCK_SILENT;
	if (!strstr(text, "\"forbidden\""))
		return KNOCK_SERVED;
	/* And then the end. */
	return recv(fd, text, sizeof(text), 0) == 0 ? KNOCK_FORBIDDEN : KNOCK_FAILED;
}

/* What becomes of the user nobody who connects to @path. The caller is root. */
static inline enum knock knock_as_nobody(const char *path)
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(knock(path));
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return KNOCK_FAILED;
	return (enum knock)WEXITSTATUS(status);
}

#endif /* TESTS_AS_NOBODY_H */
