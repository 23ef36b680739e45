// SPDX-License-Identifier: GPL-2.0-or-later
/* ns8250.c - a 16550A UART. Registers: PC16550D data sheet, section 8. */
#include <linux/serial_reg.h>
#include <string.h>
#include <sys/eventfd.h>

#include "ns8250.h"

/* Modem inputs: the other end is there, always ready. */
#define MSR_CONNECTED (UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS)

void ns8250_init(struct ns8250 *uart, int event, void (*set_irq)(void *ctx, bool level),
		 void *irq_ctx)
{
	memset(uart, 0, sizeof(*uart));
	pthread_mutex_init(&uart->lock, NULL);
	uart->event = event;
	uart->set_irq = set_irq;
	uart->irq_ctx = irq_ctx;
	uart->dll = 1; /* 115,200 baud */
}

void ns8250_release(struct ns8250 *uart)
{
	pthread_mutex_destroy(&uart->lock);
}

/* The interrupt that IIR shows: the highest one that is enabled and pending. */
static uint8_t pending(const struct ns8250 *uart)
{
	if ((uart->ier & UART_IER_RDI) && uart->rx_head != uart->rx_tail)
		return UART_IIR_RDI;
	if ((uart->ier & UART_IER_THRI) && uart->thre_pending)
		return UART_IIR_THRI;
	return UART_IIR_NO_INT;
}

static void update_irq(struct ns8250 *uart)
{
	/* On a PC, OUT2 is the gate between the chip and the interrupt line. */
	bool level = pending(uart) != UART_IIR_NO_INT && (uart->mcr & UART_MCR_OUT2);

	if (level == uart->irq_level)
		return;
	uart->irq_level = level;
	uart->set_irq(uart->irq_ctx, level);
}

static void transmit(struct ns8250 *uart, uint8_t byte)
{
	uint32_t used = uart->tx_head - uart->tx_tail;

	uart->thre_pending = false;
	if (uart->mcr & UART_MCR_LOOP) {
		if (uart->rx_head - uart->rx_tail < NS8250_RX_SIZE)
			uart->rx[uart->rx_head++ % NS8250_RX_SIZE] = byte;
	} else if (used == NS8250_TX_SIZE) {
		uart->tx_lost++;
	} else {
		uart->tx[uart->tx_head++ % NS8250_TX_SIZE] = byte;
		uart->tx_busy = used + 1 == NS8250_TX_SIZE;
		if (used == 0)
			eventfd_write(uart->event, 1);
	}
	/* The line takes the byte at once: empty again, unless the buffer is full. */
	uart->thre_pending = !uart->tx_busy;
}

/* Input that had no room is wanted again. */
static void ask_for_more(struct ns8250 *uart)
{
	if (uart->rx_refused && uart->rx_head == uart->rx_tail) {
		uart->rx_refused = false;
		eventfd_write(uart->event, 1);
	}
}

static uint8_t receive(struct ns8250 *uart)
{
	uint8_t byte = 0;

	if (uart->rx_head != uart->rx_tail)
		byte = uart->rx[uart->rx_tail++ % NS8250_RX_SIZE];
	ask_for_more(uart);
	return byte;
}

static uint8_t read_iir(struct ns8250 *uart)
{
	uint8_t iir = pending(uart);

	/* Reading IIR acknowledges "transmitter empty" if that is what it shows. */
	if (iir == UART_IIR_THRI)
		uart->thre_pending = false;
	if (uart->fcr & UART_FCR_ENABLE_FIFO)
		iir |= 0xc0;
	return iir;
}

static uint8_t read_lsr(const struct ns8250 *uart)
{
	uint8_t lsr = 0;

	if (uart->rx_head != uart->rx_tail)
		lsr |= UART_LSR_DR;
	if (!uart->tx_busy)
		lsr |= UART_LSR_THRE | UART_LSR_TEMT;
	return lsr;
}

static uint8_t read_msr(const struct ns8250 *uart)
{
	uint8_t msr = 0;

	if (!(uart->mcr & UART_MCR_LOOP))
		return MSR_CONNECTED;
	/* Loopback: the modem outputs are wired to the inputs. */
	if (uart->mcr & UART_MCR_DTR)
		msr |= UART_MSR_DSR;
	if (uart->mcr & UART_MCR_RTS)
		msr |= UART_MSR_CTS;
	if (uart->mcr & UART_MCR_OUT1)
		msr |= UART_MSR_RI;
	if (uart->mcr & UART_MCR_OUT2)
		msr |= UART_MSR_DCD;
	return msr;
}

static void write_fcr(struct ns8250 *uart, uint8_t value)
{
	if (value & UART_FCR_CLEAR_RCVR) {
		uart->rx_tail = uart->rx_head;
		ask_for_more(uart);
	}
	/* UART_FCR_CLEAR_XMIT finds nothing: what is in our buffer has left the chip. */
	uart->fcr = value & UART_FCR_ENABLE_FIFO;
}

static void write_ier(struct ns8250 *uart, uint8_t value)
{
	/* Enabling the interrupt while the transmitter is empty raises it. */
	if ((value & ~uart->ier & UART_IER_THRI) && !uart->tx_busy)
		uart->thre_pending = true;
	uart->ier = value & 0x0f;
}

static uint32_t ns8250_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	struct ns8250 *uart = dev;
	bool dlab;
	uint8_t value = 0;

	(void)vcpu;
	if (size != 1)
		return UINT32_MAX;
	pthread_mutex_lock(&uart->lock);
	dlab = uart->lcr & UART_LCR_DLAB;
	switch (offset) {
	case UART_RX: value = dlab ? uart->dll : receive(uart); break;
	case UART_IER: value = dlab ? uart->dlm : uart->ier; break;
	case UART_IIR: value = read_iir(uart); break;
	case UART_LCR: value = uart->lcr; break;
	case UART_MCR: value = uart->mcr; break;
	case UART_LSR: value = read_lsr(uart); break;
	case UART_MSR: value = read_msr(uart); break;
	case UART_SCR: value = uart->scr; break;
	}
	update_irq(uart);
	pthread_mutex_unlock(&uart->lock);
	return value;
}

static void ns8250_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		       uint32_t value)
{
	struct ns8250 *uart = dev;
	uint8_t byte = (uint8_t)value;
	bool dlab;

	(void)vcpu;
	if (size != 1)
		return;
	pthread_mutex_lock(&uart->lock);
	dlab = uart->lcr & UART_LCR_DLAB;
	switch (offset) {
	case UART_TX:
		if (dlab)
			uart->dll = byte;
		else
			transmit(uart, byte);
		break;
	case UART_IER:
		if (dlab)
			uart->dlm = byte;
		else
			write_ier(uart, byte);
		break;
	case UART_FCR: write_fcr(uart, byte); break;
	case UART_LCR: uart->lcr = byte; break;
	case UART_MCR: uart->mcr = byte & 0x1f; break;
	case UART_SCR: uart->scr = byte; break;
	default: break; /* LSR and MSR are read only */
	}
	update_irq(uart);
	pthread_mutex_unlock(&uart->lock);
}

const struct port_ops ns8250_ops = {
	.in = ns8250_in,
	.out = ns8250_out,
};

size_t ns8250_take(struct ns8250 *uart, uint8_t *buf, size_t len)
{
	size_t n = 0;

	pthread_mutex_lock(&uart->lock);
	while (n < len && uart->tx_tail != uart->tx_head)
		buf[n++] = uart->tx[uart->tx_tail++ % NS8250_TX_SIZE];
	/* Half empty before the guest goes on: not one interrupt for each byte. */
	if (uart->tx_busy && uart->tx_head - uart->tx_tail <= NS8250_TX_SIZE / 2) {
		uart->tx_busy = false;
		uart->thre_pending = true;
		update_irq(uart);
	}
	pthread_mutex_unlock(&uart->lock);
	return n;
}

size_t ns8250_give(struct ns8250 *uart, const uint8_t *buf, size_t len)
{
	size_t n = 0;

	pthread_mutex_lock(&uart->lock);
	while (n < len && uart->rx_head - uart->rx_tail < NS8250_RX_SIZE)
		uart->rx[uart->rx_head++ % NS8250_RX_SIZE] = buf[n++];
	if (n < len)
		uart->rx_refused = true;
	update_irq(uart);
	pthread_mutex_unlock(&uart->lock);
	return n;
}

size_t ns8250_room(struct ns8250 *uart)
{
	size_t room;

	pthread_mutex_lock(&uart->lock);
	room = NS8250_RX_SIZE - (uart->rx_head - uart->rx_tail);
	if (room == 0)
		uart->rx_refused = true;
	pthread_mutex_unlock(&uart->lock);
	return room;
}

uint64_t ns8250_lost(struct ns8250 *uart)
{
	uint64_t lost;

	pthread_mutex_lock(&uart->lock);
	lost = uart->tx_lost;
	pthread_mutex_unlock(&uart->lock);
	return lost;
}
