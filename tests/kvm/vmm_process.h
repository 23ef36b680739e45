/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_KVM_VMM_PROCESS_H
#define TESTS_KVM_VMM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* hvpoke-vmm as a process, from the build directory that the test is in. */
struct vmm_process {
	pid_t pid;
	int in, out, err;     /* our ends of its standard streams */
	char out_text[65536]; /* what came so far, NUL terminated */
	char err_text[32768];
	size_t out_len, err_len;
};

/* Start it with @args (ends with NULL). As user @uid if that is not 0. Failures end the test. */
void vmm_start(struct vmm_process *vmm, const char *const *args, uid_t uid);
/* The same with @out for its standard output, which is the caller's business. */
void vmm_start_to(struct vmm_process *vmm, const char *const *args, uid_t uid, int out);
/* Read until its output holds @text; false after @seconds or when it ends before. */
bool vmm_expect(struct vmm_process *vmm, const char *text, unsigned int seconds);
/*
 * Read until it ends. Its exit code; -1 if it was killed by a signal, -2 if it
 * had to be killed after @seconds.
 */
int vmm_finish(struct vmm_process *vmm, unsigned int seconds);

#endif /* TESTS_KVM_VMM_PROCESS_H */
