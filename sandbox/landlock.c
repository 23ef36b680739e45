// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * landlock.c - Landlock (landlock(7), Documentation/userspace-api/landlock.rst). glibc has no
 * wrappers of its three calls; and headers may be older than the kernel, so what a newer
 * ABI has is written down here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox.h"

/* struct landlock_ruleset_attr, as of ABI 6 (Linux 6.12). An older kernel is given its front. */
struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

#define FS_ABI_1     ((1ull << 13) - 1)
#define FS_REFER     (1ull << 13) /* ABI 2 */
#define FS_TRUNCATE  (1ull << 14) /* ABI 3 */
#define FS_IOCTL_DEV (1ull << 15) /* ABI 5 */
#define NET_TCP	     3ull	  /* ABI 4: bind, connect */
#define SCOPED	     3ull	  /* ABI 6: abstract UNIX sockets, signals */

/* All rights that the kernel knows of are taken. Its size for the kernel. */
static size_t fill(struct ruleset *ruleset, int abi)
{
	*ruleset = (struct ruleset){.fs = FS_ABI_1};
	if (abi >= 2)
		ruleset->fs |= FS_REFER;
	if (abi >= 3)
		ruleset->fs |= FS_TRUNCATE;
	if (abi >= 5)
		ruleset->fs |= FS_IOCTL_DEV;
	if (abi < 4)
		return offsetof(struct ruleset, net);
	ruleset->net = NET_TCP;
	if (abi < 6)
		return offsetof(struct ruleset, scoped);
	ruleset->scoped = SCOPED;
	return sizeof(*ruleset);
}

static int allow(int ruleset, const struct sandbox_path *path, uint64_t known)
{
	const uint64_t files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
			       LANDLOCK_ACCESS_FS_MAKE_REG | FS_TRUNCATE;
	struct landlock_path_beneath_attr rule = {
		.allowed_access =
			LANDLOCK_ACCESS_FS_REMOVE_FILE | (path->files ? files & known : 0),
		.parent_fd = open(path->directory, O_PATH | O_DIRECTORY | O_CLOEXEC),
	};
	int err = 0;

	if (rule.parent_fd < 0)
		return -errno;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		err = -errno;
	close(rule.parent_fd);
	return err;
}

int sandbox_landlock(const struct sandbox_path *paths, size_t nr)
{
	struct ruleset attr;
	int abi, fd, err = 0;

	abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, fill(&attr, abi), 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < nr && !err; i++)
		if (paths[i].directory)
			err = allow(fd, &paths[i], attr.fs);
	if (!err && syscall(SYS_landlock_restrict_self, fd, 0))
		err = -errno;
	close(fd);
	return err ? err : abi;
}
