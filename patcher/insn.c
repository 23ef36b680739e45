// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The forms that may be replaced by one another while no vCPU runs guest code:
 * each is one whole instruction, so a vCPU that stands before or behind it still
 * does so afterwards. Nothing else passes; in particular no INT3 (CASES 4).
 *
 * Encodings: SDM volume 2, NOP, JMP, CALL. The kernel has just one NOP for each
 * length: x86_nops[] in arch/x86/kernel/alternative.c, BYTES_NOP2 and BYTES_NOP5 in
 * arch/x86/include/asm/nops.h, unchanged for 64 bit since 5.13. Jump labels
 * (arch/x86/kernel/jump_label.c), static calls and ftrace all take it from there,
 * and so does objtool when it turns compiled-in jumps into NOPs.
 */
#include <string.h>

#include "insn.h"

#define OPCODE_JMP_REL8	 0xeb
#define OPCODE_JMP_REL32 0xe9
#define OPCODE_CALL	 0xe8

static const uint8_t nop_short[HVP_INSN_SHORT] = {0x66, 0x90};
static const uint8_t nop_long[HVP_INSN_LONG] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

bool hvp_insn_known(const uint8_t *insn, unsigned int len)
{
	switch (len) {
	case HVP_INSN_SHORT:
		return insn[0] == OPCODE_JMP_REL8 || !memcmp(insn, nop_short, sizeof(nop_short));
	case HVP_INSN_LONG:
		return insn[0] == OPCODE_JMP_REL32 || insn[0] == OPCODE_CALL ||
		       !memcmp(insn, nop_long, sizeof(nop_long));
	default: return false;
	}
}
