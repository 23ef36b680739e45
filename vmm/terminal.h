/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_TERMINAL_H
#define VMM_TERMINAL_H

#include <stdbool.h>

/*
 * Put the terminal @fd into raw mode, and back at the latest when the process
 * ends, also by a crash. False if it is no terminal of ours: not one at all, or
 * we are in the background. One terminal at a time.
 */
bool terminal_raw(int fd);
void terminal_restore(void);

#endif /* VMM_TERMINAL_H */
