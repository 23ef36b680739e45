// SPDX-License-Identifier: GPL-2.0-or-later
/* Pages are made writable before the pause: without a change, and found out if impossible. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "fake_backend.h"
#include "touch.h"

static int setup(void **state)
{
	static struct fake fake;

	fake_init(&fake, FAKE_RAM);
	fake_hello(&fake);
	*state = &fake;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static long faults;

static void faults_at_pause(struct fake *fake)
{
	struct rusage usage;

	(void)fake;
	getrusage(RUSAGE_THREAD, &usage);
	faults = usage.ru_minflt + usage.ru_majflt;
}

static void faults_at_resume(struct fake *fake)
{
	long before = faults;

	faults_at_pause(fake);
	faults -= before;
}

/* Text that was never written to, every second page of it, some sites on two pages. */
static uint32_t sparse_sites(struct hvpoke_entry *entry)
{
	uint32_t nr = 0;
	uint64_t end;

	for (uint64_t page = 0; page < FAKE_TEXT_SIZE; page += 2 * HVPOKE_PAGE_SIZE) {
		end = FAKE_TEXT + page + HVPOKE_PAGE_SIZE;
		entry[nr] = fake_entry(end - 1 - nr % 8, FAKE_NOP5, FAKE_JMP5, nr);
		nr++;
	}
	return nr;
}

static void no_fault_in_the_pause(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry[FAKE_TEXT_SIZE / HVPOKE_PAGE_SIZE];
	uint32_t nr = sparse_sites(entry);

	for (uint32_t i = 0; i < nr; i++)
		fake_put(fake, &entry[i], entry[i].old_insn);
	assert_int_equal(fake_batch(fake, entry, nr), HVPOKE_OK); /* the engine's own pages */
	for (uint32_t i = 0; i < nr; i++)
		fake_put(fake, &entry[i], entry[i].old_insn);
	/* As if reclaimed: no page table entry is left, the contents are. */
	assert_int_equal(madvise(fake_at(fake, FAKE_TEXT), FAKE_TEXT_SIZE, MADV_DONTNEED), 0);
	fake->at_pause = faults_at_pause;
	fake->at_resume = faults_at_resume;
	assert_int_equal(fake_batch(fake, entry, nr), HVPOKE_OK);
#ifndef __SANITIZE_THREAD__ /* its shadow has faults of its own */
	assert_int_equal(faults, 0);
#endif
}

/* Found out before the pause, not by a signal in it. */
static void text_that_cannot_be_written(void **state)
{
	struct fake *fake = *state;
	struct hvpoke_entry entry = fake_entry(FAKE_TEXT + 0x5000, FAKE_NOP5, FAKE_JMP5, 1);

	fake_put(fake, &entry, entry.old_insn);
	mprotect(fake_at(fake, FAKE_TEXT + 0x5000), HVPOKE_PAGE_SIZE, PROT_READ);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_HOST_ERROR);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, HVPOKE_NO_INDEX);
	assert_int_equal(fake->pauses, 0);
	munmap(fake_at(fake, FAKE_TEXT + 0x5000), HVPOKE_PAGE_SIZE);
	assert_int_equal(fake_batch(fake, &entry, 1), HVPOKE_HOST_ERROR);
	assert_int_equal(fake->pauses, 0);
}

#define STORES 1000000

static atomic_bool stop;

static void *toucher(void *arg)
{
	struct fake *fake = arg;

	while (!stop)
		hvp_touch_by_store(fake_at(fake, FAKE_TEXT), 4 * HVPOKE_PAGE_SIZE);
	return NULL;
}

/* The way for old kernels: a store of the guest's beside it is never undone. */
static void touching_undoes_no_store(void **state)
{
	struct fake *fake = *state;
	uint8_t *byte = fake_at(fake, FAKE_TEXT + HVPOKE_PAGE_SIZE);
	unsigned int undone = 0;
	pthread_t thread;

	memset(fake_at(fake, FAKE_TEXT), 0x5a, 4 * HVPOKE_PAGE_SIZE);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, toucher, fake), 0);
	for (unsigned int i = 0; i < STORES; i++) {
		__atomic_store_n(byte, (uint8_t)i, __ATOMIC_SEQ_CST);
		undone += __atomic_load_n(byte, __ATOMIC_SEQ_CST) != (uint8_t)i;
	}
	stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(undone, 0);
	*byte = 0x5a;
	for (unsigned int i = 0; i < 4 * HVPOKE_PAGE_SIZE; i++)
		undone += *((uint8_t *)fake_at(fake, FAKE_TEXT) + i) != 0x5a;
	assert_int_equal(undone, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_fault_in_the_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(text_that_cannot_be_written, setup, teardown),
		cmocka_unit_test_setup_teardown(touching_undoes_no_store, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
