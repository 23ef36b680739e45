// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A domain's definition, and what hvpoke needs in it:
 *
 *   <shmem name='hvpoke'>			the transport
 *     <model type='ivshmem-doorbell'/>
 *     <server path='DIR/ivshmem'/>
 *     <msi vectors='1' ioeventfd='on'/>
 *   </shmem>
 *   <qemu:commandline>				a monitor for hvpoked, next to libvirt's own
 *     <qemu:arg value='-qmp'/>
 *     <qemu:arg value='unix:DIR/qmp,reconnect=1'/>
 *   </qemu:commandline>
 *
 * On a PCIe machine (q35) nothing can be hot-plugged into the root bus, and libvirt's
 * hot-plug adds no ports: so the device gets a root port of its own, one that is free or a new
 * one (CASES 11).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include "libvirt.h"

#define QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"
#define DEVICE_NAME    "hvpoke"
#define MAX_BUS	       256

static bool is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name);
}

static xmlNode *child(xmlNode *parent, const char *name)
{
	xmlNode *node;

	for (node = parent ? parent->children : NULL; node; node = node->next)
		if (is_element(node, name))
			return node;
	return NULL;
}

static bool has_value(xmlNode *node, const char *key, const char *value)
{
	xmlChar *is = node ? xmlGetProp(node, BAD_CAST key) : NULL;
	bool same = is && !strcmp((char *)is, value);

	xmlFree(is);
	return same;
}

static long number(xmlNode *node, const char *key)
{
	xmlChar *text = node ? xmlGetProp(node, BAD_CAST key) : NULL;
	long value = text ? strtol((char *)text, NULL, 0) : -1;

	xmlFree(text);
	return value;
}

static bool has_device(xmlNode *root, const char *dir)
{
	char path[256];
	xmlNode *node, *devices = child(root, "devices");

	snprintf(path, sizeof(path), "%s/ivshmem", dir);
	for (node = devices ? devices->children : NULL; node; node = node->next)
		if (is_element(node, "shmem") && has_value(child(node, "server"), "path", path))
			return true;
	return false;
}

static bool has_monitor(xmlNode *root, const char *dir)
{
	char value[256];
	xmlNode *node, *commandline = child(root, "commandline");

	snprintf(value, sizeof(value), "unix:%s/qmp,reconnect=1", dir);
	for (node = commandline ? commandline->children : NULL; node; node = node->next)
		if (is_element(node, "arg") && has_value(node, "value", value))
			return true;
	return false;
}

static bool is_pcie(xmlNode *root)
{
	xmlNode *node, *devices = child(root, "devices");

	for (node = devices ? devices->children : NULL; node; node = node->next)
		if (is_element(node, "controller") && has_value(node, "model", "pcie-root"))
			return true;
	return false;
}

/* A root port with nothing in it, or 0; @last: the highest index of any PCI controller. */
static long free_port(xmlNode *root, long *last)
{
	bool port[MAX_BUS] = {false}, used[MAX_BUS] = {false};
	xmlNode *node, *devices = child(root, "devices");
	long index, bus;

	*last = 0;
	for (node = devices ? devices->children : NULL; node; node = node->next) {
		if (is_element(node, "controller") && has_value(node, "type", "pci")) {
			index = number(node, "index");
			if (index > *last)
				*last = index;
			if (index > 0 && index < MAX_BUS)
				port[index] = has_value(node, "model", "pcie-root-port");
		}
		bus = has_value(child(node, "address"), "type", "pci")
			      ? number(child(node, "address"), "bus")
			      : -1;
		if (bus >= 0 && bus < MAX_BUS)
			used[bus] = true;
	}
	for (index = 1; index < MAX_BUS; index++)
		if (port[index] && !used[index])
			return index;
	return 0;
}

static xmlNode *add(xmlNode *parent, const char *name)
{
	return xmlNewChild(parent, NULL, BAD_CAST name, NULL);
}

static void set(xmlNode *node, const char *key, const char *value)
{
	xmlNewProp(node, BAD_CAST key, BAD_CAST value);
}

static void set_number(xmlNode *node, const char *key, const char *format, long value)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	set(node, key, text);
}

static int add_port(xmlNode *root, struct domain_change *change, long *bus)
{
	xmlNode *port;
	long last;

	*bus = free_port(root, &last);
	if (*bus)
		return asprintf(&change->where, "the device goes into the free PCIe root port %ld",
				*bus) < 0
			       ? -ENOMEM
			       : 0;
	if (last + 1 >= MAX_BUS)
		return -ENOSPC;
	*bus = last + 1;
	port = add(child(root, "devices"), "controller");
	set(port, "type", "pci");
	set_number(port, "index", "%ld", *bus);
	set(port, "model", "pcie-root-port");
	return asprintf(&change->where,
			"no PCIe root port is free: a new one (%ld) is added for the device",
			*bus) < 0
		       ? -ENOMEM
		       : 0;
}

static char *dump_node(xmlDoc *doc, xmlNode *node)
{
	xmlBuffer *buffer = xmlBufferCreate();
	char *text = NULL;

	if (buffer && xmlNodeDump(buffer, doc, node, 0, 1) >= 0)
		text = strdup((const char *)xmlBufferContent(buffer));
	if (buffer)
		xmlBufferFree(buffer);
	return text;
}

static int add_device(xmlDoc *doc, xmlNode *root, const char *dir, struct domain_change *change)
{
	xmlNode *shmem, *node;
	char path[256];
	long bus = -1;
	int err;

	if (is_pcie(root)) {
		err = add_port(root, change, &bus);
		if (err)
			return err;
	}
	snprintf(path, sizeof(path), "%s/ivshmem", dir);
	shmem = add(child(root, "devices"), "shmem");
	set(shmem, "name", DEVICE_NAME);
	set(add(shmem, "model"), "type", "ivshmem-doorbell");
	set(add(shmem, "server"), "path", path);
	node = add(shmem, "msi");
	set(node, "vectors", "1");
	set(node, "ioeventfd", "on");
	if (bus > 0) {
		node = add(shmem, "address");
		set(node, "type", "pci");
		set(node, "domain", "0x0000");
		set_number(node, "bus", "0x%02lx", bus);
		set(node, "slot", "0x00");
		set(node, "function", "0x0");
	}
	change->device = dump_node(doc, shmem);
	return change->device ? 0 : -ENOMEM;
}

static void add_monitor(xmlNode *root, const char *dir)
{
	xmlNode *commandline = child(root, "commandline"), *arg;
	xmlNs *ns = xmlSearchNsByHref(root->doc, root, BAD_CAST QEMU_NAMESPACE);
	char value[256];

	if (!ns)
		ns = xmlNewNs(root, BAD_CAST QEMU_NAMESPACE, BAD_CAST "qemu");
	if (!commandline)
		commandline = xmlNewChild(root, ns, BAD_CAST "commandline", NULL);
	snprintf(value, sizeof(value), "unix:%s/qmp,reconnect=1", dir);
	arg = xmlNewChild(commandline, ns, BAD_CAST "arg", NULL);
	set(arg, "value", "-qmp");
	arg = xmlNewChild(commandline, ns, BAD_CAST "arg", NULL);
	set(arg, "value", value);
}

static char *dump(xmlDoc *doc)
{
	xmlChar *text = NULL;
	char *copy;
	int size;

	xmlDocDumpFormatMemory(doc, &text, &size, 1);
	copy = text ? strdup((char *)text) : NULL;
	xmlFree(text);
	return copy;
}

/* Without the white space between elements, so that it can be formatted anew. */
static xmlDoc *parse(const char *xml)
{
	return xmlReadMemory(xml, (int)strlen(xml), "domain.xml", NULL,
			     XML_PARSE_NOBLANKS | XML_PARSE_NONET | XML_PARSE_NOERROR |
				     XML_PARSE_NOWARNING);
}

bool domain_has_hvpoke(const char *xml)
{
	xmlDoc *doc = parse(xml);
	xmlNode *node = doc ? child(xmlDocGetRootElement(doc), "devices") : NULL;
	bool has = false;

	for (node = node ? node->children : NULL; node; node = node->next)
		has |= is_element(node, "shmem") && has_value(node, "name", DEVICE_NAME);
	if (doc)
		xmlFreeDoc(doc);
	return has;
}

int domain_add_hvpoke(const char *xml, const char *dir, struct domain_change *change)
{
	xmlDoc *doc = parse(xml);
	xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
	int err = 0;

	memset(change, 0, sizeof(*change));
	if (!root || !child(root, "devices")) {
		err = -EINVAL;
	} else {
		change->before = dump(doc);
		change->had_device = has_device(root, dir);
		change->had_monitor = has_monitor(root, dir);
		if (!change->had_device)
			err = add_device(doc, root, dir, change);
		if (!err && !change->had_monitor)
			add_monitor(root, dir);
		change->after = dump(doc);
		if (!err && (!change->before || !change->after))
			err = -ENOMEM;
	}
	if (doc)
		xmlFreeDoc(doc);
	if (err)
		domain_change_free(change);
	return err;
}

void domain_change_free(struct domain_change *change)
{
	free(change->before);
	free(change->after);
	free(change->where);
	free(change->device);
	memset(change, 0, sizeof(*change));
}
