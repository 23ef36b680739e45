// SPDX-License-Identifier: GPL-2.0-or-later
/* rights.c - capabilities, and no new ones. */
#include <cap-ng.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "sandbox.h"

static int keep_capabilities(const unsigned int *keep, size_t nr)
{
	/* The bounding set takes CAP_SETPCAP to change, and without new privileges is of no use. */
	const capng_select_t sets = CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT;

	if (capng_get_caps_process())
		return -EPERM;
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		bool kept = false;

		for (size_t i = 0; i < nr; i++)
			kept |= keep[i] == cap;
		/* What we do not have we cannot keep: a user's hvpoked has none. */
		if (kept && capng_have_capability(CAPNG_PERMITTED, cap))
			continue;
		if (capng_update(CAPNG_DROP,
				 CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE |
					 CAPNG_AMBIENT,
				 cap))
			return -EINVAL;
	}
	return capng_apply(sets) ? -EPERM : 0;
}

int sandbox_forgo(const unsigned int *keep, size_t nr, struct message *message)
{
	int err = keep_capabilities(keep, nr);

	if (err)
		return message_set(message, err, "cannot give up capabilities: %s", strerror(-err));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return message_set(message, -errno, "cannot give up new privileges: %s",
				   strerror(errno));
	return 0;
}
