/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_HELLO_H
#define HVP_HELLO_H

#include "engine.h"

/*
 * HVPOKE_CMD_HELLO: @hello is the host's copy of the guest's; its OUT fields are
 * filled in. A hello that fails leaves the former registration as it was. One
 * from the same agent (same kernel, same version, same probes) replaces the ranges
 * and the scope only;
 * one from another is a restart of which we were not told, and the requests of
 * the former agent are lost.
 */
enum hvpoke_status hvp_hello(struct hvp_guest *guest, struct hvpoke_hello *hello);
/* HVPOKE_CMD_BYE: HVPOKE_OK, or HVPOKE_NOT_HELLO if there is no agent. */
enum hvpoke_status hvp_bye(struct hvp_guest *guest);

#endif /* HVP_HELLO_H */
