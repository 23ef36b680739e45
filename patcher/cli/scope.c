// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke scope VM [SCOPE] */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "scope.h"

static int show(const struct options *options)
{
	if (options->timeout_ms)
		return options_wrong(options, "to show the scope takes no --timeout", "");
	return vm_show(options, "scope");
}

int cmd_scope(const struct options *options)
{
	unsigned int timeout_ms = options->timeout_ms ? options->timeout_ms : CHANGE_TIMEOUT_MS;
	struct json_object *params, *result;
	uint32_t scope;
	char *text;
	int err;

	if (options->nr_args == 1)
		return show(options);
	if (!hvp_scope_parse(options->args[1], &scope))
		return options_wrong(options, "the scope must be " HVP_SCOPE_NAMES ", not ",
				     options->args[1]);
	params = json_object_new_object();
	hvp_json_add(params, "scope", json_object_new_string(options->args[1]));
	hvp_json_add(params, "timeout_ms", json_object_new_int64(timeout_ms));
	err = check_made(options, params);
	if (!err)
		err = vm_call(options, options->args[0], "scope", params, timeout_ms, true,
			      &result);
	if (err)
		return err;
	if (options->json) {
		err = print_json(options, result);
	} else {
		print_outcome(result);
		text = value_text("scope", json_object_object_get(result, "scope"));
		printf("scope     %s\n", text);
		free(text);
	}
	json_object_put(result);
	return err;
}
