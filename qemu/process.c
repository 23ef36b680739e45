// SPDX-License-Identifier: GPL-2.0-or-later
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "hvpoke_abi.h"

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

/* Is all of the area in the file, and will it stay there? A page that is not would kill us. */
static bool is_for_good(int fd, const struct process_area *area, uint64_t offset)
{
	uint64_t len = area->end - area->start;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       offset <= (uint64_t)st.st_size && len <= (uint64_t)st.st_size - offset;
}

int process_map(pid_t pid, const struct process_area *area, void **mem)
{
	char path[96];
	uint64_t offset = 0;
	int fd, err;

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
	if (!is_for_good(fd, area, offset)) {
		close(fd);
		return -EPERM;
	}
	*mem = mmap(NULL, area->end - area->start, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	err = *mem == MAP_FAILED ? -errno : 0;
	close(fd);
	return err;
}

int process_memory(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* What a call on the memory file returned. Nothing is read of a program that is gone. */
static int transferred(ssize_t got, size_t wanted)
{
	if (got == (ssize_t)wanted)
		return 0;
	return got < 0 && errno != EIO ? -errno : -EFAULT;
}

/* How many places, from the first on, lie behind each other in its page. */
static uint32_t in_one_page(const struct iovec *place, uint32_t nr)
{
	uintptr_t at = (uintptr_t)place->iov_base, end = at + place->iov_len;
	uintptr_t page_end = (at | HVPOKE_PAGE_MASK) + 1;
	uint32_t n = 1;

	for (; n < nr; n++) {
		at = (uintptr_t)place[n].iov_base;
		if (at < end || at + place[n].iov_len > page_end)
			break;
		end = at + place[n].iov_len;
	}
	return n;
}

/* One call for all of them: the guest stands still meanwhile. @nr is at least 2. */
static int read_page(int memory, const struct iovec *local, const struct iovec *remote, uint32_t nr)
{
	const uint8_t *start = remote->iov_base;
	size_t len = (size_t)((uint8_t *)remote[nr - 1].iov_base - start) + remote[nr - 1].iov_len;
	uint8_t page[HVPOKE_PAGE_SIZE];
	int err;

	err = transferred(pread(memory, page, len, (off_t)(uintptr_t)start), len);
	for (uint32_t i = 0; i < nr && !err; i++)
		memcpy(local[i].iov_base, page + ((uint8_t *)remote[i].iov_base - start),
		       local[i].iov_len);
	return err;
}

int process_read(int memory, const struct iovec *local, const struct iovec *remote, uint32_t nr)
{
	uint32_t n;
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i += n) {
		n = in_one_page(remote + i, nr - i);
		if (n > 1)
			err = read_page(memory, local + i, remote + i, n);
		else
			err = transferred(pread(memory, local[i].iov_base, local[i].iov_len,
						(off_t)(uintptr_t)remote[i].iov_base),
					  local[i].iov_len);
	}
	return err;
}

int process_write(int memory, const struct iovec *local, const struct iovec *remote, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++) {
		err = transferred(pwrite(memory, local[i].iov_base, local[i].iov_len,
					 (off_t)(uintptr_t)remote[i].iov_base),
				  local[i].iov_len);
		if (!err)
			err = fault("part-written");
	}
	return err;
}

bool process_is_writable(pid_t pid, uint64_t start, uint64_t end)
{
	FILE *maps = open_proc(pid, "maps");
	uint64_t first, last;
	char *line = NULL, mode[5];
	size_t size = 0;

	/* They come in the order of their addresses. */
	while (maps && start < end && getline(&line, &size, maps) > 0)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &first, &last, mode) == 3 &&
		    first <= start && start < last && mode[1] == 'w')
			start = last;
	free(line);
	if (!maps)
		return false;
	fclose(maps);
	return start >= end;
}

bool process_has_memfd(pid_t pid, uint64_t ino)
{
	FILE *maps = open_proc(pid, "maps");
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	uint64_t has;

	while (maps && !found && getline(&line, &size, maps) > 0)
		found = strstr(line, " rw-s ") && strstr(line, " /memfd:") &&
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
