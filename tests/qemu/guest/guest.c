// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest with an agent in it, as small as proto/hvpoke_shm.h allows: it finds the
 * device, says HELLO to whichever host is there, switches its sites when a host request
 * asks for it, and tells in the answer what they did when it ran them. It goes on running
 * them all the time, so that translated code of all of them exists.
 *
 * A toggle's "func" term chooses what is done:
 *
 *	mismatch	one entry has wrong old bytes
 *	outside		one entry is not in the registered text
 *	abandon		the batch is taken back as soon as the host has begun with it
 *	empty		a batch without sites
 *
 * The answer: matched = sites that ran their other half, after it; sites = written by the
 * host; fallback = the batch's status. The answer to "idle": ipis = the same as
 * matched, at that moment.
 */
#include "hvpoke_shm.h"

#define DEBUG_PORT  0xe9
#define PCI_ADDRESS 0xcf8
#define PCI_DATA    0xcfc

extern __u8 sites_page[], sites[], sites_end[];
void guest_main(void);

static volatile __u8 *shm;
static volatile __u8 *registers;
static __u64 seq, greeted, seen_requests;

static inline void out8(__u16 port, __u8 value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void out32(__u16 port, __u32 value)
{
	asm volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline __u32 in32(__u16 port)
{
	__u32 value;

	asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

/* QEMU's TSC counts nanoseconds under TCG, more under KVM: good enough for a timeout. */
static inline __u64 ticks(void)
{
	__u64 now;

	asm volatile("rdtsc" : "=A"(now));
	return now;
}

static void print(const char *text)
{
	while (*text)
		out8(DEBUG_PORT, *text++);
}

static void *copy(volatile void *to, const void *from, __u32 len)
{
	for (__u32 i = 0; i < len; i++)
		((volatile __u8 *)to)[i] = ((const __u8 *)from)[i];
	return (void *)to;
}

void *memcpy(void *to, const void *from, __SIZE_TYPE__ len);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ len)
{
	return copy(to, from, len);
}

void *memset(void *to, int value, __SIZE_TYPE__ len);
void *memset(void *to, int value, __SIZE_TYPE__ len)
{
	for (__u32 i = 0; i < len; i++)
		((volatile __u8 *)to)[i] = value;
	return to;
}

static int same(const volatile char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static __u32 pci_read(__u32 device, __u32 reg)
{
	out32(PCI_ADDRESS, 0x80000000 | device << 8 | reg);
	return in32(PCI_DATA);
}

static void pci_write(__u32 device, __u32 reg, __u32 value)
{
	out32(PCI_ADDRESS, 0x80000000 | device << 8 | reg);
	out32(PCI_DATA, value);
}

/* Every bus: the device may be behind a root port. */
static int find_device(void)
{
	for (__u32 device = 0; device < 65536; device++) {
		if (pci_read(device, 0) != (HVPOKE_SHM_PCI_DEVICE << 16 | HVPOKE_SHM_PCI_VENDOR))
			continue;
		pci_write(device, 4, pci_read(device, 4) | 2);
		registers = (void *)(pci_read(device, 0x10) & ~15u);
		shm = (void *)(pci_read(device, 0x18) & ~15u);
		return 1;
	}
	return 0;
}

static volatile struct hvpoke_shm_host *host(void)
{
	return (void *)(shm + HVPOKE_SHM_HOST);
}

static volatile struct hvpoke_shm_mail *mail(void)
{
	return (void *)(shm + HVPOKE_SHM_MAIL);
}

static volatile struct hvpoke_cmd *command(void)
{
	return (void *)(shm + HVPOKE_SHM_CMD);
}

static int exchange(__u32 from, __u32 to)
{
	return __sync_bool_compare_and_swap(&mail()->state, hvpoke_shm_word(seq, from),
					    hvpoke_shm_word(seq, to));
}

static __u32 state(void)
{
	/* A plain 64-bit load is two of 32 bits here. */
	return hvpoke_shm_state(__sync_val_compare_and_swap(&mail()->state, 0, 0));
}

/* What a former kernel left. */
static void settle(void)
{
	__u64 word = __sync_val_compare_and_swap(&mail()->state, 0, 0);

	seq = hvpoke_shm_seq(word);
	switch (hvpoke_shm_state(word)) {
	case HVPOKE_SHM_IDLE: return;
	case HVPOKE_SHM_RUNNING:
	case HVPOKE_SHM_APPLIED: exchange(hvpoke_shm_state(word), HVPOKE_SHM_ABANDONED); return;
	case HVPOKE_SHM_ABANDONED: return;
	default:
		__sync_bool_compare_and_swap(&mail()->state, word, hvpoke_shm_word(seq, 0));
		return;
	}
}

/* The command's status, or NO_STATUS if it was taken back. */
#define NO_STATUS 0xffffffffu
static __u32 ring(__u32 cmd, int abandon)
{
	__u64 start = ticks();
	__u32 status;

	command()->version = HVPOKE_ABI_VERSION;
	command()->cmd = cmd;
	command()->reserved = 0;
	command()->status = NO_STATUS;
	if (state() != HVPOKE_SHM_IDLE)
		return NO_STATUS;
	/* The number goes up with the exchange. */
	if (!__sync_bool_compare_and_swap(&mail()->state, hvpoke_shm_word(seq, HVPOKE_SHM_IDLE),
					  hvpoke_shm_word(seq + 1, HVPOKE_SHM_SUBMITTED)))
		return NO_STATUS;
	seq++;
	*(volatile __u32 *)(registers + HVPOKE_SHM_DOORBELL_REG) = host()->doorbell;
	while (state() != HVPOKE_SHM_DONE) {
		if (abandon && exchange(HVPOKE_SHM_RUNNING, HVPOKE_SHM_ABANDONED)) {
			while (state() == HVPOKE_SHM_ABANDONED)
				;
			return NO_STATUS;
		}
		if (ticks() - start > HVPOKE_SHM_TAKE_MS * 4000000ull &&
		    exchange(HVPOKE_SHM_SUBMITTED, HVPOKE_SHM_IDLE)) {
			print("withdrawn\n");
			return NO_STATUS;
		}
	}
	status = command()->status;
	exchange(HVPOKE_SHM_DONE, HVPOKE_SHM_IDLE);
	return status;
}

/* Page lists first, then the pages of the records. */
static __u64 lay_out(__u32 nr, volatile __u8 **records)
{
	__u32 pages = (nr + HVPOKE_ENTRIES_PER_PAGE - 1) / HVPOKE_ENTRIES_PER_PAGE;
	__u32 lists = (pages + HVPOKE_LIST_PAGES - 1) / HVPOKE_LIST_PAGES;
	volatile struct hvpoke_page_list *list = (void *)(shm + HVPOKE_SHM_ARENA);
	__u64 data = HVPOKE_SHM_ARENA + (__u64)lists * HVPOKE_PAGE_SIZE;

	for (__u32 i = 0; i < pages; i++) {
		if (i % HVPOKE_LIST_PAGES == 0)
			list[i / HVPOKE_LIST_PAGES].next_gpa =
				i / HVPOKE_LIST_PAGES + 1 < lists
					? HVPOKE_SHM_ARENA +
						  (i / HVPOKE_LIST_PAGES + 1ull) * HVPOKE_PAGE_SIZE
					: 0;
		list[i / HVPOKE_LIST_PAGES].page_gpa[i % HVPOKE_LIST_PAGES] =
			data + (__u64)i * HVPOKE_PAGE_SIZE;
	}
	*records = shm + data;
	return HVPOKE_SHM_ARENA;
}

static void hello(void)
{
	struct hvpoke_range range = {
		.gpa = (__u32)sites_page,
		.gva = (__u32)sites_page,
		.len = sites_end - sites_page,
	};
	volatile struct hvpoke_hello *to = &command()->hello;
	__u64 session = host()->session;
	volatile __u8 *records;

	to->ranges_gpa = lay_out(1, &records);
	to->nr_ranges = 1;
	to->scope = HVPOKE_SCOPE_DYNDBG;
	to->reserved = 0;
	copy(records, &range, sizeof(range));
	for (int i = 0; i < HVPOKE_MAX_PROBES; i++)
		to->probe_gva[i] = 0;
	copy(to->kernel, "test", 5);
	copy(to->agent, "1", 2);
	if (ring(HVPOKE_CMD_HELLO, 0) == HVPOKE_OK) {
		greeted = session;
		print("hello\n");
	}
}

static __u32 run_sites(void)
{
	__u32 sum = 0;

	for (__u32 i = 0; i < SITES; i++)
		sum += ((__u32(*)(void))(sites + i * 16))();
	return sum;
}

static const __u8 nop[HVPOKE_MAX_INSN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const __u8 jmp[HVPOKE_MAX_INSN] = {0xe9, 0x03, 0x00, 0x00, 0x00};

static __u32 batch(int on, const volatile char *what, struct hvpoke_complete *answer)
{
	__u32 nr = same(what, "empty") ? 0 : SITES, status;
	volatile struct hvpoke_batch *to = &command()->batch;
	volatile __u8 *records;

	to->entries_gpa = lay_out(nr, &records);
	to->nr_entries = nr;
	to->flags = 0;
	for (__u32 i = 0; i < nr; i++) {
		struct hvpoke_entry entry = {.gpa = (__u32)sites + i * 16, .len = 5};

		if ((entry.gpa & HVPOKE_PAGE_MASK) + 5 > HVPOKE_PAGE_SIZE)
			entry.gpa2 = (entry.gpa | HVPOKE_PAGE_MASK) + 1;
		copy(entry.old_insn, on ? nop : jmp, 5);
		copy(entry.new_insn, on ? jmp : nop, 5);
		if (i == 7 && same(what, "mismatch"))
			copy(entry.old_insn, on ? jmp : nop, 5);
		if (i == nr - 1 && same(what, "outside"))
			entry.gpa = (__u32)sites_end;
		copy(records + i * sizeof(entry), &entry, sizeof(entry));
	}
	status = ring(HVPOKE_CMD_BATCH, same(what, "abandon"));
	answer->sites = status == HVPOKE_OK ? to->written : 0;
	answer->bad_query = HVPOKE_NO_INDEX;
	answer->batches = status == HVPOKE_OK;
	answer->guest_ns = to->pause_ns;
	return status;
}

/* True if there was one. */
static int serve(void)
{
	struct hvpoke_complete answer = {.bad_query = HVPOKE_NO_INDEX};
	volatile struct hvpoke_fetch *fetch = &command()->fetch;
	volatile struct hvpoke_query *query = (void *)fetch->data;
	char what[16] = "";
	__u32 flags, status;
	char op;

	if (ring(HVPOKE_CMD_FETCH, 0) != HVPOKE_OK)
		return 0;
	answer.id = fetch->id;
	flags = fetch->flags;
	op = query->op;
	if (!(flags & HVPOKE_REQ_COUNT_IDLE) && query->func)
		copy(what, (const void *)((volatile char *)query + query->func), sizeof(what) - 1);
	if (!(flags & (HVPOKE_REQ_COUNT_IDLE | HVPOKE_REQ_NATIVE))) {
		status = batch(op == '+', what, &answer);
		answer.fallback = status == NO_STATUS ? HVPOKE_BUSY : status;
	}
	answer.ipis = answer.matched = run_sites();
	copy(&command()->complete, &answer, sizeof(answer));
	ring(HVPOKE_CMD_COMPLETE, 0);
	return 1;
}

void guest_main(void)
{
	__u64 now;

	print("start\n");
	if (!find_device()) {
		print("no device\n");
		return;
	}
	if (!same(host()->magic, HVPOKE_SHM_MAGIC)) {
		print("not hvpoke's\n");
		return;
	}
	settle();
	mail()->session = ticks() | 1;
	print("device\n");
	for (;;) {
		now = host()->session;
		if (now && now != greeted)
			hello();
		if (!now)
			greeted = 0;
		now = host()->requests;
		if (greeted && now != seen_requests) {
			while (serve())
				;
			seen_requests = now;
		}
		run_sites();
	}
}
