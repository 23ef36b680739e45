// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile guest, or QEMU's ivshmem device, of hvpoked's: whatever stands in the shared memory,
 * at any time, also while a command is in hand; rings without a reason; bytes on a socket that
 * is for reading. The monitor is a good QEMU's. The input is what happens, one after the other.
 *
 * No byte of RAM changes outside of registered text, and none for a batch that was taken back
 * in time, or is answered with anything but HVPOKE_OK. A command that waits is taken; the mailbox
 * goes only where proto/hvpoke_shm.h lets the host take it; the guest runs in the end.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../patcher/engine.h"
#include "qemu_world.h"

#define MAX_STEPS 24
#define MAX_ARMED 4

/* What the guest does when hvpoked has asked QEMU for the n-th time from now. */
struct armed {
	uint8_t countdown; /* 0: not armed */
	bool abandon;
	uint32_t at;
	uint8_t len;
	uint8_t bytes[8];
};

static struct {
	struct armed armed[MAX_ARMED];
	bool meddled; /* the guest wrote to the shared memory while a command was in hand */
	bool taken_back;
	bool written; /* it was when it was taken back */
	uint8_t before[WORLD_RAM];
	struct hvpoke_range range[64]; /* registered when a command began */
	uint32_t nr_ranges;
} g;

static void write_shm(uint32_t at, const uint8_t *bytes, size_t len)
{
	if (at < WORLD_SHM && len <= WORLD_SHM - at)
		memcpy(world.shm + at, bytes, len);
}

/* As the agent does when it has waited for too long. */
static void abandon(void)
{
	uint64_t word = world_mail()->state;

	if (hvpoke_shm_state(word) != HVPOKE_SHM_RUNNING &&
	    hvpoke_shm_state(word) != HVPOKE_SHM_APPLIED)
		return;
	g.taken_back = true;
	g.written = hvpoke_shm_state(word) == HVPOKE_SHM_APPLIED;
	world_mail()->state = hvpoke_shm_word(hvpoke_shm_seq(word), HVPOKE_SHM_ABANDONED);
}

static bool ask(const char *command, int64_t id)
{
	(void)command;
	(void)id;
	/* A guest that stands still does nothing. */
	for (size_t i = 0; i < MAX_ARMED && world.running; i++) {
		struct armed *armed = &g.armed[i];

		if (!armed->countdown || --armed->countdown)
			continue;
		if (armed->abandon) {
			abandon();
		} else {
			g.meddled = true;
			write_shm(armed->at, armed->bytes, armed->len);
		}
	}
	return false;
}

static bool in_ranges(const struct hvpoke_range *range, uint32_t nr, uint64_t gpa)
{
	for (uint32_t i = 0; i < nr; i++)
		if (gpa >= range[i].gpa && gpa - range[i].gpa < range[i].len)
			return true;
	return false;
}

static void check_ram(bool may_change)
{
	const struct hvp_ranges *now = &world.vm->guest->ranges;

	if (!memcmp(world.ram, g.before, WORLD_RAM))
		return;
	CHECK(may_change);
	for (uint32_t i = 0; i < WORLD_RAM; i++)
		if (world.ram[i] != g.before[i])
			CHECK(in_ranges(g.range, g.nr_ranges, i) ||
			      in_ranges(now->range, now->nr, i));
}

/* Let hvpoked do what there is to do, and see what it did. */
static void run(void)
{
	const struct hvp_ranges *ranges = &world.vm->guest->ranges;
	bool ready = world.vm->ready, alive = !world.vm->loop.stop;
	uint64_t word = world_mail()->state, now;
	uint64_t one = 1;
	bool waits = hvpoke_shm_state(word) == HVPOKE_SHM_SUBMITTED;

	g.meddled = g.taken_back = g.written = false;
	g.nr_ranges = ranges->nr < 64 ? ranges->nr : 64;
	if (g.nr_ranges)
		memcpy(g.range, ranges->range, g.nr_ranges * sizeof(*g.range));
	memcpy(g.before, world.ram, WORLD_RAM);
	CHECK(write(world.vm->doorbell, &one, sizeof(one)) == sizeof(one));
	world_run();
	now = world_mail()->state;
	check_ram(ready && waits &&
		  (g.meddled || g.written || (!g.taken_back && world_cmd()->status == HVPOKE_OK)));
	if (!alive || !ready || g.meddled || world.lied)
		return;
	if (!waits)
		CHECK(now == word);
	else
		CHECK(now == hvpoke_shm_word(hvpoke_shm_seq(word),
					     g.taken_back ? HVPOKE_SHM_IDLE : HVPOKE_SHM_DONE));
	CHECK(world.running);
}

static void submit(uint32_t cmd)
{
	uint64_t seq = hvpoke_shm_seq(world_mail()->state) + 1;

	world_cmd()->version = HVPOKE_ABI_VERSION;
	world_cmd()->cmd = cmd;
	world_cmd()->reserved = 0;
	world_mail()->state = hvpoke_shm_word(seq, HVPOKE_SHM_SUBMITTED);
	run();
}

static void hello(struct input *in)
{
	struct hvpoke_hello *out = &world_cmd()->hello;
	struct hvpoke_range *range = world_list();
	uint8_t how = input_u8(in);

	memset(out, 0, sizeof(*out));
	out->scope = how & 3;
	out->nr_ranges = 1 + (how >> 7);
	out->ranges_gpa = HVPOKE_SHM_ARENA;
	range[0] = (struct hvpoke_range){.gpa = WORLD_TEXT, .gva = WORLD_TEXT, .len = WORLD_LEN};
	if (how & 4)
		range[0].len = input_u16(in) * 16ull;
	range[1].gpa = input_u16(in) * 16ull;
	range[1].gva = range[1].gpa;
	range[1].len = input_u16(in);
	if (how & 8)
		world_mail()->session = input_u8(in);
	submit(HVPOKE_CMD_HELLO);
}

static void batch(struct input *in)
{
	static const uint8_t form[2][HVPOKE_MAX_INSN] = {{0x0f, 0x1f, 0x44, 0x00, 0x00},
							 {0xe9, 0x03, 0x00, 0x00, 0x00}};
	struct hvpoke_batch *out = &world_cmd()->batch;
	struct hvpoke_entry *entry = world_list();
	uint8_t nr = input_u8(in) % 32, how = input_u8(in);
	uint64_t at = WORLD_TEXT + input_u16(in) % WORLD_LEN;

	memset(out, 0, sizeof(*out));
	out->nr_entries = nr;
	out->entries_gpa = HVPOKE_SHM_ARENA;
	for (uint8_t i = 0; i < nr; i++, at += 5 + input_u8(in) * 4u) {
		entry[i] = (struct hvpoke_entry){.gpa = at, .len = 5};
		if (at % HVPOKE_PAGE_SIZE + 5 > HVPOKE_PAGE_SIZE)
			entry[i].gpa2 = (at | HVPOKE_PAGE_MASK) + 1;
		memcpy(entry[i].old_insn, form[how & 1], HVPOKE_MAX_INSN);
		memcpy(entry[i].new_insn, form[!(how & 1)], HVPOKE_MAX_INSN);
		if (at + 5 <= WORLD_RAM && !(how & 2))
			memcpy(world.ram + at, form[how & 1], 5);
	}
	if (how & 4)
		((uint8_t *)entry)[input_u16(in) % 1024] = input_u8(in);
	submit(HVPOKE_CMD_BATCH);
}

static uint32_t place(struct input *in)
{
	uint16_t at = input_u16(in);

	switch (at & 7) {
	case 0: return HVPOKE_SHM_MAIL + at / 8 % 16;
	case 1: return HVPOKE_SHM_CMD + at / 8 % 128;
	case 2: return HVPOKE_SHM_ARENA + at / 8 % 64;
	case 3: return HVPOKE_SHM_ARENA + HVPOKE_PAGE_SIZE + at / 8 % 1024;
	case 4: return HVPOKE_SHM_HOST + at / 8 % 64;
	default: return at * 16u;
	}
}

static void write_anything(struct input *in)
{
	uint32_t at = place(in);
	const uint8_t *bytes;
	size_t len;

	bytes = input_bytes(in, 256, &len);
	if (bytes)
		write_shm(at, bytes, len);
}

static void arm(struct input *in)
{
	struct armed *armed = &g.armed[input_u8(in) % MAX_ARMED];
	uint8_t how = input_u8(in);

	armed->countdown = input_u8(in) % 32 + 1;
	armed->abandon = how & 1;
	armed->at = place(in);
	armed->len = input_u8(in) % 8 + 1;
	for (unsigned int i = 0; i < armed->len; i++)
		armed->bytes[i] = input_u8(in);
}

static void device_says(struct input *in)
{
	const uint8_t *bytes;
	size_t len;

	bytes = input_bytes(in, 64, &len);
	if (bytes)
		send(world.device, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	else
		shutdown(world.device, SHUT_RDWR);
	world_run();
	CHECK(world.vm->loop.stop);
}

static void on_done(void *arg, uint64_t id, const struct hvp_outcome *outcome)
{
	(void)arg;
	CHECK(id && (outcome->lost || !outcome->guest.message[127]));
}

static void client_asks(struct input *in)
{
	hvp_guest_submit(world.vm->guest, HVPOKE_REQ_COUNT_IDLE, input_u8(in), NULL, on_done, NULL);
}

static void monitor(uint8_t how)
{
	static const char *const events[] = {"{\"event\":\"RESET\"}\r\n",
					     "{\"event\":\"DEVICE_DELETED\"}\r\n"};

	if (how & 4) {
		world_hang_up();
		world_run();
		CHECK(!world.vm->ready);
	} else if (world.monitor < 0) {
		world_connect_monitor();
	} else {
		world_say(events[how & 1], strlen(events[how & 1]));
	}
}

static void step(struct input *in)
{
	uint8_t what = input_u8(in);

	switch (what & 15) {
	case 0: write_anything(in); break;
	case 1: world_mail()->state = hvpoke_shm_word(input_u8(in), input_u8(in)); break;
	case 2: run(); break;
	case 3: hello(in); break;
	case 4:
	case 5: batch(in); break;
	case 6: submit(input_u8(in)); break;
	case 7: client_asks(in); break;
	case 8: device_says(in); break;
	case 9: monitor(what >> 4); break;
	case 10:
	case 11: arm(in); break;
	case 12: world.now_ns += input_u8(in) * UINT64_C(1000000000); break;
	default: break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	uint8_t kind = input_u8(&in);

	world.kvm = !(kind & 1);
	world.shared = !(kind & 2);
	world.maps = NULL;
	world.ask = ask;
	world.packet = NULL;
	memset(g.armed, 0, sizeof(g.armed));
	world_begin();
	world_connect_monitor();
	CHECK(world.vm->ready);
	for (int i = 0; i < MAX_STEPS && in.at < in.end && !world.vm->loop.stop; i++)
		step(&in);
	world_end();
	return 0;
}
