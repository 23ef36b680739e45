// SPDX-License-Identifier: GPL-2.0-or-later
#include "scope.h"

#include <string.h>

#include "../proto/hvpoke_abi.h"

static const char *const names[] = {
	[HVPOKE_SCOPE_DYNDBG] = "dyndbg",
	[HVPOKE_SCOPE_STATIC_KEYS] = "static_keys",
	[HVPOKE_SCOPE_ALL] = "all",
};

#define NR_NAMES (sizeof(names) / sizeof(*names))

const char *hvp_scope_name(uint32_t scope)
{
	return scope < NR_NAMES ? names[scope] : "unknown";
}

bool hvp_scope_parse(const char *name, uint32_t *scope)
{
	for (uint32_t i = 0; i < NR_NAMES; i++) {
		if (!strcmp(names[i], name)) {
			*scope = i;
			return true;
		}
	}
	return false;
}
