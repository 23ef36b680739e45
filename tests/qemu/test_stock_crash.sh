#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_stock_crash.sh SERIES VCPUS - a stock Debian kernel with hvpoke.ko under QEMU, emulated,
# whose hvpoked is killed in the middle of a +p, at one step after the other (patcher/fault.h), and
# started again: the kernel's text, its static keys and dynamic debug's control file are those
# that the kernel's own way leaves. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh

series=$1 vcpus=$2
# Which kind of way the +p then goes is known for each step: the gdbstub's connection
# counts as the first part written, and as the first cont.
steps=("journal-begun 1 natively" "part-written 2 natively" "part-written 900 natively"
	"written 1 natively" "applied 1 by_host" "cont 2 by_host")
export HVPOKE_QUIET=1
plan $((5 + 3 * ${#steps[@]}))
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"
# A release has no such points.
hvpoked=build/asan/hvpoked

stock_test_begin "check-stock-crash-$series-$vcpus"
trap stock_test_end EXIT
stock_test_prepare "$series"

host_start "$sockets" || die "hvpoked does not start"
# shellcheck disable=SC2046 # several words
qemu_start stock "$vcpus" "$sockets" "" $(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 120
run "insmod /usb-common.ko && insmod /usbcore.ko"
run "insmod /hvpoke.ko"
check "the module loads and the agent registers" wait_until 20 guest_has_agent
control =_ >/dev/null
state off
toggle native-on --native +p
state on
toggle native-off --native -p
check "the kernel's own way, there and back" state_is off

natively() { [ "$(last native_sites)" -gt 1800 ] && [ "$(last batches)" = 0 ]; }
by_host() { last_by_host; }

# killed STEP NTH - hvpoked dies there, of a +p of the guest's own; the next one is there at once.
killed() {
	local code
	host_stop -KILL
	HVPOKE_FAULT="$1 $2 0" host_start "$sockets"
	wait_until 60 guest_has_agent || return 1
	printf '%s\n' "echo +p >/proc/dynamic_debug/control" >&"$guest_in"
	wait_until 60 host_ended || return 1
	wait "$host_pid" 2>/dev/null
	code=$?
	host_start "$sockets"
	guest_read 60 "= 0" && wait_until 60 guest_has_agent && [ $code = 137 ]
}
host_ended() { ! kill -0 "$host_pid" 2>/dev/null; }

for step in "${steps[@]}"; do
	read -r point nth way <<<"$step"
	# Not in a subshell: the next hvpoked is this shell's.
	killed "$point" "$nth"
	check "killed at $point $nth: the guest runs, and its +p ends" [ $? = 0 ]
	as_on() { "$way" && state_is on; }
	check "$way, and all is as the kernel's own way leaves it" as_on
	control -p
	check "the next -p goes to the host" last_by_host
done
check "and all is off as it was" state_is off
check "no warning" quiet
finish
