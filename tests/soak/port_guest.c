// SPDX-License-Identifier: GPL-2.0-or-later
/* An agent by the port, as small as proto/hvpoke_abi.h allows, without interrupts: it asks. */
#include <errno.h>

#include "../kvm/kernel_file.h"
#include "guests.h"
#include "orders.h"

/* The guest's physical memory, of which 64 MiB are wanted; the kernel is at KERNEL_ADDR. */
#define TEXT_ADDR 0x2000000u
#define CMD_ADDR  0x2100000u
#define LIST_ADDR 0x2101000u
#define DATA_ADDR 0x2102000u
#define STACK_TOP 0x3000000u

#define JMP_LEN 5

extern const uint8_t __start_guest_code[], __stop_guest_code[];

GUEST_INLINE volatile struct hvpoke_cmd *cmd(void)
{
	return (volatile struct hvpoke_cmd *)(uintptr_t)CMD_ADDR;
}

GUEST_INLINE uint32_t command(uint32_t number)
{
	cmd()->version = HVPOKE_ABI_VERSION;
	cmd()->cmd = number;
	cmd()->reserved = 0;
	cmd()->status = UINT32_MAX;
	guest_ring(CMD_ADDR / HVPOKE_PAGE_SIZE);
	return cmd()->status;
}

GUEST_INLINE void clear(uint64_t at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 8)
		*(volatile uint64_t *)(uintptr_t)(at + i) = 0;
}

GUEST_CODE static void lay_out(uint32_t nr_records)
{
	volatile struct hvpoke_page_list *list =
		(volatile struct hvpoke_page_list *)(uintptr_t)LIST_ADDR;

	clear(LIST_ADDR, HVPOKE_PAGE_SIZE);
	clear(DATA_ADDR, nr_records * 32);
	for (uint32_t i = 0; i * HVPOKE_ENTRIES_PER_PAGE < nr_records; i++)
		list->page_gpa[i] = DATA_ADDR + i * HVPOKE_PAGE_SIZE;
}

GUEST_CODE static void hello(void)
{
	volatile struct hvpoke_range *range = (volatile struct hvpoke_range *)(uintptr_t)DATA_ADDR;

	clear(CMD_ADDR, sizeof(struct hvpoke_cmd));
	lay_out(1);
	range->gpa = TEXT_ADDR;
	range->gva = TEXT_ADDR;
	range->len = ORDER_TEXT + HVPOKE_PAGE_SIZE; /* the last site goes beyond */
	cmd()->hello.nr_ranges = 1;
	cmd()->hello.ranges_gpa = LIST_ADDR;
	cmd()->hello.kernel[0] = 's';
	cmd()->hello.agent[0] = '1';
	while (command(HVPOKE_CMD_HELLO) != HVPOKE_OK)
		;
}

/* NOP or JMP. */
GUEST_INLINE void put(volatile uint8_t *at, bool jump)
{
	at[0] = jump ? 0xe9 : 0x0f;
	at[1] = jump ? 0x03 : 0x1f;
	at[2] = jump ? 0x00 : 0x44;
	at[3] = 0;
	at[4] = 0;
}

GUEST_INLINE bool holds(const volatile uint8_t *at, bool jump)
{
	return at[0] == (jump ? 0xe9 : 0x0f) && at[1] == (jump ? 0x03 : 0x1f) &&
	       at[2] == (jump ? 0x00 : 0x44) && !at[3] && !at[4];
}

GUEST_INLINE volatile uint8_t *site(uint32_t i)
{
	return (volatile uint8_t *)(uintptr_t)(TEXT_ADDR + i * ORDER_GAP + 62);
}

/* True if what came of it is what must come of it. */
GUEST_CODE static bool batch(uint32_t order, uint32_t *status)
{
	struct hvpoke_entry *entry = (struct hvpoke_entry *)(uintptr_t)DATA_ADDR;
	struct hvpoke_batch *to = (struct hvpoke_batch *)(uintptr_t)&cmd()->batch;
	uint32_t wanted;

	clear(CMD_ADDR, sizeof(struct hvpoke_cmd));
	lay_out(ORDER_SITES);
	for (uint32_t i = 0; i < ORDER_SITES; i++) {
		put(site(i), false);
		entry[i].gpa = (uintptr_t)site(i);
		entry[i].len = JMP_LEN;
		if ((entry[i].gpa & HVPOKE_PAGE_MASK) + JMP_LEN > HVPOKE_PAGE_SIZE)
			entry[i].gpa2 = (entry[i].gpa | HVPOKE_PAGE_MASK) + 1;
		put(entry[i].old_insn, false);
		put(entry[i].new_insn, true);
	}
	to->nr_entries = ORDER_SITES;
	to->entries_gpa = LIST_ADDR;
	wanted = order_spoil(order, to, entry, TEXT_ADDR);
	*status = command(HVPOKE_CMD_BATCH);
	for (uint32_t i = 0; i < ORDER_SITES; i++)
		if (!holds(site(i), *status == HVPOKE_OK))
			return false;
	return wanted == HVPOKE_OK || *status == wanted;
}

GUEST_INLINE void reset(void)
{
	for (;;)
		__asm__ volatile("outb %0, %1" : : "a"((uint8_t)6), "d"((uint16_t)0xcf9));
}

/* What waits, done and answered: its order, NR_ORDERS if nothing waits. */
GUEST_CODE static uint32_t serve(void)
{
	uint32_t order = ORDER_BATCH, error = 0, fallback = 0, applied = 0, status;
	volatile struct hvpoke_complete *answer = &cmd()->complete;
	uint64_t id;

	if (command(HVPOKE_CMD_FETCH) != HVPOKE_OK)
		return NR_ORDERS;
	id = cmd()->fetch.id;
	if (!(cmd()->fetch.flags & HVPOKE_REQ_COUNT_IDLE)) {
		order = ((const volatile struct hvpoke_query *)cmd()->fetch.data)->first_line;
		if (!batch(order, &fallback))
			error = EILSEQ;
		for (uint32_t i = 0; i < OWN_BATCHES; i++) {
			if (!batch(ORDER_BATCH, &status))
				error = EILSEQ;
			applied += status == HVPOKE_OK;
		}
	}
	clear(CMD_ADDR, sizeof(struct hvpoke_cmd));
	answer->id = id;
	answer->error = error;
	answer->bad_query = HVPOKE_NO_INDEX;
	answer->matched = OWN_BATCHES;
	answer->changed = applied;
	answer->fallback = fallback;
	command(HVPOKE_CMD_COMPLETE);
	return order;
}

GUEST_CODE static void agent(void)
{
	uint32_t order;

	hello();
	for (;;) {
		order = serve();
		if (order == ORDER_RESET)
			reset();
		if (order == ORDER_RELOAD)
			command(HVPOKE_CMD_BYE);
		if (order == ORDER_RELOAD || order == ORDER_HELLO)
			hello();
		for (volatile uint32_t wait = 20000; order == NR_ORDERS && wait; wait--)
			;
	}
}

GUEST_CODE __attribute__((naked)) static void entry(void)
{
	__asm__ volatile("mov %0, %%esp\n\tcall %P1" : : "i"(STACK_TOP), "i"(agent));
}

void port_guest_write_kernel(const char *path)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)entry;

	write_elf(path, __start_guest_code, (size_t)(__stop_guest_code - __start_guest_code),
		  (size_t)(at - __start_guest_code));
}
