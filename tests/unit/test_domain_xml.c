// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What libvirt-setup makes of a domain's definition, and how it shows it: of definitions that
 * libvirt would write, and of those that it would not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/libvirt.h"

#define DIR "/run/hvpoked"

/* @before with what hvpoke needs; the caller frees it. */
static struct domain_change change_of(const char *before)
{
	struct domain_change change;

	assert_int_equal(domain_add_hvpoke(before, DIR, &change), 0);
	return change;
}

static void expect_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("no %s in:\n%s", part, text);
}

static unsigned int times(const char *text, const char *part)
{
	unsigned int nr = 0;

	for (; (text = strstr(text, part)); text++)
		nr++;
	return nr;
}

static void adds_what_is_missing(void **state)
{
	struct domain_change change, again;

	(void)state;
	change = change_of("<domain>\n  <devices/>\n</domain>");
	assert_false(change.had_device);
	assert_false(change.had_monitor);
	assert_null(change.where);
	expect_has(change.after, "<server path=\"/run/hvpoked/ivshmem\"/>");
	expect_has(change.after, "<qemu:arg value=\"unix:/run/hvpoked/qmp,reconnect=1\"/>");
	expect_has(change.after, "xmlns:qemu=\"http://libvirt.org/schemas/domain/qemu/1.0\"");
	expect_has(change.device, "<shmem name=\"hvpoke\">");
	/* Not on the root bus of a PC: QEMU finds a slot. */
	assert_null(strstr(change.device, "<address"));
	assert_false(domain_has_hvpoke(change.before));
	assert_true(domain_has_hvpoke(change.after));

	/* Once is enough. */
	again = change_of(change.after);
	assert_true(again.had_device);
	assert_true(again.had_monitor);
	assert_null(again.device);
	assert_string_equal(again.after, again.before);
	domain_change_free(&again);
	domain_change_free(&change);
	assert_null(change.after);
}

/* Others' devices and options stay, and are not taken for ours. */
static void leaves_the_rest(void **state)
{
	struct domain_change change;

	(void)state;
	change = change_of(
		"<domain xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><devices>"
		"<shmem name='other'/><shmem name='x'><server/></shmem>"
		"<shmem name='hvpoke'><server path='/elsewhere/ivshmem'/></shmem>"
		"<disk path='" DIR "/ivshmem'/></devices>"
		"<q:commandline><q:arg value='-qmp'/><q:arg/><q:env value='x'/>"
		"<q:arg value='unix:/elsewhere/qmp,reconnect=1'/></q:commandline></domain>");
	assert_false(change.had_device);
	assert_false(change.had_monitor);
	assert_int_equal(times(change.after, "<shmem "), 4);
	assert_int_equal(times(change.after, "commandline>"), 2);
	/* By the prefix that the namespace has there already. */
	expect_has(change.after, "<q:arg value=\"unix:/run/hvpoked/qmp,reconnect=1\"/>");
	assert_int_equal(times(change.after, "xmlns"), 1);
	domain_change_free(&change);

	/* One of the two. */
	change = change_of("<domain><devices><shmem><server path='" DIR "/ivshmem'/></shmem>"
			   "</devices></domain>");
	assert_true(change.had_device);
	assert_false(change.had_monitor);
	assert_null(change.device);
	domain_change_free(&change);
	change = change_of("<domain><devices/><commandline><arg value='unix:" DIR
			   "/qmp,reconnect=1'/></commandline></domain>");
	assert_false(change.had_device);
	assert_true(change.had_monitor);
	domain_change_free(&change);
}

#define PORT(index)                                                                            \
	"<controller type='pci' index='" index "' model='pcie-root-port'><address type='pci' " \
	"domain='0' bus='0x00' slot='0x01' function='0x0'/></controller>"
#define ROOT "<controller type='pci' index='0' model='pcie-root'/>"

/* CASES 11: on a PCIe machine it needs a root port. */
static void finds_a_root_port(void **state)
{
	struct domain_change change;

	(void)state;
	change = change_of("<domain><devices>" ROOT PORT("1") PORT(
		"2") "<interface><address type='pci' bus='0x01'/></interface></devices></domain>");
	assert_string_equal(change.where, "the device goes into the free PCIe root port 2");
	expect_has(change.device, "<address type=\"pci\" domain=\"0x0000\" bus=\"0x02\"");
	domain_change_free(&change);

	/* What is no port, is in use, or has no number is none. */
	change = change_of("<domain><devices>" ROOT PORT("1") PORT("-3") PORT("nonsense") PORT(
		"0") PORT("") "<controller type='pci' model='pcie-root-port'/><controller "
			      "type='usb' index='9'/>"
			      "<controller type='pci' index='4' model='pcie-to-pci-bridge'/>"
			      "<disk><address type='drive' bus='3'/></disk><disk><address/></disk>"
			      "<sound><address type='pci' bus='1'/></sound>"
			      "<sound><address type='pci' bus='7777'/></sound>"
			      "<sound><address type='pci' bus='-5'/></sound>"
			      "<sound><address type='pci'/></sound></devices></domain>");
	assert_string_equal(change.where,
			    "no PCIe root port is free: a new one (5) is added for the device");
	expect_has(change.after, "<controller type=\"pci\" index=\"5\" model=\"pcie-root-port\"/>");
	expect_has(change.device, "bus=\"0x05\"");
	domain_change_free(&change);
}

/* Refused, and nothing left behind. */
static void refuses(void **state)
{
	static const struct {
		const char *xml;
		int err;
	} cases[] = {
		{"", -EINVAL},
		{"nonsense", -EINVAL},
		{"<domain>", -EINVAL},
		{"<domain/>", -EINVAL},
		{"<domain>text<!-- devices --><device/></domain>", -EINVAL},
		{"<domain><devices>" ROOT PORT("255") "<a><address type='pci' bus='255'/></a>"
						      "</devices></domain>",
		 -ENOSPC},
		{"<domain><devices>" ROOT PORT("300") "</devices></domain>", -ENOSPC},
	};
	struct domain_change change;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memset(&change, 0xa5, sizeof(change));
		assert_int_equal(domain_add_hvpoke(cases[i].xml, DIR, &change), cases[i].err);
		assert_null(change.before);
		assert_null(change.after);
		assert_null(change.device);
		assert_null(change.where);
		assert_false(domain_has_hvpoke(cases[i].xml));
	}
	assert_false(domain_has_hvpoke("<domain><devices>\n <shmem/><disk name='hvpoke'/>"
				       "<shmem name='x'/></devices></domain>"));
}

static void expect_difference(const char *before, const char *after, const char *shown)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	print_difference(to, before, after);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, shown);
	free(text);
}

static void shows_differences(void **state)
{
	(void)state;
	expect_difference("", "", "");
	expect_difference("a\nb\n", "a\nb\n", "");
	expect_difference("", "a\n", "+a\n");
	expect_difference("a\n", "", "-a\n");
	/* Two lines on either side, and a mark where some are left out. */
	expect_difference("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\n+\n5\n6\n7\n8\n",
			  " ...\n 3\n 4\n++\n 5\n 6\n");
	expect_difference("1\n2\n", "1\nx\n2\n", " 1\n+x\n 2\n");
	expect_difference("1\n2\n3\n", "1\n2\nx\n3\n", " 1\n 2\n+x\n 3\n");
	/* A line that is another one, or only begins like it; the last without its newline. */
	expect_difference("<devices/>", "<devices>\n  <a/>\n</devices>",
			  "-<devices/>\n+<devices>\n+  <a/>\n+</devices>\n");
	expect_difference("same\nab\nend\n", "same\nabc\nend\n", " same\n-ab\n+abc\n end\n");
	/* Two places, near and far. */
	expect_difference("1\n2\n3\n", "x\n1\ny\n2\n3\n", "+x\n 1\n+y\n 2\n 3\n");
	expect_difference("1\n2\n3\n4\n5\n6\n", "x\n1\n2\n3\n4\n5\n6\ny\n",
			  "+x\n 1\n 2\n ...\n 5\n 6\n+y\n");
	/* What was moved is shown as gone from here or come to there: nothing is left out. */
	expect_difference("1\n2\n", "2\n1\n", "+2\n 1\n-2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_what_is_missing), cmocka_unit_test(leaves_the_rest),
		cmocka_unit_test(finds_a_root_port),	cmocka_unit_test(refuses),
		cmocka_unit_test(shows_differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
