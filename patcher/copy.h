/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_COPY_H
#define HVP_COPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Guest memory is shared with running vCPUs: what stands there may change
 * between two loads. So it is read once, into memory of the host, in relaxed
 * atomic loads, which the compiler can neither repeat nor invent (CASES 5);
 * and written in relaxed atomic stores.
 */

/* @len bytes (a multiple of 8) from guest memory at @src (8-byte aligned). */
void hvp_copy_in(void *dst, const void *src, size_t len);
/* @len bytes (a multiple of 4) to guest memory at @dst (4-byte aligned). */
void hvp_copy_out(void *dst, const void *src, size_t len);

#endif /* HVP_COPY_H */
