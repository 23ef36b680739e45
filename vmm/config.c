// SPDX-License-Identifier: GPL-2.0-or-later
/* config.c - the table of keys, which file and command line share, and the defaults. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../proto/hvpoke_abi.h"
#include "audit.h"
#include "config.h"
#include "memory.h"
#include "runtime.h"
#include "vm.h"

static const char *check_name(const char *value)
{
	if (hvp_name_valid(value))
		return NULL;
	return "a name of letters, digits, '.', '_' and '-' that begins with neither '.' nor '-'";
}

static bool is_file(const char *value)
{
	return !strncmp(value, "file:", 5) && value[5];
}

static const char *check_serial(const char *value)
{
	if (!strcmp(value, "stdio") || !strcmp(value, "null") || !strcmp(value, "pty") ||
	    is_file(value))
		return NULL;
	return "stdio, null, pty or file:PATH";
}

static const char *check_serial_input(const char *value)
{
	if (!strcmp(value, "same") || !strcmp(value, "none") || is_file(value))
		return NULL;
	return "same, none or file:PATH";
}

static const char *check_audit(const char *value)
{
	if (!strcmp(value, "none") || value[0] == '/')
		return NULL;
	return "none, or the whole path of a directory";
}

#define KEY_AT(field) .offset = offsetof(struct config, field)
#define PATH_LENGTH   .min = 1, .max = 4095

const struct config_key config_keys[] = {
	{"name", CONFIG_STRING, KEY_AT(name), .min = 1, .max = HVP_NAME_MAX, .check = check_name,
	 .arg = "NAME", .help = "the VM's name, by which hvpoke finds it"},
	{"memory", CONFIG_SIZE, KEY_AT(memory), .min = VMM_MIN_MEMORY, .max = 1ull << 46,
	 .arg = "SIZE", .help = "memory of the guest, with K, M or G"},
	{"vcpus", CONFIG_NUMBER, KEY_AT(vcpus), .min = 1, .max = VMM_MAX_VCPUS, .arg = "N",
	 .help = "number of virtual CPUs, 1 to 255"},
	{"kernel", CONFIG_PATH, KEY_AT(kernel), PATH_LENGTH, .arg = "FILE",
	 .help = "ELF vmlinux or bzImage to boot"},
	{"initrd", CONFIG_PATH, KEY_AT(initrd), PATH_LENGTH, .arg = "FILE",
	 .help = "initial RAM disk"},
	{"cmdline", CONFIG_STRING, KEY_AT(cmdline), .min = 0, .max = 65535, .arg = "TEXT",
	 .help = "command line of the kernel"},
	{"serial", CONFIG_STRING, KEY_AT(serial), PATH_LENGTH, .check = check_serial,
	 .arg = "stdio|null|pty|file:PATH", .help = "where the guest's serial port leads"},
	{"serial_input", CONFIG_STRING, KEY_AT(serial_input), PATH_LENGTH,
	 .check = check_serial_input, .arg = "same|none|file:PATH",
	 .help = "where the serial port's input comes from"},
	{"control", CONFIG_PATH, KEY_AT(control), .min = 1, .max = 107, .arg = "SOCKET",
	 .help = "control socket (default: NAME.sock in the runtime directory)"},
	{"max_sites", CONFIG_NUMBER, KEY_AT(limits.max_sites), .min = 0, .max = HVPOKE_MAX_SITES,
	 .arg = "N", .help = "largest batch to take; the guest patches a larger one itself"},
	{"max_requests", CONFIG_NUMBER, KEY_AT(limits.max_requests), .min = 1,
	 .max = HVP_MOST_REQUESTS, .arg = "N", .help = "requests that may wait for the guest"},
	{"max_pauses", CONFIG_NUMBER, KEY_AT(limits.max_pauses), .min = 0, .max = HVP_MOST_PAUSES,
	 .arg = "N", .help = "batches to take in limit-seconds; 0: no bound"},
	{"max_paused_ms", CONFIG_NUMBER, KEY_AT(limits.max_paused_ms), .min = 0,
	 .max = HVP_MOST_PAUSED_MS, .arg = "MS",
	 .help = "time to pause the guest in limit-seconds; 0: no bound"},
	{"limit_seconds", CONFIG_NUMBER, KEY_AT(limits.seconds), .min = 1,
	 .max = HVP_MOST_LIMIT_SECONDS, .arg = "S", .help = "what the two before are counted over"},
	{"audit", CONFIG_STRING, KEY_AT(audit), PATH_LENGTH, .check = check_audit,
	 .arg = "DIR|none", .help = "where the log of what was patched is (default: the man page)"},
	{"audit_size", CONFIG_SIZE, KEY_AT(audit_size), .min = 64 << 10, .max = 1ull << 40,
	 .arg = "SIZE", .help = "when a file of the log is full, with K, M or G"},
	{"audit_files", CONFIG_NUMBER, KEY_AT(audit_files), .min = 1, .max = 1000, .arg = "N",
	 .help = "how many files of the log are kept"},
	{"on_reboot", CONFIG_CHOICE, KEY_AT(restart), .choices = {"exit", "restart"},
	 .arg = "restart|exit", .help = "what a reboot of the guest does"},
	{"count_int3", CONFIG_BOOL, KEY_AT(count_int3), .arg = "yes|no",
	 .help = "count the guest's INT3 hits: each then costs an exit"},
	{"sandbox", CONFIG_BOOL, KEY_AT(sandbox), .arg = "yes|no",
	 .help = "give up all rights that a running VM does not need"},
};
const size_t config_nr_keys = sizeof(config_keys) / sizeof(*config_keys);

/* '-' of an option is '_' in JSON. */
static char fold(char c)
{
	return c == '-' ? '_' : c;
}

static bool same_name(const char *a, const char *b)
{
	while (*a && fold(*a) == fold(*b)) {
		a++;
		b++;
	}
	return fold(*a) == fold(*b);
}

const struct config_key *config_find(const char *name)
{
	for (size_t i = 0; i < config_nr_keys; i++)
		if (same_name(config_keys[i].name, name))
			return &config_keys[i];
	return NULL;
}

#define NEAR_MAX_NAME 24

/* Levenshtein's distance, one row at a time. Names longer than NEAR_MAX_NAME are far. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NEAR_MAX_NAME + 1], len = strlen(b);

	if (len > NEAR_MAX_NAME || strlen(a) > NEAR_MAX_NAME)
		return NEAR_MAX_NAME;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < len; j++) {
			size_t best = diagonal + (fold(a[i]) != fold(b[j]));

			diagonal = row[j + 1];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j + 1] + 1 < best)
				best = row[j + 1] + 1;
			row[j + 1] = best;
		}
	}
	return row[len];
}

const struct config_key *config_nearest(const char *name)
{
	const struct config_key *nearest = NULL;
	size_t best = 4; /* more than three slips is another word */

	for (size_t i = 0; i < config_nr_keys; i++) {
		size_t d = distance(name, config_keys[i].name);

		if (d < best && d < strlen(config_keys[i].name)) {
			best = d;
			nearest = &config_keys[i];
		}
	}
	return nearest;
}

int config_init(struct config *config)
{
	*config = (struct config){
		.name = strdup("guest"),
		.memory = 512ull << 20,
		.vcpus = 1,
		.cmdline = strdup("console=ttyS0"),
		.serial = strdup("stdio"),
		.serial_input = strdup("same"),
		.limits = HVP_LIMITS_DEFAULT,
		.audit_size = HVP_AUDIT_MAX_BYTES,
		.audit_files = HVP_AUDIT_NR_FILES,
		.restart = true,
		.sandbox = true,
	};
	if (config->name && config->cmdline && config->serial && config->serial_input)
		return 0;
	config_release(config);
	return -ENOMEM;
}

void config_release(struct config *config)
{
	free(config->name);
	free(config->kernel);
	free(config->initrd);
	free(config->cmdline);
	free(config->serial);
	free(config->serial_input);
	free(config->control);
	free(config->audit);
	*config = (struct config){};
}
