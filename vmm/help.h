/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_HELP_H
#define VMM_HELP_H

#include "config.h"

/* --help and --check, to stdout. Both return the program's exit code. */
int help_print(void);
int help_print_config(const struct config *config);

#endif /* VMM_HELP_H */
