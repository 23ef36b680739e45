// SPDX-License-Identifier: GPL-2.0-or-later
/* Between the UART and the console: readers that stop, readers that leave, input, a pty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/serial_reg.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "serial.h"

struct fixture {
	struct config config;
	struct console console;
	struct loop loop;
	struct serial serial;
	struct ns8250 uart;
	bool quit;
};

static void set_irq(void *ctx, bool level)
{
	(void)ctx;
	(void)level;
}

static void on_quit(void *ctx)
{
	((struct fixture *)ctx)->quit = true;
}

/* A console on @serial and @input, with a UART at its other end. */
static void start(struct fixture *fixture, const char *serial, const char *input)
{
	struct message message;

	memset(fixture, 0, sizeof(*fixture));
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(config_init(&fixture->config), 0);
	free(fixture->config.serial);
	free(fixture->config.serial_input);
	fixture->config.serial = strdup(serial);
	fixture->config.serial_input = strdup(input);
	if (console_open(&fixture->console, &fixture->config, &message) < 0)
		fail_msg("%s", message.text);
	assert_int_equal(loop_init(&fixture->loop), 0);
	assert_int_equal(serial_init(&fixture->serial, &fixture->console, &fixture->loop, on_quit,
				     fixture),
			 0);
	ns8250_init(&fixture->uart, fixture->serial.event, set_irq, NULL);
	serial_attach(&fixture->serial, &fixture->uart);
}

static void finish(struct fixture *fixture)
{
	serial_detach(&fixture->serial);
	serial_release(&fixture->serial);
	ns8250_release(&fixture->uart);
	console_close(&fixture->console);
	loop_release(&fixture->loop);
	config_release(&fixture->config);
}

/* Run the loop for @ms, as main() would. */
static void run(struct fixture *fixture, int ms)
{
	struct timespec now;
	long long end, left = ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000ll + now.tv_nsec / 1000000 + ms;
	while (left >= 0) {
		struct epoll_event event;
		int nr = epoll_wait(fixture->loop.epoll, &event, 1, (int)left);
		struct loop_watch *watch = event.data.ptr;

		if (nr > 0)
			watch->ready(watch->ctx, event.events);
		clock_gettime(CLOCK_MONOTONIC, &now);
		left = end - (now.tv_sec * 1000ll + now.tv_nsec / 1000000);
	}
}

static void guest_writes(struct fixture *fixture, const char *text)
{
	for (; *text; text++)
		ns8250_ops.out(&fixture->uart, NULL, UART_TX, 1, (uint8_t)*text);
}

/* Write until the line is busy; returns the bytes. */
static size_t guest_fills(struct fixture *fixture)
{
	size_t len = 0;

	while (ns8250_ops.in(&fixture->uart, NULL, UART_LSR, 1) & UART_LSR_THRE) {
		ns8250_ops.out(&fixture->uart, NULL, UART_TX, 1, 'x');
		len++;
	}
	return len;
}

/* What the guest can read now. */
static size_t guest_reads(struct fixture *fixture, char *buf, size_t size)
{
	size_t len = 0;

	while (len < size && (ns8250_ops.in(&fixture->uart, NULL, UART_LSR, 1) & UART_LSR_DR))
		buf[len++] = (char)ns8250_ops.in(&fixture->uart, NULL, UART_RX, 1);
	return len;
}

/* A FIFO's path in a directory of its own; the name is for one test at a time. */
static char dir[32], fifo[64], file_spec[80];

static int setup(void **state)
{
	static struct fixture fixture;

	strcpy(dir, "/tmp/hvpoke-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(file_spec, sizeof(file_spec), "file:%s", fifo);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(fifo);
	return rmdir(dir);
}

static void output_reaches_a_file(void **state)
{
	struct fixture *fixture = *state;
	char buf[32] = "";
	int fd;

	start(fixture, file_spec, "same");
	guest_writes(fixture, "one\n");
	run(fixture, 0);
	guest_writes(fixture, "two\n"); /* on its way when the VM ends: not lost */
	finish(fixture);
	fd = open(fifo, O_RDONLY);
	assert_int_equal(read(fd, buf, sizeof(buf)), 8);
	assert_string_equal(buf, "one\ntwo\n");
	close(fd);
}

static void output_waits_then_is_thrown_away(void **state)
{
	struct fixture *fixture = *state;
	static char buf[1 << 20];
	size_t len;
	int fd;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	start(fixture, file_spec, "none");
	fd = open(fifo, O_RDONLY | O_NONBLOCK);
	/* A reader that is slow: everything waits, until nothing more fits anywhere. */
	for (int i = 0; i < 100; i++) {
		guest_fills(fixture);
		run(fixture, 1);
	}
	assert_int_equal(guest_fills(fixture), 0);
	assert_true(fixture->serial.blocked);
	assert_false(fixture->serial.gone);
	assert_int_equal(read(fd, buf, 16384), 16384);
	run(fixture, 10);
	assert_in_range(guest_fills(fixture), 8192, 32768);
	assert_true(fixture->serial.discarded == 0);

	/* A reader that is gone: after a second the guest is not held up any more. */
	run(fixture, SERIAL_PATIENCE_MS + 200);
	assert_true(fixture->serial.gone);
	assert_int_equal(guest_fills(fixture), NS8250_TX_SIZE);
	run(fixture, 10);
	assert_int_equal(guest_fills(fixture), NS8250_TX_SIZE);
	assert_true(fixture->serial.discarded >= NS8250_TX_SIZE);
	run(fixture, 10);

	/* It comes back: what is written from now on arrives. */
	do
		len = (size_t)read(fd, buf, sizeof(buf));
	while (len < sizeof(buf) && (ssize_t)len > 0);
	run(fixture, 10);
	assert_false(fixture->serial.gone);
	guest_writes(fixture, "hello again");
	run(fixture, 10);
	assert_int_equal(read(fd, buf, sizeof(buf)), 11);
	assert_memory_equal(buf, "hello again", 11);
	finish(fixture);
	close(fd);
}

static void input_waits_for_the_guest(void **state)
{
	struct fixture *fixture = *state;
	char text[1000], buf[1000];
	size_t len = 0;
	int fd;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)i;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	start(fixture, "null", file_spec);
	fd = open(fifo, O_WRONLY);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	run(fixture, 10);
	assert_int_equal(ns8250_room(&fixture->uart), 0);
	for (int i = 0; i < 10; i++) {
		len += guest_reads(fixture, buf + len, sizeof(buf) - len);
		run(fixture, 1);
	}
	assert_int_equal(len, sizeof(text));
	assert_memory_equal(buf, text, sizeof(text));
	/* A FIFO does not end with its writer: the next one is heard. */
	close(fd);
	run(fixture, 10);
	fd = open(fifo, O_WRONLY);
	assert_int_equal(write(fd, "next", 4), 4);
	run(fixture, 10);
	assert_int_equal(guest_reads(fixture, buf, sizeof(buf)), 4);
	finish(fixture);
	close(fd);
}

/* epoll takes no regular files: they are read as the guest makes room. */
static void input_from_a_regular_file(void **state)
{
	struct fixture *fixture = *state;
	char buf[3 * NS8250_RX_SIZE];
	size_t len = 0;
	int fd = open(fifo, O_WRONLY | O_CREAT, 0600);

	memset(buf, 'i', sizeof(buf));
	assert_int_equal(write(fd, buf, 2 * NS8250_RX_SIZE), 2 * NS8250_RX_SIZE);
	close(fd);
	start(fixture, "null", file_spec);
	for (int i = 0; i < 5; i++) {
		len += guest_reads(fixture, buf + len, sizeof(buf) - len);
		run(fixture, 1);
	}
	assert_int_equal(len, 2 * NS8250_RX_SIZE);
	assert_int_equal(fixture->console.in, -1); /* it has ended */
	finish(fixture);
}

static void pty_goes_both_ways(void **state)
{
	struct fixture *fixture = *state;
	char buf[32];
	int fd;

	start(fixture, "pty", "same");
	fd = open(fixture->console.pty_path, O_RDWR | O_NOCTTY);
	assert_true(fd >= 0);
	guest_writes(fixture, "login: ");
	run(fixture, 10);
	assert_int_equal(read(fd, buf, sizeof(buf)), 7);
	assert_memory_equal(buf, "login: ", 7);
	assert_int_equal(write(fd, "root\r", 5), 5);
	run(fixture, 10);
	assert_int_equal(guest_reads(fixture, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "root\r", 5); /* raw: nothing is translated */
	/* The line stays up when the reader leaves, and comes back for the next. */
	close(fd);
	run(fixture, 10);
	guest_writes(fixture, "still here");
	run(fixture, 10);
	fd = open(fixture->console.pty_path, O_RDWR | O_NOCTTY);
	assert_int_equal(read(fd, buf, sizeof(buf)), 10);
	close(fd);
	finish(fixture);
}

static size_t keys(struct console *console, const char *typed, char *left, bool *quit)
{
	size_t len = 0;

	for (; typed[len]; len++)
		left[len] = typed[len];
	return console_keys(console, (uint8_t *)left, len, quit);
}

static void control_a_is_ours(void **state)
{
	struct console console = {.keys = true};
	char left[16];
	bool quit;

	(void)state;
	assert_int_equal(keys(&console, "ab\003", left, &quit), 3); /* Ctrl-C is the guest's */
	assert_memory_equal(left, "ab\003", 3);
	assert_int_equal(keys(&console, "a\001\001b", left, &quit), 3);
	assert_memory_equal(left, "a\001b", 3);
	assert_int_equal(keys(&console, "a\001?b", left, &quit), 2);
	assert_memory_equal(left, "ab", 2);
	assert_false(quit);
	/* Also when they come one by one. */
	assert_int_equal(keys(&console, "\001", left, &quit), 0);
	assert_false(quit);
	assert_int_equal(keys(&console, "x", left, &quit), 0);
	assert_true(quit);
}

static void bad_paths(void **state)
{
	struct fixture *fixture = *state;
	struct message message;

	assert_int_equal(config_init(&fixture->config), 0);
	free(fixture->config.serial);
	fixture->config.serial = strdup("file:/no/such/dir/log");
	assert_true(console_open(&fixture->console, &fixture->config, &message) < 0);
	assert_non_null(strstr(message.text, "cannot open /no/such/dir/log for the serial port"));
	config_release(&fixture->config);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(output_reaches_a_file),
		TEST(output_waits_then_is_thrown_away),
		TEST(input_waits_for_the_guest),
		TEST(input_from_a_regular_file),
		TEST(pty_goes_both_ways),
		TEST(control_a_is_ours),
		TEST(bad_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
