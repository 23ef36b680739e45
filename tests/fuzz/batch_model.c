// SPDX-License-Identifier: GPL-2.0-or-later
#include "batch_model.h"

#include <string.h>

static const struct model_form forms[] = {
	{HVPOKE_SITE_INSN, 5, 5, false, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
	{HVPOKE_SITE_INSN, 5, 1, false, {0xe9}},
	{HVPOKE_SITE_INSN, 5, 1, false, {0xe8}},
	{HVPOKE_SITE_INSN, 2, 2, false, {0x66, 0x90}},
	{HVPOKE_SITE_INSN, 2, 1, false, {0xeb}},
	{HVPOKE_SITE_INSN, 5, 5, true, {0xc3, 0xcc, 0xcc, 0xcc, 0xcc}},
	{HVPOKE_SITE_INSN, 5, 5, true, {0x2e, 0x2e, 0x2e, 0x31, 0xc0}},
	{HVPOKE_SITE_INSN, 5, 5, true, {0x66, 0x66, 0x48, 0x31, 0xc0}},
	{HVPOKE_SITE_INSN, 5, 5, true, {0x67, 0x48, 0x0f, 0xb9, 0x3a}},
	{HVPOKE_SITE_INSN, 5, 5, true, {0x3e, 0x3e, 0xc6, 0x07, 0x00}},
	{HVPOKE_SITE_INSN, 6, 2, true, {0x0f, 0x84}},
	{HVPOKE_SITE_INSN, 6, 2, true, {0x0f, 0x8f}},
	/* Kprobes: only in pairs with the one that follows, or goes before. */
	{HVPOKE_SITE_PROBE, 1, 1, true, {0xcc}},
	{HVPOKE_SITE_PROBE, 1, 1, true, {0x55}},
	{HVPOKE_SITE_PROBE, 5, 1, true, {0xcc}},
	{HVPOKE_SITE_PROBE, 5, 1, true, {0xe9}},
};

#define NR_FORMS (sizeof(forms) / sizeof(*forms))

const struct model_form *model_form(unsigned int number)
{
	return &forms[number % NR_FORMS];
}

bool model_is_ram(uint64_t addr, uint64_t len)
{
	if (addr >= MODEL_RAM || len > MODEL_RAM - addr)
		return false;
	return addr + len <= MODEL_HOLE || addr >= MODEL_HOLE + HVPOKE_PAGE_SIZE;
}

bool model_ranges_good(const struct model_ranges *ranges)
{
	if (ranges->scope > HVPOKE_SCOPE_ALL)
		return false;
	for (uint32_t i = 0; i < ranges->nr; i++) {
		const struct hvpoke_range *range = &ranges->range[i];

		if (!range->len || !model_is_ram(range->gpa, range->len))
			return false;
		if (i && range->gpa < range[-1].gpa + range[-1].len)
			return false;
	}
	return true;
}

/* One of the instructions of the list, Jcc with any condition. */
static bool is_insn(const uint8_t *bytes, unsigned int len, uint32_t scope)
{
	if (len == 6 && scope == HVPOKE_SCOPE_ALL && bytes[0] == 0x0f && bytes[1] >= 0x80 &&
	    bytes[1] <= 0x8f)
		return true;
	for (size_t i = 0; i < NR_FORMS; i++)
		if (forms[i].kind == HVPOKE_SITE_INSN && forms[i].len == len &&
		    (!forms[i].all || scope == HVPOKE_SCOPE_ALL) &&
		    !memcmp(forms[i].bytes, bytes, forms[i].fixed))
			return true;
	return false;
}

static bool is_probe(uint8_t from, uint8_t to, unsigned int len)
{
	if (len == 1)
		return (from == 0xcc) != (to == 0xcc);
	return len == 5 && ((from == 0xcc && to == 0xe9) || (from == 0xe9 && to == 0xcc));
}

static bool is_insn_pair(const struct hvpoke_entry *entry, uint32_t scope)
{
	if (entry->len > HVPOKE_MAX_INSN || entry->reserved[0] || entry->reserved[1])
		return false;
	for (unsigned int i = entry->len; i < HVPOKE_MAX_INSN; i++)
		if (entry->old_insn[i] || entry->new_insn[i])
			return false;
	if (entry->kind == HVPOKE_SITE_PROBE)
		return scope == HVPOKE_SCOPE_ALL &&
		       is_probe(entry->old_insn[0], entry->new_insn[0], entry->len);
	return entry->kind == HVPOKE_SITE_INSN && is_insn(entry->old_insn, entry->len, scope) &&
	       is_insn(entry->new_insn, entry->len, scope);
}

uint64_t model_byte_at(const struct hvpoke_entry *entry, unsigned int i)
{
	uint64_t first = HVPOKE_PAGE_SIZE - entry->gpa % HVPOKE_PAGE_SIZE;

	return i < first ? entry->gpa + i : entry->gpa2 + (i - first);
}

const struct hvpoke_range *model_range(const struct model_ranges *ranges, uint64_t gpa)
{
	for (uint32_t i = 0; i < ranges->nr; i++)
		if (gpa >= ranges->range[i].gpa &&
		    gpa < ranges->range[i].gpa + ranges->range[i].len)
			return &ranges->range[i];
	return NULL;
}

/* The kernel address of a byte of text; 0 if it is none. */
static uint64_t gva_of(const struct model_ranges *ranges, uint64_t gpa)
{
	const struct hvpoke_range *range = model_range(ranges, gpa);

	return range ? range->gva + (gpa - range->gpa) : 0;
}

/* The part of the entry from byte @from to byte @to is in one range. */
static bool in_one_range(const struct model_ranges *ranges, const struct hvpoke_entry *entry,
			 unsigned int from, unsigned int to)
{
	uint64_t first = model_byte_at(entry, from), last = model_byte_at(entry, to - 1);

	for (uint32_t i = 0; i < ranges->nr; i++)
		if (first >= ranges->range[i].gpa &&
		    last < ranges->range[i].gpa + ranges->range[i].len)
			return last < MODEL_RAM;
	return false;
}

static bool is_place(const struct model_ranges *ranges, const struct hvpoke_entry *entry)
{
	uint64_t room = HVPOKE_PAGE_SIZE - entry->gpa % HVPOKE_PAGE_SIZE;
	unsigned int first = entry->len < room ? entry->len : (unsigned int)room;

	if (entry->gpa >= MODEL_RAM || !in_one_range(ranges, entry, 0, first))
		return false;
	if (first == entry->len)
		return !entry->gpa2;
	return entry->gpa2 && entry->gpa2 % HVPOKE_PAGE_SIZE == 0 && entry->gpa2 < MODEL_RAM &&
	       in_one_range(ranges, entry, first, entry->len) &&
	       gva_of(ranges, entry->gpa) + first == gva_of(ranges, entry->gpa2);
}

bool model_batch_good(const struct model_ranges *ranges, const struct hvpoke_entry *entry,
		      uint32_t nr)
{
	static bool taken[MODEL_RAM];
	uint32_t i;
	bool good = true;

	for (i = 0; i < nr && good; i++)
		good = is_insn_pair(&entry[i], ranges->scope) && is_place(ranges, &entry[i]) &&
		       (!i || entry[i].gpa > entry[i - 1].gpa);
	for (i = 0; i < nr && good; i++) {
		for (unsigned int j = 0; j < entry[i].len; j++) {
			good &= !taken[model_byte_at(&entry[i], j)];
			taken[model_byte_at(&entry[i], j)] = true;
		}
	}
	while (i--)
		for (unsigned int j = 0; good && j < entry[i].len; j++)
			taken[model_byte_at(&entry[i], j)] = false;
	if (!good)
		memset(taken, 0, sizeof(taken));
	return good;
}

bool model_old_stands(const uint8_t *ram, const struct hvpoke_entry *entry)
{
	for (unsigned int j = 0; j < entry->len; j++)
		if (ram[model_byte_at(entry, j)] != entry->old_insn[j])
			return false;
	return true;
}

void model_write(uint8_t *ram, const struct hvpoke_entry *entry, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		for (unsigned int j = 0; j < entry[i].len; j++)
			ram[model_byte_at(&entry[i], j)] = entry[i].new_insn[j];
}
