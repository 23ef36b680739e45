// SPDX-License-Identifier: GPL-2.0-only
/*
 * What stands at a site and what is to stand there. The two instructions of a jump
 * label site are those of arch/x86/kernel/jump_label.c: a NOP, or a JMP of the same
 * length to the label. Those of a poke are given.
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
	patch->kind = HVPOKE_SITE_INSN;
	memcpy(patch->old_insn, is_jmp ? jmp : nop, sizeof(patch->old_insn));
	memcpy(patch->new_insn, is_jmp ? nop : jmp, sizeof(patch->new_insn));
	return 0;
}

/* Unused bytes of both are 0, as the ABI wants it. */
void hvp_patch_poke(struct hvp_patch *patch, const struct hvp_poke *poke)
{
	*patch = (struct hvp_patch){ .kind = poke->kind };
	if (!memcmp((const void *)poke->addr, poke->new_insn, poke->len))
		return;
	patch->len = poke->len;
	memcpy(patch->old_insn, (const void *)poke->addr, poke->len);
	memcpy(patch->new_insn, poke->new_insn, poke->len);
}

/*
 * The kernel tells perf before the new instruction can run (text_poke_bp_batch()), so
 * that whoever follows a trace of branches knows what it was when it ran.
 */
void hvp_perf_text_poke(unsigned long addr, const struct hvp_patch *patch)
{
	if (hvp_symbols.perf_text_poke && hvp_symbols.nr_text_poke_events &&
	    atomic_read(hvp_symbols.nr_text_poke_events))
		hvp_symbols.perf_text_poke((void *)addr, patch->old_insn, patch->len,
					   patch->new_insn, patch->len);
}
