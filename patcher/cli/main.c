// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke: the command line to running VMs. */
#include <signal.h>
#include <string.h>

#include "cli.h"
#include "version.h"

const struct command commands[] = {
	{"list", "[--json]", "list the VMs of the runtime directory", 0, 0, 0, cmd_list},
	{"info", "[--json] VM", "show a VM and its agent", 0, 1, 1, cmd_info},
	{"toggle", "[--native] [--timeout S] [--json] VM QUERY",
	 "switch the debug sites that a dynamic debug query matches", TAKES_NATIVE | TAKES_TIMEOUT,
	 2, 2, cmd_toggle},
	{"key", "[--native] [--timeout S] [--json] VM list [GLOB] | on NAME | off NAME",
	 "list the guest's static keys, or switch one", TAKES_NATIVE | TAKES_TIMEOUT, 2, 3,
	 cmd_key},
	{"event", "[--native] [--timeout S] [--json] VM on GLOB | off GLOB",
	 "switch trace events, SYSTEM:EVENT", TAKES_NATIVE | TAKES_TIMEOUT, 3, 3, cmd_event},
	{"queue",
	 "[--native] [--timeout S] [--json] VM add CHANGE... | show | clear | commit [CHANGE...]",
	 "prepare changes (toggle QUERY, key on NAME, event off GLOB), and make all at once",
	 TAKES_NATIVE | TAKES_TIMEOUT, 2, MAX_ARGS, cmd_queue},
	{"scope", "[--timeout S] [--json] VM [dyndbg | static_keys | all]",
	 "show or set what the agent takes over from the guest's kernel", TAKES_TIMEOUT, 1, 2,
	 cmd_scope},
	{"stats", "[--json] VM", "show what was patched and how long the pauses were", 0, 1, 1,
	 cmd_stats},
	{"idle", "[--timeout S] [--json] VM MS",
	 "count the interrupts of a guest that is left alone", TAKES_TIMEOUT, 2, 2, cmd_idle},
	{"log", "[--count N] [--follow] [--json] VM",
	 "show what was done to a VM, and who asked for it", TAKES_LOG, 1, 1, cmd_log},
	{"undo", "[--timeout S] [--json] VM ID",
	 "put back what a batch has written; the log has its id", TAKES_TIMEOUT, 2, 2, cmd_undo},
	{"pause", "[--json] VM", "stop a VM's vCPUs", 0, 1, 1, cmd_pause},
	{"resume", "[--json] VM", "let them run again", 0, 1, 1, cmd_resume},
	{"quit", "[--json] VM", "end a VM", 0, 1, 1, cmd_quit},
	{"libvirt-setup", "[--connect URI] [--socket-dir DIR] [--yes] [--json] DOMAIN",
	 "add hvpoke's device to a libvirt domain", TAKES_SETUP, 1, 1, cmd_libvirt_setup},
	{"help", "[COMMAND]", "say this, or how to use a command", 0, 0, 1, cmd_help},
	{0},
};

static const struct command *find(const char *name)
{
	const struct command *command;

	for (command = commands; command->name; command++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	int at = 1, err;

	/* The reader of our output may go away (head): then there is nobody to write for. */
	signal(SIGPIPE, SIG_DFL);
	for (; at < argc; at++) {
		if (!strcmp(argv[at], "--json"))
			options.json = true;
		else if (!strcmp(argv[at], "--connect") && at + 1 < argc)
			options.connect = argv[++at];
		else
			break;
	}
	if (at == argc)
		return report(&options, USAGE, "usage", NULL,
			      "no command given; \"hvpoke help\" lists them");
	if (!strcmp(argv[at], "--version")) {
		puts("hvpoke " HVP_VERSION);
		return DONE;
	}
	if (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h"))
		return cmd_help(&options);
	options.command = find(argv[at]);
	if (!options.command)
		return report(&options, USAGE, "usage", NULL,
			      "there is no command \"%s\"; \"hvpoke help\" lists them", argv[at]);
	at++;
	err = options_parse(&options, argc - at, argv + at);
	if (err)
		return err;
	if (options.help) {
		usage(stdout, options.command);
		return DONE;
	}
	return options.command->run(&options);
}
