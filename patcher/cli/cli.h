/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKE_CLI_H
#define HVPOKE_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>

#include "client.h"
#include "json_build.h"

/*
 * hvpoke(1). main.c picks the subcommand, each of which is a file of its name:
 * list, info, toggle, key, event, queue, scope, idle, stats, log, undo, pause, resume,
 * quit, libvirt-setup, help. They share
 *
 *   options.c	the command line
 *   vm.c	from a VM's name to a connection, and one request over it
 *   change.c	changes: from words to what a VM is asked
 *   outcome.c	what became of them
 *   report.c	errors, in words or in JSON
 *   table.c	results, in words or in JSON
 *   caret.c	where in a query the error is
 *   libvirt.c	from a libvirt domain to a VM's name (domain_xml.c, difference.c: libvirt-setup)
 */

/* Exit codes; hvpoke(1) promises them. */
enum {
	DONE = 0,
	FAILED = 1,	 /* the request was understood and not done */
	USAGE = 2,	 /* the command line or the query is wrong */
	UNREACHABLE = 3, /* no such VM, or it cannot be talked to */
	TIMED_OUT = 4,	 /* the guest did not answer in time */
};

#define MAX_ARGS 64 /* of queue: the VM, and what fits in one request */

struct options {
	const struct command *command;
	bool json;
	bool native;
	bool help;
	bool yes;
	bool follow;
	unsigned int count;	 /* 0: the command's own */
	const char *socket_dir;	 /* hvpoked's, or NULL */
	const char *connect;	 /* libvirt's URI, or NULL: VMs are found by their sockets */
	unsigned int timeout_ms; /* 0: the command's own */
	int nr_args;
	const char *args[MAX_ARGS];
};

#define TAKES_NATIVE  (1u << 0)
#define TAKES_TIMEOUT (1u << 1)
#define TAKES_SETUP   (1u << 2)
#define TAKES_LOG     (1u << 3)
#define MAX_COUNT     1000 /* of --count; as the server has it */

struct command {
	const char *name;
	const char *synopsis; /* what follows the name */
	const char *summary;
	unsigned int takes;
	int min_args, max_args;
	int (*run)(const struct options *options);
};

/* Ends with a NULL name. */
extern const struct command commands[];

int cmd_list(const struct options *options);
int cmd_info(const struct options *options);
int cmd_toggle(const struct options *options);
int cmd_key(const struct options *options);
int cmd_event(const struct options *options);
int cmd_queue(const struct options *options);
int cmd_scope(const struct options *options);
int cmd_idle(const struct options *options);
int cmd_stats(const struct options *options);
int cmd_pause(const struct options *options);
int cmd_resume(const struct options *options);
int cmd_quit(const struct options *options);
int cmd_log(const struct options *options);
int cmd_undo(const struct options *options);
int cmd_libvirt_setup(const struct options *options);
int cmd_help(const struct options *options);

/* options.c: what stands after the command's name. DONE or USAGE (reported). */
int options_parse(struct options *options, int argc, char **argv);
void usage(FILE *to, const struct command *command);
/* Report a problem of the command line, with the usage. Returns USAGE. */
int options_wrong(const struct options *options, const char *problem, const char *what);

/*
 * report.c: say what went wrong, with --json also as {"error":...} on stdout.
 * @data is taken and may be NULL. Returns @exit_code.
 */
int report(const struct options *options, int exit_code, const char *code, struct json_object *data,
	   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* @memory, from malloc() and the like; without it the program ends. */
void *need(void *memory);
/* Memory ran out. Returns FAILED. */
int report_memory(const struct options *options);
/* DONE if @value could be made; else it is put, and FAILED (reported). */
int check_made(const struct options *options, struct json_object *value);
/* The error object of a reply; taken. Returns the exit code for it. */
int report_reply(const struct options *options, struct json_object *error);

/* table.c */
struct row {
	char *cells[8]; /* from malloc(), or NULL */
};
/* On one line. DONE, or FAILED (reported). */
int print_json(const struct options *options, struct json_object *object);
/* Members as "label  value" lines, units by the names. */
void print_object(struct json_object *object);
/* @titles: NULL: none. */
void print_rows(const char *const *titles, int nr_columns, const struct row *rows, int nr_rows);
/* The cells and @rows itself. */
void free_rows(struct row *rows, int nr_rows);
/* A value as people read it, from malloc(), never NULL: "12.345 us", "256 MiB", "yes", "-". */
char *value_text(const char *key, struct json_object *value);

/* vm.c */
#define REQUEST_MS 1500 /* for a request that the server answers by itself */
/* Does @name say where, rather than which? Then it is a path. */
bool vm_is_path(const char *name);
/* The names of all sockets in the runtime directory, sorted. Their number, or a negative errno. */
int vm_names(char ***names);
void vm_names_free(char **names, int nr);
/* Connect to VM @name. DONE, or the exit code (reported). */
int vm_connect(const struct options *options, const char *name, struct hvp_client **client);
/*
 * Connect, call, disconnect. @progress: say on a terminal that it takes time.
 * DONE with *@result (caller puts it), or the exit code (reported). Takes @params.
 */
int vm_call(const struct options *options, const char *name, const char *method,
	    struct json_object *params, unsigned int timeout_ms, bool progress,
	    struct json_object **result);
/* The same over a connection that stays. */
int vm_ask(const struct options *options, struct hvp_client *client, const char *name,
	   const char *method, struct json_object *params, unsigned int timeout_ms, bool progress,
	   struct json_object **result);
/* Print a reply's @result (taken) as JSON or for people, as asked. Returns the exit code. */
int show_result(const struct options *options, struct json_object *result);
/* A method without parameters whose result is shown as it is. */
int vm_show(const struct options *options, const char *method);

/* change.c */

#define CHANGE_TIMEOUT_MS 120000

/*
 * The change that the words at @words say, as a queue and proto/control.md have it:
 * "toggle QUERY", "key on|off NAME", "event on|off GLOB". Checked before anything is
 * asked of a VM. DONE with *@change (caller puts it) and *@used words, or the exit
 * code (reported).
 */
int change_parse(const struct options *options, const char *const *words, int nr,
		 struct json_object **change, int *used);
/*
 * Ask the VM for @method with @params (taken), to which "via" and "timeout_ms" are
 * added, and show what became of it. Returns the exit code; if that is DONE, @matched (may
 * be NULL) is how much was meant.
 */
int change_run(const struct options *options, const char *method, struct json_object *params,
	       uint64_t *matched);
/* A command that is one change: its name and its arguments behind the VM. Likewise. */
int change_command(const struct options *options, uint64_t *matched);

/* outcome.c: the result of a request of changes, for people. */
void print_outcome(struct json_object *result);

/*
 * list.c: what the VM at @path says of itself (the caller puts it), or NULL with @state
 * why it says nothing.
 */
struct json_object *list_ask(const char *path, const char **state);

/* caret.c: the line of @text around @column (1-based, in bytes), and a mark under it. */
void print_caret(FILE *to, const char *text, size_t column, const char *word);

#endif /* HVPOKE_CLI_H */
