/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_INSN_H
#define HVP_INSN_H

#include <stdbool.h>
#include <stdint.h>

#define HVP_INSN_SHORT 2
#define HVP_INSN_LONG  5

/*
 * Is @insn, of @len bytes (HVP_INSN_SHORT or HVP_INSN_LONG), exactly one of the
 * instructions that x86-64 kernels put at a jump label, static call or ftrace
 * site? Bytes past @len are not looked at.
 */
bool hvp_insn_known(const uint8_t *insn, unsigned int len);

#endif /* HVP_INSN_H */
