/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_DOORBELL_H
#define VMM_DOORBELL_H

struct vm;

/*
 * The port through which a guest's agent reaches the patch engine
 * (proto/hvpoke_abi.h, "How a request travels"). Makes vm->guest, with this VM
 * as its back end. 0 or a negative errno.
 */
int doorbell_create(struct vm *vm);
void doorbell_destroy(struct vm *vm);

#endif /* VMM_DOORBELL_H */
