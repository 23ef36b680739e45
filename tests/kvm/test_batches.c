// SPDX-License-Identifier: GPL-2.0-or-later
/* Batches of unusual shape, and batches that must not be applied. */
#include <stdlib.h>
#include <string.h>

#include "kvm_test.h"

#define MANY	  65536u
#define MANY_TEXT (14u << 20)
#define INSN_LEN  5u

static const uint8_t nop[INSN_LEN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jmp[INSN_LEN] = {0xe9, 0x10, 0x00, 0x00, 0x00};
static const uint8_t int3 = 0xcc;

static struct hvpoke_entry entry_of(uint64_t addr, const uint8_t *from, const uint8_t *to)
{
	struct hvpoke_entry entry = {.gpa = addr, .len = INSN_LEN};

	memcpy(entry.old_insn, from, INSN_LEN);
	memcpy(entry.new_insn, to, INSN_LEN);
	return entry;
}

struct two_batches {
	uint32_t pfn[2];
};

GUEST_CODE static void ring_both(uint64_t cpu, void *shared)
{
	struct two_batches *s = shared;

	(void)cpu;
	guest_ring(s->pfn[0]);
	guest_ring(s->pfn[1]);
	guest_done();
}

static uint64_t many_at(uint64_t text, uint32_t i)
{
	return text + (uint64_t)i * (MANY_TEXT / MANY);
}

/* One batch, whatever its size: 65,536 sites over 14 MiB; all but the last undone again. */
static void test_65536_sites_in_one_batch(void **state)
{
	struct hvpoke_entry *entry = malloc(MANY * sizeof(*entry));
	struct two_batches *shared;
	struct hvp_stats stats;
	struct guest guest;
	uint64_t text;

	(void)state;
	NEED_KVM();
	assert_non_null(entry);
	guest_create(&guest, 1, 64 << 20);
	shared = guest.shared;
	text = guest_alloc(&guest, MANY_TEXT);
	guest_hello(&guest, text, MANY_TEXT);
	for (uint32_t i = 0; i < MANY; i++) {
		memcpy(guest_at(&guest, many_at(text, i), INSN_LEN), nop, INSN_LEN);
		entry[i] = entry_of(many_at(text, i), nop, jmp);
	}
	shared->pfn[0] = guest_batch(&guest, entry, MANY);
	for (uint32_t i = 0; i < MANY - 1; i++)
		entry[i] = entry_of(many_at(text, i), jmp, nop);
	shared->pfn[1] = guest_batch(&guest, entry, MANY - 1);
	guest_enter(&guest, 0, ring_both);
	guest_start(&guest);
	guest_finish(&guest, 60);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(guest_cmd(&guest, shared->pfn[i])->status, HVPOKE_OK);
		assert_int_equal(guest_cmd(&guest, shared->pfn[i])->batch.written, MANY - i);
	}
	hvp_guest_stats(guest.vm.guest, &stats);
	assert_int_equal(stats.pauses, 2);
	for (uint32_t i = 0; i < MANY; i++)
		assert_memory_equal(guest_at(&guest, many_at(text, i), INSN_LEN),
				    i < MANY - 1 ? nop : jmp, INSN_LEN);
	guest_destroy(&guest);
	free(entry);
}

/* A site over two pages that are far apart, at every place where it can be cut. */
static void test_straddling_site(void **state)
{
	struct two_batches *shared;
	struct hvpoke_range range[2];
	uint64_t text, page[2];
	struct guest guest;

	(void)state;
	NEED_KVM();
	for (unsigned int first = 1; first < INSN_LEN; first++) {
		struct hvpoke_entry entry;
		uint8_t *head, *tail;

		guest_create(&guest, 1, 16 << 20);
		shared = guest.shared;
		text = guest_alloc(&guest, 8 * 4096);
		page[0] = text + 6 * 4096;
		page[1] = text + 2 * 4096;
		range[0] = (struct hvpoke_range){page[1], GUEST_MAP_VA + 4096, 4096, 0};
		range[1] = (struct hvpoke_range){page[0], GUEST_MAP_VA, 4096, 0};
		guest_hello_ranges(&guest, range, 2);
		/* What lies around the site, and where it would be if the pages were neighbours. */
		memset(guest_at(&guest, text, 8 * 4096), 0xf4, 8 * 4096);
		head = guest_at(&guest, page[0] + 4096 - first, first);
		tail = guest_at(&guest, page[1], INSN_LEN - first);
		memcpy(head, nop, first);
		memcpy(tail, nop + first, INSN_LEN - first);

		entry = entry_of(page[0] + 4096 - first, nop, jmp);
		entry.gpa2 = page[1];
		shared->pfn[0] = guest_batch(&guest, &entry, 1);
		/* The same once more: the old bytes are gone, in both pages. */
		shared->pfn[1] = guest_batch(&guest, &entry, 1);
		guest_enter(&guest, 0, ring_both);
		guest_start(&guest);
		guest_finish(&guest, 10);

		assert_int_equal(guest_cmd(&guest, shared->pfn[0])->status, HVPOKE_OK);
		assert_int_equal(guest_cmd(&guest, shared->pfn[1])->status, HVPOKE_MISMATCH);
		assert_memory_equal(head, jmp, first);
		assert_memory_equal(tail, jmp + first, INSN_LEN - first);
		assert_int_equal(head[-1], 0xf4);
		assert_int_equal(tail[INSN_LEN - first], 0xf4);
		assert_int_equal(head[first], 0xf4); /* the next page in physical memory */
		guest_destroy(&guest);
	}
}

#define ROUNDS 20000

struct own_patching {
	uint32_t pfn;
	uint64_t site;
	atomic_uint arrived;
	uint32_t applied, refused, wrong;
};

/* As text_poke_bp() does it: the first byte is an INT3 while the others are in question. */
GUEST_CODE static void patch_own_text(uint64_t cpu, void *shared)
{
	struct own_patching *s = shared;
	volatile uint8_t *site = (volatile uint8_t *)(uintptr_t)s->site;

	(void)cpu;
	atomic_store(&s->arrived, 1);
	for (;;) {
		*site = 0xcc;
		for (volatile int delay = 0; delay < 5; delay++)
			;
		*site = 0x0f;
		for (volatile int delay = 0; delay < 5; delay++)
			;
	}
}

GUEST_CODE static void batch_meanwhile(uint64_t cpu, void *shared)
{
	struct own_patching *s = shared;
	const volatile struct hvpoke_cmd *cmd =
		(const struct hvpoke_cmd *)(uintptr_t)(s->pfn * 4096ull);

	(void)cpu;
	while (!atomic_load(&s->arrived))
		;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		guest_ring(s->pfn);
		if (cmd->status == HVPOKE_OK && cmd->batch.written == 2)
			s->applied++;
		else if (cmd->status == HVPOKE_MISMATCH && !cmd->batch.written &&
			 cmd->batch.bad_index == 1)
			s->refused++;
		else
			s->wrong++;
	}
	guest_done();
}

/*
 * CASES 9: a guest in the middle of its own INT3 patching makes verification
 * fail, and nothing is written. What the other vCPU had written before it was
 * stopped is seen, so that each batch finds either the INT3 or the whole NOP.
 */
static void test_case_9_guest_in_the_middle_of_patching(void **state)
{
	struct own_patching *shared;
	struct hvpoke_entry entry[2];
	struct guest guest;
	uint64_t text;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 2, 16 << 20);
	shared = guest.shared;
	text = guest_alloc(&guest, 4096);
	guest_hello(&guest, text, 4096);
	shared->site = text + 64;
	/* Site 0 would show if a refused batch wrote anything; site 1 is written with what it is. */
	memcpy(guest_at(&guest, text, INSN_LEN), nop, INSN_LEN);
	memcpy(guest_at(&guest, shared->site, INSN_LEN), nop, INSN_LEN);
	entry[0] = entry_of(text, nop, nop);
	entry[1] = entry_of(shared->site, nop, nop);
	shared->pfn = guest_batch(&guest, entry, 2);
	guest_enter(&guest, 0, batch_meanwhile);
	guest_enter(&guest, 1, patch_own_text);
	guest_start(&guest);
	guest_finish(&guest, 120);
	print_message("# %u batches applied, %u refused\n", shared->applied, shared->refused);
	assert_int_equal(shared->wrong, 0);
	assert_int_equal(shared->applied + shared->refused, ROUNDS);
	assert_true(shared->applied > 0);
	assert_true(shared->refused > 0);
	guest_destroy(&guest);
}

/* All or nothing: the last of three has an INT3, so the first two stay as they are. */
static void test_case_9_refused_batch_writes_nothing(void **state)
{
	struct hvpoke_entry entry[3];
	struct two_batches *shared;
	struct guest guest;
	uint64_t text;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 1, 16 << 20);
	shared = guest.shared;
	text = guest_alloc(&guest, 4096);
	guest_hello(&guest, text, 4096);
	for (uint32_t i = 0; i < 3; i++) {
		memcpy(guest_at(&guest, text + 64 * i, INSN_LEN), nop, INSN_LEN);
		entry[i] = entry_of(text + 64 * i, nop, jmp);
	}
	*(uint8_t *)guest_at(&guest, text + 128, 1) = int3;
	shared->pfn[0] = guest_batch(&guest, entry, 3);
	shared->pfn[1] = guest_batch(&guest, entry, 2);
	guest_enter(&guest, 0, ring_both);
	guest_start(&guest);
	guest_finish(&guest, 10);
	assert_int_equal(guest_cmd(&guest, shared->pfn[0])->status, HVPOKE_MISMATCH);
	assert_int_equal(guest_cmd(&guest, shared->pfn[0])->batch.bad_index, 2);
	assert_int_equal(guest_cmd(&guest, shared->pfn[0])->batch.written, 0);
	/* The second finds the first two as they were. */
	assert_int_equal(guest_cmd(&guest, shared->pfn[1])->status, HVPOKE_OK);
	assert_int_equal(*(uint8_t *)guest_at(&guest, text + 128, 1), int3);
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_65536_sites_in_one_batch),
		cmocka_unit_test(test_straddling_site),
		cmocka_unit_test(test_case_9_guest_in_the_middle_of_patching),
		cmocka_unit_test(test_case_9_refused_batch_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
