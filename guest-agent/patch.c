// SPDX-License-Identifier: GPL-2.0-only
/*
 * The two instructions of a jump label site, as arch/x86/kernel/jump_label.c
 * has them: a NOP, or a JMP of the same length to the label.
 */
#include <linux/cache.h>
#include <linux/string.h>

#include <asm/nops.h>
#include <asm/text-patching.h>

#include "hvpoke.h"

static const u8 nop2[] = { BYTES_NOP2 };
static const u8 nop5[] = { BYTES_NOP5 };

static void make_jmp(u8 *insn, u8 len, s32 rel)
{
	insn[0] = len == JMP8_INSN_SIZE ? JMP8_INSN_OPCODE : JMP32_INSN_OPCODE;
	memcpy(&insn[1], &rel, len - 1); /* little endian */
}

/*
 * Four patterns tell the length without an instruction decoder, which counts
 * where instructions are emulated. Everything else would make the kernel BUG().
 */
int hvp_patch_make(struct hvp_patch *patch, const struct jump_entry *entry,
		   enum jump_label_type type)
{
	const u8 *text = (const u8 *)jump_entry_code(entry);
	u8 nop[HVPOKE_MAX_INSN] = {}, jmp[HVPOKE_MAX_INSN] = {};
	bool is_jmp;
	u8 len;

	len = text[0] == nop2[0] || text[0] == JMP8_INSN_OPCODE ? JMP8_INSN_SIZE : JMP32_INSN_SIZE;
	memcpy(nop, len == JMP8_INSN_SIZE ? nop2 : nop5, len);
	make_jmp(jmp, len, jump_entry_target(entry) - (jump_entry_code(entry) + len));
	is_jmp = !memcmp(text, jmp, len);
	if (!is_jmp && memcmp(text, nop, len))
		return -EILSEQ;

	patch->len = is_jmp == (type == JUMP_LABEL_JMP) ? 0 : len;
	memcpy(patch->old_insn, is_jmp ? jmp : nop, sizeof(patch->old_insn));
	memcpy(patch->new_insn, is_jmp ? nop : jmp, sizeof(patch->new_insn));
	return 0;
}
