// SPDX-License-Identifier: GPL-2.0-or-later
/* From a VM's name to a connection, and one request over it. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libvirt.h"
#include "control.h"
#include "runtime.h"

#define CONNECT_MS    1500 /* for the connection and the greeting */
#define GRACE_MS      2000 /* for the server's own timeout to arrive */
#define TICK_MS	      1000
#define QUIET_SECONDS 2 /* no progress line for what is quick */

bool vm_is_path(const char *name)
{
	return strchr(name, '/');
}

/* Is it NAME.sock? The type is not asked: on a directory listing it may be unknown. */
static int is_socket_name(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), suffix = strlen(HVP_SOCKET_SUFFIX);
	char name[HVP_NAME_MAX + 1];

	if (len <= suffix || len - suffix > HVP_NAME_MAX ||
	    strcmp(entry->d_name + len - suffix, HVP_SOCKET_SUFFIX) != 0)
		return 0;
	memcpy(name, entry->d_name, len - suffix);
	name[len - suffix] = '\0';
	return hvp_name_valid(name) && (entry->d_type == DT_SOCK || entry->d_type == DT_UNKNOWN);
}

int vm_names(char ***names)
{
	struct dirent **entries;
	char dir[PATH_MAX];
	int nr, i, err;

	*names = NULL;
	err = hvp_runtime_dir(dir, sizeof(dir));
	if (err)
		return err;
	nr = scandir(dir, &entries, is_socket_name, alphasort);
	if (nr < 0)
		return errno == ENOENT ? 0 : -errno; /* no directory: no VM was ever started */
	*names = calloc((size_t)nr + 1, sizeof(**names));
	for (i = 0; i < nr; i++) {
		size_t len = strlen(entries[i]->d_name) - strlen(HVP_SOCKET_SUFFIX);

		if (*names)
			(*names)[i] = need(strndup(entries[i]->d_name, len));
		free(entries[i]);
	}
	free(entries);
	return *names ? nr : -ENOMEM;
}

void vm_names_free(char **names, int nr)
{
	while (names && nr > 0)
		free(names[--nr]);
	free(names);
}

static int report_unknown(const struct options *options, const char *name, const char *path)
{
	struct json_object *known = json_object_new_array();
	struct json_object *data = json_object_new_object();
	char *list = strdup("");
	char **names;
	int nr = vm_names(&names), i;

	for (i = 0; names && i < nr && list; i++) {
		char *longer = NULL;

		hvp_json_append(known, json_object_new_string(names[i]));
		if (asprintf(&longer, "%s%s%s", list, i ? ", " : "", names[i]) < 0)
			longer = NULL;
		free(list);
		list = longer;
	}
	vm_names_free(names, nr);
	hvp_json_add(data, "known", known);
	report(options, UNREACHABLE, "unknown-vm", data,
	       "there is no VM \"%s\" (no socket %s); %s%s", name, path,
	       nr > 0 ? "known: " : "no VM is known", nr > 0 && list ? list : "");
	free(list);
	return UNREACHABLE;
}

static int report_connect(const struct options *options, const char *name, const char *path,
			  int err)
{
	const char *code = "unreachable";
	const char *reason;

	switch (-err) {
	case ENOENT:
	case ENOTDIR: return report_unknown(options, name, path);
	case ECONNREFUSED:
		code = "dead";
		reason = "it is not running: nobody listens on its socket, which was left behind; "
			 "starting the VM again replaces it";
		break;
	case ETIMEDOUT:
		reason = "its control server does not answer; is the process stopped?";
		break;
	case EACCES:
	case EPERM:
		reason = "permission denied: only root and the user who runs the VM may control it";
		break;
	case EBUSY: reason = "its control server has too many clients; try again later"; break;
	case EPROTONOSUPPORT: reason = "it speaks another version of the control protocol"; break;
	case EPROTO:
	case ECONNRESET: reason = "what listens there is not a control server of hvpoke"; break;
	default: reason = strerror(-err); break;
	}
	return report(options, UNREACHABLE, code, NULL, "cannot reach VM \"%s\" (%s): %s", name,
		      path, reason);
}

int vm_connect(const struct options *options, const char *name, struct hvp_client **client)
{
	char path[PATH_MAX];
	int err = 0;

	if (options->connect) {
		err = libvirt_socket(options, name, path, sizeof(path));
		if (err)
			return err;
		err = hvp_client_connect(client, path, CONNECT_MS);
		if (err == -ENOENT || err == -ECONNREFUSED)
			return libvirt_report_silent(options, name);
		return err ? report_connect(options, name, path, err) : DONE;
	}
	if (vm_is_path(name)) {
		snprintf(path, sizeof(path), "%s", name);
	} else {
		err = hvp_runtime_socket(path, sizeof(path), name);
		if (err == -EINVAL)
			return report_unknown(options, name, "can have this name");
		if (err == -ENOENT)
			return report(options, UNREACHABLE, "unreachable", NULL,
				      "no runtime directory: neither HVPOKE_RUNTIME_DIR nor "
				      "XDG_RUNTIME_DIR is set");
	}
	if (!err)
		err = hvp_client_connect(client, path, CONNECT_MS);
	return err ? report_connect(options, name, path, err) : DONE;
}

static unsigned int elapsed_ms(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned int)((now.tv_sec - since->tv_sec) * 1000 +
			      (now.tv_nsec - since->tv_nsec) / 1000000);
}

/* hvp_client_answer(), with a sign of life on a terminal. */
static int wait_answer(struct hvp_client *client, int64_t id, unsigned int timeout_ms,
		       bool progress, struct json_object **result, struct json_object **error)
{
	bool shown = false, tell = progress && isatty(STDERR_FILENO);
	unsigned int spent = 0, slice;
	struct timespec start;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		slice = timeout_ms - spent;
		if (tell && slice > TICK_MS)
			slice = TICK_MS;
		err = hvp_client_answer(client, id, (int)slice, result, error);
		spent = elapsed_ms(&start);
		if (err == -ETIMEDOUT && tell && spent >= QUIET_SECONDS * 1000) {
			fprintf(stderr, "\rwaiting for the guest... %u s", spent / 1000);
			shown = true;
		}
	} while (err == -ETIMEDOUT && spent < timeout_ms);
	if (shown)
		fputs("\r\033[K", stderr);
	return err;
}

static int report_call(const struct options *options, const char *name, int err,
		       unsigned int timeout_ms)
{
	if (err == -ETIMEDOUT)
		return report(options, TIMED_OUT, "timeout", NULL,
			      "VM \"%s\" did not answer within %u.%03u s", name, timeout_ms / 1000,
			      timeout_ms % 1000);
	if (err == -ECONNRESET)
		return report(options, UNREACHABLE, "unreachable", NULL,
			      "VM \"%s\" ended before it answered", name);
	return report(options, FAILED, "internal", NULL, "VM \"%s\": %s", name,
		      err == -EPROTO ? "its answer is not one of the control protocol"
				     : strerror(-err));
}

int vm_ask(const struct options *options, struct hvp_client *client, const char *name,
	   const char *method, struct json_object *params, unsigned int timeout_ms, bool progress,
	   struct json_object **result)
{
	struct json_object *error = NULL;
	int64_t id;
	int err;

	id = hvp_client_send(client, method, params, REQUEST_MS);
	if (id > 0)
		err = wait_answer(client, id, timeout_ms + (progress ? GRACE_MS : 0), progress,
				  result, &error);
	else
		err = (int)id;
	if (err)
		return report_call(options, name, err, timeout_ms);
	return error ? report_reply(options, error) : DONE;
}

int vm_call(const struct options *options, const char *name, const char *method,
	    struct json_object *params, unsigned int timeout_ms, bool progress,
	    struct json_object **result)
{
	struct hvp_client *client = NULL;
	int err;

	err = vm_connect(options, name, &client);
	if (err) {
		json_object_put(params);
		return err;
	}
	err = vm_ask(options, client, name, method, params, timeout_ms, progress, result);
	hvp_client_close(client);
	return err;
}

int show_result(const struct options *options, struct json_object *result)
{
	int err = DONE;

	if (options->json)
		err = print_json(options, result);
	else
		print_object(result);
	json_object_put(result);
	return err;
}

int vm_show(const struct options *options, const char *method)
{
	struct json_object *result = NULL;
	int err = vm_call(options, options->args[0], method, NULL, REQUEST_MS, false, &result);

	if (err)
		return err;
	return show_result(options, result);
}
