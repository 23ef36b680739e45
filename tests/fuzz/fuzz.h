/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * What the fuzz targets share. Each fuzz_NAME.c is one, with its seeds in corpus/NAME, its
 * words in NAME.dict, and what was once found in regressions/NAME. Targets are
 * deterministic: the same input does the same, no matter how slow the machine is. So they have
 * one thread, and where the program waits for somebody else, the target is that somebody.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A promise that was broken: the input is kept, as with a crash. */
#define CHECK(promise)                                                                        \
	do {                                                                                  \
		if (!(promise)) {                                                             \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise); \
			abort();                                                              \
		}                                                                             \
	} while (0)

/* An input that is read as a program: what is behind its end is zeroes. */
struct input {
	const uint8_t *at, *end;
};

uint8_t input_u8(struct input *input);
uint16_t input_u16(struct input *input);
uint32_t input_u32(struct input *input);
uint64_t input_u64(struct input *input);
/* At most @max bytes, as many as the next two bytes say; NULL if there are none. */
const uint8_t *input_bytes(struct input *input, size_t max, size_t *len);

/* @len bytes and a NUL, in memory of their own that ends there; to be freed. */
char *fuzz_string(const uint8_t *data, size_t len);

#endif /* FUZZ_H */
