/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VMM_MACHINE_H
#define VMM_MACHINE_H

#include "acpi_pm.h"
#include "config.h"
#include "loader.h"
#include "mc146818.h"
#include "ns8250.h"
#include "serial.h"
#include "vm.h"

/* The VM with its devices and what it boots. */
struct machine {
	struct vm vm;
	struct ns8250 uart;
	struct acpi_pm pm;
	struct mc146818 rtc;
};

/*
 * What machines are made of, again at each reboot: kept open, so that the sandbox can do
 * without opening files.
 */
struct machine_files {
	int kvm; /* /dev/kvm */
	struct loader_file kernel, initrd;
};

/* VM_EXIT_NONE, or what the program is to exit with; then the reason has been printed. */
enum vm_exit machine_files_open(struct machine_files *files, const struct config *config);
void machine_files_close(struct machine_files *files);

/*
 * Make all of it, loaded and ready for vm_start(). @serial is attached. Returns
 * VM_EXIT_NONE, or what the program is to exit with; then the reason has been
 * printed and nothing is left to destroy.
 */
enum vm_exit machine_create(struct machine *machine, const struct config *config,
			    struct machine_files *files, struct serial *serial);
/* After vm_join(), or without vm_start(). */
void machine_destroy(struct machine *machine, struct serial *serial);

#endif /* VMM_MACHINE_H */
