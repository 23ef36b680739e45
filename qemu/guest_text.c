// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "process.h"

/* A batch of 65,536 sites takes about a second through the gdbstub. */
#define WRITE_MS 10000

/* Kept from batch to batch: more than any kernel's dynamic debug sites. */
#define KEEP_PARTS 16384

static void free_arrays(struct text *text)
{
	free(text->part);
	free(text->local);
	free(text->remote);
	free(text->write);
	free(text->bytes);
	text->part = NULL;
	text->local = text->remote = NULL;
	text->write = NULL;
	text->bytes = NULL;
	text->capacity = 0;
}

static int reserve(struct text *text, size_t nr)
{
	if (nr <= text->capacity)
		return 0;
	free_arrays(text);
	text->part = calloc(nr, sizeof(*text->part));
	text->local = calloc(nr, sizeof(*text->local));
	text->remote = calloc(nr, sizeof(*text->remote));
	text->write = calloc(nr, sizeof(*text->write));
	text->bytes = calloc(nr, HVPOKE_MAX_INSN);
	if (!text->part || !text->local || !text->remote || !text->write || !text->bytes) {
		free_arrays(text);
		return -ENOMEM;
	}
	text->capacity = nr;
	return 0;
}

/* @offset: where in the instruction the part begins. */
static int add_part(struct text *text, const struct hvpoke_entry *entry, uint32_t index,
		    uint64_t gpa, uint32_t offset, uint32_t len)
{
	const struct ram_block *block = ram_find(&text->ram, gpa, len);
	uint32_t i = text->nr_parts;

	if (!block)
		return -EFAULT;
	text->part[i] = (struct text_part){
		.gpa = gpa,
		.mem = block->mem ? block->mem + (gpa - block->gpa) : NULL,
		.now = text->bytes + (size_t)i * HVPOKE_MAX_INSN,
		.old_insn = entry->old_insn + offset,
		.new_insn = entry->new_insn + offset,
		.len = len,
		.index = index,
	};
	text->local[i] = (struct iovec){.iov_base = text->part[i].now, .iov_len = len};
	text->remote[i] = (struct iovec){
		.iov_base = (void *)(uintptr_t)(block->hva + (gpa - block->gpa)),
		.iov_len = len,
	};
	text->mapped &= block->mem != NULL;
	text->nr_parts++;
	return 0;
}

int text_prepare(struct text *text, const struct hvpoke_entry *entry, uint32_t nr)
{
	uint32_t room, first;
	int err;

	text->nr_entries = nr;
	text->nr_parts = 0;
	text->mapped = true;
	err = reserve(text, (size_t)nr * 2);
	for (uint32_t i = 0; i < nr && !err; i++) {
		room = HVPOKE_PAGE_SIZE - (entry[i].gpa & HVPOKE_PAGE_MASK);
		first = entry[i].len < room ? entry[i].len : room;
		err = add_part(text, &entry[i], i, entry[i].gpa, 0, first);
		if (!err && entry[i].gpa2)
			err = add_part(text, &entry[i], i, entry[i].gpa2, first,
				       entry[i].len - first);
	}
	if (!err && !text->kvm)
		err = gdbstub_drain(&text->gdb);
	if (err)
		text_done(text);
	return err;
}

static int read_now(struct text *text)
{
	struct text_part *part = text->part;

	if (!text->mapped)
		return process_read(text->memory, text->local, text->remote, text->nr_parts);
	for (uint32_t i = 0; i < text->nr_parts; i++)
		memcpy(part[i].now, part[i].mem, part[i].len);
	return 0;
}

int64_t text_verify(struct text *text)
{
	const struct text_part *part = text->part;
	int err = read_now(text);

	if (err)
		return err;
	for (uint32_t i = 0; i < text->nr_parts; i++)
		if (memcmp(part[i].now, part[i].old_insn, part[i].len) != 0)
			return part[i].index;
	return text->nr_entries;
}

static int write_by_gdbstub(struct text *text, bool undo)
{
	for (uint32_t i = 0; i < text->nr_parts; i++)
		text->write[i] = (struct gdb_write){
			.gpa = text->part[i].gpa,
			.bytes = undo ? text->part[i].old_insn : text->part[i].new_insn,
			.len = text->part[i].len,
		};
	return gdbstub_write(&text->gdb, text->write, text->nr_parts, WRITE_MS);
}

static int write_to_process(struct text *text, bool undo)
{
	for (uint32_t i = 0; i < text->nr_parts; i++)
		memcpy(text->part[i].now, undo ? text->part[i].old_insn : text->part[i].new_insn,
		       text->part[i].len);
	return process_write(text->memory, text->local, text->remote, text->nr_parts);
}

static int write_parts(struct text *text, bool undo)
{
	const struct text_part *part = text->part;
	int err = 0;

	if (!text->nr_parts)
		return 0;
	if (!text->kvm)
		return write_by_gdbstub(text, undo);
	if (!text->mapped)
		return write_to_process(text, undo);
	for (uint32_t i = 0; i < text->nr_parts && !err; i++) {
		memcpy(part[i].mem, undo ? part[i].old_insn : part[i].new_insn, part[i].len);
		err = fault("part-written");
	}
	return err;
}

int text_write(struct text *text, bool *half)
{
	int err = write_parts(text, false);

	*half = false;
	if (!err)
		return 0;
	/* Nothing but old bytes stood there: to write them again is to undo. */
	*half = write_parts(text, true) != 0;
	return err;
}

/* A write that was cut off may have left a part of an instruction. */
static bool is_ours(const struct text_part *part)
{
	for (uint32_t i = 0; i < part->len; i++)
		if (part->now[i] != part->old_insn[i] && part->now[i] != part->new_insn[i])
			return false;
	return true;
}

int text_roll_back(struct text *text)
{
	int err = read_now(text);

	for (uint32_t i = 0; i < text->nr_parts && !err; i++)
		if (!is_ours(&text->part[i]))
			err = -EILSEQ;
	return err ? err : write_parts(text, true);
}

void text_done(struct text *text)
{
	text->nr_entries = text->nr_parts = 0;
	if (text->capacity > KEEP_PARTS)
		free_arrays(text);
}

void text_release(struct text *text)
{
	free_arrays(text);
	gdbstub_close(&text->gdb);
	if (text->memory >= 0)
		close(text->memory);
	text->memory = -1;
	ram_forget(&text->ram);
}
