// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke libvirt-setup DOMAIN: add what is missing to a domain, after showing it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libvirt/virterror.h>

#include "libvirt.h"

static const char *socket_dir(const struct options *options)
{
	return options->socket_dir ? options->socket_dir : HVPOKED_DIR;
}

static bool agreed(const struct options *options)
{
	char answer[16] = "";

	if (options->yes)
		return true;
	if (!isatty(STDIN_FILENO)) {
		fputs("Nothing was changed: give --yes to do it.\n", stderr);
		return false;
	}
	fputs("Change the domain's definition like this? [y/N] ", stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

static int done(const struct options *options, const char *where, const char *text)
{
	struct json_object *result;
	int err;

	if (!options->json) {
		puts(text);
		return DONE;
	}
	result = json_object_new_object();
	hvp_json_add(result, "changed", json_object_new_string(where));
	hvp_json_add(result, "message", json_object_new_string(text));
	err = print_json(options, result);
	json_object_put(result);
	return err;
}

/*
 * The domain runs. Its QEMU can be given the device, but never a monitor: so only if it was
 * started with one is there a point in it.
 */
static int change_running(const struct options *options, virDomainPtr domain)
{
	struct domain_change change;
	char *xml = virDomainGetXMLDesc(domain, 0);
	int err = xml ? domain_add_hvpoke(xml, socket_dir(options), &change) : -EIO;

	free(xml);
	if (err)
		return libvirt_report(options, "cannot look at the running domain");
	if (change.had_device && change.had_monitor) {
		err = done(options, "persistent",
			   "The running domain has all that it needs already.");
	} else if (!change.had_monitor) {
		err = done(options, "persistent",
			   "The persistent definition was changed. The running QEMU was not: a "
			   "monitor cannot be added to it. Shut the domain down and start it again "
			   "(a reboot of the guest is not enough).");
	} else if (virDomainAttachDeviceFlags(domain, change.device, VIR_DOMAIN_AFFECT_LIVE) < 0) {
		fprintf(stderr, "hot-plug: %s\n", virGetLastErrorMessage());
		err = done(options, "persistent",
			   "The persistent definition was changed. The device could not be "
			   "hot-plugged: shut the domain down and start it again.");
	} else {
		err = done(options, "persistent and live",
			   "The persistent definition was changed, and the device was hot-plugged: "
			   "load hvpoke.ko in the guest.");
	}
	domain_change_free(&change);
	return err;
}

static int change_domain(const struct options *options, virConnectPtr connection,
			 virDomainPtr domain, const struct domain_change *change)
{
	virDomainPtr defined;

	print_difference(options->json ? stderr : stdout, change->before, change->after);
	if (change->where)
		fprintf(options->json ? stderr : stdout, "(%s)\n", change->where);
	fflush(stdout);
	if (!agreed(options))
		return FAILED;
	defined = virDomainDefineXMLFlags(connection, change->after, VIR_DOMAIN_DEFINE_VALIDATE);
	if (!defined)
		return libvirt_report(options, "cannot change the definition");
	virDomainFree(defined);
	if (virDomainIsActive(domain) == 1)
		return change_running(options, domain);
	return done(
		options, "persistent",
		"The persistent definition was changed: start the domain, with hvpoked running, "
		"and load hvpoke.ko in the guest.");
}

static int setup(const struct options *options, virConnectPtr connection, virDomainPtr domain)
{
	struct domain_change change;
	char *xml;
	int err;

	if (virDomainIsPersistent(domain) != 1)
		return report(options, FAILED, "transient", NULL,
			      "domain \"%s\" is transient: it has no definition that could be "
			      "changed; add <shmem> and <qemu:commandline> where it comes from "
			      "(configs/libvirt-domain.xml shows them)",
			      virDomainGetName(domain));
	xml = virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE);
	if (!xml)
		return libvirt_report(options, "cannot read the domain's definition");
	err = domain_add_hvpoke(xml, socket_dir(options), &change);
	free(xml);
	if (err)
		return report(options, FAILED, "internal", NULL,
			      "cannot change the domain's definition: %s", strerror(-err));
	if (!change.had_device || !change.had_monitor)
		err = change_domain(options, connection, domain, &change);
	else if (virDomainIsActive(domain) == 1)
		err = change_running(options, domain);
	else
		err = done(options, "nothing", "The domain has all that it needs already.");
	domain_change_free(&change);
	return err;
}

int cmd_libvirt_setup(const struct options *options)
{
	virConnectPtr connection;
	virDomainPtr domain = NULL;
	int err;

	err = libvirt_open(options, &connection);
	if (err)
		return err;
	if (strcmp(virConnectGetType(connection), "QEMU") != 0)
		err = report(options, FAILED, "unsupported", NULL,
			     "libvirt runs %s guests there; hvpoked serves those of QEMU",
			     virConnectGetType(connection));
	else
		err = libvirt_domain(options, connection, options->args[0], &domain);
	if (!err) {
		err = setup(options, connection, domain);
		virDomainFree(domain);
	}
	virConnectClose(connection);
	return err;
}
