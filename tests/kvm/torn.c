// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "torn.h"

#define NR_SITES   4
#define NR_STATES  16
#define NR_VCPUS   TORN_VCPUS
#define NR_FILLERS (TORN_SITES - NR_SITES)
#define FILLER_GAP 64
#define FILLER_LEN (NR_FILLERS * FILLER_GAP)
#define CODE_PAGES 8
#define CODE_SIZE  (CODE_PAGES * 4096u)
#define JMP_LEN	   5

struct shared {
	uint32_t pfn[NR_STATES]; /* from state i to i + 1 */
	uint32_t nr_batches;
	atomic_uint announced; /* batches that are about to be applied */
	struct torn_figures figures;
};
_Static_assert(sizeof(struct shared) <= GUEST_SHARED_SIZE,
	       "the guest's shared struct is too large");

/* Where the sites stand, from GUEST_MAP_VA. The walk begins at the first and ends with a ret. */
#define WALK 0x7010
static const uint32_t site_at[NR_SITES] = {
	WALK,
	0x13e, /* over the end of a 64-byte line */
	0xffd, /* over the end of a page */
	0x1020,
};

static const uint8_t nop[JMP_LEN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

/* Pads 1 to 15 of each site: 0x101 apart, so that the jumps differ in two bytes. */
static uint32_t pad_at(unsigned int site, unsigned int state)
{
	return 0x2000 + site * 0x1400 + state * 0x101;
}

static void jump(uint8_t *insn, uint32_t from, uint32_t to)
{
	uint32_t distance = to - (from + JMP_LEN);

	insn[0] = 0xe9;
	memcpy(insn + 1, &distance, sizeof(distance));
}

static void site_insn(uint8_t *insn, unsigned int site, unsigned int state)
{
	if (state)
		jump(insn, site_at[site], pad_at(site, state));
	else
		memcpy(insn, nop, sizeof(nop));
}

/* mov $state, %r8d .. %r11d; then jmp @to */
static void write_pad(uint8_t *code, uint32_t at, unsigned int site, uint32_t state, uint32_t to)
{
	code[at] = 0x41;
	code[at + 1] = (uint8_t)(0xb8 + site);
	memcpy(code + at + 2, &state, sizeof(state));
	jump(code + at + 6, at + 6, to);
}

static void write_code(uint8_t *code)
{
	const uint8_t ud2[2] = {0x0f, 0x0b};

	for (unsigned int i = 0; i < CODE_SIZE; i += sizeof(ud2))
		memcpy(code + i, ud2, sizeof(ud2));
	for (unsigned int site = 0; site < NR_SITES; site++) {
		uint32_t behind = site_at[site] + JMP_LEN;
		uint32_t next = site + 1 < NR_SITES ? site_at[site + 1] : behind + 11;

		site_insn(code + site_at[site], site, 0);
		/* State 0 falls through to its pad; all pads lead to the next site. */
		write_pad(code, behind, site, 0, next);
		for (unsigned int state = 1; state < NR_STATES; state++)
			write_pad(code, pad_at(site, state), site, state, next);
	}
	code[site_at[NR_SITES - 1] + JMP_LEN + 11] = 0xc3; /* ret */
}

GUEST_CODE static void walk(struct shared *s, uint64_t cpu)
{
	uint64_t target = GUEST_MAP_VA + WALK;
	uint32_t before, after, newest, seen[NR_SITES], age, last;
	register uint32_t r8 __asm__("r8");
	register uint32_t r9 __asm__("r9");
	register uint32_t r10 __asm__("r10");
	register uint32_t r11 __asm__("r11");

	before = atomic_load(&s->figures.done);
	__asm__ volatile("call *%4"
			 : "=r"(r8), "=r"(r9), "=r"(r10), "=r"(r11)
			 : "a"(target)
			 : "memory");
	seen[0] = r8;
	seen[1] = r9;
	seen[2] = r10;
	seen[3] = r11;
	after = atomic_load(&s->announced);

	newest = after - before;
	/* So long between two instructions that the numbers came round: nothing can be said. */
	if (newest >= NR_STATES)
		return;
	last = 0;
	for (unsigned int i = 0; i < NR_SITES; i++) {
		age = (seen[i] - before) % NR_STATES;
		GUEST_ASSERT(age >= last);
		GUEST_ASSERT(age <= newest);
		last = age;
	}
	if (seen[0] != seen[NR_SITES - 1])
		atomic_fetch_add_explicit(&s->figures.across[cpu], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->figures.walks[cpu], 1, memory_order_relaxed);
}

GUEST_CODE static void walk_on(uint64_t cpu, void *shared)
{
	for (;;)
		walk(shared, cpu);
}

GUEST_INLINE void note_pause(struct torn_figures *figures, uint64_t ns)
{
	figures->lengths[torn_length(ns / 1000)]++;
	if (ns > figures->longest_ns)
		figures->longest_ns = ns;
}

/* vCPU 0 applies the batches, and walks itself. */
GUEST_CODE static void patch_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	const volatile struct hvpoke_cmd *cmd;
	uint64_t walks;

	for (uint32_t i = 0; i < s->nr_batches; i++) {
		atomic_store(&s->announced, i + 1);
		guest_ring(s->pfn[i % NR_STATES]);
		atomic_store(&s->figures.done, i + 1);
		cmd = (const struct hvpoke_cmd *)(uintptr_t)(s->pfn[i % NR_STATES] * 4096ull);
		GUEST_ASSERT(cmd->status == HVPOKE_OK &&
			     cmd->batch.written == NR_SITES + NR_FILLERS);
		note_pause(&s->figures, cmd->batch.pause_ns);
		if (i % 16 == 0)
			walk(s, cpu);
		/* The others must get on, also where there are fewer cores than vCPUs. */
		if (i % 256 == 0) {
			uint32_t other = 1 + i / 256 % (NR_VCPUS - 1);

			walks = atomic_load(&s->figures.walks[other]);
			while (atomic_load(&s->figures.walks[other]) == walks)
				;
		}
	}
	guest_done();
}

GUEST_CODE static __attribute__((naked)) void torn(void)
{
	__asm__ volatile("mov %0, %%eax\n"
			 "mov %1, %%edx\n"
			 "out %%eax, %%dx\n"
			 "1: hlt\n"
			 "jmp 1b"
			 :
			 : "i"(__LINE__), "i"(GUEST_PORT));
}

static void fill_entry(struct hvpoke_entry *entry, const uint64_t *page, unsigned int site,
		       unsigned int state)
{
	uint32_t at = site_at[site];

	memset(entry, 0, sizeof(*entry));
	entry->gpa = page[at / 4096] + at % 4096;
	if (at % 4096 + JMP_LEN > 4096)
		entry->gpa2 = page[at / 4096 + 1];
	entry->len = JMP_LEN;
	site_insn(entry->old_insn, site, state);
	site_insn(entry->new_insn, site, (state + 1) % NR_STATES);
}

static void swap(struct hvpoke_entry *a, struct hvpoke_entry *b)
{
	struct hvpoke_entry other = *a;

	*a = *b;
	*b = other;
}

static void fill_filler(struct hvpoke_entry *entry, uint64_t addr, unsigned int state)
{
	memset(entry, 0, sizeof(*entry));
	entry->gpa = addr;
	entry->len = JMP_LEN;
	memcpy(entry->old_insn, nop, sizeof(nop));
	memcpy(entry->new_insn, nop, sizeof(nop));
	jump(state % 2 ? entry->old_insn : entry->new_insn, 0, FILLER_GAP);
}

/* Sorted as they stand in physical memory: site 0, the fillers, the other sites. */
static void make_batches(struct guest *guest, struct shared *shared, const uint64_t *page,
			 uint64_t fillers)
{
	static struct hvpoke_entry entry[1 + NR_FILLERS + NR_SITES - 1];
	struct hvpoke_entry *others = entry + 1 + NR_FILLERS;

	for (unsigned int state = 0; state < NR_STATES; state++) {
		fill_entry(&entry[0], page, 0, state);
		for (unsigned int i = 0; i < NR_FILLERS; i++)
			fill_filler(&entry[1 + i], fillers + i * FILLER_GAP, state);
		for (unsigned int site = 1; site < NR_SITES; site++)
			fill_entry(&others[site - 1], page, site, state);
		for (unsigned int i = 0; i < NR_SITES - 1; i++)
			for (unsigned int j = i + 1; j < NR_SITES - 1; j++)
				if (others[j].gpa < others[i].gpa)
					swap(&others[i], &others[j]);
		shared->pfn[state] = guest_batch(guest, entry, NR_SITES + NR_FILLERS);
	}
}

/*
 * Every other page, backwards, so that no two neighbours are neighbours in
 * physical memory; but the page of site 0 first, and the fillers behind it.
 */
static void place_pages(uint64_t text, uint64_t *page, struct hvpoke_range *range)
{
	uint64_t rest = text + 4096 + FILLER_LEN / 4096 * 4096 + 4096;

	page[CODE_PAGES - 1] = text;
	range[0] = (struct hvpoke_range){
		.gpa = text, .gva = GUEST_MAP_VA + (CODE_PAGES - 1) * 4096, .len = 4096};
	/* The fillers' addresses do not matter: they straddle nothing. */
	range[1] = (struct hvpoke_range){.gpa = text + 4096, .gva = 0x1000, .len = FILLER_LEN};
	for (unsigned int i = 0; i < CODE_PAGES - 1; i++) {
		page[i] = rest + 2 * (CODE_PAGES - 2 - i) * 4096;
		range[CODE_PAGES - i] = (struct hvpoke_range){
			.gpa = page[i], .gva = GUEST_MAP_VA + i * 4096, .len = 4096};
	}
}

struct torn_figures *torn_start(struct guest *guest, uint32_t nr_batches)
{
	static uint8_t code[CODE_SIZE];
	struct hvpoke_range range[1 + CODE_PAGES];
	uint64_t text, page[CODE_PAGES];
	struct shared *shared;

	guest_create(guest, NR_VCPUS, 32 << 20);
	shared = guest->shared;
	shared->nr_batches = nr_batches;
	text = guest_alloc(guest, FILLER_LEN + 2 * CODE_SIZE);
	place_pages(text, page, range);
	write_code(code);
	for (unsigned int i = 0; i < CODE_PAGES; i++)
		memcpy(guest_at(guest, page[i], 4096), code + i * 4096, 4096);
	for (unsigned int i = 0; i < NR_FILLERS; i++)
		memcpy(guest_at(guest, text + 4096 + i * FILLER_GAP, JMP_LEN), nop, JMP_LEN);
	guest_map(guest, page, CODE_PAGES);
	guest_hello_ranges(guest, range, 1 + CODE_PAGES);
	make_batches(guest, shared, page, text + 4096);
	guest_set_handler(guest, 6, torn);
	guest_enter_all(guest, walk_on);
	guest_enter(guest, 0, patch_on);
	guest_start(guest);
	return &shared->figures;
}
