/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_JOURNAL_H
#define HVPOKED_JOURNAL_H

#include <stdint.h>

#include "hvpoke_abi.h"
#include "record.h"

/*
 * The batch in hand, for the case that we are killed in the middle of it: which sites it
 * has, and what stood and is to stand there. It follows the record in the same file, one for
 * each QEMU process. It is there before the guest is paused, and gone as soon as all is
 * written and the mailbox says so (APPLIED): from then on the mailbox alone tells the truth.
 *
 * It outlives this process, not the host, with which the guest ends too. So nothing is
 * ever flushed to a disk.
 */

/*
 * Note @nr entries, which the agent of @session has handed over as the command @word. 0, or
 * -errno (a full disk), and then there is no journal.
 */
int journal_begin(struct record *record, int file, uint64_t word, uint64_t session,
		  const struct hvpoke_entry *entry, uint32_t nr);
/* Every site is old, or every one is new. */
void journal_end(struct record *record, int file);
/* Its entries, from malloc(). NULL with errno: EILSEQ if the file is damaged. */
struct hvpoke_entry *journal_read(const struct record *record, int file);

#endif /* HVPOKED_JOURNAL_H */
