// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a hvpoked that was killed has left: the journal of a batch, of which any part may be
 * missing or damaged, a guest whose sites are old, new, or something else, and a mailbox that
 * went on, or did not. QEMU's monitor connects again, and what is to be repaired is.
 *
 * A site is as it was, or old as a whole and all others with it; nothing else in RAM changes.
 * The guest runs again, and nothing of the journal is left.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../qemu/journal.h"
#include "qemu_world.h"

#define MAX_SITES 16
/* journal.c: the entries stand behind the page that is mapped. */
#define ENTRIES_AT 4096

static const uint8_t nop[HVPOKE_MAX_INSN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jmp[HVPOKE_MAX_INSN] = {0xe9, 0x03, 0x00, 0x00, 0x00};

static uint8_t before[WORLD_RAM];

/* Sites, and what stands there: 0 old, 1 new, 2 a mixture, 3 something else. */
static uint32_t make_sites(struct input *in, struct hvpoke_entry *entry, bool *foreign)
{
	uint32_t nr = input_u8(in) % (MAX_SITES + 1);
	uint64_t at = WORLD_TEXT + input_u16(in) % 0x1000;

	for (uint32_t i = 0; i < nr; i++) {
		uint8_t how = input_u8(in);

		at += 5 + how / 4 * 40u;
		entry[i] = (struct hvpoke_entry){.gpa = at, .len = 5};
		/* None of them straddles: that is text_prepare()'s, and others try it. */
		if (at % HVPOKE_PAGE_SIZE + 5 > HVPOKE_PAGE_SIZE)
			at = entry[i].gpa = (at | HVPOKE_PAGE_MASK) + 1;
		memcpy(entry[i].old_insn, nop, sizeof(nop));
		memcpy(entry[i].new_insn, jmp, sizeof(jmp));
		memcpy(world.ram + at, how & 1 ? jmp : nop, 5);
		if ((how & 3) == 2)
			memcpy(world.ram + at, jmp, 2);
		if ((how & 3) == 3)
			memset(world.ram + at, 0x5a, 5);
		*foreign |= (how & 3) == 3;
	}
	return nr;
}

/* Cut off, or with other bytes, but for the checksum: the directory is ours alone. */
static bool damage(struct input *in)
{
	struct journal *journal = &world.vm->record->journal;
	uint8_t how = input_u8(in), byte = input_u8(in);
	uint16_t at = input_u16(in);
	uint64_t word = journal->word;
	uint32_t nr = journal->nr;
	uint8_t now = 0;

	switch (how & 7) {
	case 1:
		CHECK(!ftruncate(world.vm->record_file, ENTRIES_AT + at % 600));
		return nr && at % 600u < nr * sizeof(struct hvpoke_entry);
	case 2:
		if (at % 512u >= nr * sizeof(struct hvpoke_entry))
			return false;
		CHECK(pread(world.vm->record_file, &now, 1, ENTRIES_AT + at % 512) == 1);
		CHECK(pwrite(world.vm->record_file, &byte, 1, ENTRIES_AT + at % 512) == 1);
		return now != byte;
	case 3: journal->nr = input_u32(in); return journal->nr != nr;
	case 4: journal->word = input_u64(in); return journal->word != word;
	case 5: journal->session++; return true;
	default: return false;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct hvpoke_entry entry[MAX_SITES];
	bool damaged, foreign = false, open;
	uint8_t kind = input_u8(&in), state = input_u8(&in);
	uint64_t word = hvpoke_shm_word(7, HVPOKE_SHM_RUNNING);
	uint32_t nr;

	world.kvm = !(kind & 1);
	world.shared = !(kind & 2);
	world.maps = NULL;
	world.ask = NULL;
	world.packet = NULL;
	world_begin();
	world_connect_monitor();
	CHECK(world.vm->ready);
	nr = make_sites(&in, entry, &foreign);
	CHECK(!journal_begin(world.vm->record, world.vm->record_file, word, 1, entry, nr));
	world_mail()->session = 1;
	world_mail()->state = hvpoke_shm_word(7, state % 8 ? HVPOKE_SHM_RUNNING : state / 8 % 8);
	damaged = damage(&in);
	/* It was killed in the pause. */
	world.vm->record->paused = !(kind & 4);
	world.running = kind & 4;
	world_hang_up();
	world_run();
	memcpy(before, world.ram, WORLD_RAM);
	open = world_mail()->state == word;
	world_connect_monitor();
	CHECK(world.vm->ready && !world.vm->record->journal.word);
	CHECK(world.running && !world.vm->record->paused);
	if (open && !damaged && !foreign)
		for (uint32_t i = 0; i < nr; i++)
			memcpy(before + entry[i].gpa, nop, 5);
	CHECK(!memcmp(before, world.ram, WORLD_RAM));
	world_end();
	return 0;
}
