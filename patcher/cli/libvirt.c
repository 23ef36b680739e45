// SPDX-License-Identifier: GPL-2.0-or-later
/* From a libvirt domain to hvpoked's control socket. */
#include "libvirt.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <libvirt/virterror.h>

#include "runtime.h"

/* libvirt prints errors by itself unless it is given somebody to tell. */
static void quiet(void *data, virErrorPtr error)
{
	(void)data;
	(void)error;
}

int libvirt_report(const struct options *options, const char *doing)
{
	const char *message = virGetLastErrorMessage();

	return report(options, FAILED, "libvirt", NULL, "%s: libvirt says: %s", doing, message);
}

int libvirt_open(const struct options *options, virConnectPtr *connection)
{
	const char *uri = options->connect ? options->connect : DEFAULT_URI;

	virSetErrorFunc(NULL, quiet);
	*connection = virConnectOpenAuth(uri, virConnectAuthPtrDefault, 0);
	if (*connection)
		return DONE;
	return report(options, UNREACHABLE, "unreachable", NULL,
		      "cannot connect to libvirt at %s: %s", uri, virGetLastErrorMessage());
}

static int report_no_domain(const struct options *options, virConnectPtr connection,
			    const char *name)
{
	struct json_object *known = json_object_new_array();
	struct json_object *data = json_object_new_object();
	char *list = strdup(""), *longer;
	virDomainPtr *domains;
	int nr = virConnectListAllDomains(connection, &domains, 0), i;

	for (i = 0; i < nr; i++) {
		hvp_json_append(known, json_object_new_string(virDomainGetName(domains[i])));
		if (list && asprintf(&longer, "%s%s%s", list, i ? ", " : "",
				     virDomainGetName(domains[i])) >= 0) {
			free(list);
			list = longer;
		}
		virDomainFree(domains[i]);
	}
	if (nr >= 0)
		free(domains);
	hvp_json_add(data, "known", known);
	report(options, UNREACHABLE, "unknown-vm", data, "there is no domain \"%s\"; %s%s", name,
	       nr > 0 ? "known: " : "libvirt knows none", nr > 0 && list ? list : "");
	free(list);
	return UNREACHABLE;
}

int libvirt_domain(const struct options *options, virConnectPtr connection, const char *name,
		   virDomainPtr *domain)
{
	*domain = virDomainLookupByName(connection, name);
	if (!*domain)
		*domain = virDomainLookupByUUIDString(connection, name);
	if (*domain)
		return DONE;
	return report_no_domain(options, connection, name);
}

void libvirt_vm_name(virDomainPtr domain, char *name, size_t size)
{
	char uuid[VIR_UUID_STRING_BUFLEN] = "";

	snprintf(name, size, "%s", virDomainGetName(domain));
	if (hvp_name_valid(virDomainGetName(domain)))
		return;
	virDomainGetUUIDString(domain, uuid);
	snprintf(name, size, "%s", uuid);
}

/* The host part of the connection's URI, "" if it is this one. */
static void remote_host(virConnectPtr connection, char *host, size_t size)
{
	char *uri = virConnectGetURI(connection), *start, *user;

	*host = '\0';
	start = uri ? strstr(uri, "://") : NULL;
	if (start) {
		start += 3;
		start[strcspn(start, "/?")] = '\0';
		user = strchr(start, '@');
		snprintf(host, size, "%s", user ? user + 1 : start);
	}
	free(uri);
	if (!strcmp(host, "localhost"))
		*host = '\0';
}

static int check_domain(const struct options *options, virConnectPtr connection,
			virDomainPtr domain)
{
	const char *name = virDomainGetName(domain);
	char host[256];
	int active = virDomainIsActive(domain);

	if (active < 0)
		return libvirt_report(options, "cannot ask for the domain's state");
	if (!active)
		return report(options, UNREACHABLE, "dead", NULL,
			      "domain \"%s\" is shut off: start it first", name);
	remote_host(connection, host, sizeof(host));
	if (*host)
		return report(
			options, UNREACHABLE, "remote", NULL,
			"domain \"%s\" runs on %s, and so does its control socket: run hvpoke "
			"there",
			name, host);
	return DONE;
}

int libvirt_socket(const struct options *options, const char *name, char *path, size_t size)
{
	char vm_name[HVP_NAME_MAX + 1];
	virConnectPtr connection;
	virDomainPtr domain;
	int err;

	err = libvirt_open(options, &connection);
	if (err)
		return err;
	err = libvirt_domain(options, connection, name, &domain);
	if (!err) {
		err = check_domain(options, connection, domain);
		libvirt_vm_name(domain, vm_name, sizeof(vm_name));
		virDomainFree(domain);
	}
	virConnectClose(connection);
	if (err)
		return err;
	if (hvp_runtime_socket(path, size, vm_name))
		return report(options, UNREACHABLE, "unreachable", NULL,
			      "no runtime directory: neither HVPOKE_RUNTIME_DIR nor "
			      "XDG_RUNTIME_DIR is set");
	return DONE;
}

int libvirt_report_silent(const struct options *options, const char *name)
{
	virConnectPtr connection;
	virDomainPtr domain;
	char *xml = NULL;
	bool has = false;
	int err;

	err = libvirt_open(options, &connection);
	if (err)
		return err;
	err = libvirt_domain(options, connection, name, &domain);
	if (!err) {
		xml = virDomainGetXMLDesc(domain, 0);
		has = xml && domain_has_hvpoke(xml);
		free(xml);
		virDomainFree(domain);
	}
	virConnectClose(connection);
	if (err)
		return err;
	if (!has)
		return report(options, UNREACHABLE, "no-device", NULL,
			      "domain \"%s\" runs without hvpoke's device: \"hvpoke libvirt-setup "
			      "%s\" adds it",
			      name, name);
	return report(
		options, UNREACHABLE, "unreachable", NULL,
		"domain \"%s\" has hvpoke's device, but hvpoked does not serve it: is hvpoked "
		"running? Its log says more (journalctl -u hvpoked)",
		name);
}

static const char *state_name(virDomainPtr domain)
{
	static const char *const names[] = {
		[VIR_DOMAIN_NOSTATE] = "unknown",   [VIR_DOMAIN_RUNNING] = "running",
		[VIR_DOMAIN_BLOCKED] = "running",   [VIR_DOMAIN_PAUSED] = "paused",
		[VIR_DOMAIN_SHUTDOWN] = "stopping", [VIR_DOMAIN_SHUTOFF] = "shut off",
		[VIR_DOMAIN_CRASHED] = "crashed",   [VIR_DOMAIN_PMSUSPENDED] = "suspended",
	};
	int state = VIR_DOMAIN_NOSTATE;

	virDomainGetState(domain, &state, NULL, 0);
	if (state < 0 || (size_t)state >= sizeof(names) / sizeof(*names))
		state = VIR_DOMAIN_NOSTATE;
	return names[state];
}

static struct json_object *describe(virDomainPtr domain, bool local)
{
	struct json_object *vm = NULL;
	char vm_name[HVP_NAME_MAX + 1];
	char path[PATH_MAX];
	virDomainInfo info;
	const char *state;

	libvirt_vm_name(domain, vm_name, sizeof(vm_name));
	if (local && !hvp_runtime_socket(path, sizeof(path), vm_name))
		vm = list_ask(path, &state);
	if (!vm)
		vm = json_object_new_object();
	if (!virDomainGetInfo(domain, &info)) {
		hvp_json_add(vm, "vcpus", json_object_new_int(info.nrVirtCpu));
		hvp_json_add(vm, "memory", json_object_new_uint64(1024ull * info.maxMem));
	}
	hvp_json_add(vm, "name", json_object_new_string(virDomainGetName(domain)));
	hvp_json_add(vm, "state", json_object_new_string(state_name(domain)));
	return vm;
}

int libvirt_list(const struct options *options, struct json_object **vms)
{
	virConnectPtr connection;
	virDomainPtr *domains;
	char host[256];
	int nr, i, err;

	err = libvirt_open(options, &connection);
	if (err)
		return err;
	remote_host(connection, host, sizeof(host));
	nr = virConnectListAllDomains(connection, &domains, 0);
	if (nr < 0) {
		err = libvirt_report(options, "cannot list the domains");
	} else {
		*vms = json_object_new_array();
		for (i = 0; i < nr; i++) {
			hvp_json_append(*vms, describe(domains[i], !*host));
			virDomainFree(domains[i]);
		}
		free(domains);
	}
	virConnectClose(connection);
	return err;
}
