// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke undo VM ID */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "json_build.h"

static bool parse_id(const char *text, uint64_t *id)
{
	char *end;

	errno = 0;
	*id = strtoull(text, &end, 10);
	/* strtoull() takes a sign, and spaces. */
	return *text >= '0' && *text <= '9' && !*end && !errno && *id && *id <= INT64_MAX;
}

int cmd_undo(const struct options *options)
{
	unsigned int timeout_ms = options->timeout_ms ? options->timeout_ms : CHANGE_TIMEOUT_MS;
	struct json_object *params, *result = NULL;
	uint64_t id;
	int err;

	if (!parse_id(options->args[1], &id))
		return options_wrong(
			options, "the id of a batch is expected, as \"hvpoke log\" has it, not ",
			options->args[1]);
	params = json_object_new_object();
	hvp_json_add(params, "id", json_object_new_uint64(id));
	hvp_json_add(params, "timeout_ms", json_object_new_int64(timeout_ms));
	err = check_made(options, params);
	if (!err)
		err = vm_call(options, options->args[0], "undo", params, timeout_ms, true, &result);
	return err ? err : show_result(options, result);
}
