// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The files of a log. One thread appends and rotates; any other may read meanwhile,
 * without a lock: a file is found by its name again and again, ids tell what has
 * been seen already, and a line without its newline is not there yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_internal.h"
#include "json_build.h"

/* More than any line has: what a client asked for is cut off, as is what a guest says. */
#define LINE_MAX_BYTES 4096u

/* Whoever else can write there could put a file of his own, or a link, in place of ours. */
static int check_ours(int fd, mode_t type)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if ((st.st_mode & S_IFMT) != type)
		return type == S_IFDIR ? -ENOTDIR : -EPERM;
	if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return 0;
}

static int open_file(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, flags | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* With its parents, of which there may be none yet in a new user's home. */
static int make_dir(const char *dir)
{
	char path[PATH_MAX];
	size_t len = strlen(dir);
	int fd, err;

	if (len >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, dir, len + 1);
	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open_file(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return -errno;
	err = check_ours(fd, S_IFDIR);
	close(fd);
	return err;
}

static int open_current(struct audit_file *file)
{
	struct stat st = {0};
	int err,
		fd = open_file(file->path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	err = check_ours(fd, S_IFREG);
	if (!err && fstat(fd, &st))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	file->fd = fd;
	file->size = (uint64_t)st.st_size;
	return 0;
}

/* @index 0 is the current one. */
static void name_of(const struct audit_file *file, unsigned int index, char path[PATH_MAX])
{
	if (index)
		snprintf(path, PATH_MAX, "%s.%u", file->path, index);
	else
		snprintf(path, PATH_MAX, "%s", file->path);
}

static int rotate(struct audit_file *file)
{
	char from[PATH_MAX], to[PATH_MAX];

	close(file->fd);
	file->fd = -1;
	if (file->nr == 1 && unlink(file->path))
		return -errno;
	for (unsigned int i = file->nr - 1; i > 0; i--) {
		name_of(file, i - 1, from);
		name_of(file, i, to);
		if (rename(from, to) && errno != ENOENT)
			return -errno;
	}
	return open_current(file);
}

static int write_all(int fd, const char *data, size_t len)
{
	ssize_t done;

	for (; len; data += done, len -= (size_t)done) {
		done = write(fd, data, len);
		if (done < 0 && errno != EINTR)
			return -errno;
		if (done < 0)
			done = 0;
	}
	return 0;
}

/* What follows half a line must not be part of it. */
static int end_line(struct audit_file *file)
{
	int err = write_all(file->fd, "\n", 1);

	if (!err)
		file->size++;
	file->torn = err;
	return err;
}

int audit_file_append(struct audit_file *file, const char *line, size_t len)
{
	int err = file->fd < 0 ? open_current(file) : 0;

	if (!err && file->size && file->size + len > file->max_bytes)
		err = rotate(file);
	if (!err && file->torn)
		err = end_line(file);
	if (err)
		return err;
	err = write_all(file->fd, line, len);
	if (!err) {
		file->size += len;
		return 0;
	}
	/* Half a line is cut off. If even that fails, it is ended, and its file opened anew. */
	if (ftruncate(file->fd, (off_t)file->size)) {
		file->torn = true;
		close(file->fd);
		file->fd = -1;
	}
	return err;
}

void audit_file_close(struct audit_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* The end of a file, of at most @size bytes, as a string from malloc(); NULL if there is none. */
static char *read_end(const char *path, size_t size)
{
	int fd = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	char *text = NULL;
	size_t len = 0;
	struct stat st;
	ssize_t got;
	off_t from;

	if (fd < 0)
		return NULL;
	if (!check_ours(fd, S_IFREG) && !fstat(fd, &st)) {
		if ((uint64_t)st.st_size < size)
			size = (size_t)st.st_size;
		from = st.st_size - (off_t)size;
		text = malloc(size + 1);
		while (text && len < size) {
			got = pread(fd, text + len, size - len, from + (off_t)len);
			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0)
				break;
			len += (size_t)got;
		}
	}
	close(fd);
	if (text)
		text[len] = '\0';
	return text;
}

/* The record of a line. Anybody may have had an editor in there: what is none is passed over. */
static struct json_object *parse(const char *line, uint64_t *id)
{
	struct json_object *record = json_tokener_parse(line), *member;

	if (json_object_is_type(record, json_type_object) &&
	    json_object_object_get_ex(record, "id", &member) &&
	    json_object_is_type(member, json_type_int)) {
		*id = json_object_get_uint64(member);
		return record;
	}
	json_object_put(record);
	return NULL;
}

/* What is read from the end on: the newest first. */
struct reading {
	struct json_object *newest_first;
	unsigned int max;
	uint64_t after, before; /* ids wanted: above the one, below the other */
	bool done;
};

static void take_line(struct reading *reading, const char *line)
{
	struct json_object *record;
	uint64_t id;

	record = parse(line, &id);
	if (!record)
		return;
	if (id > reading->after && id < reading->before) {
		hvp_json_append(reading->newest_first, record);
		reading->before = id;
	} else {
		json_object_put(record);
	}
	if (id <= reading->after || json_object_array_length(reading->newest_first) == reading->max)
		reading->done = true;
}

static void take_lines(struct reading *reading, char *text)
{
	char *end = strrchr(text, '\n'), *line;

	while (end && !reading->done) {
		*end = '\0';
		line = strrchr(text, '\n');
		take_line(reading, line ? line + 1 : text);
		end = line;
	}
}

static struct json_object *reversed(struct json_object *from)
{
	struct json_object *to = json_object_new_array();

	for (size_t i = json_object_array_length(from); to && i > 0; i--)
		hvp_json_append(to, json_object_get(json_object_array_get_idx(from, i - 1)));
	if (!hvp_json_whole(from) || !hvp_json_whole(to)) {
		json_object_put(to);
		to = NULL;
	}
	json_object_put(from);
	return to;
}

struct json_object *audit_file_read(const struct audit_file *file, unsigned int max, uint64_t after)
{
	struct reading reading = {
		.newest_first = json_object_new_array(),
		.max = max,
		.after = after,
		.before = UINT64_MAX,
	};
	char path[PATH_MAX];
	char *text;

	if (!reading.newest_first)
		return NULL;
	for (unsigned int i = 0; i < file->nr && !reading.done; i++) {
		name_of(file, i, path);
		text = read_end(path, (size_t)max * LINE_MAX_BYTES);
		if (text)
			take_lines(&reading, text);
		free(text);
	}
	return reversed(reading.newest_first);
}

static uint64_t last_id(const struct audit_file *file)
{
	struct json_object *records = audit_file_read(file, 1, 0), *record;
	uint64_t id = 0;

	record = records ? json_object_array_get_idx(records, 0) : NULL;
	if (record)
		id = json_object_get_uint64(json_object_object_get(record, "id"));
	json_object_put(records);
	return id;
}

/* Of a process that was killed in the middle of it. */
static void end_last_line(struct audit_file *file)
{
	char *end = read_end(file->path, 1);

	if (end && *end && *end != '\n')
		end_line(file);
	free(end);
}

int audit_file_open(struct audit_file *file, const char *dir, const char *name, uint64_t *id)
{
	int err = make_dir(dir);

	file->fd = -1;
	file->torn = false;
	if (err)
		return err;
	if ((size_t)snprintf(file->path, sizeof(file->path), "%s/%s.jsonl", dir, name) >=
	    sizeof(file->path))
		return -ENAMETOOLONG;
	err = open_current(file);
	/* A disk that is full already: the VM starts all the same, and so does its log, later. */
	if (err == -ENOSPC || err == -EDQUOT)
		err = 0;
	else if (!err)
		end_last_line(file);
	*id = last_id(file);
	return err;
}
