// SPDX-License-Identifier: GPL-2.0-or-later
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault.h"
#include "process.h"

#define MAGIC 0x32646f6b65766b68ull /* changes with the structure */

/* What may be there again in a moment. */
static bool is_short(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

static struct record *map_record(const char *dir, const char *name, int flags, int *file)
{
	struct record *record = MAP_FAILED;
	char path[PATH_MAX];
	int fd, err;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return NULL;
	err = posix_fallocate(fd, 0, sizeof(*record));
	if (!err) {
		record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		err = record == MAP_FAILED ? errno : 0;
	}
	if (!err) {
		*file = fd;
		return record;
	}
	close(fd);
	if (flags)
		unlink(path);
	errno = err;
	return NULL;
}

struct record *record_create(const char *dir, pid_t pid, int *file)
{
	struct record *record;
	uint64_t start_time;
	char name[16];
	int err = process_start_time(pid, &start_time);

	if (err) {
		errno = -err;
		return NULL;
	}
	snprintf(name, sizeof(name), "%d", (int)pid);
	record = map_record(dir, name, O_CREAT | O_TRUNC, file);
	if (record)
		*record = (struct record){.magic = MAGIC, .pid = pid, .start_time = start_time};
	return record;
}

struct record *record_open(const char *dir, const char *name, int *file)
{
	struct record *record = map_record(dir, name, 0, file);
	uint64_t start_time;
	int err = ESRCH;

	if (!record)
		return NULL;
	if (record->magic == MAGIC && record->pid == atoi(name))
		err = -process_start_time(record->pid, &start_time);
	if (!err && start_time == record->start_time)
		return record;
	record_close(record, NULL);
	close(*file);
	*file = -1;
	/* All but what is short is a process that is gone. */
	errno = is_short(err) ? err : ESRCH;
	return NULL;
}

void record_close(struct record *record, const char *dir)
{
	char path[PATH_MAX];

	if (!record)
		return;
	if (dir) {
		snprintf(path, sizeof(path), "%s/%d", dir, record->pid);
		unlink(path);
	}
	munmap(record, sizeof(*record));
}

/*
 * The kernel's number of an eventfd (Linux 5.2); -1 if it is none, or another -errno.
 * @fdinfo: of the process that has it.
 */
static int64_t eventfd_id(const char *fdinfo, const char *fd)
{
	char path[PATH_MAX], line[128];
	int64_t id = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fdinfo, fd);
	file = fopen(path, "re");
	if (!file)
		return is_short(errno) ? -errno : -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "eventfd-id: %" SCNd64, &id) == 1)
			break;
	fclose(file);
	return id;
}

static int64_t own_eventfd_id(int fd)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", fd);
	return eventfd_id("/proc/self/fdinfo", name);
}

int record_descriptors(struct record *record, const struct shm *shm, int doorbell, int irq)
{
	record->memory_ino = shm->ino;
	record->doorbell_id = own_eventfd_id(doorbell);
	record->irq_id = own_eventfd_id(irq);
	return record->doorbell_id < 0 || record->irq_id < 0 ? -EOPNOTSUPP : 0;
}

static int get_fd(int pidfd, const char *name)
{
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(name), 0);

	return fd < 0 ? -errno : fd;
}

/* Is descriptor @name of the process the memory that the record means? */
static bool is_memory(const struct record *record, const char *name)
{
	char path[PATH_MAX], target[64] = "";
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", record->pid, name);
	if (readlink(path, target, sizeof(target) - 1) < 0 ||
	    strncmp(target, "/memfd:hvpoke", 13) != 0)
		return false;
	return !stat(path, &st) && st.st_ino == record->memory_ino;
}

/* Take descriptor @name if it is one of the three that are still missing (-1). */
static int take(const struct record *record, int pidfd, const char *fdinfo, const char *name,
		int found[3])
{
	int64_t id = eventfd_id(fdinfo, name);
	int which = -1;

	if (id < -1)
		return (int)id;
	if (id >= 0 && id == record->doorbell_id)
		which = 1;
	else if (id >= 0 && id == record->irq_id)
		which = 2;
	else if (id < 0 && is_memory(record, name))
		which = 0;
	if (which < 0 || found[which] >= 0)
		return 0;
	found[which] = get_fd(pidfd, name);
	return found[which] < 0 ? found[which] : 0;
}

int record_recover(const struct record *record, int pidfd, struct shm *shm, int *doorbell, int *irq)
{
	int found[3] = {-1, -1, -1}, err = fault("take-over");
	struct dirent *entry;
	char fdinfo[64];
	DIR *dir;

	snprintf(fdinfo, sizeof(fdinfo), "/proc/%d/fdinfo", record->pid);
	dir = opendir(fdinfo);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = take(record, pidfd, fdinfo, entry->d_name, found);
	closedir(dir);
	if (!err && (found[0] < 0 || found[1] < 0 || found[2] < 0))
		err = -ENOENT;
	if (!err) {
		err = shm_attach(shm, found[0]);
		found[0] = -1;
	}
	if (!err) {
		*doorbell = found[1];
		*irq = found[2];
		return 0;
	}
	for (int i = 0; i < 3; i++)
		if (found[i] >= 0)
			close(found[i]);
	return err;
}
