/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_SCOPE_H
#define HVP_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

/* An agent's scope (enum hvpoke_scope) by name: "dyndbg", "static_keys", "all". */
#define HVP_SCOPE_NAMES "dyndbg, static_keys or all"

/* "unknown" if it is none. */
const char *hvp_scope_name(uint32_t scope);
/* False if @name is none. */
bool hvp_scope_parse(const char *name, uint32_t *scope);

#endif /* HVP_SCOPE_H */
