/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SOAK_ORDERS_H
#define TESTS_SOAK_ORDERS_H

#include "../kvm/guest.h"

/*
 * What the guests of the soak do when the host toggles "line N +p", N being one of these;
 * without a line, an honest batch. Both kinds of guest include this file.
 */
enum order {
	ORDER_BATCH,
	/* A batch that must be refused, and not one byte of it written. */
	ORDER_MISMATCH,
	ORDER_OUTSIDE,
	ORDER_NO_RAM,
	ORDER_OPCODE,
	ORDER_UNSORTED,
	ORDER_OVERLAP,
	ORDER_KIND,
	ORDER_HEADER,
	ORDER_TOO_LARGE,
	ORDER_NO_LIST,
	ORDER_LAST_BAD = ORDER_NO_LIST,
	/* And after the answer: */
	ORDER_HELLO,   /* register once more, as when a module has come */
	ORDER_RELOAD,  /* unload the agent, and load another one */
	ORDER_RESET,   /* the guest reboots */
	ORDER_MONITOR, /* QEMU's monitor connects anew */
	ORDER_AGAIN,   /* QEMU ends, and another of its name starts */
	NR_ORDERS,
};

#define ORDER_SITES 1024u
#define ORDER_GAP   64u
#define ORDER_TEXT  (ORDER_SITES * ORDER_GAP)

/* Spoil an honest batch at @entry, of sites at @text. The status that it must get. */
GUEST_INLINE uint32_t order_spoil(uint32_t order, struct hvpoke_batch *batch,
				  struct hvpoke_entry *entry, uint64_t text)
{
	if (order == ORDER_MISMATCH) {
		entry[7].old_insn[1] ^= 1;
		entry[7].old_insn[0] = 0xe9;
		return HVPOKE_MISMATCH;
	}
	if (order == ORDER_OUTSIDE) {
		entry[ORDER_SITES - 1].gpa = text + 4 * ORDER_TEXT;
		entry[ORDER_SITES - 1].gpa2 = 0;
		return HVPOKE_NOT_TEXT;
	}
	if (order == ORDER_NO_RAM) {
		entry[ORDER_SITES - 1].gpa = 1ull << 62;
		entry[ORDER_SITES - 1].gpa2 = 0;
		return HVPOKE_BAD_GPA;
	}
	if (order == ORDER_OPCODE) {
		entry[9].new_insn[0] = 0xcc;
		return HVPOKE_BAD_OPCODE;
	}
	if (order == ORDER_UNSORTED) {
		entry[9].gpa = text;
		return HVPOKE_UNSORTED;
	}
	if (order == ORDER_OVERLAP) {
		entry[9].gpa = entry[8].gpa + 1;
		return HVPOKE_OVERLAP;
	}
	if (order == ORDER_KIND) {
		entry[9].kind = 77;
		return HVPOKE_BAD_KIND;
	}
	if (order == ORDER_HEADER) {
		batch->flags = 1;
		return HVPOKE_BAD_HEADER;
	}
	if (order == ORDER_TOO_LARGE) {
		batch->nr_entries = HVPOKE_MAX_SITES + 1;
		return HVPOKE_TOO_LARGE;
	}
	if (order == ORDER_NO_LIST) {
		batch->entries_gpa = 1ull << 62;
		return HVPOKE_BAD_GPA;
	}
	return HVPOKE_OK;
}

#endif /* TESTS_SOAK_ORDERS_H */
