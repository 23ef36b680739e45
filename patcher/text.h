/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_TEXT_H
#define HVP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed UTF-8 by Unicode's table 3-7: no overlong forms, no surrogates. */
bool hvp_utf8_valid(const char *text, size_t len);

/*
 * Make text of an untrusted origin fit for a JSON string and for a terminal:
 * control characters (C0, DEL, C1) and what is not UTF-8 become '?', in place.
 */
void hvp_text_clean(char *text);

#endif /* HVP_TEXT_H */
