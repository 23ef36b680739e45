// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own way, for the session's owner: the original functions, with
 * the diversion standing aside.
 */
#include "hvpoke.h"

void hvp_native_apply(void)
{
	bool was = hvp_session_divert(false);

	hvp_symbols.transform_apply();
	hvp_session_divert(was);
}

/* The caller applies at the end; on x86 a full queue applies itself. */
void hvp_native_site(struct jump_entry *entry, enum jump_label_type type)
{
	bool was = hvp_session_divert(false);

	if (!hvp_symbols.transform_queue(entry, type)) {
		hvp_symbols.transform_apply();
		WARN_ON_ONCE(!hvp_symbols.transform_queue(entry, type));
	}
	hvp_session_divert(was);
}
