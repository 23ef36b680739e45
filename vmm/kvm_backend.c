// SPDX-License-Identifier: GPL-2.0-or-later
/* kvm_backend.c - which KVM back end runs the guests. */
#include <stddef.h>
#include <unistd.h>

#include "kvm_backend.h"

#define PVM_MODULE "/sys/module/kvm_pvm"

bool kvm_backend_may_be_software(void)
{
	return access(PVM_MODULE, F_OK) == 0;
}

const char *kvm_backend(void)
{
	/*
	 * A back end is a module, or built in; either way it has a directory in
	 * /sys/module. More than one may be there, but only one can have
	 * registered with KVM: then this does not tell which.
	 */
	static const struct {
		const char *path, *name;
	} backends[] = {
		{"/sys/module/kvm_intel", "vmx"},
		{"/sys/module/kvm_amd", "svm"},
		{PVM_MODULE, "pvm"},
	};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++) {
		if (access(backends[i].path, F_OK) != 0)
			continue;
		if (found)
			return "unknown";
		found = backends[i].name;
	}
	return found ? found : "unknown";
}
