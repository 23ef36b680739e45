/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_FAULT_H
#define HVP_FAULT_H

/*
 * Points at which a test can have the program killed or a step fail. Only in programs that
 * are built for tests (-DHVPOKE_FAULTS); in all others there is nothing of it.
 *
 * HVPOKE_FAULT="POINT NTH ERRNO" in the environment: with ERRNO 0 the process is killed by
 * SIGKILL, at once and whole, when it comes by POINT for the NTH time; else fault()
 * returns -ERRNO at that time and every later one, with a negative ERRNO just that once.
 */
#ifdef HVPOKE_FAULTS
#define FAULTS_BUILT_IN 1
int fault(const char *point);
#else
#define FAULTS_BUILT_IN 0
static inline int fault(const char *point)
{
	(void)point;
	return 0;
}
#endif

#endif /* HVP_FAULT_H */
