#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_foreign_host.sh - the stock Debian kernel with hvpoke.ko under a hypervisor
# without hvpoke (QEMU, emulated): the module does not load, says why, and the
# guest goes on as if nothing had happened. The same kernel and initramfs as
# make demo boots on VMX and SVM. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/stock-guest.sh
. tests/linux/tap.sh

export HVPOKE_QUIET=1
plan 4
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"
stock_prepare || die "the stock guest could not be prepared"
log=build/check-foreign-host.console

# /init powers off if the module does not load.
run() {
	timeout 300 qemu-system-x86_64 -accel tcg -m 256 -smp 2 -display none -nodefaults \
		-no-reboot -serial "file:$log" -kernel "$guest_kernel" -initrd "$guest_initrd" \
		-append "$guest_cmdline" </dev/null
}
check "the stock kernel boots to user space and powers off" run
check "the module says that there is no hvpoke host" \
	grep -q 'hvpoke: no hvpoke host: the hypervisor has no hvpoke CPUID leaf' "$log"
check "insmod fails with ENODEV" grep -q "can't insert '/hvpoke.ko': No such device" "$log"
quiet() { ! grep -E 'WARNING:|BUG:|Oops|Call Trace' "$log"; }
check "the kernel's log has no warning" quiet
finish
