// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine's doorbell, with all of guest memory in the input's hands: a list of what the
 * guest and the host's clients do, one after the other. Memory also changes in the middle of a
 * command, wherever the engine has just looked at some of it: an input arms writes that happen
 * when it does so for the n-th time from now. No thread is needed for that.
 *
 * What is checked against the model (batch_model.h), after each command:
 *
 * - The engine takes a batch, or text ranges, if and only if the model takes what the engine has
 *   copied. It saw each record once, so what changed meanwhile makes no difference.
 * - It pauses for good batches only, and resumes as often as it pauses.
 * - Memory is what it was, the armed writes apart; after HVPOKE_OK all sites are written, after
 *   anything else none. The only other bytes that changed are the command's OUT fields.
 * - Those fields say what happened, and each host request ends once.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "batch_guest.h"
#include "change.h"
#include "key_list.h"

/* Where a well-meaning guest keeps things. */
#define CMD	 0x1000u
#define LIST	 0x2000u
#define DATA	 0x3000u
#define TEXT	 0x20000u
#define TEXT_GVA 0xffffffff81000000ull

static struct hvpoke_cmd *command(uint32_t cmd)
{
	static struct hvpoke_cmd page;

	memset(&page, 0, sizeof(page));
	page.version = HVPOKE_ABI_VERSION;
	page.cmd = cmd;
	return &page;
}

static void submit(const struct hvpoke_cmd *page)
{
	guest_writes(CMD, (const uint8_t *)page, sizeof(*page));
	guest_rings(CMD);
}

/* Up to two pages of records, which is what a list on one page leads to here. */
static void lay_out(const void *records, uint32_t nr)
{
	struct hvpoke_page_list list = {.page_gpa = {DATA, DATA + HVPOKE_PAGE_SIZE}};

	guest_writes(LIST, (const uint8_t *)&list, sizeof(list));
	guest_writes(DATA, records, nr * (uint32_t)sizeof(struct hvpoke_entry));
}

/* As fake_backend.h's, but with the hole in it: two ranges that follow each other, and one more. */
static const struct hvpoke_range standard[] = {
	{.gpa = TEXT, .gva = TEXT_GVA, .len = MODEL_HOLE - TEXT},
	{.gpa = MODEL_HOLE + 0x1000, .gva = TEXT_GVA + (MODEL_HOLE - TEXT), .len = 0x2000},
	{.gpa = MODEL_HOLE + 0x5000, .gva = TEXT_GVA + 0x20000, .len = 0x7f3},
};

static void hello(struct input *in)
{
	struct hvpoke_cmd *page = command(HVPOKE_CMD_HELLO);
	struct hvpoke_range range[8] = {};
	uint8_t how = input_u8(in);
	uint32_t nr = sizeof(standard) / sizeof(*standard);

	memcpy(range, standard, sizeof(standard));
	page->hello.scope = how & 3;
	if (how & 4) {
		nr = input_u8(in) % 9;
		for (uint32_t i = 0; i < nr; i++) {
			range[i].gpa = input_u16(in) * 4ull;
			range[i].len = input_u16(in);
			range[i].gva = TEXT_GVA + (how & 8 ? range[i].gpa : input_u16(in) * 4ull);
		}
	}
	if (how & 16)
		((uint8_t *)range)[input_u8(in)] = input_u8(in);
	page->hello.nr_ranges = how & 32 ? input_u32(in) : nr;
	page->hello.ranges_gpa = LIST;
	page->hello.probe_gva[0] = how & 64 ? input_u8(in) : 0;
	memset(page->hello.kernel, 'k', how & 128 ? sizeof(page->hello.kernel) : 3);
	memset(page->hello.agent, '1', how & 128 ? sizeof(page->hello.agent) : 3);
	lay_out(range, 8);
	submit(page);
}

/* What a byte of an entry's "how" asks for. */
#define HOW_STRADDLE   1u  /* it begins up to 5 bytes before the end of a page */
#define HOW_OTHER_TEXT 2u  /* its old bytes do not stand there */
#define HOW_CORRUPT    4u  /* a byte of the record is another one */
#define HOW_PAGE2      8u  /* its second page is somewhere */
#define HOW_BACK       16u /* it begins before the one before it ends */

/* The page that follows in the guest's addresses, most often. */
static uint64_t page_behind(uint64_t gpa)
{
	uint64_t next = (gpa | HVPOKE_PAGE_MASK) + 1;

	return next == MODEL_HOLE ? MODEL_HOLE + HVPOKE_PAGE_SIZE : next;
}

static void make_entry(struct input *in, struct hvpoke_entry *entry, uint64_t *at)
{
	uint8_t how = input_u8(in), pair = input_u8(in);
	const struct model_form *from = model_form(pair & 15), *to = model_form(pair >> 4);
	uint16_t distance = input_u16(in);
	unsigned int i;

	*at += how & HOW_BACK ? 0u - distance % 8 : distance % 1024;
	if (how & HOW_STRADDLE)
		*at = (*at | HVPOKE_PAGE_MASK) - distance % 5;
	memset(entry, 0, sizeof(*entry));
	entry->gpa = *at;
	entry->len = from->len;
	entry->kind = from->kind;
	memcpy(entry->old_insn, from->bytes, sizeof(entry->old_insn));
	memcpy(entry->new_insn, to->bytes, sizeof(entry->new_insn));
	for (i = from->fixed; i < from->len; i++)
		entry->old_insn[i] = input_u8(in);
	for (i = to->fixed; i < to->len; i++)
		entry->new_insn[i] = input_u8(in);
	if (how & HOW_PAGE2)
		entry->gpa2 = input_u8(in) * (uint64_t)HVPOKE_PAGE_SIZE;
	else if (entry->gpa % HVPOKE_PAGE_SIZE + entry->len > HVPOKE_PAGE_SIZE)
		entry->gpa2 = page_behind(entry->gpa);
	for (i = 0; i < entry->len && !(how & HOW_OTHER_TEXT); i++)
		guest_writes((uint32_t)model_byte_at(entry, i), &entry->old_insn[i], 1);
	if (how & HOW_CORRUPT)
		((uint8_t *)entry)[input_u8(in) % sizeof(*entry)] = input_u8(in);
	*at += entry->len;
}

/* In place of the number of entries: the host knows them. */
#define MAKE_UNDO 100

static void batch(struct input *in)
{
	struct hvpoke_cmd *page = command(HVPOKE_CMD_BATCH);
	struct hvpoke_entry entry[MAX_ENTRIES];
	uint8_t nr = input_u8(in);
	uint64_t at = TEXT + input_u16(in);

	if (nr == MAKE_UNDO) {
		page->batch.flags = HVPOKE_BATCH_UNDO;
		submit(page);
		return;
	}
	page->batch.nr_entries = nr > MAX_ENTRIES ? input_u32(in) : nr;
	nr = nr > MAX_ENTRIES ? MAX_ENTRIES : nr;
	for (uint8_t i = 0; i < nr; i++)
		make_entry(in, &entry[i], &at);
	page->batch.entries_gpa = LIST;
	lay_out(entry, nr);
	submit(page);
}

static void complete(struct input *in)
{
	struct hvpoke_cmd *page = command(HVPOKE_CMD_COMPLETE);
	uint8_t how = input_u8(in);
	const uint8_t *bytes;
	size_t len;

	page->complete.id = how & 1 ? input_u64(in) : g.last_id;
	page->complete.error = how & 2 ? input_u32(in) : 0;
	page->complete.more = how & 4;
	memset(page->complete.message, how, how & 8 ? sizeof(page->complete.message) : 0);
	bytes = input_bytes(in, HVPOKE_REQ_DATA, &len);
	if (len)
		memcpy(page->complete.data, bytes, len);
	/* Good keys up to the last byte. */
	for (len = how & 32 ? 0 : len; how & 32 && len < HVPOKE_REQ_DATA; len += 12)
		memcpy(page->complete.data + len, "\x0c\0\1\0\3\0\0\0key", 12);
	page->complete.data_len = how & 16 ? input_u32(in) : len;
	submit(page);
}

static void write_anything(struct input *in)
{
	uint32_t at = input_u16(in) * 4u;
	const uint8_t *bytes;
	size_t len;

	bytes = input_bytes(in, 256, &len);
	if (bytes)
		guest_writes(at, bytes, (uint32_t)len);
}

/* A write in the middle of one of the next commands. */
static void arm(struct input *in)
{
	struct armed *armed = &g.armed[input_u8(in) % MAX_ARMED];
	uint32_t at = input_u16(in);

	armed->countdown = input_u8(in) + 1u;
	/* To where things are looked at: the command, the list, the records, text, or anywhere. */
	switch (at & 7) {
	case 0: at = CMD + at / 8 % 64; break;
	case 1: at = LIST + at / 8 % 32; break;
	case 2:
	case 3: at = DATA + at / 8 % 1024; break;
	case 4: at = TEXT + at / 8; break;
	default: at = at * 4; break;
	}
	armed->at = at;
	armed->len = input_u8(in) % 8 + 1;
	for (unsigned int i = 0; i < armed->len; i++)
		armed->bytes[i] = input_u8(in);
}

/* ---- what the host's clients do ---- */

static void on_done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	struct hvp_key key;
	uint32_t at = 0, before = 0;
	int found;

	(void)arg;
	CHECK(id && g.submitted > g.done + g.cancelled);
	g.done++;
	if (outcome->lost)
		return;
	CHECK(strnlen(outcome->guest.message, sizeof(outcome->guest.message)) <
	      sizeof(outcome->guest.message));
	while ((found = hvp_key_next(&outcome->guest, &at, &key)) > 0) {
		CHECK(at > before && at <= HVPOKE_REQ_DATA && *key.name);
		before = at;
	}
	CHECK(found == 0 || found == -EPROTO);
}

static void client_asks(struct input *in)
{
	struct hvp_queries queries = {0};
	struct hvp_query_error error;
	uint32_t flags = input_u8(in) & 15;
	struct hvp_submission submission = {
		.idle_ms = 5,
		.queries = &queries,
		.done = on_done,
	};
	const uint8_t *bytes;
	int64_t id;
	size_t len;
	char *text;

	bytes = input_bytes(in, 256, &len);
	text = fuzz_string(bytes, len);
	if (hvp_queries_parse(text, &queries, &error))
		hvp_change_events("sched", true, &queries, &error);
	g.notify_err = input_u8(in) % 8 == 7 ? -EIO : 0;
	g.submitted++; /* done() may come before we know the id */
	submission.undo = flags & HVPOKE_REQ_UNDO ? input_u8(in) % 32 : 0;
	submission.flags = flags & HVPOKE_REQ_UNDO ? HVPOKE_REQ_UNDO : flags;
	id = hvp_guest_submit_request(g.guest, &submission);
	if (id < 0) {
		g.submitted--;
		CHECK(id == -ENODEV || id == -EBUSY || id == -EIO);
	} else if (!(submission.flags & HVPOKE_REQ_COUNT_IDLE) && g.nr_made < MAX_MADE) {
		bool none = flags & HVPOKE_REQ_UNDO;

		g.made[g.nr_made].id = (uint64_t)id;
		g.made[g.nr_made].undo = submission.undo;
		g.made[g.nr_made].len = none ? 0 : (uint32_t)queries.len;
		memcpy(g.made[g.nr_made++].data, queries.data, none ? 0 : queries.len);
	}
	hvp_queries_free(&queries);
	free(text);
}

static void step(struct input *in)
{
	uint8_t what = input_u8(in);

	switch (what & 15) {
	case 0:
	case 1: batch(in); break;
	case 2: hello(in); break;
	case 3: arm(in); break;
	case 4: client_asks(in); break;
	case 5: submit(command(HVPOKE_CMD_FETCH)); break;
	case 6: complete(in); break;
	case 7: write_anything(in); break;
	case 8: guest_rings((uint64_t)input_u8(in) * HVPOKE_PAGE_SIZE + !!(what & 16)); break;
	case 9: g.pause_err = (const int[]){0, -EBUSY, -ETIMEDOUT, -EIO}[input_u8(in) % 4]; break;
	case 10: g.cancelled += hvp_guest_cancel(g.guest, input_u8(in)); break;
	case 11: submit(command(HVPOKE_CMD_BYE)); break;
	case 12:
		hvp_guest_reset(g.guest);
		g.undo_id = 0;
		break;
	case 13:
		/* All that the guest may have is there again. */
		g.now_ns += batch_limits.seconds * 1000000000ull;
		g.batches_left = batch_limits.max_pauses;
		break;
	default: break;
	}
}

static uint8_t *map_ram(void)
{
	void *ram =
		mmap(NULL, MODEL_RAM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(ram != MAP_FAILED);
	return ram;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *ram, *expected;
	struct input in = {data, data + size};

	if (!ram) {
		ram = map_ram();
		expected = map_ram();
	}
	memset(ram, 0x5a, MODEL_RAM);
	memset(expected, 0x5a, MODEL_RAM);
	memset(&g, 0, offsetof(struct batch_guest, made));
	g.ram = ram;
	g.expected = expected;
	g.batches_left = batch_limits.max_pauses;
	g.guest = hvp_guest_new(&batch_backend, NULL);
	CHECK(g.guest);
	hvp_guest_limit(g.guest, &batch_limits);
	/* Never looked into: see __wrap_hvp_audit_batch(). */
	hvp_guest_set_audit(g.guest, (struct hvp_audit *)ram);
	for (int i = 0; i < MAX_STEPS && in.at < in.end && !g.kept_too_large; i++)
		step(&in);
	hvp_guest_free(g.guest);
	CHECK(g.submitted == g.done + g.cancelled);
	return 0;
}
