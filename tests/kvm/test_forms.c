// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every form that hvpoke writes, as parts of one function that another vCPU runs all the
 * time: each run sees whole instructions, of the state before a batch or after it, and
 * where the batch falls into a run, the one up to there and the other from there on.
 */
#include <string.h>

#include "kvm_test.h"

#define FLIPS 2000

/* Two forms of a site of the function, and where it is. */
struct form {
	uint8_t at, len, kind;
	uint8_t insn[2][HVPOKE_MAX_INSN];
};

/*
 * The function. It returns a bit for each site that is in state 1, the first site's
 * in bit 0. Displacements: to the next instruction but one, or to a helper behind the end.
 *
 *   0x00	XOR %eax, %eax		CALL 0x60 (MOV $1, %eax)
 *   0x05	JMP 0x0a		NOP
 *   0x07	 ADD $2, %eax
 *   0x0a	JMP 0x12		NOP
 *   0x0f	 ADD $4, %eax
 *   0x12	NOP			CALL 0x70 (ADD $8, %eax)
 *   0x17	XOR %ecx, %ecx (ZF)
 *   0x19	JE 0x22			JNE 0x22
 *   0x1f	 ADD $16, %eax
 *   0x22	RET			JMP 0x80 (ADD $32, %eax; RET)
 *   0x40	UD1, JMP: never run; as a trampoline that must not be called
 *   0x48	PUSH, INT3: a probe, never run
 *   0x50	INT3 and four bytes, JMP: an optimized one, likewise
 */
static const struct form forms[] = {
	{0x00, 5, HVPOKE_SITE_INSN, {{0x2e, 0x2e, 0x2e, 0x31, 0xc0}, {0xe8, 0x5b, 0, 0, 0}}},
	{0x05, 2, HVPOKE_SITE_INSN, {{0xeb, 0x03}, {0x66, 0x90}}},
	{0x0a, 5, HVPOKE_SITE_INSN, {{0xe9, 0x03, 0, 0, 0}, {0x0f, 0x1f, 0x44, 0x00, 0x00}}},
	{0x12, 5, HVPOKE_SITE_INSN, {{0x0f, 0x1f, 0x44, 0x00, 0x00}, {0xe8, 0x59, 0, 0, 0}}},
	{0x19, 6, HVPOKE_SITE_INSN, {{0x0f, 0x84, 0x03, 0, 0, 0}, {0x0f, 0x85, 0x03, 0, 0, 0}}},
	{0x22, 5, HVPOKE_SITE_INSN, {{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}, {0xe9, 0x59, 0, 0, 0}}},
	{0x40, 5, HVPOKE_SITE_INSN, {{0x67, 0x48, 0x0f, 0xb9, 0x3a}, {0xe9, 0x1b, 0, 0, 0}}},
	{0x48, 1, HVPOKE_SITE_PROBE, {{0x55}, {0xcc}}},
	{0x50, 5, HVPOKE_SITE_PROBE, {{0xcc, 0x48, 0x89, 0xe5, 0x41}, {0xe9, 0x2b, 0, 0, 0}}},
};

static const struct {
	uint8_t at, len;
	uint8_t code[8];
} rest[] = {
	{0x07, 3, {0x83, 0xc0, 0x02}},		/* ADD $2, %eax */
	{0x0f, 3, {0x83, 0xc0, 0x04}},		/* ADD $4, %eax */
	{0x17, 2, {0x31, 0xc9}},		/* XOR %ecx, %ecx */
	{0x1f, 3, {0x83, 0xc0, 0x10}},		/* ADD $16, %eax */
	{0x60, 6, {0xb8, 0x01, 0, 0, 0, 0xc3}}, /* MOV $1, %eax; RET */
	{0x70, 4, {0x83, 0xc0, 0x08, 0xc3}},	/* ADD $8, %eax; RET */
	{0x80, 4, {0x83, 0xc0, 0x20, 0xc3}},	/* ADD $32, %eax; RET */
};

#define NR_FORMS (sizeof(forms) / sizeof(*forms))
#define NR_RUN	 6u		      /* of them, that are run */
#define ALL_RUN	 ((1u << NR_RUN) - 1) /* what the function returns in state 1 */

struct shared {
	uint64_t text;
	uint32_t pfn[2]; /* the batch to the other state, by the state before */
	atomic_uint runs;
	uint32_t seen[2]; /* runs that were all of one state */
	uint32_t mixed;
};

/* Flip, let the other vCPU run the function twice from its start, flip back, ... */
GUEST_CODE static void flip(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	const volatile struct hvpoke_cmd *cmd;
	uint32_t before;

	(void)cpu;
	for (uint32_t i = 0; i < FLIPS; i++) {
		cmd = (const struct hvpoke_cmd *)(uintptr_t)(s->pfn[i % 2] * 4096ull);
		guest_ring(s->pfn[i % 2]);
		GUEST_ASSERT(cmd->status == HVPOKE_OK);
		before = atomic_load(&s->runs);
		while (atomic_load(&s->runs) - before < 2)
			;
	}
	guest_done();
}

GUEST_CODE static void run(uint64_t cpu, void *shared)
{
	struct shared *s = shared;
	uint32_t (*function)(void) = (uint32_t(*)(void))(uintptr_t)s->text;
	uint32_t value, changes;

	(void)cpu;
	for (;;) {
		value = function();
		GUEST_ASSERT(value <= ALL_RUN);
		/* Where neighbours differ: at one place at most, since no two flips fall into a run. */
		changes = (value ^ (value >> 1)) & (ALL_RUN >> 1);
		GUEST_ASSERT(!(changes & (changes - 1)));
		if (changes)
			s->mixed++;
		else
			s->seen[value & 1]++;
		atomic_fetch_add(&s->runs, 1);
	}
}

static void put_function(struct guest *guest, uint64_t text)
{
	memset(guest_at(guest, text, 4096), 0xf4, 4096);
	for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++)
		memcpy(guest_at(guest, text + rest[i].at, rest[i].len), rest[i].code, rest[i].len);
	for (size_t i = 0; i < NR_FORMS; i++)
		memcpy(guest_at(guest, text + forms[i].at, forms[i].len), forms[i].insn[0],
		       forms[i].len);
}

static uint32_t batch_from(struct guest *guest, uint64_t text, int state)
{
	struct hvpoke_entry entry[NR_FORMS];

	for (size_t i = 0; i < NR_FORMS; i++) {
		entry[i] = (struct hvpoke_entry){
			.gpa = text + forms[i].at, .len = forms[i].len, .kind = forms[i].kind};
		memcpy(entry[i].old_insn, forms[i].insn[state], HVPOKE_MAX_INSN);
		memcpy(entry[i].new_insn, forms[i].insn[!state], HVPOKE_MAX_INSN);
	}
	return guest_batch(guest, entry, NR_FORMS);
}

static void test_all_forms_while_they_run(void **state)
{
	struct shared *shared;
	struct hvp_stats stats;
	struct guest guest;
	uint8_t *text;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 2, 16 << 20);
	shared = guest.shared;
	shared->text = guest_alloc(&guest, 4096);
	put_function(&guest, shared->text);
	text = guest_at(&guest, shared->text, 4096);
	guest_hello_scope(&guest, shared->text, 4096, HVPOKE_SCOPE_ALL);
	for (int from = 0; from < 2; from++)
		shared->pfn[from] = batch_from(&guest, shared->text, from);
	guest_enter(&guest, 0, flip);
	guest_enter(&guest, 1, run);
	guest_start(&guest);
	guest_finish(&guest, 120);

	print_message("# %u runs: %u and %u of one state, %u with a batch between\n", shared->runs,
		      shared->seen[0], shared->seen[1], shared->mixed);
	assert_true(shared->seen[0] >= FLIPS / 4 && shared->seen[1] >= FLIPS / 4);
	hvp_guest_stats(guest.vm.guest, &stats);
	assert_int_equal(stats.batches, FLIPS);
	assert_int_equal(stats.sites, FLIPS * NR_FORMS);
	/* An even number of flips: all is as it was, what lies between the sites, too. */
	for (size_t i = 0; i < NR_FORMS; i++)
		assert_memory_equal(text + forms[i].at, forms[i].insn[0], forms[i].len);
	assert_int_equal(text[0x3f], 0xf4);
	assert_int_equal(text[0x45], 0xf4);
	assert_int_equal(text[0x49], 0xf4);
	assert_int_equal(text[0x55], 0xf4);
	guest_destroy(&guest);
}

/* The same batch from an agent that takes over less: not one byte is written. */
static void test_scope_is_needed(void **state)
{
	struct shared *shared;
	struct guest guest;
	uint8_t before[256];
	uint32_t pfn;

	(void)state;
	NEED_KVM();
	guest_create(&guest, 1, 16 << 20);
	shared = guest.shared;
	shared->text = guest_alloc(&guest, 4096);
	put_function(&guest, shared->text);
	memcpy(before, guest_at(&guest, shared->text, sizeof(before)), sizeof(before));
	guest_hello_scope(&guest, shared->text, 4096, HVPOKE_SCOPE_STATIC_KEYS);
	pfn = batch_from(&guest, shared->text, 0);
	assert_int_equal(hvp_guest_command(guest.vm.guest, gpa(pfn * 4096ull)), HVPOKE_BAD_OPCODE);
	assert_int_equal(guest_cmd(&guest, pfn)->batch.bad_index, 0);
	assert_memory_equal(guest_at(&guest, shared->text, sizeof(before)), before, sizeof(before));
	guest_destroy(&guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms_while_they_run),
		cmocka_unit_test(test_scope_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
