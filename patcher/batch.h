/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_BATCH_H
#define HVP_BATCH_H

#include "engine.h"

/*
 * HVPOKE_CMD_BATCH: @batch is the host's copy of the guest's. Fills in @result
 * and counts it. All sites are written or none. On the thread of the vCPU that rang,
 * with no lock held.
 */
void hvp_batch(struct hvp_guest *guest, const struct hvpoke_batch *batch,
	       struct hvp_batch_result *result);

#endif /* HVP_BATCH_H */
