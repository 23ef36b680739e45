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
 *	gaps		many batches, by turns there and back, while a second CPU watches its
 *			clock (tests/bench/gap.h); a line "gap TICKS PAUSE_NS WINDOW_TICKS" of each
 *	quiet		no batch, but as many windows of "line" ticks; "quiet TICKS" of each
 *
 * The answer: matched = sites that ran their other half, after it; sites = written by the
 * host; fallback = the batch's status. The answer to "idle": ipis = the same as
 * matched, at that moment; guest_ns = the time stamp counter.
 */
#include "hvpoke_shm.h"
#include "../../bench/gap.h"

#define DEBUG_PORT  0xe9
#define PCI_ADDRESS 0xcf8
#define PCI_DATA    0xcfc

/* The local APIC's interrupt command (SDM vol. 3A, 10.6.1). */
#define ICR_LOW	 0xfee00300
#define ICR_HIGH 0xfee00310
/* Where a second CPU begins; the startup interrupt names the page. */
#define AP_PAGE 0x8000

extern __u8 sites_page[], sites[], sites_end[];
extern const __u8 ap_start[], ap_end[];
void guest_main(void);
void ap_main(void);

static volatile __u8 *shm;
static volatile __u8 *registers;
static volatile struct gap_watch watch;
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

static void print(const char *text)
{
	while (*text)
		out8(DEBUG_PORT, *text++);
}

static void print_number(__u32 number)
{
	char text[12], *at = text + sizeof(text) - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	print(at);
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
	__u64 start = gap_now();
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
		/* 4 GHz, or somewhat less: good enough for a timeout. */
		if (gap_now() - start > HVPOKE_SHM_TAKE_MS * 4000000ull &&
		    exchange(HVPOKE_SHM_SUBMITTED, HVPOKE_SHM_IDLE)) {
			print("withdrawn\n");
			return NO_STATUS;
		}
	}
	status = command()->status;
	exchange(HVPOKE_SHM_DONE, HVPOKE_SHM_IDLE);
	return status;
}

/* At @base in the shared memory: page lists first, then the pages of the records. */
static void lay_out(__u64 base, __u32 nr, volatile __u8 **records)
{
	__u32 pages = (nr + HVPOKE_ENTRIES_PER_PAGE - 1) / HVPOKE_ENTRIES_PER_PAGE;
	__u32 lists = (pages + HVPOKE_LIST_PAGES - 1) / HVPOKE_LIST_PAGES;
	volatile struct hvpoke_page_list *list = (void *)(shm + (__u32)base);
	__u64 data = base + (__u64)lists * HVPOKE_PAGE_SIZE;

	for (__u32 i = 0; i < pages; i++) {
		if (i % HVPOKE_LIST_PAGES == 0)
			list[i / HVPOKE_LIST_PAGES].next_gpa =
				i / HVPOKE_LIST_PAGES + 1 < lists
					? base + (i / HVPOKE_LIST_PAGES + 1ull) * HVPOKE_PAGE_SIZE
					: 0;
		list[i / HVPOKE_LIST_PAGES].page_gpa[i % HVPOKE_LIST_PAGES] =
			data + (__u64)i * HVPOKE_PAGE_SIZE;
	}
	*records = shm + (__u32)data;
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

	lay_out(HVPOKE_SHM_ARENA, 1, &records);
	to->ranges_gpa = HVPOKE_SHM_ARENA;
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

/* Entries for @nr sites at @base. */
static void make_entries(__u64 base, __u32 nr, int on, const volatile char *what)
{
	volatile __u8 *records;

	lay_out(base, nr, &records);
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
}

static __u32 send_batch(__u64 base, __u32 nr, int abandon)
{
	volatile struct hvpoke_batch *to = &command()->batch;

	to->entries_gpa = base;
	to->nr_entries = nr;
	to->flags = 0;
	return ring(HVPOKE_CMD_BATCH, abandon);
}

static __u32 batch(int on, const volatile char *what, struct hvpoke_complete *answer)
{
	__u32 nr = same(what, "empty") ? 0 : SITES, status;

	make_entries(HVPOKE_SHM_ARENA, nr, on, what);
	status = send_batch(HVPOKE_SHM_ARENA, nr, same(what, "abandon"));
	answer->sites = status == HVPOKE_OK ? command()->batch.written : 0;
	answer->bad_query = HVPOKE_NO_INDEX;
	answer->batches = status == HVPOKE_OK;
	answer->guest_ns = command()->batch.pause_ns;
	return status;
}

/* The other CPU: nothing but its clock. */
void ap_main(void)
{
	gap_watch(&watch);
}

static void start_watch(void)
{
	static int started;
	__u64 start;

	if (started)
		return;
	started = 1;
	copy((void *)AP_PAGE, ap_start, ap_end - ap_start);
	*(volatile __u32 *)ICR_HIGH = 1 << 24;
	*(volatile __u32 *)ICR_LOW = 0x4500;
	for (start = gap_now(); gap_now() - start < 40000000;)
		;
	*(volatile __u32 *)ICR_HIGH = 1 << 24;
	*(volatile __u32 *)ICR_LOW = 0x4600 | AP_PAGE >> 12;
}

/* All entries are there before: a window has the batch in it, and nothing else. */
static __u32 gaps(void)
{
	const __u64 base[2] = {HVPOKE_SHM_ARENA, HVPOKE_SHM_ARENA + 0x20000};
	__u32 status, largest;
	__u64 start;

	make_entries(base[0], SITES, 1, "");
	make_entries(base[1], SITES, 0, "");
	start_watch();
	for (__u32 i = 0; i < GAP_WARM_UP + GAP_ROUND; i++) {
		gap_take(&watch);
		start = gap_now();
		status = send_batch(base[i & 1], SITES, 0);
		largest = gap_take(&watch);
		start = gap_now() - start;
		if (status != HVPOKE_OK)
			return status;
		if (run_sites() != (i & 1 ? 0 : SITES))
			return HVPOKE_MISMATCH;
		if (i < GAP_WARM_UP)
			continue;
		print("gap ");
		print_number(largest);
		print(" ");
		print_number((__u32)command()->batch.pause_ns);
		print(" ");
		print_number((__u32)start);
		print("\n");
	}
	return HVPOKE_OK;
}

static void quiet(__u32 ticks)
{
	start_watch();
	for (__u32 i = 0; i < GAP_ROUND; i++) {
		print("quiet ");
		print_number(gap_idle(&watch, ticks));
		print("\n");
	}
}

/* A toggle's: see above. */
static __u32 obey(char op, const char *what, __u32 line, struct hvpoke_complete *answer)
{
	if (same(what, "gaps"))
		return gaps();
	if (!same(what, "quiet"))
		return batch(op == '+', what, answer);
	quiet(line);
	return HVPOKE_OK;
}

/* True if there was one. */
static int serve(void)
{
	struct hvpoke_complete answer = {.bad_query = HVPOKE_NO_INDEX};
	volatile struct hvpoke_fetch *fetch = &command()->fetch;
	volatile struct hvpoke_query *query = (void *)fetch->data;
	char what[16] = "";
	__u32 flags, status, line;
	char op;

	if (ring(HVPOKE_CMD_FETCH, 0) != HVPOKE_OK)
		return 0;
	answer.id = fetch->id;
	flags = fetch->flags;
	op = query->op;
	line = query->first_line;
	if (!(flags & HVPOKE_REQ_COUNT_IDLE) && query->func)
		copy(what, (const void *)((volatile char *)query + query->func), sizeof(what) - 1);
	answer.guest_ns = gap_now();
	if (!(flags & (HVPOKE_REQ_COUNT_IDLE | HVPOKE_REQ_NATIVE))) {
		status = obey(op, what, line, &answer);
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
	mail()->session = gap_now() | 1;
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
			print("served\n");
		}
		run_sites();
	}
}
