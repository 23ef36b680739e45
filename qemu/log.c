// SPDX-License-Identifier: GPL-2.0-or-later
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is stderr the journal? It tells its device and inode (systemd.exec(5)). */
static int to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st))
		return 0;
	return st.st_dev == dev && st.st_ino == ino;
}

void say(int priority, const char *fmt, ...)
{
	char line[1024];
	size_t len, room;
	va_list args;

	len = to_journal() ? (size_t)snprintf(line, sizeof(line), "<%d>", priority)
			   : (size_t)snprintf(line, sizeof(line), "hvpoked: ");
	room = sizeof(line) - len - 1; /* the newline */
	va_start(args, fmt);
	vsnprintf(line + len, room, fmt, args);
	va_end(args);
	while (len < sizeof(line) - 1 && line[len]) {
		/* One message, one line, whatever a guest or QEMU put into it. */
		if ((unsigned char)line[len] < ' ')
			line[len] = ' ';
		len++;
	}
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nobody left to tell */
}
