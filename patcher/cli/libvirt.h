/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKE_CLI_LIBVIRT_H
#define HVPOKE_CLI_LIBVIRT_H

#include <libvirt/libvirt.h>

#include "cli.h"

/*
 * With --connect, VMs are libvirt's domains. libvirt says which there are, in what state, and
 * whether they have hvpoke's device; hvpoked's control socket, found by the domain's
 * name, does the rest.
 */

/* Where hvpoked listens, unless it was told otherwise. */
#define HVPOKED_DIR "/run/hvpoked"

#define DEFAULT_URI "qemu:///system"

/* Connect to options->connect. DONE, or the exit code (reported). */
int libvirt_open(const struct options *options, virConnectPtr *connection);
/* By name, or UUID. DONE, or the exit code (reported); the caller frees it. */
int libvirt_domain(const struct options *options, virConnectPtr connection, const char *name,
		   virDomainPtr *domain);
/* Report what libvirt said last, behind @doing. Returns FAILED. */
int libvirt_report(const struct options *options, const char *doing);

/*
 * The control socket of domain @name, into @path. DONE, or the exit code
 * (reported): no such domain, it does not run, it runs elsewhere.
 */
int libvirt_socket(const struct options *options, const char *name, char *path, size_t size);
/* Why nobody listens there, though the domain runs: reported. */
int libvirt_report_silent(const struct options *options, const char *name);

/* What hvpoked calls a domain: its name, or its UUID where a socket cannot have that name. */
void libvirt_vm_name(virDomainPtr domain, char *name, size_t size);

/* Every domain, as an array like that of "hvpoke list". */
int libvirt_list(const struct options *options, struct json_object **vms);

/*
 * domain_xml.c: add what is missing to @xml (a domain's definition). *@changed is from
 * malloc(), NULL if nothing is missing. @port: where the device goes, a sentence, from
 * malloc(). 0 or a negative errno.
 */
struct domain_change {
	char *before, *after; /* both formatted alike; the caller frees them */
	char *where;	      /* a sentence about where the device goes, or NULL */
	char *device;	      /* the device's own XML, or NULL if it was there */
	bool had_device, had_monitor;
};
int domain_add_hvpoke(const char *xml, const char *dir, struct domain_change *change);
bool domain_has_hvpoke(const char *xml);
void domain_change_free(struct domain_change *change);

/* setup_diff.c: the lines that differ, with a few around them. */
void print_difference(FILE *to, const char *before, const char *after);

#endif /* HVPOKE_CLI_LIBVIRT_H */
