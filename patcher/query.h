/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_QUERY_H
#define HVP_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "../proto/hvpoke_abi.h"

/*
 * Dynamic debug queries, as the kernel's lib/dynamic_debug.c parses them (and
 * Documentation/admin-guide/dynamic-debug-howto.rst describes them), with `!`
 * before func, file, module and format. Queries are split by ';', newline or
 * '%' (that one newer kernels only), also inside of quotes, as the kernel does
 * it; comments and empty queries are passed over. Other than the kernel, which
 * carries on after a bad query, this takes all of a text or nothing.
 *
 * `!` inverts the term whose keyword it stands before, and no other: in
 * "!file a.c:open" the function stays as it is, so that this means functions
 * called open outside of a.c.
 */
struct hvp_queries {
	size_t nr;     /* records: queries here, and the other changes of change.h */
	size_t len;    /* bytes in data */
	uint8_t *data; /* struct hvpoke_query records, ready for the guest */
};

struct hvp_query_error {
	size_t column;	   /* 1-based byte column in the whole text; 0: none */
	char word[64];	   /* the word there, shortened with "..." if need be */
	char message[256]; /* a sentence: what was expected, what came */
};

/*
 * Parse @text. Returns 0 and fills @queries (release with
 * hvp_queries_free()), or -EINVAL (@error says why), -E2BIG (more than fits
 * in HVPOKE_REQ_DATA; @error too) or -ENOMEM.
 */
int hvp_queries_parse(const char *text, struct hvp_queries *queries, struct hvp_query_error *error);
void hvp_queries_free(struct hvp_queries *queries);

#endif /* HVP_QUERY_H */
