/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_CONFIG_H
#define VMM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

#include "guest_limits.h"
#include "message.h"

/* hvpoke-vmm's configuration; hvpoke-vmm(1) describes each key. Strings are owned, NULL if unset. */
struct config {
	char *name;
	uint64_t memory; /* bytes */
	uint64_t vcpus;
	char *kernel;
	char *initrd;
	char *cmdline;
	char *serial;
	char *serial_input;
	char *control;
	struct hvp_limits limits;
	char *audit;	     /* the log's directory, or "none" */
	uint64_t audit_size; /* bytes of one file */
	uint64_t audit_files;
	bool restart; /* on_reboot: else exit */
	bool count_int3;
	bool sandbox;
};

/* How a value is written and checked. */
enum config_type {
	CONFIG_STRING,
	CONFIG_PATH, /* in a file: relative to that file's directory */
	CONFIG_SIZE, /* bytes, with K, M or G */
	CONFIG_NUMBER,
	CONFIG_BOOL,
	CONFIG_CHOICE, /* one of two words, kept as a bool: false is the first */
};

/* One key: "on_reboot" in JSON is --on-reboot on the command line. */
struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;
	uint64_t min, max;	/* size, number; for strings: of the length */
	const char *choices[2]; /* CONFIG_CHOICE */
	/* Further checks of a string; returns what was expected, or NULL if @value is fine. */
	const char *(*check)(const char *value);
	const char *arg;  /* what --help calls the value */
	const char *help; /* one line */
};

extern const struct config_key config_keys[];
extern const size_t config_nr_keys;

/* The key of that name, with '-' and '_' taken as the same; NULL if there is none. */
const struct config_key *config_find(const char *name);
/* The known key whose name is nearest to @name; NULL if none comes near. */
const struct config_key *config_nearest(const char *name);

/*
 * Set @key from text (command line) or JSON. @where names the place for
 * messages ("--memory", "vm.json: memory"); @dir is what paths are relative
 * to, or NULL. 0, or -EINVAL with @message set, or -ENOMEM.
 */
int config_set_text(struct config *config, const struct config_key *key, const char *value,
		    const char *where, struct message *message);
int config_set_json(struct config *config, const struct config_key *key, struct json_object *value,
		    const char *where, const char *dir, struct message *message);

/* "512M" and the like: digits and at most one of K, M, G. False if it is not that or too large. */
bool config_parse_size(const char *text, uint64_t *bytes);

/* Defaults; release with config_release(). 0 or -ENOMEM. */
int config_init(struct config *config);
void config_release(struct config *config);

/* Read a configuration file over @config. */
int config_load(struct config *config, const char *path, struct message *message);

/* What the command line asks for besides keys. */
struct config_args {
	bool help, version, check;
	const char *file; /* borrowed from argv */
};
/*
 * Read the command line over what its configuration file says. With help or
 * version, nothing else is looked at.
 */
int config_parse_args(struct config *config, int argc, char **argv, struct config_args *args,
		      struct message *message);

/* The effective configuration, as a file would have it; NULL if out of memory. */
struct json_object *config_to_json(const struct config *config);

#endif /* VMM_CONFIG_H */
