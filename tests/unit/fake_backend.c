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

	times->kick_ns = 1000;
	if (fake->pause_err)
		return fake->pause_err;
	assert_false(fake->busy);
	fake->busy = true;
	fake->pauses++;
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
	cmd->hello.scope = fake->scope;
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

/* @target_at: where a displacement of 4 bytes stands (1 if there are 2 bytes in all); 0: none. */
static const struct form {
	uint8_t len, target_at, kind;
	uint8_t insn[HVPOKE_MAX_INSN];
} forms[] = {
	[FAKE_NOP2] = {2, 0, HVPOKE_SITE_INSN, {0x66, 0x90}},
	[FAKE_JMP2] = {2, 1, HVPOKE_SITE_INSN, {0xeb}},
	[FAKE_NOP5] = {5, 0, HVPOKE_SITE_INSN, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
	[FAKE_JMP5] = {5, 1, HVPOKE_SITE_INSN, {0xe9}},
	[FAKE_CALL5] = {5, 1, HVPOKE_SITE_INSN, {0xe8}},
	[FAKE_RET5] = {5, 0, HVPOKE_SITE_INSN, {0xc3, 0xcc, 0xcc, 0xcc, 0xcc}},
	[FAKE_XOR5] = {5, 0, HVPOKE_SITE_INSN, {0x2e, 0x2e, 0x2e, 0x31, 0xc0}},
	[FAKE_XORQ5] = {5, 0, HVPOKE_SITE_INSN, {0x66, 0x66, 0x48, 0x31, 0xc0}},
	[FAKE_UD5] = {5, 0, HVPOKE_SITE_INSN, {0x67, 0x48, 0x0f, 0xb9, 0x3a}},
	[FAKE_JCC6] = {6, 2, HVPOKE_SITE_INSN, {0x0f, 0x85}},
	[FAKE_INT3] = {1, 0, HVPOKE_SITE_PROBE, {0xcc}},
	[FAKE_PUSH1] = {1, 0, HVPOKE_SITE_PROBE, {0x55}},
	/* INT3 in place of a PUSH %rbp, with a MOV and half of another instruction behind it. */
	[FAKE_INT3_5] = {5, 0, HVPOKE_SITE_PROBE, {0xcc, 0x48, 0x89, 0xe5, 0x41}},
	[FAKE_PROBE_JMP5] = {5, 1, HVPOKE_SITE_PROBE, {0xe9}},
};

uint8_t fake_insn(uint8_t *insn, enum fake_insn which, uint32_t target)
{
	const struct form *form = &forms[which];

	memcpy(insn, form->insn, HVPOKE_MAX_INSN);
	if (form->target_at)
		memcpy(insn + form->target_at, &target, form->len == 2 ? 1 : sizeof(target));
	return form->len;
}

struct hvpoke_entry fake_entry(uint64_t addr, enum fake_insn old, enum fake_insn new_insn,
			       uint32_t target)
{
	struct hvpoke_entry entry = {.gpa = addr, .kind = forms[old].kind};

	entry.len = fake_insn(entry.old_insn, old, target);
	assert_int_equal(fake_insn(entry.new_insn, new_insn, target), entry.len);
	assert_int_equal(forms[new_insn].kind, entry.kind);
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

void fake_refused(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr,
		  enum hvpoke_status status, uint32_t bad_index)
{
	static uint8_t before[FAKE_RAM - FAKE_TEXT];
	unsigned int pauses = fake->pauses;

	memcpy(before, fake_at(fake, FAKE_TEXT), sizeof(before));
	assert_int_equal(fake_batch(fake, entry, nr), status);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, bad_index);
	assert_int_equal(fake_cmd(fake)->batch.written, 0);
	assert_int_equal(fake_cmd(fake)->batch.pause_ns, 0);
	assert_int_equal(fake_cmd(fake)->batch.apply_ns, 0);
	assert_int_equal(fake->pauses, pauses);
	assert_memory_equal(fake_at(fake, FAKE_TEXT), before, sizeof(before));
}

void fake_applied(struct fake *fake, const struct hvpoke_entry *entry, uint32_t nr)
{
	unsigned int pauses = fake->pauses;

	assert_int_equal(fake_batch(fake, entry, nr), HVPOKE_OK);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, HVPOKE_NO_INDEX);
	assert_int_equal(fake_cmd(fake)->batch.written, nr);
	assert_int_equal(fake->pauses, pauses + 1);
	assert_false(fake->busy);
	for (uint32_t i = 0; i < nr; i++)
		assert_true(fake_holds(fake, &entry[i], entry[i].new_insn));
}

bool fake_add_key(struct hvpoke_complete *answer, const char *name, bool enabled, uint32_t sites)
{
	struct hvpoke_key key = {.enabled = enabled, .sites = sites};
	uint8_t *record = answer->data + answer->data_len;

	key.size = (sizeof(key) + strlen(name) + 1 + 3) & ~3u;
	if (key.size > sizeof(answer->data) - answer->data_len)
		return false;
	memset(record, 0, key.size);
	memcpy(record, &key, sizeof(key));
	memcpy(record + sizeof(key), name, strlen(name) + 1);
	answer->data_len += key.size;
	return true;
}
