/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_STRING_IN_H
#define HVP_STRING_IN_H

#include <stddef.h>

/*
 * A string from the guest, @len bytes with or without a NUL among them, as text
 * that may be shown on a terminal and put into JSON: whatever is not printable
 * ASCII becomes '?'. @dst has room for @len + 1 bytes; what follows the string
 * is zeroed. @dst and @src may be the same.
 */
void hvp_string_in(char *dst, const char *src, size_t len);

#endif /* HVP_STRING_IN_H */
