// SPDX-License-Identifier: GPL-2.0-or-later
#include "key_list.h"

#include <errno.h>
#include <string.h>

/* A name that can be shown, and typed to switch the key. @room: bytes of the record behind it. */
static bool name_valid(const char *name, size_t room)
{
	size_t len = strnlen(name, room);

	if (!len || len == room)
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return true;
}

int hvp_key_next(const struct hvpoke_complete *answer, uint32_t *at, struct hvp_key *key)
{
	const uint8_t *record = answer->data + *at;
	struct hvpoke_key header;
	uint32_t left;

	if (answer->data_len > sizeof(answer->data) || *at > answer->data_len)
		return -EPROTO;
	left = answer->data_len - *at;
	if (!left)
		return 0;
	if (left < sizeof(header))
		return -EPROTO;
	memcpy(&header, record, sizeof(header));
	if (header.size < sizeof(header) || header.size > left || header.size % 4 ||
	    header.enabled > 1 || header.reserved)
		return -EPROTO;
	key->name = (const char *)record + sizeof(header);
	key->enabled = header.enabled;
	key->sites = header.sites;
	if (!name_valid(key->name, header.size - sizeof(header)))
		return -EPROTO;
	*at += header.size;
	return 1;
}
