// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long one batch keeps the guest standing: by its number of sites (spread
 * over 14 MiB, as a distribution kernel's are) and by the number of vCPUs. vCPU
 * 0 rings, all others spin in guest mode; each has run again before the next
 * batch. Prints a JSON array.
 *
 *   pause [VCPUS [SITES]]   (default: a table of them)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../kvm/guest.h"
#include "figures.h"

#define TEXT_SIZE (14u << 20)
#define WARM_UP	  16
#define MAX_N	  2000

struct shared {
	uint32_t pfn[2]; /* NOPs to JMPs, and back */
	uint32_t batches;
	uint32_t nr_vcpus;
	uint64_t turns[VMM_MAX_VCPUS]; /* of the spinning vCPUs */
};

/* Read by the host when the guest says that a batch is done. */
#define SAMPLE_PORT 0x0e10

struct sample {
	uint64_t pause_ns, apply_ns, kick_ns, wake_ns;
};

static struct {
	struct guest guest;
	struct sample sample[WARM_UP + MAX_N];
	uint32_t nr;
} bench;

GUEST_CODE static void spin(uint64_t cpu, void *shared)
{
	volatile uint64_t *turns = &((struct shared *)shared)->turns[cpu];

	for (;;)
		++*turns;
}

GUEST_CODE static void ring_on(uint64_t cpu, void *shared)
{
	struct shared *s = shared;

	(void)cpu;
	for (uint32_t i = 0; i < s->batches; i++) {
		guest_ring(s->pfn[i & 1]);
		guest_out32(SAMPLE_PORT, s->pfn[i & 1]);
	}
	guest_done();
}

/*
 * Until every other vCPU has run in the guest again: else the next pause would
 * find them still on their way, and be short. Sleeps in between, since with
 * fewer cores than vCPUs they need this one.
 */
static void wait_for_turns(void)
{
	const struct timespec nap = {.tv_nsec = 50000};
	const struct shared *shared = bench.guest.shared;

	for (uint32_t cpu = 1; cpu < shared->nr_vcpus; cpu++) {
		const uint64_t *turns = &shared->turns[cpu];
		uint64_t before = __atomic_load_n(turns, __ATOMIC_RELAXED);

		for (uint32_t i = 0; __atomic_load_n(turns, __ATOMIC_RELAXED) == before; i++)
			if (i > 1000)
				nanosleep(&nap, NULL);
	}
}

static void take_sample(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			uint32_t value)
{
	const struct hvpoke_cmd *cmd = guest_cmd(&bench.guest, value);
	struct hvp_stats stats;

	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	if (cmd->status != HVPOKE_OK) {
		fprintf(stderr, "pause: a batch failed: %s (first bad site %u)\n",
			hvpoke_status_text(cmd->status), cmd->batch.bad_index);
		exit(1);
	}
	hvp_guest_stats(bench.guest.vm.guest, &stats);
	bench.sample[bench.nr++] = (struct sample){
		.pause_ns = cmd->batch.pause_ns,
		.apply_ns = cmd->batch.apply_ns,
		.kick_ns = stats.last_kick_ns,
		.wake_ns = stats.last_wake_ns,
	};
	wait_for_turns();
}

static uint32_t nothing_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	(void)dev;
	(void)vcpu;
	(void)offset;
	(void)size;
	return UINT32_MAX;
}

static const struct port_ops sample_ops = {
	.in = nothing_in,
	.out = take_sample,
};

static void make_batches(struct shared *shared, uint64_t text, uint32_t sites)
{
	static const uint8_t nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	static const uint8_t jmp[5] = {0xe9, 0x10, 0x00, 0x00, 0x00};
	struct hvpoke_entry *there = calloc(sites + 1, sizeof(*there));
	struct hvpoke_entry *back = calloc(sites + 1, sizeof(*back));

	if (!there || !back)
		abort();
	for (uint32_t i = 0; i < sites; i++) {
		uint64_t at = (uint64_t)TEXT_SIZE * i / sites;

		if (at % 4096 > 4096 - sizeof(nop))
			at -= sizeof(nop);
		memcpy(guest_at(&bench.guest, text + at, sizeof(nop)), nop, sizeof(nop));
		there[i].gpa = text + at;
		there[i].len = sizeof(nop);
		back[i] = there[i];
		memcpy(there[i].old_insn, nop, sizeof(nop));
		memcpy(there[i].new_insn, jmp, sizeof(jmp));
		memcpy(back[i].old_insn, jmp, sizeof(jmp));
		memcpy(back[i].new_insn, nop, sizeof(nop));
	}
	shared->pfn[0] = guest_batch(&bench.guest, there, sites);
	shared->pfn[1] = guest_batch(&bench.guest, back, sites);
	free(there);
	free(back);
}

/* Microseconds; @offset is a member's of struct sample. */
static double percentile(size_t offset, uint32_t n, unsigned int percent)
{
	static uint64_t value[MAX_N];

	for (uint32_t i = 0; i < n; i++)
		memcpy(&value[i], (const char *)&bench.sample[WARM_UP + i] + offset,
		       sizeof(value[i]));
	return (double)figures_percentile(value, n, percent) / 1000;
}

static void measure(uint32_t vcpus, uint32_t sites, uint32_t n)
{
	struct shared *shared;
	uint64_t text;

	guest_create(&bench.guest, vcpus, 128 << 20);
	bench.nr = 0;
	if (bus_add(&bench.guest.vm.bus, SAMPLE_PORT, 4, &sample_ops, NULL))
		abort();
	shared = bench.guest.shared;
	text = guest_alloc(&bench.guest, TEXT_SIZE);
	guest_hello(&bench.guest, text, TEXT_SIZE);
	make_batches(shared, text, sites);
	shared->batches = WARM_UP + n;
	shared->nr_vcpus = vcpus;
	guest_enter_all(&bench.guest, spin);
	guest_enter(&bench.guest, 0, ring_on);
	guest_start(&bench.guest);
	guest_finish(&bench.guest, 300);
	guest_destroy(&bench.guest);
	printf("{\"vcpus\": %u, \"sites\": %u, \"n\": %u, \"pause_us_p50\": %.2f, "
	       "\"pause_us_p99\": %.2f, \"kick_us_p50\": %.2f, \"apply_us_p50\": %.2f, "
	       "\"wake_us_p50\": %.2f}",
	       vcpus, sites, n, percentile(offsetof(struct sample, pause_ns), n, 50),
	       percentile(offsetof(struct sample, pause_ns), n, 99),
	       percentile(offsetof(struct sample, kick_ns), n, 50),
	       percentile(offsetof(struct sample, apply_ns), n, 50),
	       percentile(offsetof(struct sample, wake_ns), n, 50));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint32_t sites[] = {0, 56, 1905, 65536};
	static const uint32_t vcpus[] = {1, 2, 4, 8};
	uint32_t only_vcpus = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	uint32_t only_sites = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	const char *separator = "[\n";

	if (!guest_have_kvm())
		return 1;
	for (size_t v = 0; v < sizeof(vcpus) / sizeof(vcpus[0]); v++) {
		for (size_t s = 0; s < sizeof(sites) / sizeof(sites[0]); s++) {
			/* Fewer where vCPUs take turns of the cores, or copy two megabytes. */
			uint32_t n = sites[s] > 10000 || vcpus[v] > 2 ? 300 : MAX_N;

			if ((argc > 1 && vcpus[v] != only_vcpus) ||
			    (argc > 2 && sites[s] != only_sites))
				continue;
			printf("%s", separator);
			measure(vcpus[v], sites[s], n);
			separator = ",\n";
		}
	}
	printf("\n]\n");
	return 0;
}
