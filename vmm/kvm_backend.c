// SPDX-License-Identifier: GPL-2.0-or-later
/* kvm_backend.c - which KVM back end runs the guests. A host has one: hence file scope. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "kvm_backend.h"

#define PVM_MODULE "/sys/module/kvm_pvm"

static bool may_be_software;
static const char *backend;

static void look(void)
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
		found = found ? "unknown" : backends[i].name;
	}
	backend = found ? found : "unknown";
	may_be_software = access(PVM_MODULE, F_OK) == 0;
}

/* Once: it does not change while a guest runs, and the sandbox does not look into /sys. */
static void look_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look);
}

bool kvm_backend_may_be_software(void)
{
	look_once();
	return may_be_software;
}

const char *kvm_backend(void)
{
	look_once();
	return backend;
}
