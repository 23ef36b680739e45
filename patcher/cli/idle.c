// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke idle VM MS */
#include <stdlib.h>

#include "cli.h"

#define MAX_IDLE_MS	600000
#define DEFAULT_REST_MS 120000 /* beside the idle time itself */

int cmd_idle(const struct options *options)
{
	struct json_object *params, *result;
	unsigned int timeout_ms;
	char *end;
	long ms;
	int err;

	ms = strtol(options->args[1], &end, 10);
	if (end == options->args[1] || *end || ms < 1 || ms > MAX_IDLE_MS)
		return report(options, USAGE, "usage", NULL,
			      "idle: MS must be milliseconds, from 1 to %d, not \"%s\"",
			      MAX_IDLE_MS, options->args[1]);
	timeout_ms = options->timeout_ms ? options->timeout_ms : (unsigned int)ms + DEFAULT_REST_MS;
	params = json_object_new_object();
	hvp_json_add(params, "ms", json_object_new_int64(ms));
	hvp_json_add(params, "timeout_ms", json_object_new_int64(timeout_ms));
	err = check_made(options, params);
	if (!err)
		err = vm_call(options, options->args[0], "idle", params, timeout_ms, true, &result);
	if (err)
		return err;
	return show_result(options, result);
}
