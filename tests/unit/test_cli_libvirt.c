// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hvpoke --connect, with the driver that libvirt has for tests: domains that are nothing but
 * their definitions. A real libvirtd is in tests/qemu/test_libvirt.sh.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_run.h"

static char dir[64], node[96], uri[128];

static const char definition[] =
	"<node>"
	"<domain type='test'><name>with device</name>"
	"<uuid>00000000-0000-4000-8000-000000000001</uuid>"
	"<memory>65536</memory><vcpu>2</vcpu><os><type>hvm</type></os>"
	"<devices><shmem name='hvpoke'><model type='ivshmem-doorbell'/>"
	"<server path='/run/hvpoked/ivshmem'/><msi vectors='1' ioeventfd='on'/></shmem></devices>"
	"</domain>"
	"<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"
	"<name>off</name><uuid>00000000-0000-4000-8000-000000000002</uuid>"
	"<memory>65536</memory><os><type>hvm</type></os>"
	"<test:runstate>5</test:runstate></domain>"
	"<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"
	"<name>bare</name><uuid>00000000-0000-4000-8000-000000000003</uuid>"
	"<memory>65536</memory><os><type>hvm</type></os>"
	"<test:runstate>3</test:runstate></domain>"
	"</node>";

static int setup(void **state)
{
	FILE *file;

	(void)state;
	strcpy(dir, "/tmp/hvpoke-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("HVPOKE_RUNTIME_DIR", dir, 1);
	snprintf(node, sizeof(node), "%s/node.xml", dir);
	snprintf(uri, sizeof(uri), "test://%s", node);
	file = fopen(node, "w");
	assert_non_null(file);
	fputs(definition, file);
	assert_int_equal(fclose(file), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(node);
	return rmdir(dir);
}

static void lists_domains(void **state)
{
	struct json_object *vms, *vm;
	struct run run;

	(void)state;
	run = hvpoke("--connect", uri, "list", NULL, NULL);
	assert_int_equal(run.code, 0);
	assert_non_null(strstr(run.out, "with device  running"));
	assert_non_null(strstr(run.out, "off          shut off"));
	assert_non_null(strstr(run.out, "bare         paused"));
	run = hvpoke("--connect", uri, "list", "--json", NULL);
	vms = parsed(&run);
	assert_int_equal(json_object_array_length(vms), 3);
	for (size_t i = 0; i < 3; i++) {
		vm = json_object_array_get_idx(vms, i);
		assert_int_equal(json_object_get_int(json_object_object_get(vm, "memory")),
				 65536 * 1024);
	}
	json_object_put(vms);
}

static void says_what_a_domain_lacks(void **state)
{
	struct json_object *error;
	struct run run;

	(void)state;
	run = hvpoke("info", "--connect", uri, "bare", NULL);
	expect(&run, 3, "", "runs without hvpoke's device");
	run = hvpoke("info", "--connect", uri, "with device", NULL);
	expect(&run, 3, "", "hvpoked does not serve it");
	run = hvpoke("info", "--connect", uri, "off", NULL);
	expect(&run, 3, "", "is shut off");
	/* By its UUID too. */
	run = hvpoke("info", "--connect", uri, "00000000-0000-4000-8000-000000000002", NULL);
	expect(&run, 3, "", "domain \"off\" is shut off");
	run = hvpoke("--json", "--connect", uri, "info", "nosuch");
	expect(&run, 3, "unknown-vm", "known: ");
	error = parsed(&run);
	assert_string_equal(error_code(error), "unknown-vm");
	json_object_put(error);
}

static void says_what_libvirt_is_not(void **state)
{
	struct run run;

	(void)state;
	run = hvpoke("libvirt-setup", "--connect", uri, "bare", NULL);
	expect(&run, 1, "", "runs TEST guests");
	run = hvpoke("list", "--connect", "nonsense:///", NULL, NULL);
	expect(&run, 3, "", "cannot connect to libvirt at nonsense:///");
	run = hvpoke("info", "--connect", "nonsense:///", "vm", NULL);
	expect(&run, 3, "", "cannot connect to libvirt");
	run = hvpoke("libvirt-setup", "--connect", "nonsense:///", "vm", NULL);
	expect(&run, 3, "", "cannot connect to libvirt");
	run = hvpoke("list", "--connect", NULL, NULL, NULL);
	expect(&run, 2, "", "--connect needs libvirt's URI");
	run = hvpoke("libvirt-setup", "--socket-dir", "relative", "vm", NULL);
	expect(&run, 2, "", "a whole path");
	run = hvpoke("libvirt-setup", "vm", "--socket-dir", NULL, NULL);
	expect(&run, 2, "", "a whole path");
}

static void needs_a_place_for_sockets(void **state)
{
	struct run run;

	(void)state;
	/* A path that is too long for a runtime directory is as good as none. */
	char *deep = malloc(5000);

	assert_non_null(deep);
	memset(deep, 'a', 4999);
	deep[0] = '/';
	deep[4999] = '\0';
	setenv("HVPOKE_RUNTIME_DIR", deep, 1);
	free(deep);
	run = hvpoke("info", "--connect", uri, "bare", NULL);
	expect(&run, 3, "", "no runtime directory");
	run = hvpoke("info", "vm", NULL, NULL, NULL);
	expect(&run, 3, "", "cannot reach VM");
	run = hvpoke("list", NULL, NULL, NULL, NULL);
	expect(&run, 3, "", "cannot read the runtime directory");
}

static void says_that_there_is_none(void **state)
{
	FILE *file = fopen(node, "w");
	struct run run;

	(void)state;
	assert_non_null(file);
	fputs("<node></node>", file);
	assert_int_equal(fclose(file), 0);
	run = hvpoke("list", "--connect", uri, NULL, NULL);
	expect(&run, 0, "", "there is no domain");
	run = hvpoke("info", "--connect", uri, "vm", NULL);
	expect(&run, 3, "", "libvirt knows none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_domains, setup, teardown),
		cmocka_unit_test_setup_teardown(says_what_a_domain_lacks, setup, teardown),
		cmocka_unit_test_setup_teardown(says_what_libvirt_is_not, setup, teardown),
		cmocka_unit_test_setup_teardown(needs_a_place_for_sockets, setup, teardown),
		cmocka_unit_test_setup_teardown(says_that_there_is_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
