// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pause as a guest of hvpoke-vmm's sees it: vCPU 0 rings, vCPU 1 watches its clock
 * (gap.h). gap_qemu.c is the same under QEMU. Prints a JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kvm/guest.h"

#define GAP_FN GUEST_INLINE
#include "figures.h"

#define TEXT_SIZE    (GAP_SITES * 16 + 4096)
#define CALIBRATE_US 500000

_Static_assert(sizeof(struct gap_figures) < GUEST_SHARED_SIZE / 2, "room for all of it");
struct shared {
	struct gap_watch watch;
	uint32_t pfn[2]; /* NOPs to JMPs, and back */
	uint32_t idle_ticks;
	uint64_t tsc;		    /* at the last mark */
	struct gap_figures figures; /* the arrays: the guest's, the rest: the host's */
};

/* A guest tells the host where it is: the host notes the time. */
#define MARK_PORT 0x0e10
enum mark { CALIBRATE, CALIBRATED, BATCHES_DONE, NR_MARKS };

static struct {
	struct guest guest;
	uint64_t host_ns[NR_MARKS], tsc[NR_MARKS];
} bench;

GUEST_CODE static void watch_on(uint64_t cpu, void *shared)
{
	(void)cpu;
	gap_watch(&((struct shared *)shared)->watch);
}

GUEST_INLINE void mark(struct shared *shared, enum mark which)
{
	shared->tsc = gap_now();
	guest_out32(MARK_PORT, which);
}

GUEST_CODE static void send_batch(struct shared *shared, uint32_t i)
{
	uint64_t page = (uint64_t)shared->pfn[i & 1] * HVPOKE_PAGE_SIZE;
	volatile struct hvpoke_cmd *cmd = (struct hvpoke_cmd *)page;
	uint32_t largest;
	uint64_t start;

	gap_take(&shared->watch);
	start = gap_now();
	guest_ring(shared->pfn[i & 1]);
	largest = gap_take(&shared->watch);
	start = gap_now() - start;
	GUEST_ASSERT(cmd->status == HVPOKE_OK && cmd->batch.written == GAP_SITES);
	if (i < GAP_WARM_UP)
		return;
	i -= GAP_WARM_UP;
	shared->figures.patched[i] = largest;
	shared->figures.pause_ns[i] = cmd->batch.pause_ns;
	shared->figures.window[i] = start;
}

GUEST_CODE static void ring_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	mark(s, CALIBRATE);
	mark(s, CALIBRATED);
	for (uint32_t i = 0; i < GAP_WARM_UP + GAP_WINDOWS; i++)
		send_batch(s, i);
	mark(s, BATCHES_DONE);
	for (uint32_t i = 0; i < GAP_WINDOWS; i++)
		s->figures.idle[i] = gap_idle(&s->watch, s->idle_ticks);
	guest_done();
}

static double tsc_mhz(void)
{
	return (double)(bench.tsc[CALIBRATED] - bench.tsc[CALIBRATE]) * 1000 /
	       (double)(bench.host_ns[CALIBRATED] - bench.host_ns[CALIBRATE]);
}

static void take_mark(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
		      uint32_t which)
{
	struct shared *shared = bench.guest.shared;
	struct gap_figures *figures = &shared->figures;

	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	if (which >= NR_MARKS)
		abort();
	bench.host_ns[which] = figures_now_ns();
	bench.tsc[which] = shared->tsc;
	if (which == CALIBRATE)
		usleep(CALIBRATE_US);
	if (which == CALIBRATED)
		figures->tsc_mhz = tsc_mhz();
	if (which == BATCHES_DONE)
		shared->idle_ticks = (uint32_t)(gap_figures_window_us(figures) * figures->tsc_mhz);
}

static uint32_t nothing_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return UINT32_MAX;
}

static const struct port_ops mark_ops = {
	.in = nothing_in,
	.out = take_mark,
};

/* The sites of tests/qemu/guest: some of them straddle two pages. */
static void make_batches(struct shared *shared, uint64_t text)
{
	static const uint8_t nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	static const uint8_t jmp[5] = {0xe9, 0x03, 0x00, 0x00, 0x00};
	static struct hvpoke_entry there[GAP_SITES], back[GAP_SITES];

	for (uint32_t i = 0; i < GAP_SITES; i++) {
		uint64_t at = text + 14 + i * 16;

		memcpy(guest_at(&bench.guest, at, sizeof(nop)), nop, sizeof(nop));
		there[i].gpa = at;
		there[i].len = sizeof(nop);
		if ((at & HVPOKE_PAGE_MASK) + sizeof(nop) > HVPOKE_PAGE_SIZE)
			there[i].gpa2 = (at | HVPOKE_PAGE_MASK) + 1;
		back[i] = there[i];
		memcpy(there[i].old_insn, nop, sizeof(nop));
		memcpy(there[i].new_insn, jmp, sizeof(jmp));
		memcpy(back[i].old_insn, jmp, sizeof(jmp));
		memcpy(back[i].new_insn, nop, sizeof(nop));
	}
	shared->pfn[0] = guest_batch(&bench.guest, there, GAP_SITES);
	shared->pfn[1] = guest_batch(&bench.guest, back, GAP_SITES);
}

int main(void)
{
	struct shared *shared;
	uint64_t text;

	if (!guest_have_kvm())
		return 1;
	guest_create(&bench.guest, 2, 64 << 20);
	if (bus_add(&bench.guest.vm.bus, MARK_PORT, 4, &mark_ops, NULL))
		abort();
	shared = bench.guest.shared;
	text = guest_alloc(&bench.guest, TEXT_SIZE);
	guest_hello(&bench.guest, text, TEXT_SIZE);
	make_batches(shared, text);
	guest_enter(&bench.guest, 0, ring_on);
	guest_enter(&bench.guest, 1, watch_on);
	guest_start(&bench.guest);
	guest_finish(&bench.guest, 300);

	shared->figures.vmm = "hvpoke-vmm";
	shared->figures.accelerator = "kvm";
	gap_figures_print(&shared->figures);
	guest_destroy(&bench.guest);
	return 0;
}
