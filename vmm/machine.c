// SPDX-License-Identifier: GPL-2.0-or-later
/* machine.c - put a PC together: memory, vCPUs, devices, tables, kernel. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acpi.h"
#include "bootparams.h"
#include "i8042.h"
#include "layout.h"
#include "loader.h"
#include "longmode.h"
#include "machine.h"
#include "mptable.h"

static void com1_irq(void *ctx, bool level)
{
	vm_irq_line(ctx, LAYOUT_IRQ_COM1, level);
}

static int add_devices(struct machine *machine, int uart_event)
{
	struct vm *vm = &machine->vm;
	const struct {
		uint16_t first, len;
		const struct port_ops *ops;
		void *dev;
	} devices[] = {
		{NS8250_PORT, NS8250_NR_PORTS, &ns8250_ops, &machine->uart},
		{I8042_PORT, I8042_NR_PORTS, &i8042_ops, vm},
		{MC146818_PORT, MC146818_NR_PORTS, &mc146818_ops, &machine->rtc},
		{ACPI_PM1_EVENT, ACPI_PM1_NR_PORTS, &acpi_pm_ops, &machine->pm},
		{ACPI_RESET, 1, &acpi_reset_ops, vm},
	};
	int err = 0;

	ns8250_init(&machine->uart, uart_event, com1_irq, vm);
	machine->pm = (struct acpi_pm){.vm = vm};
	machine->rtc = (struct mc146818){};
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices) && !err; i++)
		err = bus_add(&vm->bus, devices[i].first, devices[i].len, devices[i].ops,
			      devices[i].dev);
	return err;
}

/* Both kinds of tables: the kernel takes the one that it was built for, ACPI first. */
static int write_tables(struct vm *vm)
{
	void *acpi = memory_at(&vm->memory, gpa(LAYOUT_ACPI), LAYOUT_ACPI_LEN);
	void *mp = memory_at(&vm->memory, gpa(LAYOUT_MPTABLE), LAYOUT_MPTABLE_LEN);

	if (!acpi_build(acpi, LAYOUT_ACPI_LEN, LAYOUT_ACPI, vm->nr_vcpus) ||
	    !mptable_build(mp, LAYOUT_MPTABLE_LEN, LAYOUT_MPTABLE, vm->nr_vcpus))
		return -E2BIG;
	return 0;
}

enum vm_exit machine_files_open(struct machine_files *files, const struct config *config)
{
	struct message message;
	int err;

	*files = (struct machine_files){.kvm = -1, .kernel.fd = -1, .initrd.fd = -1};
	err = loader_open(&files->kernel, config->kernel, &message);
	if (!err && config->initrd)
		err = loader_open(&files->initrd, config->initrd, &message);
	if (err) {
		fprintf(stderr, "hvpoke-vmm: %s\n", message.text);
		machine_files_close(files);
		return VM_EXIT_USAGE;
	}
	files->kvm = vm_open_kvm(); /* prints what went wrong */
	if (files->kvm >= 0)
		return VM_EXIT_NONE;
	machine_files_close(files);
	return VM_EXIT_HOST;
}

void machine_files_close(struct machine_files *files)
{
	loader_close(&files->kernel);
	loader_close(&files->initrd);
	if (files->kvm >= 0)
		close(files->kvm);
	files->kvm = -1;
}

static int load(struct vm *vm, const struct config *config, struct machine_files *files,
		uint64_t *entry, struct message *message)
{
	uint32_t initrd_addr = 0, initrd_size = 0;
	struct kernel_image image;
	int err;

	err = loader_load(&vm->memory, &files->kernel, &image, message);
	if (!err && files->initrd.fd >= 0)
		err = loader_initrd(&vm->memory, &files->initrd, &image, &initrd_addr, &initrd_size,
				    message);
	if (!err)
		err = bootparams_write(&vm->memory, &image, config->cmdline, initrd_addr,
				       initrd_size, message);
	*entry = image.entry;
	return err;
}

static int set_boot_vcpu(struct vm *vm, uint64_t entry)
{
	const struct longmode longmode = {
		.tables = gpa(LAYOUT_PAGE_TABLES),
		.gdt = gpa(LAYOUT_GDT),
	};
	int err = longmode_write(&vm->memory, &longmode);

	if (!err)
		err = longmode_enter(vm->vcpus[0], &longmode, entry, LAYOUT_ZERO_PAGE,
				     LAYOUT_STACK_TOP);
	return err;
}

enum vm_exit machine_create(struct machine *machine, const struct config *config,
			    struct machine_files *files, struct serial *serial)
{
	struct vm *vm = &machine->vm;
	struct message message;
	enum vm_exit code;
	uint64_t entry;
	int err;

	/* It prints what went wrong. */
	if (vm_create_on(vm, files->kvm, (unsigned int)config->vcpus, config->memory) < 0)
		return VM_EXIT_HOST;
	vm->count_int3 = config->count_int3;
	hvp_guest_limit(vm->guest, &config->limits);

	code = VM_EXIT_HOST;
	err = add_devices(machine, serial->event);
	if (!err)
		err = write_tables(vm);
	if (err) {
		message_set(&message, err, "cannot set up the VM's devices and tables: %s",
			    strerror(-err));
		goto fail;
	}
	err = load(vm, config, files, &entry, &message);
	if (err) {
		code = VM_EXIT_USAGE;
		goto fail;
	}
	err = set_boot_vcpu(vm, entry);
	if (err) {
		message_set(&message, err, "KVM does not take the boot vCPU's registers: %s",
			    strerror(-err));
		goto fail;
	}
	serial_attach(serial, &machine->uart);
	return VM_EXIT_NONE;
fail:
	fprintf(stderr, "hvpoke-vmm: %s\n", message.text);
	vm_destroy(vm);
	ns8250_release(&machine->uart);
	return code;
}

void machine_destroy(struct machine *machine, struct serial *serial)
{
	serial_detach(serial);
	vm_destroy(&machine->vm);
	ns8250_release(&machine->uart);
}
