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
#include <time.h>

#include "batch_model.h"
#include "change.h"
#include "fuzz.h"
#include "guest.h"
#include "key_list.h"

/* Where a well-meaning guest keeps things. */
#define CMD	    0x1000u
#define LIST	    0x2000u
#define DATA	    0x3000u
#define TEXT	    0x20000u
#define TEXT_GVA    0xffffffff81000000ull
#define MAX_STEPS   24
#define MAX_ENTRIES 48
#define MAX_ARMED   8
#define MAX_MADE    256

struct armed {
	uint32_t countdown; /* 0: not armed */
	uint32_t at;
	uint8_t len;
	uint8_t bytes[8];
};

static struct state {
	struct hvp_guest *guest;
	uint8_t *ram;	   /* the guest's memory ... */
	uint8_t *expected; /* ... and what must stand there */
	struct model_ranges ranges;
	struct armed armed[MAX_ARMED];

	/* The command in hand. */
	uint64_t page;
	bool has_header, has_body, too_many, pausing;
	unsigned int paused;
	struct hvpoke_cmd header; /* as copied; likewise: */
	union {
		struct hvpoke_batch batch;
		struct hvpoke_hello hello;
		struct hvpoke_complete complete;
	} body;
	uint32_t nr;  /* records copied */
	uint32_t bad; /* the first one whose old bytes do not stand in the pause; @nr: none */
	struct hvpoke_entry entry[MODEL_MAX_SITES];
	int pause_err, notify_err;
	uint64_t now_ns;
	uint64_t batches_left;

	/* Host requests. */
	uint32_t submitted, done, cancelled, nr_made;
	uint64_t last_id;
	struct {
		uint64_t id;
		uint32_t len;
		uint8_t data[HVPOKE_REQ_DATA];
	} made[MAX_MADE]; /* last: not cleared for each input */
} g;

static const struct hvp_limits limits = {
	.max_sites = MODEL_MAX_SITES,
	.max_requests = HVP_MAX_REQUESTS,
	.max_pauses = 8,
	.seconds = 10,
};

/* Time passes when the input says so. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = (struct timespec){.tv_sec = (time_t)(g.now_ns / 1000000000)};
	return 0;
}

static void guest_writes(uint32_t at, const uint8_t *bytes, uint32_t len)
{
	if (!model_is_ram(at, len))
		return;
	memcpy(g.ram + at, bytes, len);
	memcpy(g.expected + at, bytes, len);
}

/* The engine has just looked at memory: whoever waits for that writes now. */
static void guest_runs(void)
{
	for (size_t i = 0; i < MAX_ARMED && !g.pausing; i++) {
		struct armed *armed = &g.armed[i];

		if (armed->countdown && !--armed->countdown)
			guest_writes(armed->at, armed->bytes, armed->len);
	}
}

/* Takes the place of patcher/copy.c's: the only way for anything of the guest's to the engine. */
void __real_hvp_copy_in(void *dst, const void *src, size_t len);
void __wrap_hvp_copy_in(void *dst, const void *src, size_t len);

static void note_records(const void *records, size_t len)
{
	size_t nr = len / sizeof(*g.entry);

	CHECK(len % sizeof(*g.entry) == 0);
	if (nr > MODEL_MAX_SITES - g.nr) {
		g.too_many = true;
		return;
	}
	memcpy(g.entry + g.nr, records, len);
	g.nr += nr;
}

/* Bytes of the command's IN fields; 0: it has none. */
static size_t body_size(uint32_t cmd)
{
	switch (cmd) {
	case HVPOKE_CMD_HELLO: return sizeof(g.body.hello);
	case HVPOKE_CMD_BATCH: return sizeof(g.body.batch);
	case HVPOKE_CMD_COMPLETE: return sizeof(g.body.complete);
	default: return 0;
	}
}

void __wrap_hvp_copy_in(void *dst, const void *src, size_t len)
{
	uint64_t at = (uint64_t)((const uint8_t *)src - g.ram);

	CHECK(model_is_ram(at, len));
	__real_hvp_copy_in(dst, src, len);
	if (!g.has_header) {
		CHECK(at == g.page && len == offsetof(struct hvpoke_cmd, hello));
		memcpy(&g.header, dst, len);
		g.has_header = true;
	} else if (!g.has_body) {
		CHECK(at == g.page + offsetof(struct hvpoke_cmd, hello));
		CHECK(len == body_size(g.header.cmd));
		memcpy(&g.body, dst, len);
		g.has_body = true;
	} else {
		note_records(dst, len);
	}
	guest_runs();
}

static void *translate(void *ctx, gpa_t addr, uint64_t len)
{
	(void)ctx;
	guest_runs();
	return model_is_ram(addr.addr, len) ? g.ram + addr.addr : NULL;
}

static int pause_all(void *ctx, struct hvp_pause_times *times)
{
	(void)ctx;
	CHECK(!g.pausing && !g.paused && g.has_body && g.header.cmd == HVPOKE_CMD_BATCH);
	CHECK(!g.too_many && g.nr == g.body.batch.nr_entries);
	CHECK(model_batch_good(&g.ranges, g.entry, g.nr));
	if (g.pause_err)
		return g.pause_err;
	/* What it does last before it stands still. */
	guest_runs();
	g.pausing = true;
	g.paused++;
	for (g.bad = 0; g.bad < g.nr && model_old_stands(g.ram, &g.entry[g.bad]); g.bad++)
		;
	times->kick_ns = 1000;
	return 0;
}

static void resume_all(void *ctx, struct hvp_pause_times *times)
{
	(void)ctx;
	CHECK(g.pausing);
	if (g.bad == g.nr)
		model_write(g.expected, g.entry, g.nr);
	CHECK(!memcmp(g.ram, g.expected, MODEL_RAM));
	g.pausing = false;
	times->wake_ns = 2000;
	guest_runs();
}

static int notify(void *ctx)
{
	(void)ctx;
	return g.notify_err;
}

static const struct hvp_backend backend = {
	.translate = translate,
	.pause = pause_all,
	.resume = resume_all,
	.notify = notify,
};

/* ---- after a command ---- */

/* The fields that the host may write: they hold what they hold. */
static void take_out(uint64_t from, uint64_t len)
{
	memcpy(g.expected + g.page + from, g.ram + g.page + from, len);
}

#define TAKE_OUT(first, last)                                                             \
	take_out(offsetof(struct hvpoke_cmd, first),                                      \
		 offsetof(struct hvpoke_cmd, last) - offsetof(struct hvpoke_cmd, first) + \
			 sizeof(((struct hvpoke_cmd *)0)->last))

static void check_batch(enum hvpoke_status status, const struct hvpoke_batch *out)
{
	const struct hvpoke_batch *in = &g.body.batch;
	struct hvp_agent_info agent;
	bool good;

	hvp_guest_agent(g.guest, &agent);
	/* Without a log nothing is kept that could be put back. */
	good = (!in->flags ||
		(in->flags == HVPOKE_BATCH_UNDO && !in->nr_entries && !in->entries_gpa)) &&
	       in->nr_entries <= MODEL_MAX_SITES && agent.present;
	CHECK((status == HVPOKE_RATE) == (good && !g.batches_left));
	if (good && g.batches_left)
		g.batches_left--;
	else
		good = false;
	good = good && !in->flags && !g.too_many && g.nr == in->nr_entries &&
	       model_batch_good(&g.ranges, g.entry, g.nr);
	CHECK(g.paused == (good && !g.pause_err));
	CHECK((status == HVPOKE_OK) == (g.paused && g.bad == g.nr));
	CHECK((status == HVPOKE_MISMATCH) == (g.paused && g.bad < g.nr));
	CHECK(out->written == (status == HVPOKE_OK ? g.nr : 0));
	CHECK((out->pause_ns != 0) == g.paused);
	if (status == HVPOKE_MISMATCH)
		CHECK(out->bad_index == g.bad);
	else if (out->bad_index != HVPOKE_NO_INDEX)
		CHECK(!good && out->bad_index < in->nr_entries);
}

static void check_hello(enum hvpoke_status status)
{
	const struct hvpoke_hello *in = &g.body.hello;
	static struct model_ranges ranges;
	struct hvp_agent_info agent;
	bool good = g.nr == in->nr_ranges && !g.too_many && !in->reserved;

	ranges.nr = g.nr;
	ranges.scope = in->scope;
	memcpy(ranges.range, g.entry, g.nr * sizeof(*ranges.range));
	good = good && model_ranges_good(&ranges);
	CHECK((status == HVPOKE_OK) == good);
	if (!good)
		return;
	g.ranges = ranges;
	hvp_guest_agent(g.guest, &agent);
	CHECK(agent.present && agent.nr_ranges == g.nr && agent.scope == in->scope);
	CHECK(strlen(agent.kernel) < sizeof(agent.kernel) &&
	      strlen(agent.agent) < sizeof(agent.agent));
}

static void check_fetch(const struct hvpoke_fetch *out)
{
	CHECK(out->id && out->data_len <= HVPOKE_REQ_DATA);
	g.last_id = out->id;
	for (uint32_t i = 0; i < g.nr_made; i++)
		if (g.made[i].id == out->id)
			CHECK(g.made[i].len == out->data_len &&
			      !memcmp(g.made[i].data, out->data, out->data_len));
}

static void check_out(enum hvpoke_status status, const struct hvpoke_cmd *page)
{
	switch (g.has_header && g.header.version == HVPOKE_ABI_VERSION && !g.header.reserved
			? g.header.cmd
			: 0) {
	case HVPOKE_CMD_BATCH:
		check_batch(status, &page->batch);
		TAKE_OUT(batch.bad_index, batch.apply_ns);
		break;
	case HVPOKE_CMD_HELLO:
		check_hello(status);
		TAKE_OUT(hello.features, hello.features);
		TAKE_OUT(hello.max_sites, hello.bad_index);
		break;
	case HVPOKE_CMD_FETCH:
		if (status != HVPOKE_OK)
			break;
		check_fetch(&page->fetch);
		TAKE_OUT(fetch.id, fetch.data);
		break;
	case HVPOKE_CMD_COMPLETE:
		/* Once, and none but the one that it has. */
		CHECK(status != HVPOKE_OK || (g.last_id && g.body.complete.id == g.last_id));
		if (status == HVPOKE_OK)
			g.last_id = 0;
		break;
	case HVPOKE_CMD_BYE: break;
	default: CHECK(status != HVPOKE_OK);
	}
}

/* What a host answers: neither the agent's own words nor none at all. */
static bool known_status(enum hvpoke_status status)
{
	return status <= HVPOKE_HOST_ERROR || status == HVPOKE_BAD_KIND || status == HVPOKE_RATE;
}

static void ring(uint64_t page)
{
	bool is_page = page % HVPOKE_PAGE_SIZE == 0 && model_is_ram(page, HVPOKE_PAGE_SIZE);
	enum hvpoke_status status;
	struct hvp_stats before, after;
	struct hvpoke_cmd out;
	bool batch;

	g.page = page;
	g.has_header = g.has_body = g.too_many = false;
	g.nr = g.bad = g.paused = 0;
	hvp_guest_stats(g.guest, &before);
	status = hvp_guest_command(g.guest, gpa(page));
	hvp_guest_stats(g.guest, &after);
	CHECK(!g.pausing && known_status(status) && g.has_header == is_page);
	batch = g.has_body && g.header.cmd == HVPOKE_CMD_BATCH;
	CHECK(after.batches - before.batches == (batch && status == HVPOKE_OK));
	CHECK(after.refused - before.refused == (batch && status != HVPOKE_OK));
	CHECK(after.sites - before.sites == (batch && status == HVPOKE_OK ? g.nr : 0));
	CHECK(after.pauses - before.pauses == g.paused);
	if (is_page) {
		memcpy(&out, g.ram + page, sizeof(out));
		CHECK(out.status == status);
		check_out(status, &out);
		TAKE_OUT(status, status);
	} else {
		CHECK(status == HVPOKE_BAD_GPA);
	}
	CHECK(!memcmp(g.ram, g.expected, MODEL_RAM));
}

/* ---- what the guest does ---- */

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
	ring(CMD);
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

static void batch(struct input *in)
{
	struct hvpoke_cmd *page = command(HVPOKE_CMD_BATCH);
	struct hvpoke_entry entry[MAX_ENTRIES];
	uint8_t nr = input_u8(in);
	uint64_t at = TEXT + input_u16(in);

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
	uint32_t flags = input_u8(in) & 7;
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
	id = hvp_guest_submit(g.guest, flags, 5, &queries, on_done, NULL);
	if (id < 0) {
		g.submitted--;
		CHECK(id == -ENODEV || id == -EBUSY || id == -EIO);
	} else if (!(flags & HVPOKE_REQ_COUNT_IDLE) && g.nr_made < MAX_MADE) {
		g.made[g.nr_made].id = (uint64_t)id;
		g.made[g.nr_made].len = (uint32_t)queries.len;
		memcpy(g.made[g.nr_made++].data, queries.data, queries.len);
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
	case 8: ring((uint64_t)input_u8(in) * HVPOKE_PAGE_SIZE + !!(what & 16)); break;
	case 9: g.pause_err = (const int[]){0, -EBUSY, -ETIMEDOUT, -EIO}[input_u8(in) % 4]; break;
	case 10: g.cancelled += hvp_guest_cancel(g.guest, input_u8(in)); break;
	case 11: submit(command(HVPOKE_CMD_BYE)); break;
	case 12: hvp_guest_reset(g.guest); break;
	case 13:
		/* All that the guest may have is there again. */
		g.now_ns += limits.seconds * 1000000000ull;
		g.batches_left = limits.max_pauses;
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
	memset(&g, 0, offsetof(struct state, made));
	g.ram = ram;
	g.expected = expected;
	g.batches_left = limits.max_pauses;
	g.guest = hvp_guest_new(&backend, NULL);
	CHECK(g.guest);
	hvp_guest_limit(g.guest, &limits);
	for (int i = 0; i < MAX_STEPS && in.at < in.end; i++)
		step(&in);
	hvp_guest_free(g.guest);
	CHECK(g.submitted == g.done + g.cancelled);
	return 0;
}
