/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hvpoke_abi.h - everything a guest and its host must agree on.
 *
 * Self-contained: the kernel module and the host programs compile this very
 * file. All integers are little endian (x86-64 only); all structures have the
 * same layout in both. Each field is marked:
 *
 *   IN   written by the guest, read by the host
 *   OUT  written by the host before the doorbell's OUT instruction retires
 *
 * How a request travels
 * ---------------------
 * 1. Discovery. The agent looks for HVPOKE_CPUID_SIGNATURE among the
 *    hypervisor leaves (every 0x100 from 0x40000000), and only if it is there
 *    reads the doorbell port with a 32-bit IN: the answer must be
 *    HVPOKE_PORT_MAGIC. No other hypervisor sees more than CPUID.
 * 2. Doorbell. The agent fills one 4 KiB command page (struct hvpoke_cmd) and
 *    writes its page frame number to the port with a 32-bit OUT. That exit is
 *    synchronous: when the next instruction runs, the OUT fields are valid.
 * 3. The host copies what the guest handed over once, and works on the copy.
 */
#ifndef HVPOKE_ABI_H
#define HVPOKE_ABI_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#endif

/* Changes with every incompatible change of this file. */
#define HVPOKE_ABI_VERSION	3

/* Feature bits: CPUID leaf base + 1, EBX; echoed in struct hvpoke_hello. */
#define HVPOKE_FEAT_BATCH	(1u << 0)	/* HVPOKE_CMD_BATCH */
#define HVPOKE_FEAT_REQUESTS	(1u << 1)	/* host requests and their interrupt */
#define HVPOKE_FEATURES		(HVPOKE_FEAT_BATCH | HVPOKE_FEAT_REQUESTS)

/*
 * CPUID. At leaf base B = 0x40000000 + n * 0x100, n in 0..255:
 *   B:     EAX = B + 1, EBX/ECX/EDX = "hvpokehvpoke"
 *   B + 1: EAX = HVPOKE_ABI_VERSION, EBX = feature bits,
 *          ECX = doorbell port, EDX = ISA IRQ of host requests (edge)
 * hvpoke-vmm puts it at 0x40000100, behind KVM's own leaves.
 */
#define HVPOKE_CPUID_FIRST	0x40000000u
#define HVPOKE_CPUID_LAST	0x40010000u
#define HVPOKE_CPUID_STEP	0x100u
#define HVPOKE_CPUID_SIGNATURE	"hvpokehvpoke"
#define HVPOKE_CPUID_EBX	0x6f707668u	/* "hvpo" */
#define HVPOKE_CPUID_ECX	0x7668656bu	/* "kehv" */
#define HVPOKE_CPUID_EDX	0x656b6f70u	/* "poke" */

/* Defaults; an agent uses what CPUID says. */
#define HVPOKE_PORT		0x0e50
#define HVPOKE_PORT_MAGIC	0x6b707668u	/* "hvpk" */
#define HVPOKE_IRQ		5

#define HVPOKE_PAGE_SIZE	4096u
#define HVPOKE_PAGE_MASK	(HVPOKE_PAGE_SIZE - 1)

/*
 * Status codes, and the sentence that a person sees for each.
 * A status other than HVPOKE_OK means that nothing was written.
 */
#define HVPOKE_STATUSES(X) \
	X(OK,            0, "done") \
	X(BAD_VERSION,   1, "the agent speaks another version of the protocol than the host") \
	X(BAD_COMMAND,   2, "the command is unknown to this host") \
	X(BAD_GPA,       3, "an address lies outside of the guest's memory") \
	X(BAD_HEADER,    4, "a reserved field is not zero or a count is out of range") \
	X(BAD_LENGTH,    5, "a site's length is none of its kind's") \
	X(BAD_OPCODE,    6, "a site's old or new bytes are no whole instruction of its kind") \
	X(BAD_STRADDLE,  7, \
	  "a site's second page is missing, not needed, or not the one that follows") \
	X(UNSORTED,      8, "the sites are not sorted by address") \
	X(OVERLAP,       9, "a site overlaps the one before it") \
	X(NOT_TEXT,     10, "a site lies outside of the registered text ranges") \
	X(MISMATCH,     11, "a site's memory does not hold the expected old bytes") \
	X(NOT_HELLO,    12, "the agent has not registered with this host yet") \
	X(BUSY,         13, "the host is busy with another request of this guest") \
	X(NO_REQUEST,   14, "no host request is waiting") \
	X(BAD_REQUEST,  15, "the completed host request is not the one in progress") \
	X(TOO_LARGE,    16, "the batch has more sites than this host accepts") \
	X(PAUSE_FAILED, 17, "the host could not stop every vCPU in time") \
	X(HOST_ERROR,   18, "the host failed; its log says why") \
	X(NO_MEMORY,    19, "the guest has no memory to collect the sites") \
	X(NO_HOST,      20, "no host serves this guest at the moment") \
	X(TIMED_OUT,    21, "the host did not answer in time") \
	X(BAD_KIND,     22, \
	  "a site's kind is unknown, or outside of the scope that the agent registered") \
	X(RATE,         23, \
	  "the guest has had as many pauses, or as long ones, as it may have for now")

enum hvpoke_status {
#define HVPOKE_STATUS_ENUM(name, value, text) HVPOKE_##name = value,
	HVPOKE_STATUSES(HVPOKE_STATUS_ENUM)
#undef HVPOKE_STATUS_ENUM
};

static inline const char *hvpoke_status_text(__u32 status)
{
	switch (status) {
#define HVPOKE_STATUS_CASE(name, value, text) case value: return text;
	HVPOKE_STATUSES(HVPOKE_STATUS_CASE)
#undef HVPOKE_STATUS_CASE
	}
	return "unknown status";
}

/* Commands. */
#define HVPOKE_CMD_HELLO	1	/* register this agent and the text ranges */
#define HVPOKE_CMD_BATCH	2	/* apply a batch of sites */
#define HVPOKE_CMD_FETCH	3	/* take the host request that is waiting */
#define HVPOKE_CMD_COMPLETE	4	/* report the outcome of that request */
#define HVPOKE_CMD_BYE		5	/* the agent unloads; forget it */

/*
 * A list in guest memory that need not be contiguous: pages of the list
 * itself are chained, each names up to 511 data pages. The last one has
 * next_gpa 0. Every address is page aligned.
 */
#define HVPOKE_LIST_PAGES	511
struct hvpoke_page_list {
	__u64 next_gpa;				/* IN */
	__u64 page_gpa[HVPOKE_LIST_PAGES];	/* IN */
};

/*
 * One piece of text that the agent may patch: contiguous in guest physical
 * memory and in the guest's kernel addresses. @serial tells it from any other text that
 * the same agent has registered, also from what is later found at the same place (a module
 * that was loaded again): what the host remembers of the one is never done to the other.
 */
struct hvpoke_range {
	__u64 gpa;		/* IN */
	__u64 gva;		/* IN */
	__u64 len;		/* IN bytes, not 0 */
	__u64 serial;		/* IN */
};

#define HVPOKE_RANGES_PER_PAGE	(HVPOKE_PAGE_SIZE / sizeof(struct hvpoke_range))
#define HVPOKE_MAX_RANGES	65536u

/* What the agent takes over from the kernel. Each includes those before it. */
enum hvpoke_scope {
	HVPOKE_SCOPE_DYNDBG,		/* requests to dynamic debug */
	HVPOKE_SCOPE_STATIC_KEYS,	/* every static key */
	HVPOKE_SCOPE_ALL,		/* whatever patches text: ftrace, kprobes, static calls */
};

/*
 * HELLO. May be sent again at any time: the new ranges replace the old ones
 * (modules come and go). ranges_gpa leads to nr_ranges structs hvpoke_range,
 * sorted by gpa, not overlapping.
 *
 * probe_gva are the addresses at which the agent itself has an INT3 (kprobes
 * on functions that ftrace cannot divert), so that the host can count the
 * INT3 hits of text patching apart from the agent's own. Unused ones are 0. The first one
 * stays the same as long as the agent does, and another one means another agent: what the
 * host had asked of the one before is lost.
 */
#define HVPOKE_MAX_PROBES	8
struct hvpoke_hello {
	__u32 features;		/* OUT what the host offers */
	__u32 nr_ranges;	/* IN */
	__u64 ranges_gpa;	/* IN page list of ranges */
	__u64 probe_gva[HVPOKE_MAX_PROBES];	/* IN */
	char kernel[64];	/* IN utsname release, NUL terminated */
	char agent[32];		/* IN agent version, NUL terminated */
	__u32 max_sites;	/* OUT largest batch that the host takes */
	__u32 bad_index;	/* OUT first bad range if status says so */
	__u32 scope;		/* IN enum hvpoke_scope */
	__u32 reserved;		/* IN 0 */
};

/*
 * The kinds of sites, and their forms.
 *
 * INSN: one whole instruction for another one of the same length.
 *   2 bytes: NOP, JMP rel8
 *   5 bytes: NOP, JMP rel32, CALL rel32; and, if the scope is HVPOKE_SCOPE_ALL, the
 *            forms of static calls (arch/x86/kernel/static_call.c): RET before four
 *            INT3, XOR of EAX with itself, UD1, MOV of 0 to (RDI)
 *   6 bytes, if the scope is HVPOKE_SCOPE_ALL: Jcc rel32
 * PROBE, if the scope is HVPOKE_SCOPE_ALL: a kprobe.
 *   1 byte:  INT3 for the first byte of an instruction, or the other way round
 *   5 bytes: a JMP rel32 for INT3 and four bytes that nothing can reach any more, or
 *            the other way round (optimized kprobes)
 */
#define HVPOKE_SITE_INSN	0
#define HVPOKE_SITE_PROBE	1

/*
 * One site. @gpa is its first byte. A site that crosses the end of that page
 * goes on at @gpa2, the first byte of the page that follows it in the guest's
 * kernel addresses; else @gpa2 is 0. Bytes past @len are 0.
 */
#define HVPOKE_MAX_INSN		6
struct hvpoke_entry {
	__u64 gpa;			/* IN */
	__u64 gpa2;			/* IN page aligned, or 0 */
	__u8 len;			/* IN 1, 2, 5 or 6 */
	__u8 kind;			/* IN HVPOKE_SITE_* */
	__u8 old_insn[HVPOKE_MAX_INSN];	/* IN what must stand there now */
	__u8 new_insn[HVPOKE_MAX_INSN];	/* IN what is to stand there */
	__u8 reserved[2];		/* IN 0 */
};

#define HVPOKE_ENTRIES_PER_PAGE	(HVPOKE_PAGE_SIZE / sizeof(struct hvpoke_entry))

/*
 * Write the old bytes of the batch that the host request in progress says (HVPOKE_REQ_UNDO)
 * where its new ones stand. The host has kept them: nr_entries and entries_gpa are 0. As
 * any other batch it is applied whole or not at all; NO_REQUEST: there is no such request
 * or the batch is kept no more, NOT_TEXT: some of its text has gone. @bad_index counts
 * the sites of that batch.
 */
#define HVPOKE_BATCH_UNDO	(1u << 0)

/*
 * BATCH. entries_gpa leads to nr_entries structs hvpoke_entry, sorted by gpa,
 * not overlapping. Applied whole or not at all. An empty batch is valid: the
 * host pauses and resumes, and nothing else.
 */
#define HVPOKE_MAX_SITES	(1u << 20)
#define HVPOKE_NO_INDEX		0xffffffffu
struct hvpoke_batch {
	__u32 nr_entries;	/* IN */
	__u32 flags;		/* IN HVPOKE_BATCH_* */
	__u64 entries_gpa;	/* IN page list of entries; ignored if nr_entries is 0 */
	__u32 bad_index;	/* OUT first offender, or HVPOKE_NO_INDEX */
	__u32 written;		/* OUT sites written: all or 0 */
	__u64 pause_ns;		/* OUT from the first kick to the last vCPU let go */
	__u64 apply_ns;		/* OUT verify and write, inside the pause */
};

#define HVPOKE_REQ_DATA		3072
/*
 * A host request: a list of changes, checked by the host, which the agent makes in
 * one session. FETCH fills it in. Each of the nr_queries records starts 8-byte
 * aligned in data; record.size leads to the next.
 */
#define HVPOKE_REQ_NATIVE	(1u << 0)	/* go the kernel's own way */
#define HVPOKE_REQ_COUNT_IDLE	(1u << 1)	/* patch nothing for idle_ms, count IPIs */
#define HVPOKE_REQ_LIST_KEYS	(1u << 2)	/* change nothing, list static keys */
#define HVPOKE_REQ_UNDO		(1u << 3)	/* send a batch with HVPOKE_BATCH_UNDO */

/* Terms that a `!` stands before. */
#define HVPOKE_NEG_FUNC		(1u << 0)
#define HVPOKE_NEG_FILE		(1u << 1)
#define HVPOKE_NEG_MODULE	(1u << 2)
#define HVPOKE_NEG_FORMAT	(1u << 3)

/* What one record changes. */
enum hvpoke_change {
	HVPOKE_CHANGE_DYNDBG,	/* flags of dynamic debug's descriptors */
	HVPOKE_CHANGE_KEY,	/* the static key whose symbol is @text: on (op '+') or off ('-') */
	HVPOKE_CHANGE_EVENTS,	/* the trace events that match the glob @text, likewise */
	HVPOKE_CHANGE_SCOPE,	/* the agent's scope: @first_line is an enum hvpoke_scope */
};

/*
 * One change. Offsets are from the record's start to a NUL-terminated string; 0
 * means that there is no such string.
 *
 * A dynamic debug query comes in two forms: a kernel parses @text itself; where
 * @negate is not 0 (a kernel without negation would refuse the text) the agent
 * matches the terms. Strings are unescaped as the kernel does it. A key is named
 * as in the kernel's symbol table, one of a module "MODULE:NAME"; events are
 * "SYSTEM:EVENT", each a glob. With HVPOKE_REQ_LIST_KEYS there is one record of
 * HVPOKE_CHANGE_KEY: @text is a glob of names, and @first_line how many of the
 * keys that match are to be left out, because the host has them already.
 */
struct hvpoke_query {
	__u32 size;		/* bytes of this record, a multiple of 8 */
	__u32 negate;		/* HVPOKE_NEG_* */
	__u32 first_line;	/* 0: no lower bound */
	__u32 last_line;	/* 0: no upper bound */
	char op;		/* '+', '-' or '=' */
	char flags[15];		/* flag letters as written, NUL terminated */
	__u16 text;
	__u16 func;
	__u16 file;
	__u16 module;
	__u16 format;
	__u16 class_name;
	__u16 kind;		/* enum hvpoke_change */
	__u16 reserved;
};

struct hvpoke_fetch {
	__u64 id;		/* OUT never 0 */
	__u32 flags;		/* OUT HVPOKE_REQ_* */
	__u32 idle_ms;		/* OUT with HVPOKE_REQ_COUNT_IDLE */
	__u32 nr_queries;	/* OUT records */
	__u32 data_len;		/* OUT bytes of data in use */
	__u8 data[HVPOKE_REQ_DATA];	/* OUT struct hvpoke_query records */
};

/*
 * The outcome of a host request. error is 0 or a positive Linux errno value,
 * from the first query that failed (bad_query: its index).
 */
struct hvpoke_complete {
	__u64 id;		/* IN */
	__u32 error;		/* IN */
	__u32 bad_query;	/* IN index, or HVPOKE_NO_INDEX */
	__u64 matched;		/* IN descriptors, keys and events that were meant */
	__u64 changed;		/* IN of these, those that are different now */
	__u64 sites;		/* IN instructions patched, by whichever way */
	__u64 native_sites;	/* IN of these, patched by the kernel's own way */
	__u64 guest_ns;		/* IN duration of the request in the guest */
	__u64 ipis;		/* IN function-call interrupts during it, all CPUs */
	__u64 own_int3;		/* IN INT3 hits of the agent's own kprobes during it */
	__u32 batches;		/* IN batches that the host applied for it */
	__u32 fallback;		/* IN 0, or the status that sent it the kernel's own way */
	char message[128];	/* IN NUL terminated, for a person; may be empty */
	__u64 noisy;		/* IN flips left to the kernel, which makes them by itself */
	__u32 more;		/* IN keys that match and did not fit in data */
	__u32 data_len;		/* IN bytes of data in use */
	__u8 data[HVPOKE_REQ_DATA]; /* IN struct hvpoke_key records */
};

/* A static key in the answer to HVPOKE_REQ_LIST_KEYS. */
struct hvpoke_key {
	__u16 size;		/* bytes of this record, a multiple of 4 */
	__u8 enabled;		/* 0 or 1 */
	__u8 reserved;
	__u32 sites;		/* instructions that it switches, in the kernel and modules */
	char name[];		/* NUL terminated; "MODULE:NAME" for a module's */
};

struct hvpoke_cmd {
	__u32 version;		/* IN HVPOKE_ABI_VERSION */
	__u32 cmd;		/* IN HVPOKE_CMD_* */
	__u32 status;		/* OUT enum hvpoke_status */
	__u32 reserved;		/* IN 0 */
	union {
		struct hvpoke_hello hello;
		struct hvpoke_batch batch;
		struct hvpoke_fetch fetch;
		struct hvpoke_complete complete;
	};
};

#ifdef __KERNEL__
#define HVPOKE_ASSERT(expr)	static_assert(expr)
#else
#define HVPOKE_ASSERT(expr)	_Static_assert(expr, #expr)
#endif
HVPOKE_ASSERT(sizeof(struct hvpoke_page_list) == HVPOKE_PAGE_SIZE);
HVPOKE_ASSERT(sizeof(struct hvpoke_entry) == 32);
HVPOKE_ASSERT(sizeof(struct hvpoke_range) == 32);
HVPOKE_ASSERT(sizeof(struct hvpoke_query) == 48);
HVPOKE_ASSERT(sizeof(struct hvpoke_cmd) <= HVPOKE_PAGE_SIZE);

#endif /* HVPOKE_ABI_H */
