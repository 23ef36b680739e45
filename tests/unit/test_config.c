// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke-vmm's configuration: the file, the command line, and what each says of a mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"

/* A configuration file that lives in memory: its path. */
struct text_file {
	int fd;
	char path[40];
};

static struct text_file text_file_n(const char *text, size_t len)
{
	struct text_file file = {.fd = memfd_create("config", MFD_CLOEXEC)};

	assert_true(file.fd >= 0);
	assert_int_equal(write(file.fd, text, len), len);
	snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
	return file;
}

/* Load @text over the defaults: 0 and @config, or an error and @message. */
static int load(const char *text, struct config *config, struct message *message)
{
	struct text_file file = text_file_n(text, strlen(text));
	int err;

	assert_int_equal(config_init(config), 0);
	err = config_load(config, file.path, message);
	close(file.fd);
	return err;
}

static int parse(struct config *config, struct config_args *args, struct message *message, ...)
{
	char *argv[16] = {(char *)(uintptr_t) "hvpoke-vmm"};
	int argc = 1, err;
	va_list list;

	va_start(list, message);
	while (argc < 15 && (argv[argc] = va_arg(list, char *)))
		argc++;
	va_end(list);
	assert_int_equal(config_init(config), 0);
	err = config_parse_args(config, argc, argv, args, message);
	return err;
}

static void assert_says(const struct message *message, const char *what)
{
	if (!strstr(message->text, what))
		fail_msg("expected \"%s\" in: %s", what, message->text);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"4096", 4096},
		{"64K", 65536},
		{"512M", 512ull << 20},
		{"512m", 512ull << 20},
		{"2G", 2ull << 30},
		{"18446744073709551615", UINT64_MAX},
		{"17179869183G", 17179869183ull << 30},
	};
	static const char *const bad[] = {
		"",
		"M",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1T",
		"1MB",
		"1.5G",
		"0x10",
		"18446744073709551616",
		"17179869184G",
		"99999999999999999999G",
	};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(config_parse_size(good[i].text, &bytes));
		assert_true(bytes == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(config_parse_size(bad[i], &bytes));
}

static void every_key_in_a_file(void **state)
{
	struct config config;
	struct message message;

	(void)state;
	assert_int_equal(
		load("{ \"name\": \"web-1\", \"memory\": \"1G\", \"vcpus\": 255,\n"
		     "  \"kernel\": \"/boot/k\", \"initrd\": \"/boot/i\", \"cmdline\": \"\",\n"
		     "  \"serial\": \"file:/tmp/log\", \"serial_input\": \"none\",\n"
		     "  \"control\": \"/run/c\", \"on_reboot\": \"exit\",\n"
		     "  \"count_int3\": true, \"max_sites\": 100, \"sandbox\": false }\n",
		     &config, &message),
		0);
	assert_string_equal(config.name, "web-1");
	assert_true(config.memory == 1ull << 30);
	assert_true(config.vcpus == 255);
	assert_string_equal(config.kernel, "/boot/k");
	assert_string_equal(config.initrd, "/boot/i");
	assert_string_equal(config.cmdline, "");
	assert_string_equal(config.serial, "file:/tmp/log");
	assert_string_equal(config.serial_input, "none");
	assert_string_equal(config.control, "/run/c");
	assert_false(config.restart);
	assert_true(config.count_int3);
	assert_true(config.limits.max_sites == 100);
	assert_false(config.sandbox);
	config_release(&config);
}

static void mistakes_in_a_file(void **state)
{
	static const struct {
		const char *text, *says[3];
	} cases[] = {
		{"{ \"memroy\": \"1G\" }", {"unknown key \"memroy\"", "\"memory\"", "/proc/"}},
		{"{ \"xyzzy\": 1 }", {"unknown key \"xyzzy\"", "--help"}},
		{"{ \"on-reboot\": \"exit\" }", {"unknown key", "\"on_reboot\""}},
		{"{ \"memory\": \"63M\" }", {"memory: expected 64M to", "got 63M"}},
		{"{ \"memory\": -5 }", {"expected 64M to", "got -5"}},
		{"{ \"memory\": 67108865 }", {"multiple of 4K", "67108865"}},
		{"{ \"memory\": true }", {"expected a string such as", "got true"}},
		{"{ \"memory\": \"lots\" }", {"expected a size such as 512M", "lots"}},
		{"{ \"vcpus\": 0 }", {"vcpus: expected 1 to 255, got 0"}},
		{"{ \"vcpus\": 256 }", {"expected 1 to 255, got 256"}},
		{"{ \"vcpus\": \"2\" }", {"expected a whole number, got \"2\""}},
		{"{ \"vcpus\": 1.5 }", {"expected a whole number, got 1.5"}},
		{"{ \"vcpus\": null }", {"expected a whole number, got null"}},
		{"{ \"name\": \"a b\" }", {"name: expected a name of letters", "\"a b\""}},
		{"{ \"name\": \"../x\" }", {"expected a name"}},
		{"{ \"name\": \"\" }", {"expected NAME, got nothing"}},
		{"{ \"name\": [\"x\"] }", {"expected a string, got [\"x\"]"}},
		{"{ \"kernel\": \"a\\u0000b\" }", {"got a NUL character"}},
		{"{ \"serial\": \"tty\" }", {"expected stdio, null, pty or file:PATH"}},
		{"{ \"serial\": \"file:\" }", {"expected stdio, null, pty or file:PATH"}},
		{"{ \"serial_input\": \"x\" }", {"expected same, none or file:PATH"}},
		{"{ \"on_reboot\": \"halt\" }", {"expected restart or exit, got \"halt\""}},
		{"{ \"count_int3\": \"yes\" }", {"expected true or false, got \"yes\""}},
		{"[]", {"expected a JSON object"}},
		{"", {":1:1: not valid JSON", "unexpected end of data"}},
		{"{\n \"vcpus\": 2,\n}", {":3:", "not valid JSON"}},
		{"{ \"vcpus\": 2", {"not valid JSON", "unexpected end of data"}},
		{"{} {}", {"not valid JSON"}},
		{"[[[[[[[[[[[[]]]]]]]]]]]]", {"not valid JSON", "too deep"}},
	};
	struct config config;
	struct message message;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (load(cases[i].text, &config, &message) == 0)
			fail_msg("accepted: %s", cases[i].text);
		for (size_t j = 0; j < 3 && cases[i].says[j]; j++)
			assert_says(&message, cases[i].says[j]);
		config_release(&config);
	}
}

static void files_that_are_none(void **state)
{
	static char big[(1 << 20) + 2];
	struct text_file file;
	struct config config;
	struct message message;

	(void)state;
	assert_int_equal(config_init(&config), 0);
	assert_true(config_load(&config, "/no/such/file", &message) < 0);
	assert_says(&message, "cannot open /no/such/file");
	assert_int_equal(config_load(&config, "/", &message), -EISDIR);
	memset(big, ' ', sizeof(big));
	file = text_file_n(big, sizeof(big));
	assert_int_equal(config_load(&config, file.path, &message), -EFBIG);
	assert_says(&message, "at most 1048576 bytes");
	close(file.fd);
	config_release(&config);
}

static void paths_are_relative_to_their_file(void **state)
{
	char dir[] = "/tmp/hvpoke-test-XXXXXX", path[64], expected[64];
	struct config config;
	struct message message;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/vm.json", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("{ \"kernel\": \"vmlinux\", \"initrd\": \"/abs\" }", file);
	fclose(file);
	assert_int_equal(config_init(&config), 0);
	assert_int_equal(config_load(&config, path, &message), 0);
	snprintf(expected, sizeof(expected), "%s/vmlinux", dir);
	assert_string_equal(config.kernel, expected);
	assert_string_equal(config.initrd, "/abs");
	config_release(&config);
	unlink(path);
	rmdir(dir);
}

static void command_line_wins(void **state)
{
	const char text[] = "{ \"vcpus\": 2, \"memory\": \"1G\" }";
	struct text_file file = text_file_n(text, strlen(text));
	struct config_args args;
	struct config config;
	struct message message;

	(void)state;
	/* Before and behind the file's name alike. */
	assert_int_equal(parse(&config, &args, &message, "--vcpus", "4", file.path,
			       "--on-reboot=exit", "--count-int3", "--check", "--cmdline", "--x",
			       NULL),
			 0);
	assert_true(config.vcpus == 4);
	assert_true(config.memory == 1ull << 30);
	assert_false(config.restart);
	assert_true(config.count_int3);
	assert_true(args.check);
	assert_string_equal(config.cmdline, "--x");
	assert_true(config.sandbox);
	config_release(&config);
	close(file.fd);
}

/* Two ways to say so; and the command line wins here, too. */
static void without_the_sandbox(void **state)
{
	const char text[] = "{ \"sandbox\": true }";
	struct text_file file = text_file_n(text, strlen(text));
	struct config_args args;
	struct config config;
	struct message message;

	(void)state;
	assert_int_equal(parse(&config, &args, &message, "--no-sandbox", file.path, NULL), 0);
	assert_false(config.sandbox);
	config_release(&config);
	assert_int_equal(parse(&config, &args, &message, file.path, "--sandbox=no", NULL), 0);
	assert_false(config.sandbox);
	config_release(&config);
	close(file.fd);
}

static void mistakes_on_the_command_line(void **state)
{
	struct config_args args;
	struct config config;
	struct message message;

	(void)state;
#define EXPECT(text, ...)                                                            \
	do {                                                                         \
		assert_true(parse(&config, &args, &message, __VA_ARGS__, NULL) < 0); \
		assert_says(&message, text);                                         \
		config_release(&config);                                             \
	} while (0)
	EXPECT("unknown option --memroy; did you mean --memory?", "--memroy", "1G");
	EXPECT("unknown option --on_reboot; did you mean --on-reboot?", "--on_reboot", "exit");
	EXPECT("unknown option --xyzzy; hvpoke-vmm --help lists them", "--xyzzy");
	EXPECT("unknown option -m", "-m");
	EXPECT("--vcpus: expected N, got nothing", "--vcpus");
	EXPECT("--vcpus: expected a number, got \"four\"", "--vcpus", "four");
	EXPECT("--vcpus: expected a number, got \"4x\"", "--vcpus=4x");
	EXPECT("--vcpus: expected 1 to 255, got 300", "--vcpus", "300");
	EXPECT("--memory: expected 64M to", "--memory", "1M");
	EXPECT("--count-int3: expected yes or no, got \"maybe\"", "--count-int3=maybe");
	EXPECT("--kernel: expected FILE, got nothing", "--kernel", "");
	EXPECT("one configuration file, got a.json and b.json", "a.json", "b.json");
	EXPECT("cannot open a.json", "a.json");
#undef EXPECT
	/* Help is given whatever else is there. */
	assert_int_equal(parse(&config, &args, &message, "--help", "no.json", NULL), 0);
	assert_true(args.help);
	config_release(&config);
}

static void effective_configuration_reads_back(void **state)
{
	struct config_args args;
	struct config config, again;
	struct json_object *object, *second;
	struct message message;

	(void)state;
	assert_int_equal(parse(&config, &args, &message, "--memory", "100M", "--vcpus", "3",
			       "--kernel", "/k", "--on-reboot", "exit", "--cmdline", "a \"b\" c",
			       NULL),
			 0);
	object = config_to_json(&config);
	assert_non_null(object);
	assert_int_equal(load(json_object_to_json_string(object), &again, &message), 0);
	second = config_to_json(&again);
	assert_true(json_object_equal(object, second));
	assert_string_equal(again.cmdline, "a \"b\" c");
	json_object_put(object);
	json_object_put(second);
	config_release(&config);
	config_release(&again);
}

/* The examples in the tree. Tests run in its top directory. */
static void examples_load(void **state)
{
	struct config config;
	struct message message;
	glob_t found;

	(void)state;
	assert_int_equal(glob("configs/*.json", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 2);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		assert_int_equal(config_init(&config), 0);
		if (config_load(&config, found.gl_pathv[i], &message) < 0)
			fail_msg("%s", message.text);
		config_release(&config);
	}
	globfree(&found);
}

/* Bytes changed at random: any answer, but never a crash or a leak. */
static void mutated_files(void **state)
{
	const char good[] = "{ \"name\": \"web\", \"memory\": \"1G\", \"vcpus\": 4,\n"
			    "  \"kernel\": \"/k\", \"serial\": \"file:/x\", \"count_int3\": true }";
	unsigned int seed = 1, accepted = 0;

	(void)state;
	for (unsigned int round = 0; round < 5000; round++) {
		struct text_file file;
		struct config config;
		struct message message = {""};
		char text[sizeof(good)];
		int err;

		memcpy(text, good, sizeof(good));
		for (unsigned int i = 0; i <= round % 4; i++)
			text[(unsigned int)rand_r(&seed) % (sizeof(good) - 1)] =
				(char)rand_r(&seed);
		file = text_file_n(text, sizeof(good) - 1 - (round % 3 ? 0 : round % 90));
		assert_int_equal(config_init(&config), 0);
		err = config_load(&config, file.path, &message);
		accepted += err == 0;
		assert_true(err == 0 || message.text[0]);
		assert_true(config.vcpus >= 1 && config.vcpus <= 255);
		config_release(&config);
		close(file.fd);
	}
	/* Mutations that only change a value's text pass; else this would test nothing. */
	assert_in_range(accepted, 1, 4999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(every_key_in_a_file),
		cmocka_unit_test(mistakes_in_a_file),
		cmocka_unit_test(files_that_are_none),
		cmocka_unit_test(paths_are_relative_to_their_file),
		cmocka_unit_test(command_line_wins),
		cmocka_unit_test(without_the_sandbox),
		cmocka_unit_test(mistakes_on_the_command_line),
		cmocka_unit_test(effective_configuration_reads_back),
		cmocka_unit_test(examples_load),
		cmocka_unit_test(mutated_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
