// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a QEMU answers, on its monitor and its gdbstub, and where it says that its guest's RAM is.
 * The guest itself is a good one. The input is lines; each question takes the next ones:
 *
 *   (an empty line, or none)   as a good QEMU answers
 *   +TEXT     TEXT is sent first, an event, say; the answer is in the next line
 *   %         QEMU takes 4.9 s; the answer is in the next line
 *   =TEXT     TEXT is what is returned
 *   "TEXT     likewise, as a string: what the human monitor prints. | is the end of a line
 *   ~TEXT     TEXT is sent in place of an answer, $ in it is the command's number
 *   -         no answer
 *   !         QEMU hangs up
 *
 * The first line says what kind of QEMU it is: 't' TCG, 'p' private memory, 's' a file that is
 * shorter than what is mapped of it; and what stands in its /proc/PID/maps, behind a space.
 *
 * Nothing crashes, waits without end, or leaks; hvpoked maps and writes to nothing but what that
 * QEMU has mapped; a QEMU that did not lie has a good batch written, in a guest that runs
 * afterwards.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qemu_world.h"

#define NR_SITES  3
#define SLOWLY_NS 4900000000ull
/* All that is done here, by a QEMU that takes its time for each answer. */
#define MAX_WAIT_NS (400 * UINT64_C(1000000000))

static const uint8_t nop[HVPOKE_MAX_INSN] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jmp[HVPOKE_MAX_INSN] = {0xe9, 0x03, 0x00, 0x00, 0x00};

static char *script;

static char *next_line(void)
{
	return script ? strsep(&script, "\n") : NULL;
}

/* TEXT of a string with | as "\r\n": as JSON, from malloc(). */
static char *human_string(const char *text)
{
	struct json_object *string;
	char *lines = NULL, *json;
	size_t len;
	FILE *to = open_memstream(&lines, &len);

	CHECK(to);
	for (; *text; text++) {
		if (*text == '|')
			fputs("\r\n", to);
		else
			fputc(*text, to);
	}
	fclose(to);
	string = json_object_new_string(lines);
	json = strdup(json_object_to_json_string(string));
	CHECK(json);
	json_object_put(string);
	free(lines);
	return json;
}

static void say_raw(const char *text, int64_t id)
{
	char *line = NULL;
	size_t len;
	FILE *to = open_memstream(&line, &len);

	CHECK(to);
	for (; *text; text++) {
		if (*text == '$')
			fprintf(to, "%" PRId64, id);
		else
			fputc(*text, to);
	}
	fputs("\r\n", to);
	fclose(to);
	world_say(line, len);
	free(line);
}

static bool ask(const char *command, int64_t id)
{
	char *line = next_line(), *json;

	(void)command;
	while (line && (*line == '+' || *line == '%')) {
		world.lied = true;
		if (*line == '+')
			say_raw(line + 1, id);
		else
			world.now_ns += SLOWLY_NS;
		line = next_line();
	}
	if (!line || !*line)
		return false;
	world.lied = true;
	switch (*line) {
	case '=': world_answer(line + 1, id); break;
	case '"':
		json = human_string(line + 1);
		world_answer(json, id);
		free(json);
		break;
	case '~': say_raw(line + 1, id); break;
	case '!': world_hang_up(); break;
	default: break;
	}
	return true;
}

static bool packet(const char *payload)
{
	char *line = next_line();

	(void)payload;
	if (!line || !*line)
		return false;
	world.lied = true;
	if (*line == '!' && world.gdb >= 0)
		shutdown(world.gdb, SHUT_RDWR);
	else if (world.gdb >= 0)
		send(world.gdb, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

static void batch(void)
{
	struct hvpoke_entry *entry = world_list();
	struct hvpoke_batch *out = &world_cmd()->batch;

	memset(out, 0, sizeof(*out));
	out->nr_entries = NR_SITES;
	out->entries_gpa = HVPOKE_SHM_ARENA;
	for (uint32_t i = 0; i < NR_SITES; i++) {
		uint64_t at = WORLD_TEXT + 0xff0 + i * 0xffe;

		entry[i] = (struct hvpoke_entry){.gpa = at, .len = 5};
		if (at % HVPOKE_PAGE_SIZE + 5 > HVPOKE_PAGE_SIZE)
			entry[i].gpa2 = (at | HVPOKE_PAGE_MASK) + 1;
		memcpy(entry[i].old_insn, nop, sizeof(nop));
		memcpy(entry[i].new_insn, jmp, sizeof(jmp));
		/* Not by the mapping: the file may end before it. */
		if (pwrite(world.process, nop, 5, (off_t)(WORLD_HVA + at)) != 5)
			world.lied = true;
	}
	world_submit(HVPOKE_CMD_BATCH);
	if (world.lied)
		return;
	CHECK(hvpoke_shm_state(world_mail()->state) == HVPOKE_SHM_DONE);
	CHECK(world_cmd()->status == HVPOKE_OK && out->written == NR_SITES);
	for (uint32_t i = 0; i < NR_SITES; i++)
		CHECK(!memcmp(world.ram + entry[i].gpa, jmp, 5));
	CHECK(world.running && world.conts >= world.stops);
}

/* Whatever was said: what is mapped of it here is really there, and no more than that. */
static void check_blocks(void)
{
	const struct ram *ram = &world.vm->text.ram;

	for (uint32_t i = 0; i < ram->nr; i++) {
		const struct ram_block *block = &ram->block[i];

		CHECK(block->hva + block->len - 1 >= block->hva);
		CHECK(block->gpa + block->len - 1 >= block->gpa);
		if (!block->mem)
			continue;
		CHECK(block->mem >= (uint8_t *)block->area);
		CHECK((uint64_t)(block->mem - (uint8_t *)block->area) <= block->area_len &&
		      block->len <=
			      block->area_len - (uint64_t)(block->mem - (uint8_t *)block->area));
	}
}

static void kind_of_qemu(char *line)
{
	char *maps = line ? strchr(line, ' ') : NULL;

	if (maps) {
		*maps++ = '\0';
		for (char *at = maps; (at = strchr(at, '|')); at++)
			*at = '\n';
	}
	world.kvm = !line || !strchr(line, 't');
	world.shared = !line || !strchr(line, 'p');
	world.ram_file_len = line && strchr(line, 's') ? HVPOKE_PAGE_SIZE : 0;
	world.maps = maps;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size);
	uint64_t start;

	script = text;
	kind_of_qemu(next_line());
	world.ask = ask;
	world.packet = packet;
	world_begin();
	world.lied = world.maps || world.ram_file_len;
	start = world.now_ns;
	world_connect_monitor();
	for (int i = 0; i < 2 && world.vm->ready; i++) {
		world_hello();
		check_blocks();
		batch();
		check_blocks();
	}
	/* It comes again, as QEMU does. */
	if (!world.vm->ready && !world.vm->loop.stop)
		world_connect_monitor();
	check_blocks();
	CHECK(world.now_ns - start < MAX_WAIT_NS);
	world_end();
	free(text);
	return 0;
}
