// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CASES 5: another vCPU changes the batch, its list and the command page while
 * the host works on them, during 100,000 batches. Each is applied whole or not at all, and
 * nothing but sites of the batch changes.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_backend.h"

#define ROUNDS	 100000
#define NR_SITES 24
#define STEP	 257
#define FIRST	 (FAKE_TEXT + HVPOKE_PAGE_SIZE - 2 - 15 * STEP) /* the 16th straddles two pages */
#define DATA	 (FAKE_LIST + HVPOKE_PAGE_SIZE)

/*
 * The batch in both directions. They differ in two words of an entry: old and new bytes.
 * An entry of which one word is of either direction must never be a good one of a third
 * kind, which would be applied and change nothing. So the sites are optimized
 * kprobes: a jump for a jump, and INT3 for INT3, is refused.
 */
static struct hvpoke_entry batch[2][NR_SITES];
static atomic_uint direction; /* which of them is next */
static atomic_bool stop;

static void store(struct fake *fake, uint64_t addr, uint64_t value)
{
	__atomic_store_n((uint64_t *)fake_at(fake, addr), value, __ATOMIC_RELAXED);
}

static uint64_t entry_word(unsigned int i, unsigned int word)
{
	const struct hvpoke_entry *entry = &batch[atomic_load(&direction)][i];
	uint64_t value;

	memcpy(&value, (const uint8_t *)entry + word * sizeof(value), sizeof(value));
	return value;
}

static uint64_t entry_word_gpa(unsigned int i, unsigned int word)
{
	return DATA + i * sizeof(**batch) + word * sizeof(uint64_t);
}

static void spin(unsigned int nr)
{
	while (nr--)
		asm volatile("pause");
}

static uint64_t random64(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Spoil one word in a way that somebody after control of the host would choose, then mend it. */
static void *spoiler(void *arg)
{
	struct fake *fake = arg;
	uint64_t chance, at, mended;
	unsigned int i, word;

	while (!stop) {
		chance = random64();
		i = chance % NR_SITES;
		word = (chance >> 8) % 4;
		at = entry_word_gpa(i, word);
		mended = entry_word(i, word);
		switch ((chance >> 16) % 4) {
		case 0: store(fake, at, 0xcccccccccccccccc); break;
		case 1: /* a place outside of the text */
			at = entry_word_gpa(i, 0);
			mended = entry_word(i, 0);
			store(fake, at, FAKE_RAM - 64);
			break;
		case 2: /* the list */
			at = FAKE_LIST + sizeof(uint64_t);
			mended = DATA;
			store(fake, at, FAKE_RAM + HVPOKE_PAGE_SIZE);
			break;
		default: /* the command: how many sites */
			at = FAKE_CMD + offsetof(struct hvpoke_cmd, batch.nr_entries);
			mended = NR_SITES;
			store(fake, at, UINT32_MAX);
		}
		spin((chance >> 24) % 256);
		store(fake, at, mended);
		spin((chance >> 32) % 1024); /* else no batch would be good */
	}
	return NULL;
}

static void write_batch(struct fake *fake)
{
	for (unsigned int i = 0; i < NR_SITES; i++)
		for (unsigned int word = 0; word < 4; word++)
			store(fake, entry_word_gpa(i, word), entry_word(i, word));
}

static void prepare(struct fake *fake, uint8_t *text[2])
{
	fake_init(fake, FAKE_RAM);
	fake->scope = HVPOKE_SCOPE_ALL;
	fake_hello(fake);
	memset(fake_at(fake, FAKE_TEXT), 0x5a, FAKE_RAM - FAKE_TEXT);
	for (unsigned int i = 0; i < NR_SITES; i++) {
		batch[0][i] =
			fake_entry(FIRST + i * STEP, FAKE_INT3_5, FAKE_PROBE_JMP5, 0x4400 + i);
		batch[1][i] =
			fake_entry(FIRST + i * STEP, FAKE_PROBE_JMP5, FAKE_INT3_5, 0x4400 + i);
	}
	for (unsigned int form = 2; form--;) {
		for (unsigned int i = 0; i < NR_SITES; i++)
			fake_put(fake, &batch[form][i], batch[form][i].old_insn);
		memcpy(text[form], fake_at(fake, FAKE_TEXT), FAKE_RAM - FAKE_TEXT);
	}
	assert_int_equal(fake_batch(fake, batch[0], NR_SITES), HVPOKE_OK);
	assert_int_equal(fake_batch(fake, batch[1], NR_SITES), HVPOKE_OK);
	direction = 0;
	write_batch(fake);
}

static void each_batch_is_whole_or_refused(void **state)
{
	static uint8_t probes[FAKE_RAM - FAKE_TEXT], jumps[FAKE_RAM - FAKE_TEXT];
	uint8_t *text[2] = {probes, jumps};
	unsigned int applied = 0;
	size_t size;
	pthread_t thread;
	struct fake fake;

	(void)state;
	prepare(&fake, text);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, spoiler, &fake), 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (hvp_guest_command(fake.guest, gpa(FAKE_CMD)) == HVPOKE_OK) {
			applied++;
			direction = !direction;
		}
		write_batch(&fake);
		/* All that is not the sites' as well, now and then: it takes long. */
		size = round % 2048 ? (NR_SITES + 1) * STEP : sizeof(probes);
		assert_true(!memcmp(fake_at(&fake, FAKE_TEXT), text[direction], size));
	}
	stop = true;
	pthread_join(thread, NULL);
	assert_memory_equal(fake_at(&fake, FAKE_TEXT), text[direction], sizeof(probes));
	print_message("%u of %u batches applied\n", applied, ROUNDS);
	assert_in_range(applied, ROUNDS / 100, ROUNDS - ROUNDS / 100);
	fake_free(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_batch_is_whole_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
