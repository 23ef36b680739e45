// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CASES 8: no vCPU ever runs between the first and the last write of a batch. As the pause
 * begins all its sites are old, before the first vCPU goes on all are new, and there is only
 * that one pause.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_backend.h"

#define NR_SITES 400 /* two a page: in the middle, and across its end */

static struct hvpoke_entry site[NR_SITES];
/* How many were new each time the guest stopped and each time it went on. */
static unsigned int nr_at_pause, nr_at_resume, new_at_pause[4], new_at_resume[4];

static int setup(void **state)
{
	static struct fake fake;

	fake_init(&fake, FAKE_RAM);
	fake_hello(&fake);
	for (unsigned int i = 0; i < NR_SITES; i++) {
		site[i] = fake_entry(FAKE_TEXT + i / 2 * 0x1000ull + (i % 2 ? 0xffd : 0x100),
				     FAKE_NOP5, FAKE_JMP5, i);
		fake_put(&fake, &site[i], site[i].old_insn);
	}
	nr_at_pause = 0;
	nr_at_resume = 0;
	*state = &fake;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

/* Any that is neither old nor new counts as far more than there are. */
static unsigned int count_new(struct fake *fake)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < NR_SITES; i++) {
		if (fake_holds(fake, &site[i], site[i].new_insn))
			nr++;
		else if (!fake_holds(fake, &site[i], site[i].old_insn))
			nr += 1000;
	}
	return nr;
}

static void note_pause(struct fake *fake)
{
	if (nr_at_pause < 4)
		new_at_pause[nr_at_pause++] = count_new(fake);
}

static void note_resume(struct fake *fake)
{
	if (nr_at_resume < 4)
		new_at_resume[nr_at_resume++] = count_new(fake);
}

static void case_8_all_sites_in_one_pause(void **state)
{
	struct fake *fake = *state;

	fake->at_pause = note_pause;
	fake->at_resume = note_resume;
	assert_int_equal(fake_batch(fake, site, NR_SITES), HVPOKE_OK);
	assert_int_equal(new_at_pause[0], 0);
	assert_int_equal(new_at_resume[0], NR_SITES);
	assert_int_equal(nr_at_pause, 1);
	assert_int_equal(nr_at_resume, 1);
	assert_int_equal(count_new(fake), NR_SITES);
}

/* The guest changes a site on its way into the pause. */
static void spoil_the_last(struct fake *fake)
{
	((uint8_t *)fake_at(fake, site[NR_SITES - 1].gpa))[0] = 0xcc;
	note_pause(fake);
}

static void case_8_or_none_of_them(void **state)
{
	struct fake *fake = *state;

	fake->at_pause = spoil_the_last;
	fake->at_resume = note_resume;
	assert_int_equal(fake_batch(fake, site, NR_SITES), HVPOKE_MISMATCH);
	assert_int_equal(fake_cmd(fake)->batch.bad_index, NR_SITES - 1);
	assert_int_equal(nr_at_pause, 1);
	assert_int_equal(nr_at_resume, 1);
	/* The last is neither, and stays what the guest has made of it. */
	assert_int_equal(new_at_resume[0], 1000);
	assert_int_equal(count_new(fake), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(case_8_all_sites_in_one_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(case_8_or_none_of_them, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
