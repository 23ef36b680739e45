// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The real hvpoke and servers that answer what no hvpoke-vmm would: of another version, broken,
 * or not of good will. It says so, or makes the best of it.
 */
#include "cli_run.h"
#include "control_server.h"

#define HELLO "{\"event\":\"hello\",\"data\":{\"protocol\":1}}\n"
#define RUN(...)                                                         \
	({                                                               \
		const char *argv[] = {hvpoke_path(), __VA_ARGS__, NULL}; \
		struct run run_;                                         \
                                                                         \
		run_with(&run_, argv, -1);                               \
		run_;                                                    \
	})

static char dir[64], path[96];
static int listener, stop;
static pthread_t thread;
static const char *_Atomic says;

/* What is said to the request in @text. An answer gets its id; what is none is sent as it is. */
static bool answer(int fd, const char *text)
{
	const char *id = strstr(text, "\"id\":");
	static char line[65536];

	if (!id || *says != '"')
		snprintf(line, sizeof(line), "%s", says);
	else
		snprintf(line, sizeof(line), "{\"id\":%ld,%s", strtol(id + 5, NULL, 10), says);
	return *line && send(fd, line, strlen(line), MSG_NOSIGNAL) > 0;
}

/* A client at a time: the greeting, and to each of its requests the same. */
static void *lie(void *arg)
{
	struct pollfd fds[2] = {{.fd = listener, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
	char sink[4096];
	int fd;

	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			continue;
		/* Not raw_send(): the client may be gone by now. */
		send(fd, HELLO, strlen(HELLO), MSG_NOSIGNAL);
		memset(sink, 0, sizeof(sink));
		while (recv(fd, sink, sizeof(sink) - 1, 0) > 0)
			if (!answer(fd, sink))
				break;
		close(fd);
	}
	return arg;
}

static int setup(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	(void)state;
	strcpy(dir, "/tmp/hvpoke-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/vm.sock", dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 5), 0);
	stop = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&thread, NULL, lie, NULL), 0);
	return setenv("HVPOKE_RUNTIME_DIR", dir, 1);
}

static int teardown(void **state)
{
	(void)state;
	eventfd_write(stop, 1);
	pthread_join(thread, NULL);
	close(stop);
	close(listener);
	unlink(path);
	return rmdir(dir);
}

#define RESULT(json) "\"result\":" json "}\n"
#define ERROR(json)  "\"error\":" json "}\n"

static void says_what_is_wrong(void **state)
{
	struct run run;

	(void)state;
	says = ERROR("{}");
	run = RUN("info", "vm");
	expect(&run, 1, "", "the server gave no reason");
	says = ERROR("{\"code\":\"timeout\",\"message\":\"too late\"}");
	run = RUN("toggle", "vm", "+p");
	expect(&run, 4, "", "too late");
	says = "nonsense\n";
	run = RUN("info", "vm");
	expect(&run, 1, "", "its answer is not one of the control protocol");
	says = RESULT("{}");
	run = RUN("key", "vm", "list");
	expect(&run, 1, "", "a list of keys was expected, and none came");
	says = RESULT("{\"keys\":[{\"name\":7}]}");
	run = RUN("key", "vm", "list");
	expect(&run, 1, "", "a key without a name came");
	says = RESULT("{\"keys\":[],\"more\":1}");
	run = RUN("key", "vm", "list");
	expect(&run, 1, "", "there are more keys, and sends none");
	says = RESULT("{}");
	run = RUN("scope", "vm", "all");
	expect(&run, 0, "\nscope     -\n", "");
	says = RESULT("{\"scope\":\"\\u001b[2J\\u009b2J\"}");
	run = RUN("scope", "vm", "all");
	expect(&run, 0, "\nscope     ?[2J??2J\n", "");
	says = "";
	run = RUN("info", "vm");
	expect(&run, 3, "", "ended before it answered");
}

/* What is there is shown, in the units that a person reads. */
static void shows_what_there_is(void **state)
{
	struct run run;

	(void)state;
	says = RESULT("{\"memory\":1048577,\"max_pause_us\":12345678.5,\"last_us\":12345.0,"
		      "\"on\":true,\"nothing\":null,\"agent\":{\"memory\":2097152}}");
	run = RUN("info", "vm");
	expect(&run, 0, "memory        1048577 bytes\n", "");
	expect(&run, 0, "max pause     12.3 s\n", "");
	expect(&run, 0, "last          12.3 ms\n", "");
	expect(&run, 0, "on            yes\n", "");
	expect(&run, 0, "agent memory  2 MiB\n", "");
}

/* No terminal may be told anything by a guest, a client or a server. */
#define EVIL "\"\\u001b[2J\\u009b2J\\u007f\\r\""
#define EVIL_MEMBERS                                                                              \
	"\"name\":" EVIL ",\"state\":" EVIL ",\"scope\":" EVIL ",\"message\":" EVIL               \
	",\"fallback\":" EVIL ",\"file\":" EVIL ",\"what\":" EVIL ",\"query\":" EVIL              \
	",\"kind\":\"batch\",\"by\":" EVIL ",\"via\":" EVIL ",\"time\":" EVIL ",\"status\":" EVIL \
	",\"ended\":" EVIL ",\"method\":" EVIL ",\"change\":" EVIL ",\"glob\":" EVIL              \
	",\"kernel\":" EVIL ",\"code\":" EVIL ",\"id\":" EVIL ",\"undone\":" EVIL                 \
	",\"sites\":" EVIL ",\"pauses\":" EVIL ",\"matched\":" EVIL "," EVIL ":" EVIL

static void assert_shows_no_control(const struct run *run, const char *command)
{
	const char *const said[] = {run->out, run->err};

	for (int i = 0; i < 2; i++)
		for (const char *at = said[i]; *at; at++)
			if ((*at > 0 && *at < ' ' && *at != '\n') || *at == 0x7f ||
			    (*at == '\xc2' && (at[1] & 0xe0) == 0x80))
				fail_msg("%s: %s", command, said[i]);
}

static void shows_no_control_characters(void **state)
{
	static const char *const commands[][5] = {
		{"info", "vm"},
		{"stats", "vm"},
		{"toggle", "vm", "+p"},
		{"toggle", "vm", "--native", "+p"},
		{"key", "vm", "list"},
		{"key", "vm", "on", "x"},
		{"event", "vm", "on", "*"},
		{"scope", "vm"},
		{"scope", "vm", "all"},
		{"idle", "vm", "1"},
		{"queue", "vm", "show"},
		{"queue", "vm", "add", "toggle +p"},
		{"queue", "vm", "commit"},
		{"log", "vm"},
		{"undo", "vm", "1"},
		{"pause", "vm"},
		{"resume", "vm"},
		{"quit", "vm"},
		{"list"},
	};
	static const char *const answers[] = {
		RESULT("{" EVIL_MEMBERS ",\"agent\":{" EVIL_MEMBERS "},\"keys\":[{" EVIL_MEMBERS
		       "}],\"changes\":[{" EVIL_MEMBERS "}],\"records\":[{" EVIL_MEMBERS
		       "}],\"lost\":1}"),
		ERROR("{" EVIL_MEMBERS ",\"data\":{" EVIL_MEMBERS "}}"),
		ERROR("{\"code\":\"query\",\"message\":" EVIL
		      ",\"data\":{\"offset\":0,\"length\":1,\"line\":1,\"column\":1}}"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		says = answers[i];
		for (size_t j = 0; j < sizeof(commands) / sizeof(*commands); j++) {
			const char *const *c = commands[j];
			struct run run = RUN(c[0], c[1], c[2], c[3]);

			assert_shows_no_control(&run, c[0]);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(says_what_is_wrong),
		TEST(shows_what_there_is),
		TEST(shows_no_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
