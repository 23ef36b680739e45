#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_limits.sh SERIES - a stock Debian kernel with hvpoke.ko under QEMU, emulated, whose
# host gives it four pauses in a day: what it wants beyond that it does the kernel's own way,
# loses nothing, and says why, once. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh

series=$1
export HVPOKE_QUIET=1
plan 13
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"

stock_test_begin "check-limits-$series"
trap stock_test_end EXIT
stock_test_prepare "$series"

reason="had as many pauses, or as long ones, as it may have"
last_natively() { [ "$(last native_sites)" -gt 1800 ] && [ "$(last batches)" = 0 ]; }

host_start "$sockets" --max-pauses 4 --limit-seconds 86400 || die "hvpoked does not start"
qemu_start limits 2 "$sockets" "" $(qemu_device "$sockets")
check "the stock kernel boots" guest_wait_shell 300
run "insmod /usb-common.ko && insmod /usbcore.ko && insmod /hvpoke.ko"
check "the module loads and the agent registers" wait_until 60 guest_has_agent
check "info shows the limits" jq_is '.limits.max_pauses == 4 and .limits.limit_seconds == 86400' guest_info

# The kernel's own way, for what it leaves.
control =_
state off
toggle native-on --native +p
state on
toggle native-off --native -p
check "natively: on, and off again" state_is off

# On a busy machine a request may not get its answer in time, and costs one of the pauses.
rated() { "$hvpoke" stats --json limits | jq .refused_rate; }
by_host=0
for query in +p -p +p -p +p -p; do
	control $query
	! last_by_host || by_host=$((by_host + 1))
done
some() { [ $by_host -gt 0 ] && [ $by_host -le 4 ]; }
check "the first requests go to the host, not more than it may" some
check "what comes then is refused" [ "$(rated)" -gt 0 ]
check "and nothing is lost" state_is off
control +p
check "another one is done the kernel's own way" last_natively
check "and leaves what that leaves" state_is on
run "for i in 1 2 3 4 5; do echo +p >/proc/dynamic_debug/control; echo -p >/proc/dynamic_debug/control; done"
check "nor in a burst of ten more" state_is off
toggle on +p
fell_back() {
	holds on '.batches == 0 and .pauses == 0 and .native_sites == .sites' &&
		[[ $(field on fallback) == *"$reason"* ]] && state_is on
}
check "the host's request, too, and it is told why" fell_back
said() { [ "$(run "dmesg | grep -cF '$reason'")" = 1 ]; }
check "the guest's log says so once" said
counted() { jq_is '.refused_rate > 0 and .refused >= .refused_rate and .batches > 0 and .batches <= 4' \
	"$hvpoke" stats --json limits; }
check "the host has counted them, and taken no more than four" counted
finish
