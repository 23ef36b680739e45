// SPDX-License-Identifier: GPL-2.0-or-later
#include "batch_guest.h"

#include <string.h>
#include <time.h>

#include "audit.h"

struct batch_guest g;

const struct hvp_limits batch_limits = {
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

void guest_writes(uint32_t at, const uint8_t *bytes, uint32_t len)
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

/* The log, whose thread nobody needs here: it gives each batch a number. */
uint64_t __wrap_hvp_audit_batch(struct hvp_audit *audit, const struct hvp_origin *origin,
				uint32_t sites, uint64_t undoes,
				const struct hvp_batch_result *result);
uint64_t __wrap_hvp_audit_answered(struct hvp_audit *audit, const struct hvp_origin *origin,
				   const struct hvp_outcome *outcome, bool late);
uint64_t __wrap_hvp_audit_unanswered(struct hvp_audit *audit, const struct hvp_origin *origin,
				     const char *why, const char *message);

uint64_t __wrap_hvp_audit_batch(struct hvp_audit *audit, const struct hvp_origin *origin,
				uint32_t sites, uint64_t undoes,
				const struct hvp_batch_result *result)
{
	(void)audit;
	(void)origin;
	(void)undoes;
	CHECK(result->written == 0 || result->written == sites);
	return ++g.batch_id;
}

uint64_t __wrap_hvp_audit_answered(struct hvp_audit *audit, const struct hvp_origin *origin,
				   const struct hvp_outcome *outcome, bool late)
{
	(void)audit;
	(void)origin;
	(void)outcome;
	(void)late;
	return 0;
}

uint64_t __wrap_hvp_audit_unanswered(struct hvp_audit *audit, const struct hvp_origin *origin,
				     const char *why, const char *message)
{
	(void)audit;
	(void)origin;
	(void)why;
	(void)message;
	return 0;
}

/* The text that all of the entry is in; NULL: none, or two. */
static const struct hvpoke_range *text_of(const struct hvpoke_entry *entry)
{
	const struct hvpoke_range *first, *last;

	first = model_range(&g.ranges, model_byte_at(entry, 0));
	last = model_range(&g.ranges, model_byte_at(entry, entry->len - 1u));
	return first && last && first->serial == last->serial ? first : NULL;
}

static bool is_label(const struct hvpoke_entry *entry)
{
	const struct model_form *nop = model_form(entry->len == 5 ? 0 : 3);
	const struct model_form *jmp = model_form(entry->len == 5 ? 1 : 4);
	bool from = !memcmp(entry->old_insn, nop->bytes, nop->fixed);
	bool to = !memcmp(entry->new_insn, nop->bytes, nop->fixed);

	return entry->kind == HVPOKE_SITE_INSN && (entry->len == 5 || entry->len == 2) &&
	       ((from && entry->new_insn[0] == jmp->bytes[0]) ||
		(to && entry->old_insn[0] == jmp->bytes[0]));
}

/* The batch that is in hand has been written: keep what puts it back. */
static void keep(void)
{
	struct kept *kept = &g.kept[g.nr_kept];
	const struct hvpoke_range *text;

	if (!g.nr)
		return;
	if (g.nr > MAX_ENTRIES) {
		g.kept_too_large = true;
		return;
	}
	kept->id = g.batch_id;
	kept->nr = g.nr;
	for (uint32_t i = 0; i < g.nr; i++) {
		text = text_of(&g.entry[i]);
		if (!text || !is_label(&g.entry[i]))
			return;
		kept->text[i] = *text;
		kept->entry[i] = g.entry[i];
		memcpy(kept->entry[i].old_insn, g.entry[i].new_insn, HVPOKE_MAX_INSN);
		memcpy(kept->entry[i].new_insn, g.entry[i].old_insn, HVPOKE_MAX_INSN);
	}
	g.nr_kept++;
}

/* Each of its sites is in the same text as before, and at the same address of the kernel's. */
static void prepare_undo(void)
{
	const struct hvpoke_range *text;
	const struct kept *kept = g.kept;

	while (kept < g.kept + g.nr_kept && kept->id != g.undo_id)
		kept++;
	if (!g.undo_id || kept == g.kept + g.nr_kept)
		return;
	g.can_undo = true;
	g.nr = kept->nr;
	for (uint32_t i = 0; i < g.nr; i++) {
		text = text_of(&kept->entry[i]);
		g.entry[i] = kept->entry[i];
		g.can_undo &= text && text->serial == kept->text[i].serial &&
			      text->gva - text->gpa == kept->text[i].gva - kept->text[i].gpa;
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
		g.undoes =
			g.header.cmd == HVPOKE_CMD_BATCH && g.body.batch.flags == HVPOKE_BATCH_UNDO;
		if (g.undoes)
			prepare_undo();
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
	CHECK(!g.too_many && (g.undoes ? g.can_undo : g.nr == g.body.batch.nr_entries));
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

const struct hvp_backend batch_backend = {
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
	good = (!in->flags ||
		(in->flags == HVPOKE_BATCH_UNDO && !in->nr_entries && !in->entries_gpa)) &&
	       in->nr_entries <= MODEL_MAX_SITES && agent.present;
	CHECK((status == HVPOKE_RATE) == (good && !g.batches_left));
	if (good && g.batches_left)
		g.batches_left--;
	else
		good = false;
	good = good && !g.too_many && (g.undoes ? g.can_undo : g.nr == in->nr_entries) &&
	       model_batch_good(&g.ranges, g.entry, g.nr);
	CHECK(g.paused == (good && !g.pause_err));
	CHECK((status == HVPOKE_OK) == (g.paused && g.bad == g.nr));
	CHECK((status == HVPOKE_MISMATCH) == (g.paused && g.bad < g.nr));
	CHECK(out->written == (status == HVPOKE_OK ? g.nr : 0));
	CHECK((out->pause_ns != 0) == g.paused);
	if (status == HVPOKE_MISMATCH)
		CHECK(out->bad_index == g.bad);
	else if (out->bad_index != HVPOKE_NO_INDEX)
		CHECK(!good && out->bad_index < (g.undoes ? g.nr : in->nr_entries));
	if (status == HVPOKE_OK)
		keep();
	/* Once for each request, and any bit of it counts. */
	if (in->flags & HVPOKE_BATCH_UNDO)
		g.undo_id = 0;
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
	if (strcmp(agent.kernel, g.agent.kernel) != 0 || strcmp(agent.agent, g.agent.agent) != 0 ||
	    agent.probe_gva[0] != g.agent.probe_gva[0]) {
		g.nr_kept = 0;
		g.undo_id = 0;
	}
	CHECK(agent.present && agent.nr_ranges == g.nr && agent.scope == in->scope);
	CHECK(strlen(agent.kernel) < sizeof(agent.kernel) &&
	      strlen(agent.agent) < sizeof(agent.agent));
}

static void check_fetch(const struct hvpoke_fetch *out)
{
	CHECK(out->id && out->data_len <= HVPOKE_REQ_DATA);
	g.last_id = out->id;
	g.undo_id = 0;
	for (uint32_t i = 0; i < g.nr_made; i++) {
		if (g.made[i].id != out->id)
			continue;
		CHECK(g.made[i].len == out->data_len &&
		      !memcmp(g.made[i].data, out->data, out->data_len));
		g.undo_id = g.made[i].undo;
	}
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
		/* The one before is forgotten also if there is no other. */
		if (status == HVPOKE_NO_REQUEST)
			g.undo_id = 0;
		if (status != HVPOKE_OK)
			break;
		check_fetch(&page->fetch);
		TAKE_OUT(fetch.id, fetch.data);
		break;
	case HVPOKE_CMD_COMPLETE:
		/* Once, and none but the one that it has. */
		CHECK(status != HVPOKE_OK || (g.last_id && g.body.complete.id == g.last_id));
		if (status == HVPOKE_OK)
			g.last_id = g.undo_id = 0;
		break;
	case HVPOKE_CMD_BYE: g.undo_id = 0; break;
	default: CHECK(status != HVPOKE_OK);
	}
}

/* What a host answers: neither the agent's own words nor none at all. */
static bool known_status(enum hvpoke_status status)
{
	return status <= HVPOKE_HOST_ERROR || status == HVPOKE_BAD_KIND || status == HVPOKE_RATE;
}

void guest_rings(uint64_t page)
{
	bool is_page = page % HVPOKE_PAGE_SIZE == 0 && model_is_ram(page, HVPOKE_PAGE_SIZE);
	enum hvpoke_status status;
	struct hvp_stats before, after;
	struct hvpoke_cmd out;
	bool batch;

	g.page = page;
	g.has_header = g.has_body = g.too_many = false;
	g.nr = g.bad = g.paused = 0;
	g.undoes = g.can_undo = false;
	hvp_guest_agent(g.guest, &g.agent);
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
