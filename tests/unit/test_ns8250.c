// SPDX-License-Identifier: GPL-2.0-or-later
/* The UART's registers, its interrupts, and what happens when nobody takes its output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/serial_reg.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ns8250.h"

struct fixture {
	struct ns8250 uart;
	bool irq;
	unsigned int raised;
	int event;
};

static void set_irq(void *ctx, bool level)
{
	struct fixture *fixture = ctx;

	assert_true(level != fixture->irq); /* changes only */
	fixture->irq = level;
	fixture->raised += level;
}

static int setup(void **state)
{
	static struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fixture.event = eventfd(0, EFD_NONBLOCK);
	assert_true(fixture.event >= 0);
	ns8250_init(&fixture.uart, fixture.event, set_irq, &fixture);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	ns8250_release(&fixture->uart);
	close(fixture->event);
	return 0;
}

static uint8_t in(struct fixture *fixture, uint16_t reg)
{
	return (uint8_t)ns8250_ops.in(&fixture->uart, NULL, reg, 1);
}

static void out(struct fixture *fixture, uint16_t reg, uint8_t value)
{
	ns8250_ops.out(&fixture->uart, NULL, reg, 1, value);
}

static bool event_seen(struct fixture *fixture)
{
	eventfd_t count;

	return eventfd_read(fixture->event, &count) == 0;
}

static void output_is_taken_in_order(void **state)
{
	struct fixture *fixture = *state;
	uint8_t buf[16];

	assert_int_equal(in(fixture, UART_LSR), UART_LSR_THRE | UART_LSR_TEMT);
	assert_false(event_seen(fixture));
	for (const char *c = "hello"; *c; c++)
		out(fixture, UART_TX, (uint8_t)*c);
	assert_true(event_seen(fixture));
	assert_false(event_seen(fixture)); /* one wake for all of it */
	assert_int_equal(ns8250_take(&fixture->uart, buf, 2), 2);
	assert_int_equal(ns8250_take(&fixture->uart, buf + 2, 14), 3);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(ns8250_take(&fixture->uart, buf, 16), 0);
}

/* What Linux's 8250 driver looks at to find a 16550A (autoconfig()). */
static void probes_as_16550a(void **state)
{
	struct fixture *fixture = *state;

	out(fixture, UART_IER, 0xff);
	assert_int_equal(in(fixture, UART_IER), 0x0f);
	out(fixture, UART_IER, 0);
	out(fixture, UART_MCR, UART_MCR_LOOP | UART_MCR_OUT2 | UART_MCR_RTS);
	assert_int_equal(in(fixture, UART_MSR), UART_MSR_DCD | UART_MSR_CTS);
	out(fixture, UART_MCR, 0);
	assert_int_equal(in(fixture, UART_IIR) & 0xc0, 0);
	out(fixture, UART_FCR, UART_FCR_ENABLE_FIFO);
	assert_int_equal(in(fixture, UART_IIR), 0xc0 | UART_IIR_NO_INT);
	out(fixture, UART_SCR, 0xa5);
	assert_int_equal(in(fixture, UART_SCR), 0xa5);
	out(fixture, UART_LCR, UART_LCR_DLAB);
	out(fixture, UART_DLL, 0x0c);
	out(fixture, UART_DLM, 0x01);
	assert_int_equal(in(fixture, UART_DLL), 0x0c);
	assert_int_equal(in(fixture, UART_DLM), 0x01);
	out(fixture, UART_LCR, UART_LCR_WLEN8);
	assert_int_equal(in(fixture, UART_IER), 0);
	assert_int_equal(in(fixture, UART_MSR), UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS);
	/* The divisor latch was no output. */
	assert_false(event_seen(fixture));
}

static void transmitter_interrupt(void **state)
{
	struct fixture *fixture = *state;

	out(fixture, UART_IER, UART_IER_THRI);
	assert_false(fixture->irq); /* OUT2 is off: the line is cut */
	out(fixture, UART_MCR, UART_MCR_OUT2);
	assert_true(fixture->irq);
	assert_int_equal(in(fixture, UART_IIR), UART_IIR_THRI);
	assert_false(fixture->irq); /* reading IIR acknowledges it */
	assert_int_equal(in(fixture, UART_IIR), UART_IIR_NO_INT);
	out(fixture, UART_TX, 'a');
	assert_true(fixture->irq); /* and each byte brings it again */
	out(fixture, UART_IER, 0);
	assert_false(fixture->irq);
	out(fixture, UART_IER, UART_IER_THRI);
	assert_true(fixture->irq);
}

static void receiver_interrupt(void **state)
{
	struct fixture *fixture = *state;

	out(fixture, UART_MCR, UART_MCR_OUT2);
	out(fixture, UART_IER, UART_IER_RDI | UART_IER_THRI);
	assert_int_equal(ns8250_give(&fixture->uart, (const uint8_t *)"xy", 2), 2);
	assert_true(fixture->irq);
	/* Input comes before output, and stays until it is read. */
	assert_int_equal(in(fixture, UART_IIR), UART_IIR_RDI);
	assert_int_equal(in(fixture, UART_IIR), UART_IIR_RDI);
	assert_true(in(fixture, UART_LSR) & UART_LSR_DR);
	assert_int_equal(in(fixture, UART_RX), 'x');
	assert_true(fixture->irq);
	assert_int_equal(in(fixture, UART_RX), 'y');
	assert_int_equal(in(fixture, UART_IIR), UART_IIR_THRI);
	assert_false(fixture->irq);
	assert_false(in(fixture, UART_LSR) & UART_LSR_DR);
	assert_int_equal(in(fixture, UART_RX), 0);
	ns8250_give(&fixture->uart, (const uint8_t *)"z", 1);
	out(fixture, UART_FCR, UART_FCR_ENABLE_FIFO | UART_FCR_CLEAR_RCVR);
	assert_false(in(fixture, UART_LSR) & UART_LSR_DR);
}

static void input_waits_for_room(void **state)
{
	struct fixture *fixture = *state;
	uint8_t bytes[NS8250_RX_SIZE + 1];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(ns8250_give(&fixture->uart, bytes, sizeof(bytes)), NS8250_RX_SIZE);
	assert_int_equal(ns8250_room(&fixture->uart), 0);
	assert_false(event_seen(fixture));
	for (size_t i = 0; i < NS8250_RX_SIZE; i++)
		assert_int_equal(in(fixture, UART_RX), (uint8_t)i);
	assert_true(event_seen(fixture));
	assert_int_equal(ns8250_room(&fixture->uart), NS8250_RX_SIZE);
}

static void loopback_returns_output(void **state)
{
	struct fixture *fixture = *state;

	out(fixture, UART_MCR, UART_MCR_LOOP);
	out(fixture, UART_TX, 'q');
	assert_int_equal(in(fixture, UART_RX), 'q');
	assert_false(event_seen(fixture));
	for (unsigned int i = 0; i < 2 * NS8250_RX_SIZE; i++)
		out(fixture, UART_TX, 'r');
	assert_int_equal(in(fixture, UART_RX), 'r');
}

/* A reader that does not read makes the line busy, never the vCPU wait in here. */
static void full_buffer_reads_as_busy(void **state)
{
	struct fixture *fixture = *state;
	static uint8_t buf[NS8250_TX_SIZE];
	unsigned int written = 0;

	out(fixture, UART_MCR, UART_MCR_OUT2);
	out(fixture, UART_IER, UART_IER_THRI);
	while (in(fixture, UART_LSR) & UART_LSR_THRE) {
		out(fixture, UART_TX, (uint8_t)written++);
		assert_true(written <= NS8250_TX_SIZE);
	}
	assert_int_equal(written, NS8250_TX_SIZE);
	assert_false(fixture->irq);
	assert_int_equal(in(fixture, UART_IIR), UART_IIR_NO_INT);
	/* Written all the same: lost, and counted. */
	out(fixture, UART_TX, 'x');
	assert_int_equal(ns8250_lost(&fixture->uart), 1);
	/* Enabling the interrupt must not claim that there is room. */
	out(fixture, UART_IER, 0);
	out(fixture, UART_IER, UART_IER_THRI);
	assert_false(fixture->irq);

	assert_int_equal(ns8250_take(&fixture->uart, buf, 100), 100);
	assert_false(in(fixture, UART_LSR) & UART_LSR_THRE);
	assert_int_equal(ns8250_take(&fixture->uart, buf + 100, NS8250_TX_SIZE / 2),
			 NS8250_TX_SIZE / 2);
	assert_true(in(fixture, UART_LSR) & UART_LSR_THRE);
	assert_true(fixture->irq);
	ns8250_take(&fixture->uart, buf + 100 + NS8250_TX_SIZE / 2, NS8250_TX_SIZE);
	for (size_t i = 0; i < NS8250_TX_SIZE; i++)
		assert_int_equal(buf[i], (uint8_t)i);
}

static void only_bytes(void **state)
{
	struct fixture *fixture = *state;

	assert_true(ns8250_ops.in(&fixture->uart, NULL, UART_LSR, 2) == UINT32_MAX);
	ns8250_ops.out(&fixture->uart, NULL, UART_TX, 4, 0x41414141);
	assert_false(event_seen(fixture));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(output_is_taken_in_order),	 TEST(probes_as_16550a),
		TEST(transmitter_interrupt),	 TEST(receiver_interrupt),
		TEST(input_waits_for_room),	 TEST(loopback_returns_output),
		TEST(full_buffer_reads_as_busy), TEST(only_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
