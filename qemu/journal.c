// SPDX-License-Identifier: GPL-2.0-or-later
#include "journal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"

/* Where the entries begin in the file: behind the page that is mapped. */
#define AT 4096
/* More than this is not kept of a file in memory, as /run is, from batch to batch. */
#define KEEP (512u << 10)

/* Not against malice, since the directory is ours alone: against a file that is cut off. */
static uint64_t checksum(const struct hvpoke_entry *entry, uint32_t nr)
{
	const uint64_t *word = (const uint64_t *)entry;
	uint64_t sum = nr;

	for (size_t i = 0; i < nr * sizeof(*entry) / sizeof(*word); i++)
		sum = (sum ^ word[i]) * 0x100000001b3ull; /* FNV-1a's prime */
	return sum;
}

static int write_entries(int file, const struct hvpoke_entry *entry, size_t len)
{
	ssize_t now;
	int err = fault("journal-write");

	for (size_t done = 0; !err && done<len; done += now> 0 ? now : 0) {
		now = pwrite(file, (const char *)entry + done, len - done, AT + (off_t)done);
		if (!now || (now < 0 && errno != EINTR))
			err = now ? -errno : -ENOSPC;
	}
	return err;
}

/* The disk's space. If that fails it is given back with the file. */
static void give_back(struct record *record, int file)
{
	if (!ftruncate(file, AT))
		record->journal.nr = 0;
}

int journal_begin(struct record *record, int file, uint64_t word, uint64_t session,
		  const struct hvpoke_entry *entry, uint32_t nr)
{
	int err = write_entries(file, entry, nr * sizeof(*entry));

	if (err) {
		give_back(record, file);
		return err;
	}
	record->journal.session = session;
	record->journal.sum = checksum(entry, nr);
	record->journal.nr = nr;
	/* Last: from here on it counts, should we be killed between any two of these stores. */
	__atomic_store_n(&record->journal.word, word, __ATOMIC_SEQ_CST);
	return 0;
}

void journal_end(struct record *record, int file)
{
	__atomic_store_n(&record->journal.word, 0, __ATOMIC_SEQ_CST);
	if (record->journal.nr > KEEP / sizeof(struct hvpoke_entry))
		give_back(record, file);
}

struct hvpoke_entry *journal_read(const struct record *record, int file)
{
	size_t len = record->journal.nr * sizeof(struct hvpoke_entry), done = 0;
	struct hvpoke_entry *entry;
	ssize_t got;

	if (record->journal.nr > HVPOKE_MAX_SITES) {
		errno = EILSEQ;
		return NULL;
	}
	entry = malloc(len);
	while (entry && done < len) {
		got = pread(file, (char *)entry + done, len - done, AT + (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += got;
	}
	if (entry && (done < len || checksum(entry, record->journal.nr) != record->journal.sum)) {
		free(entry);
		errno = EILSEQ;
		return NULL;
	}
	return entry;
}
