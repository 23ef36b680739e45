// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "fuzz.h"

static void take(struct input *input, void *to, size_t len)
{
	size_t left = (size_t)(input->end - input->at);
	size_t now = len < left ? len : left;

	memset(to, 0, len);
	if (now)
		memcpy(to, input->at, now);
	input->at += now;
}

uint8_t input_u8(struct input *input)
{
	uint8_t value;

	take(input, &value, sizeof(value));
	return value;
}

uint16_t input_u16(struct input *input)
{
	uint16_t value;

	take(input, &value, sizeof(value));
	return value;
}

uint32_t input_u32(struct input *input)
{
	uint32_t value;

	take(input, &value, sizeof(value));
	return value;
}

uint64_t input_u64(struct input *input)
{
	uint64_t value;

	take(input, &value, sizeof(value));
	return value;
}

const uint8_t *input_bytes(struct input *input, size_t max, size_t *len)
{
	size_t wanted = input_u16(input), left = (size_t)(input->end - input->at);
	const uint8_t *bytes = input->at;

	if (wanted > max)
		wanted %= max + 1;
	*len = wanted < left ? wanted : left;
	input->at += *len;
	return *len ? bytes : NULL;
}

char *fuzz_string(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	CHECK(text);
	if (len)
		memcpy(text, data, len);
	text[len] = '\0';
	return text;
}
