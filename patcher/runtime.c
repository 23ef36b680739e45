// SPDX-License-Identifier: GPL-2.0-or-later
/* Where the control sockets of running VMs are. */
#include "runtime.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool hvp_name_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-");

	return len && len <= HVP_NAME_MAX && !name[len] && name[0] != '.' && name[0] != '-';
}

/* A variable that is set to nothing counts as not set. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int hvp_runtime_dir(char *path, size_t size)
{
	const char *dir = variable("HVPOKE_RUNTIME_DIR");
	const char *sub = "";
	int len;

	if (!dir && !geteuid()) {
		dir = "/run/hvpoke";
	} else if (!dir) {
		dir = variable("XDG_RUNTIME_DIR");
		sub = "/hvpoke";
	}
	if (!dir)
		return -ENOENT;
	len = snprintf(path, size, "%s%s", dir, sub);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

int hvp_runtime_log_dir(char *path, size_t size)
{
	const char *dir = variable("HVPOKE_RUNTIME_DIR");
	const char *sub = "/log";
	int len;

	if (!dir && !geteuid()) {
		dir = "/var/log";
		sub = "/hvpoke";
	} else if (!dir && variable("XDG_STATE_HOME")) {
		dir = variable("XDG_STATE_HOME");
		sub = "/hvpoke";
	} else if (!dir) {
		dir = variable("HOME");
		sub = "/.local/state/hvpoke";
	}
	if (!dir)
		return -ENOENT;
	len = snprintf(path, size, "%s%s", dir, sub);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

int hvp_runtime_socket(char *path, size_t size, const char *name)
{
	char dir[PATH_MAX];
	int err, len;

	if (!hvp_name_valid(name))
		return -EINVAL;
	err = hvp_runtime_dir(dir, sizeof(dir));
	if (err)
		return err;
	len = snprintf(path, size, "%s/%s%s", dir, name, HVP_SOCKET_SUFFIX);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

int hvp_runtime_make_dir(void)
{
	char dir[PATH_MAX];
	struct stat st;
	int err;

	err = hvp_runtime_dir(dir, sizeof(dir));
	if (err)
		return err;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	if (stat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	/* Whoever can write there can put a socket of his own in place of ours. */
	if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return 0;
}
