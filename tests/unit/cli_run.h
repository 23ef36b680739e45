/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TEST_CLI_RUN_H
#define TEST_CLI_RUN_H

#include <json-c/json.h>

/* Runs of the real hvpoke: build/<variant>/hvpoke. */
/* More is a hang. hvpoke itself waits less, but a loaded machine lets it wait for its turn. */
#define LIMIT_MS 60000

/* What one run came to. */
struct run {
	int code;
	long ms;
	char out[16384];
	char err[16384];
};

const char *hvpoke_path(void);
/* @argv[0] with its arguments. Standard error goes to @err_fd, or with -1 to run->err. */
void run_with(struct run *run, const char *const *argv, int err_fd);
/* hvpoke with up to 5 arguments; NULL ends them. */
struct run hvpoke(const char *a, const char *b, const char *c, const char *d, const char *e);
/* It ended in time, with exit code @code, @in_out in its output and @in_err on standard error. */
void expect(const struct run *run, int code, const char *in_out, const char *in_err);
/* The output, which must be JSON; the caller puts it. */
struct json_object *parsed(const struct run *run);
/* The code of an error that --json printed. */
const char *error_code(struct json_object *object);

#endif /* TEST_CLI_RUN_H */
