/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FUZZ_QEMU_WORLD_H
#define FUZZ_QEMU_WORLD_H

#include "../../qemu/vm.h"
#include "fuzz.h"

/*
 * hvpoked's struct vm with all that is around it: a QEMU with a guest, which answers in the
 * very moment in which it is asked, on hvpoked's own thread (the linker sends send(), poll() and
 * others here); a clock that goes on when somebody waits; /proc as that QEMU's would be. So an
 * input always does the same, and nobody ever really waits.
 */
#define WORLD_RAM  0x40000u		    /* bytes, at guest physical 0 */
#define WORLD_HVA  UINT64_C(0x700000000000) /* where that is in the QEMU */
#define WORLD_TEXT 0x10000u
#define WORLD_LEN  0x8000u /* of the text */
#define WORLD_SHM  HVPOKE_SHM_MIN_SIZE

struct world {
	struct vm *vm; /* NULL: it could not be made */
	uint8_t *ram, *shm;
	bool running; /* the guest's vCPUs, as this QEMU has it */
	bool lied;    /* an answer was not what QEMU would have said */
	bool kvm;     /* IN else TCG */
	bool shared;  /* IN its RAM is a sealed memfd */
	unsigned int stops, conts;
	uint64_t now_ns;
	int monitor; /* this QEMU's end; -1: closed */
	int device;  /* likewise, of the ivshmem socket */
	int gdb;
	int process, shm_file;
	uint64_t ram_file_len; /* IN 0: as long as it is mapped */
	/* IN called before a monitor command is answered. True: it has been dealt with. */
	bool (*ask)(const char *command, int64_t id);
	/* IN likewise, for packets of the gdbstub. */
	bool (*packet)(const char *payload);
	/* IN lines of /proc/PID/maps instead of the usual ones, or NULL. */
	const char *maps;
};
extern struct world world;

/* Clear all but what is IN, and connect an ivshmem device. */
void world_begin(void);
/* Connect the monitor; hvpoked asks what it wants to know. */
void world_connect_monitor(void);
/* Let the VM's thread do what there is to do. */
void world_run(void);
void world_end(void);

/* QEMU says @len bytes. */
void world_say(const char *text, size_t len);
void world_hang_up(void);
/* {"return":@value,"id":@id} */
void world_answer(const char *value, int64_t id);
/* What a good QEMU says. */
void world_answer_well(const char *command, int64_t id);

/* ---- the agent ---- */

struct hvpoke_shm_mail *world_mail(void);
struct hvpoke_cmd *world_cmd(void);
/* Submit what stands on the command page, ring, and let the host work. */
void world_submit(uint32_t cmd);
void world_hello(void);
/* Lists of records begin at HVPOKE_SHM_ARENA. Returns where the records are. */
void *world_list(void);

#endif /* FUZZ_QEMU_WORLD_H */
