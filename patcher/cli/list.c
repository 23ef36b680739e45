// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke list */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libvirt.h"
#include "runtime.h"

#define EACH_MS 500 /* for one VM to greet, and again to answer */

struct json_object *list_ask(const char *path, const char **state)
{
	struct json_object *result = NULL, *error = NULL;
	struct hvp_client *client;
	int err = hvp_client_connect(&client, path, EACH_MS);

	*state = err == -ECONNREFUSED || err == -ENOENT ? "dead" : "unreachable";
	if (err)
		return NULL;
	hvp_client_call(client, "info", NULL, EACH_MS, &result, &error);
	hvp_client_close(client);
	json_object_put(error);
	return result;
}

static struct json_object *describe(const char *name)
{
	struct json_object *vm;
	char path[PATH_MAX];
	const char *state;

	if (hvp_runtime_socket(path, sizeof(path), name))
		return NULL;
	vm = list_ask(path, &state);
	if (!vm) {
		vm = json_object_new_object();
		hvp_json_add(vm, "state", json_object_new_string(state));
	}
	/* The name by which it is reached, whatever it calls itself. */
	hvp_json_add(vm, "name", json_object_new_string(name));
	hvp_json_add(vm, "socket", json_object_new_string(path));
	return vm;
}

static char *cell(struct json_object *object, const char *key)
{
	return value_text(key, json_object_object_get(object, key));
}

static void print_table(struct json_object *vms)
{
	static const char *const titles[] = {"NAME",   "STATE", "PID",	 "VCPUS",
					     "MEMORY", "AGENT", "SCOPE", "KERNEL"};
	size_t nr = json_object_array_length(vms), i;
	struct row *rows = need(calloc(nr, sizeof(*rows)));

	for (i = 0; i < nr; i++) {
		struct json_object *vm = json_object_array_get_idx(vms, i);
		struct json_object *agent = json_object_object_get(vm, "agent");

		rows[i].cells[0] = cell(vm, "name");
		rows[i].cells[1] = cell(vm, "state");
		rows[i].cells[2] = cell(vm, "pid");
		rows[i].cells[3] = cell(vm, "vcpus");
		rows[i].cells[4] = cell(vm, "memory");
		rows[i].cells[5] = cell(agent, "version");
		rows[i].cells[6] = cell(agent, "scope");
		rows[i].cells[7] = cell(agent, "kernel");
	}
	print_rows(titles, sizeof(titles) / sizeof(titles[0]), rows, (int)nr);
	free_rows(rows, (int)nr);
}

static int report_directory(const struct options *options, int err)
{
	if (err == -ENOENT)
		return report(options, UNREACHABLE, "unreachable", NULL,
			      "no runtime directory: neither HVPOKE_RUNTIME_DIR nor "
			      "XDG_RUNTIME_DIR is set");
	return report(options, UNREACHABLE, "unreachable", NULL,
		      "cannot read the runtime directory: %s", strerror(-err));
}

static int list_sockets(const struct options *options, struct json_object **vms)
{
	char **names;
	int nr = vm_names(&names), i;

	if (nr < 0)
		return report_directory(options, nr);
	*vms = json_object_new_array();
	for (i = 0; i < nr; i++)
		hvp_json_append(*vms, describe(names[i]));
	vm_names_free(names, nr);
	return DONE;
}

int cmd_list(const struct options *options)
{
	struct json_object *vms = NULL;
	int err;

	err = options->connect ? libvirt_list(options, &vms) : list_sockets(options, &vms);
	if (err)
		return err;
	if (options->json)
		err = print_json(options, vms);
	else if (!hvp_json_whole(vms))
		err = report_memory(options);
	else if (json_object_array_length(vms))
		print_table(vms);
	else
		fputs(options->connect ? "there is no domain\n" : "no VM is running\n", stderr);
	json_object_put(vms);
	return err;
}
