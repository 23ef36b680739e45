// SPDX-License-Identifier: GPL-2.0-or-later
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static FILE *open_proc(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fopen(path, "re");
}

int process_area(pid_t pid, uint64_t address, struct process_area *area)
{
	FILE *maps = open_proc(pid, "maps");
	char *line = NULL, mode[5];
	int err = -ENOENT;
	size_t size = 0;

	if (!maps)
		return -errno;
	while (err && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &area->start, &area->end, mode) !=
			    3 ||
		    address < area->start || address >= area->end)
			continue;
		area->shared = mode[3] == 's';
		area->writable = mode[1] == 'w';
		err = 0;
	}
	free(line);
	fclose(maps);
	return err;
}

/* Where in its file does the area begin? */
static int area_offset(pid_t pid, const struct process_area *area, uint64_t *offset)
{
	FILE *maps = open_proc(pid, "maps");
	uint64_t start, end;
	char *line = NULL;
	int err = -ENOENT;
	size_t size = 0;

	if (!maps)
		return -errno;
	while (err && getline(&line, &size, maps) > 0)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, offset) ==
			    3 &&
		    start == area->start && end == area->end)
			err = 0;
	free(line);
	fclose(maps);
	return err;
}

int process_map(pid_t pid, const struct process_area *area, void **mem)
{
	char path[96];
	uint64_t offset = 0;
	int fd, seals, err;

	if (!area->shared || !area->writable)
		return -EPERM;
	err = area_offset(pid, area, &offset);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 area->start, area->end);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
		close(fd);
		return -EPERM;
	}
	*mem = mmap(NULL, area->end - area->start, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	err = *mem == MAP_FAILED ? -errno : 0;
	close(fd);
	return err;
}

typedef ssize_t (*transfer_fn)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
			       unsigned long, unsigned long);

static int transfer(transfer_fn fn, pid_t pid, const struct iovec *local,
		    const struct iovec *remote, uint32_t nr)
{
	uint32_t now;
	size_t want;
	ssize_t got;

	for (uint32_t done = 0; done < nr; done += now) {
		now = nr - done < IOV_MAX ? nr - done : IOV_MAX;
		want = 0;
		for (uint32_t i = 0; i < now; i++)
			want += local[done + i].iov_len;
		got = fn(pid, local + done, now, remote + done, now, 0);
		if (got < 0)
			return -errno;
		if ((size_t)got != want)
			return -EFAULT;
	}
	return 0;
}

int process_read(pid_t pid, const struct iovec *local, const struct iovec *remote, uint32_t nr)
{
	return transfer(process_vm_readv, pid, local, remote, nr);
}

int process_write(pid_t pid, const struct iovec *local, const struct iovec *remote, uint32_t nr)
{
	return transfer(process_vm_writev, pid, local, remote, nr);
}

bool process_has_memfd(pid_t pid, uint64_t ino)
{
	FILE *maps = open_proc(pid, "maps");
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	uint64_t has;

	while (maps && !found && getline(&line, &size, maps) > 0)
		found = strstr(line, " /memfd:") &&
			sscanf(line, "%*s %*s %*s %*s %" SCNu64, &has) == 1 && has == ino;
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

int process_start_time(pid_t pid, uint64_t *ticks)
{
	FILE *stat = open_proc(pid, "stat");
	char line[1024], *at = NULL;

	if (!stat)
		return -errno;
	/* The name may have anything in it: fields are counted from its last parenthesis. */
	if (fgets(line, sizeof(line), stat))
		at = strrchr(line, ')');
	fclose(stat);
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
			  "%*d %*d %*d %*d %" SCNu64,
			  ticks) != 1)
		return -EPROTO;
	return 0;
}
