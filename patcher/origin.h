/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_ORIGIN_H
#define HVP_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of what was asked for that are kept, with its NUL; what is longer ends in "...". */
#define HVP_ORIGIN_WHAT 512

/* Who asked for a host request, and for what, as the log has it. */
struct hvp_origin {
	uint32_t uid; /* SO_PEERCRED of the client, when it connected */
	int32_t pid;
	bool native;	 /* the guest was told to do it its own way */
	char method[16]; /* of the control protocol; empty: not to be recorded */
	char what[HVP_ORIGIN_WHAT];
};

/* Append @text to origin->what, as much of it as fits in whole characters. */
void hvp_origin_add(struct hvp_origin *origin, const char *text);

#endif /* HVP_ORIGIN_H */
