/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_RUNTIME_H
#define HVP_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The runtime directory, where each running VM has its control socket,
 * NAME.sock: $HVPOKE_RUNTIME_DIR, else /run/hvpoke for root, else
 * $XDG_RUNTIME_DIR/hvpoke.
 */
#define HVP_SOCKET_SUFFIX ".sock"
#define HVP_NAME_MAX	  63 /* bytes of a VM's name */

/* Letters, digits, '.', '_' and '-', neither '.' nor '-' first, at most HVP_NAME_MAX of them. */
bool hvp_name_valid(const char *name);

/*
 * Write the directory's path to @path. 0, -ENOENT if no variable names one,
 * or -ENAMETOOLONG. The directory itself need not exist.
 */
int hvp_runtime_dir(char *path, size_t size);

/*
 * Likewise the directory of logs: $HVPOKE_RUNTIME_DIR/log, else /var/log/hvpoke for root, else
 * $XDG_STATE_HOME/hvpoke, else ~/.local/state/hvpoke.
 */
int hvp_runtime_log_dir(char *path, size_t size);

/* Write the path of the socket of VM @name. As above, or -EINVAL for a bad name. */
int hvp_runtime_socket(char *path, size_t size, const char *name);

/*
 * Make the directory, mode 0700, if it is not there. One that is there must
 * be ours (or root's) and not writable by others: -EPERM. 0 or a negative errno.
 */
int hvp_runtime_make_dir(void);

#endif /* HVP_RUNTIME_H */
