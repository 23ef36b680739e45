// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "fake_backend.h"

static void *translate(void *ctx, gpa_t addr, uint64_t len)
{
	struct fake *fake = ctx;

	if (addr.addr >= fake->size || len > fake->size - addr.addr)
		return NULL;
	return fake->ram + addr.addr;
}

static int pause_all(void *ctx, struct hvp_pause_times *times)
{
	struct fake *fake = ctx;

	if (fake->pause_err)
		return fake->pause_err;
	assert_false(fake->busy);
	fake->busy = true;
	fake->pauses++;
	times->kick_ns = 1000;
	if (fake->at_pause)
		fake->at_pause(fake);
	return 0;
}

static void resume_all(void *ctx, struct hvp_pause_times *times)
{
	struct fake *fake = ctx;

	assert_true(fake->busy);
	if (fake->at_resume)
		fake->at_resume(fake);
	fake->busy = false;
	fake->resumes++;
	times->wake_ns = 2000;
}

static int notify(void *ctx)
{
	struct fake *fake = ctx;

	fake->notifies++;
	return fake->notify_err;
}

static const struct hvp_backend backend = {
	.translate = translate,
	.pause = pause_all,
	.resume = resume_all,
	.notify = notify,
};

void fake_init(struct fake *fake, size_t size)
{
	memset(fake, 0, sizeof(*fake));
	/* Shared, as a memfd is: a read alone does not make a page of it writable. */
	fake->ram = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fake->ram, MAP_FAILED);
	fake->size = size;
	fake->guest = hvp_guest_new(&backend, fake);
	assert_non_null(fake->guest);
}

void fake_free(struct fake *fake)
{
	hvp_guest_free(fake->guest);
	assert_int_equal(fake->pauses, fake->resumes);
	munmap(fake->ram, fake->size);
}

void *fake_at(struct fake *fake, uint64_t addr)
{
	assert_true(addr < fake->size);
	return fake->ram + addr;
}

struct hvpoke_cmd *fake_cmd(struct fake *fake)
{
	return fake_at(fake, FAKE_CMD);
}

uint64_t fake_list(struct fake *fake, uint64_t at, const void *records, uint32_t nr)
{
	const uint32_t per_page = HVPOKE_ENTRIES_PER_PAGE;
	uint32_t nr_pages = (nr + per_page - 1) / per_page;
	uint32_t nr_lists = (nr_pages + HVPOKE_LIST_PAGES - 1) / HVPOKE_LIST_PAGES;
	uint64_t data = at + (uint64_t)nr_lists * HVPOKE_PAGE_SIZE;
	struct hvpoke_page_list *list = NULL;

	assert_true(data + (uint64_t)nr_pages * HVPOKE_PAGE_SIZE <= fake->size);
	for (uint32_t i = 0; i < nr_pages; i++) {
		if (i % HVPOKE_LIST_PAGES == 0) {
			uint64_t next = at + (i / HVPOKE_LIST_PAGES + 1ull) * HVPOKE_PAGE_SIZE;

			list = fake_at(fake, next - HVPOKE_PAGE_SIZE);
			memset(list, 0, sizeof(*list));
			list->next_gpa = nr_pages - i > HVPOKE_LIST_PAGES ? next : 0;
		}
		list->page_gpa[i % HVPOKE_LIST_PAGES] = data + (uint64_t)i * HVPOKE_PAGE_SIZE;
	}
	if (nr)
		memcpy(fake_at(fake, data), records, (size_t)nr * sizeof(struct hvpoke_entry));
	return at;
}

enum hvpoke_status fake_ring(struct fake *fake, uint32_t cmd)
{
	struct hvpoke_cmd *page = fake_cmd(fake);
	enum hvpoke_status status;

	page->version = HVPOKE_ABI_VERSION;
	page->cmd = cmd;
	page->status = 0xffffffff;
	page->reserved = 0;
	status = hvp_guest_command(fake->guest, gpa(FAKE_CMD));
	assert_int_equal(page->status, status);
	return status;
}

enum hvpoke_status fake_hello_ranges(struct fake *fake, const struct hvpoke_range *range,
				     uint32_t nr)
{
	struct hvpoke_cmd *cmd = fake_cmd(fake);

	memset(cmd, 0, sizeof(*cmd));
	cmd->hello.nr_ranges = nr;
	cmd->hello.ranges_gpa = fake_list(fake, FAKE_LIST, range, nr);
	strcpy(cmd->hello.kernel, "6.1.0-test");
	strcpy(cmd->hello.agent, "1.0");
	cmd->hello.probe_gva[0] = FAKE_TEXT_GVA + 0x42;
	return fake_ring(fake, HVPOKE_CMD_HELLO);
}

void fake_hello(struct fake *fake)
{
	const struct hvpoke_range text = {
		.gpa = FAKE_TEXT,
		.gva = FAKE_TEXT_GVA,
		.len = FAKE_TEXT_SIZE,
	};

	assert_int_equal(fake_hello_ranges(fake, &text, 1), HVPOKE_OK);
}

enum hvpoke_status fake_batch(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr)
{
	struct hvpoke_cmd *cmd = fake_cmd(fake);

	memset(cmd, 0, sizeof(*cmd));
	cmd->batch.nr_entries = nr;
	cmd->batch.entries_gpa = fake_list(fake, FAKE_LIST, entry, nr);
	return fake_ring(fake, HVPOKE_CMD_BATCH);
}

uint8_t fake_insn(uint8_t *insn, enum fake_insn which, uint32_t target)
{
	static const uint8_t form[][HVPOKE_MAX_INSN] = {
		[FAKE_NOP2] = {0x66, 0x90},
		[FAKE_JMP2] = {0xeb},
		[FAKE_NOP5] = {0x0f, 0x1f, 0x44, 0x00, 0x00},
		[FAKE_JMP5] = {0xe9},
		[FAKE_CALL5] = {0xe8},
	};

	memcpy(insn, form[which], HVPOKE_MAX_INSN);
	if (which == FAKE_JMP2)
		insn[1] = target;
	if (which == FAKE_JMP5 || which == FAKE_CALL5)
		memcpy(insn + 1, &target, sizeof(target));
	return which == FAKE_NOP2 || which == FAKE_JMP2 ? 2 : 5;
}

struct hvpoke_entry fake_entry(uint64_t addr, enum fake_insn old, enum fake_insn new_insn,
			       uint32_t target)
{
	struct hvpoke_entry entry = {.gpa = addr};

	entry.len = fake_insn(entry.old_insn, old, target);
	assert_int_equal(fake_insn(entry.new_insn, new_insn, target), entry.len);
	if ((addr & HVPOKE_PAGE_MASK) + entry.len > HVPOKE_PAGE_SIZE)
		entry.gpa2 = (addr | HVPOKE_PAGE_MASK) + 1;
	return entry;
}

static unsigned int first_part(const struct hvpoke_entry *entry)
{
	return entry->gpa2 ? HVPOKE_PAGE_SIZE - (entry->gpa & HVPOKE_PAGE_MASK) : entry->len;
}

void fake_put(struct fake *fake, const struct hvpoke_entry *entry, const uint8_t *insn)
{
	unsigned int first = first_part(entry);

	memcpy(fake_at(fake, entry->gpa), insn, first);
	if (entry->gpa2)
		memcpy(fake_at(fake, entry->gpa2), insn + first, entry->len - first);
}

bool fake_holds(struct fake *fake, const struct hvpoke_entry *entry, const uint8_t *insn)
{
	unsigned int first = first_part(entry);

	return !memcmp(fake_at(fake, entry->gpa), insn, first) &&
	       (!entry->gpa2 ||
		!memcmp(fake_at(fake, entry->gpa2), insn + first, entry->len - first));
}
