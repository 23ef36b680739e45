// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The forms that may be replaced by one another while no vCPU runs guest code.
 * Which of them there are depends on the scope that the agent registered: below
 * HVPOKE_SCOPE_ALL only jump labels are written, and no INT3 passes (CASES 4).
 *
 * HVPOKE_SITE_INSN: each form is one whole instruction, so a vCPU that stands
 * before or behind it, and a return address or saved RIP that points there, still
 * does so afterwards. That holds for
 *
 * - NOP, JMP, CALL: jump labels (arch/x86/kernel/jump_label.c), static calls and
 *   ftrace's call sites. The kernel has just one NOP for each length: x86_nops[] in
 *   arch/x86/kernel/alternative.c, BYTES_NOP2 and BYTES_NOP5 in
 *   arch/x86/include/asm/nops.h, unchanged for 64 bit since 5.13; objtool uses the
 *   same when it turns compiled-in jumps into NOPs.
 * - XOR of EAX with itself: what a call of __static_call_return0() becomes. Its
 *   prefixes are part of the instruction.
 * - RET before four INT3: a static call's trampoline, or a tail call, to nothing. The
 *   RET is the instruction; the INT3s stop speculation, and nothing gets there: no jump
 *   leads behind a RET, and as every other form of the site is 5 bytes long, no RIP of a
 *   time before points into it either.
 * - MOV of 0 to a byte: what the call that releases a spinlock is, in 7.x, as long as nobody
 *   traces who waited for it.
 * - UD1: a trampoline that must not be called any more. It traps before or after the
 *   write, never in the middle.
 * - Jcc rel32, 6 bytes: a conditional tail call, by one to another target.
 *
 * HVPOKE_SITE_PROBE: kprobes. The site need not be one instruction.
 *
 * - One byte, INT3 for the first byte of an instruction, or back. No vCPU stands
 *   inside of an instruction, and while the INT3 stands nobody reaches the rest of it.
 *   A vCPU that has run into the INT3 and not yet looked it up is nothing new: natively
 *   this byte is written while CPUs run, and the handler knows an INT3 that went away
 *   (kprobe_int3_handler() in arch/x86/kernel/kprobes/core.c).
 * - Five bytes, INT3 and what is left of several instructions, to JMP rel32. Stopping the
 *   vCPUs keeps none of them from standing inside of the range, nor a task that sleeps or
 *   was preempted there: between two instructions is a good place to stop. That
 *   nobody does is the kernel's own rule (kernel/kprobes.c): the INT3 has been at the
 *   first byte for long; from optimize_kprobe() on, its handler goes on in the copy
 *   of all instructions of the range and returns behind it (setup_detour_execution());
 *   nothing jumps into the range (can_optimize()); then kprobe_optimizer() waits in
 *   synchronize_rcu_tasks() until whoever was inside has left. Only after that
 *   the jump is written. So nobody is inside, nobody can enter but by the first
 *   byte, and that byte is INT3 or JMP, either way a whole instruction. Natively nothing
 *   more is asked for either.
 * - Five bytes, JMP rel32 to INT3 and the bytes of the old instructions. The range is one
 *   instruction now, and has been for everybody since it was written. Who comes from now on
 *   runs into the INT3; the four others are reached only after the kernel has let go of
 *   the probe.
 *
 * The host cannot see where a probed instruction begins or how long it is: it checks
 * that INT3 is exchanged for something that is none, or the other way round, at a
 * place in registered text where the old bytes stand. That is why this kind needs a
 * scope that the guest's kernel chose for itself.
 *
 * Encodings: SDM volume 2; static calls' in arch/x86/kernel/static_call.c.
 */
#include <string.h>

#include "../proto/hvpoke_abi.h"
#include "insn.h"

#define OPCODE_JMP_REL8	 0xeb
#define OPCODE_JMP_REL32 0xe9
#define OPCODE_CALL	 0xe8
#define OPCODE_INT3	 0xcc
#define OPCODE_TWO_BYTE	 0x0f
#define OPCODE_JCC	 0x80 /* to 0x8f: the condition */

static const uint8_t nop_short[HVP_INSN_SHORT] = {0x66, 0x90};
static const uint8_t nop_long[HVP_INSN_LONG] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

static const uint8_t static_call[][HVP_INSN_LONG] = {
	{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}, /* RET, INT3 */
	{0x2e, 0x2e, 0x2e, 0x31, 0xc0}, /* XOR %EAX, %EAX; since 5.18 */
	{0x66, 0x66, 0x48, 0x31, 0xc0}, /* before: XOR %RAX, %RAX */
	{0x67, 0x48, 0x0f, 0xb9, 0x3a}, /* UD1 (%EDX), %RDI */
	{0x3e, 0x3e, 0xc6, 0x07, 0x00}, /* MOVB $0, (%RDI) */
};

static bool is_static_call(const uint8_t *insn)
{
	for (size_t i = 0; i < sizeof(static_call) / sizeof(*static_call); i++)
		if (!memcmp(insn, static_call[i], HVP_INSN_LONG))
			return true;
	return false;
}

static bool is_insn(const uint8_t *insn, unsigned int len, uint32_t scope)
{
	switch (len) {
	case HVP_INSN_SHORT:
		return insn[0] == OPCODE_JMP_REL8 || !memcmp(insn, nop_short, sizeof(nop_short));
	case HVP_INSN_LONG:
		return insn[0] == OPCODE_JMP_REL32 || insn[0] == OPCODE_CALL ||
		       !memcmp(insn, nop_long, sizeof(nop_long)) ||
		       (scope == HVPOKE_SCOPE_ALL && is_static_call(insn));
	case HVP_INSN_JCC: return insn[0] == OPCODE_TWO_BYTE && (insn[1] & 0xf0) == OPCODE_JCC;
	default: return false;
	}
}

static bool is_probe(const uint8_t *a, const uint8_t *b, unsigned int len)
{
	if (len == HVP_INSN_BYTE)
		return (a[0] == OPCODE_INT3) != (b[0] == OPCODE_INT3);
	return (a[0] == OPCODE_INT3 && b[0] == OPCODE_JMP_REL32) ||
	       (a[0] == OPCODE_JMP_REL32 && b[0] == OPCODE_INT3);
}

bool hvp_insn_kind_known(unsigned int kind, uint32_t scope)
{
	return kind == HVPOKE_SITE_INSN || (kind == HVPOKE_SITE_PROBE && scope == HVPOKE_SCOPE_ALL);
}

bool hvp_insn_len_known(unsigned int kind, unsigned int len, uint32_t scope)
{
	if (kind == HVPOKE_SITE_PROBE)
		return len == HVP_INSN_BYTE || len == HVP_INSN_LONG;
	return len == HVP_INSN_SHORT || len == HVP_INSN_LONG ||
	       (len == HVP_INSN_JCC && scope == HVPOKE_SCOPE_ALL);
}

bool hvp_insn_known(unsigned int kind, const uint8_t *old, const uint8_t *new_insn,
		    unsigned int len, uint32_t scope)
{
	if (kind == HVPOKE_SITE_PROBE)
		return is_probe(old, new_insn, len);
	return is_insn(old, len, scope) && is_insn(new_insn, len, scope);
}

static bool is_nop(const uint8_t *insn, unsigned int len)
{
	return len == HVP_INSN_SHORT ? !memcmp(insn, nop_short, sizeof(nop_short))
				     : !memcmp(insn, nop_long, sizeof(nop_long));
}

static bool is_jmp(const uint8_t *insn, unsigned int len)
{
	return insn[0] == (len == HVP_INSN_SHORT ? OPCODE_JMP_REL8 : OPCODE_JMP_REL32);
}

bool hvp_insn_is_label(const struct hvpoke_entry *entry)
{
	unsigned int len = entry->len;

	if (entry->kind != HVPOKE_SITE_INSN || (len != HVP_INSN_SHORT && len != HVP_INSN_LONG))
		return false;
	return (is_nop(entry->old_insn, len) && is_jmp(entry->new_insn, len)) ||
	       (is_jmp(entry->old_insn, len) && is_nop(entry->new_insn, len));
}
