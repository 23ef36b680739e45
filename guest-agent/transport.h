/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HVPOKE_TRANSPORT_H
#define HVPOKE_TRANSPORT_H

#include <linux/types.h>

struct hvp_pages;
struct hvpoke_cmd;

/* A way to the host. host.c calls it with one command at a time. */
struct hvp_transport {
	/*
	 * Where the host finds the first @nr pages of @list when it runs the next
	 * command, in the terms of this transport. 0: it has no room for so many.
	 */
	u64 (*lay_out)(const struct hvp_pages *list, unsigned int nr);
	/*
	 * Run @cmd, a page that the host may use, whose IN fields are filled in.
	 * May sleep. Returns the status; if it is not HVPOKE_OK then nothing was
	 * written, nor will be.
	 */
	u32 (*send)(struct hvpoke_cmd *cmd);
	/* Has the host that is there now taken this agent's last HELLO? */
	bool (*greeted)(void);
	/* From here on hvp_requests_wake() is called if the host wants something. */
	int (*listen)(void);
	/* When it returns, no such call is under way. After listen(), once. */
	void (*deafen)(void);
	void (*close)(void);
};

/* 0 and the transport; -ENODEV: not on this machine, nothing said; or an errno, having said why. */
int hvp_port_open(const struct hvp_transport **transport);
int hvp_shm_open(const struct hvp_transport **transport);

#endif /* HVPOKE_TRANSPORT_H */
