// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's monitor has no machine readable form of this: "info mtree -f" prints each address
 * space as it is flattened, and the one whose root is "system" is what the CPUs see:
 *
 *   Root memory region: system
 *    0000000000000000-000000000009ffff (prio 0, ram): pc.ram
 *    0000000000100000-000000001fffffff (prio 0, ram): pc.ram @0000000000100000
 *
 * ROM, flash and what System Management Mode hides from the CPUs are of other kinds, and
 * are not for the guest's kernel to write: they are left out. "gpa2hva" then says where
 * a block is; it must agree at both ends.
 */
#include "ram.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "deadline.h"
#include "process.h"

#define MAX_BLOCKS 256
/* For all blocks: QEMU answers each question in time, and there are many. */
#define BLOCKS_MS 15000

void ram_forget(struct ram *ram)
{
	for (uint32_t i = 0; i < ram->nr; i++)
		if (ram->block[i].area)
			munmap(ram->block[i].area, ram->block[i].area_len);
	free(ram->block);
	free(ram->view);
	*ram = (struct ram){};
}

/* Cut "info mtree -f" down to the lines of what the CPUs see. NULL if it is not there. */
static char *system_view(char *text)
{
	char *start = strstr(text, "Root memory region: system"), *end;

	if (!start)
		return NULL;
	end = strstr(start, "\r\n\r\n");
	if (!end)
		end = strstr(start, "\n\n");
	if (end)
		*end = '\0';
	return strdup(start);
}

static int host_address(struct qmp *qmp, uint64_t gpa, uint64_t *hva, struct message *message)
{
	char command[64], *said, *at;
	int err;

	snprintf(command, sizeof(command), "gpa2hva 0x%" PRIx64, gpa);
	err = qmp_human(qmp, command, &said, message);
	if (err)
		return err;
	/* "Host virtual address for 0x1000000 (pc.ram) is 0x7f..." */
	at = strstr(said, ") is 0x");
	if (!at || sscanf(at + 7, "%" SCNx64, hva) != 1)
		err = -ENXIO;
	free(said);
	return err;
}

static int add_block(struct ram *ram, struct qmp *qmp, pid_t pid, uint64_t first, uint64_t last,
		     struct message *message)
{
	struct ram_block block = {.gpa = first, .len = last - first + 1};
	struct ram_block *blocks;
	struct process_area area;
	uint64_t hva_last;
	int err;

	err = host_address(qmp, first, &block.hva, message);
	if (!err)
		err = host_address(qmp, last, &hva_last, message);
	if (err)
		return err == -ENXIO ? 0 : err; /* not RAM after all: not a block */
	/*
	 * What QEMU itself cannot write to is not the guest's RAM, whatever it is called. One that
	 * lies could have its block go around the end of all addresses, and end in the same
	 * mapping before its start: the check of the lengths does not see that.
	 */
	if (hva_last < block.hva || hva_last - block.hva != last - first ||
	    !process_is_writable(pid, block.hva, hva_last + 1))
		return 0;
	if (!process_area(pid, block.hva, &area) && hva_last < area.end &&
	    !process_map(pid, &area, &block.area)) {
		block.area_len = area.end - area.start;
		block.mem = (uint8_t *)block.area + (block.hva - area.start);
	}
	blocks = realloc(ram->block, (ram->nr + 1) * sizeof(*blocks));
	if (!blocks) {
		if (block.area)
			munmap(block.area, block.area_len);
		return message_set(message, -ENOMEM, "out of memory");
	}
	ram->block = blocks;
	ram->block[ram->nr++] = block;
	return 0;
}

static int add_blocks(struct ram *ram, struct qmp *qmp, pid_t pid, struct message *message)
{
	int64_t deadline = deadline_in(BLOCKS_MS);
	uint64_t first, last;
	int err = 0, end;

	for (const char *line = ram->view; line && !err; line = strchr(line, '\n')) {
		if (!deadline_left(deadline))
			return message_set(message, -ETIMEDOUT,
					   "QEMU takes too long to say where the guest's RAM is");
		line += *line == '\n';
		end = 0;
		if (sscanf(line, " %" SCNx64 "-%" SCNx64 " (prio %*d, ram): %n", &first, &last,
			   &end) != 2 ||
		    !end || last < first || ram->nr == MAX_BLOCKS)
			continue;
		err = add_block(ram, qmp, pid, first, last, message);
	}
	return err;
}

int ram_learn(struct ram *ram, struct qmp *qmp, pid_t pid, struct message *message)
{
	struct ram now = {};
	char *text;
	int err;

	err = qmp_human(qmp, "info mtree -f", &text, message);
	if (err)
		return err;
	now.view = system_view(text);
	free(text);
	if (!now.view)
		return message_set(message, -EPROTO,
				   "QEMU's \"info mtree -f\" has no view of the system's memory");
	if (ram->view && !strcmp(now.view, ram->view)) {
		free(now.view);
		return 0;
	}
	err = add_blocks(&now, qmp, pid, message);
	if (!err && !now.nr)
		err = message_set(message, -EPROTO, "QEMU's \"info mtree -f\" shows no RAM");
	if (err) {
		ram_forget(&now);
		return err;
	}
	ram_forget(ram);
	*ram = now;
	return 0;
}

const struct ram_block *ram_find(const struct ram *ram, uint64_t gpa, uint64_t len)
{
	for (uint32_t i = 0; i < ram->nr; i++)
		if (gpa >= ram->block[i].gpa && gpa - ram->block[i].gpa < ram->block[i].len &&
		    len <= ram->block[i].len - (gpa - ram->block[i].gpa))
			return &ram->block[i];
	return NULL;
}
