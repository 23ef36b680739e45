#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_stock.sh SERIES VCPUS - a stock Debian kernel with hvpoke.ko under QEMU, emulated,
# with hvpoked for its host. What each request leaves of the kernel's text, its static keys
# and dynamic debug's control file is compared with what the kernel's own way leaves. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh

series=$1 vcpus=$2
export HVPOKE_QUIET=1
plan 51
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"

stock_test_begin "check-stock-$series-$vcpus"
trap stock_test_end EXIT
stock_test_prepare "$series"

last_natively() { [ "$(last native_sites)" -gt 1800 ] && [ "$(last batches)" = 0 ]; }

# Without hvpoke's device, and with one of its kind that is somebody else's.
host_start "$sockets" || die "hvpoked does not start"
qemu_start foreign "$vcpus" "$sockets" "" -object memory-backend-ram,id=other,size=4M,share=on \
	-device ivshmem-plain,memdev=other
check "the stock kernel boots with an ivshmem device that is not hvpoke's" guest_wait_shell 300
refused() { ! run "insmod /hvpoke.ko"; }
check "the module does not load there" refused
check "and its message names what it has looked for" \
	logged "(hvpokehvpoke), and there is no PCI device 1af4:1110"
untaken() { run "set -- /sys/bus/pci/devices/*; for d; do [ \$(cat \$d/vendor)\$(cat \$d/device) = 0x1af40x1110 ] && [ ! -e \$d/driver ] && exit 0; done; exit 1"; }
check "the device is left to others" untaken
check "no warning" quiet
guest_stop

qemu_start stock "$vcpus" "$sockets" "" $(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 300
run "insmod /usb-common.ko && insmod /usbcore.ko"
check "all vCPUs are up" [ "$(run nproc)" = "$vcpus" ]
run "insmod /hvpoke.ko"
check "the module loads and the agent registers" wait_until 60 guest_has_agent
accelerator=$(guest_info | jq -r .accelerator | tr a-z A-Z)

# The kernel's own way: what it writes, and what it costs.
control =_ >/dev/null
state off
toggle native-on --native +p
check "native +p: the kernel patches, no pause" \
	holds native-on '.pauses == 0 and .sites > 1900 and .native_sites == .sites'
state on
descriptors=$(field native-on matched)
check "it changes the text and the static keys" differ on off
check "and the count of each key from 0" counts_are off "$descriptors" 0
check "to 1" counts_are on "$descriptors" 1
toggle native-off --native -p
check "native -p: text, keys and control file are as before" state_is off

# The guest's own requests.
control +p
check "the guest's +p goes to the host in one batch" last_by_host
check "+p: text, keys and control file are as the kernel's own way leaves them" state_is on
control -p
check "the guest's -p goes to the host in one batch" last_by_host
check "-p: likewise" state_is off

# The host's.
toggle on +p
check "the host's +p: one batch, one pause, no fallback" \
	holds on '.batches == 1 and .pauses == 1 and .fallback == null and .native_sites == 0'
check "it matches, changes and patches as many as natively" \
	[ "$(field on matched) $(field on changed) $(field on sites)" = \
	"$(field native-on matched) $(field native-on changed) $(field native-on sites)" ]
check "+p: text, keys and control file are as the kernel's own way leaves them" state_is on
toggle off -p
check "-p: likewise" state_is off

# Other people's interrupts come and go: the best of five pairs shows our own.
best=1000000
for i in 1 2 3 4 5; do
	toggle "on-$i" +p && toggle "off-$i" -p
	ipis=$(($(field "on-$i" ipis) + $(field "off-$i" ipis)))
	[ $ipis -ge $best ] || best=$ipis best_pair=$i
done
"$hvpoke" idle --json stock 100 >"$work/idle.json"
native=$(($(field native-on ipis) + $(field native-off ipis)))
check "a native pair costs more than 10,000 function-call interrupts" [ $native -gt 10000 ]
check "a pair through hvpoke costs no more than the idle noise" \
	[ "$best" -le $((8 + $(field idle ipis))) ]

# Mixed queries.
for query in 'module usbcore +p' '!module virtio* +p' '!module usb* +pfl; func usb_* +p' \
	'file drivers/base/* +p; file drivers/base/core.c -p; format ^device +pm'; do
	check "'$query' leaves what it leaves natively" as_native "$query"
done
toggle clean =_

# Translated code is what runs: messages come, and stop.
messages >/dev/null
check "a site that is off prints nothing" [ "$(messages)" = 0 ]
toggle message 'func kobject_uevent_env +p'
check "switched on it prints" [ "$(messages)" != 0 ]
toggle message 'func kobject_uevent_env -p'
check "switched off again it does not" [ "$(messages)" = 0 ]

# finished FILE - what the guest does in the background, or the guest itself.
finished() {
	run "[ -f /tmp/$1 ]"
	[ $? != 1 ]
}

# Modules that come and go.
run "rmmod usbcore; insmod /usbcore.ko dyndbg=+p"
check "dyndbg=+p of a module that loads goes to the host in one batch" last_by_host
usbcore_on() { ! run "grep -F '[usbcore]' /proc/dynamic_debug/control | grep -v ' =p '"; }
check "its sites are on" usbcore_on
state loaded
toggle usb --native 'module usbcore -p' && toggle usb --native 'module usbcore +p'
check "as natively" state_is loaded
run "rmmod usbcore"
toggle all =_
run "insmod /usbcore.ko dyndbg=+p"
churn() {
	run "(i=0; while [ \$i -lt 60 ]; do rmmod usbcore; insmod /usbcore.ko dyndbg=+p; i=\$((i+1)); done; touch /tmp/churned) >/dev/null 2>&1 &"
	local n=0
	until finished churned; do
		toggle churn +p && toggle churn -p || return 1
		n=$((n + 1))
	done
	echo "$n pairs"
	[ $n -gt 5 ]
}
check "requests while a module loads and unloads" churn
# Where the module lies has changed: the reference is taken anew.
toggle clean =_
state off
toggle on --native +p
state on
toggle clean =_

# A host that does not answer, that is gone, and that comes back.
kill -STOP "$host_pid"
control +p
took=$(last us)
natively=$(jq ".guest_us | ceil" "$work/native-on.json")
echo "# with a host that does not answer: $took us; natively alone $natively us"
# What the kernel's own way takes depends on how busy this machine is.
in_time() { last_natively && [ "$took" -lt $((2000000 + 2 * natively)) ]; }
check "the host hangs: the kernel's own way within 2 s" in_time
check "and the log says why" logged "kernel's own way: the host did not answer in time"
check "nothing is lost" state_is on
host_stop -KILL
host_start "$sockets"
check "a new hvpoked finds the guest again" wait_until 60 guest_has_agent
control -p
back() { last_by_host && state_is off; }
check "and takes its requests again" back
host_stop
control +p
took=$(last us)
gone() { in_time && state_is on; }
check "the host ends: the kernel's own way" gone
host_start "$sockets"
wait_until 60 guest_has_agent
control -p
run "(i=0; while [ \$i -lt 200 ]; do echo +p; echo -p; i=\$((i+1)); done | while read q; do echo \$q >/proc/dynamic_debug/control; done; touch /tmp/done) >/dev/null 2>&1 &"
kills=0 lost=0
until finished done; do
	sleep 0.$((RANDOM % 9 + 1))
	host_stop -KILL
	host_start "$sockets"
	wait_until 60 guest_has_agent || lost=$((lost + 1))
	kills=$((kills + 1))
done
echo "# killed $kills times"
killed() { [ $kills -gt 2 ] && [ $lost = 0 ]; }
check "200 pairs while the host is killed and started again: it is found each time" killed
check "and nothing is lost" state_is off

# Others patch the same text meanwhile, and processes come and go.
run "mount -t tracefs tracefs /sys/kernel/tracing"
others="cd /sys/kernel/tracing; echo 'p:hvp vfs_read' >kprobe_events; echo 1 >events/kprobes/hvp/enable; echo 0 >events/kprobes/hvp/enable; echo >kprobe_events; echo 'vfs_*' >set_ftrace_filter; echo function >current_tracer; echo nop >current_tracer; echo >set_ftrace_filter"
run "$others"
toggle clean =_
settled off
run "rm -f /tmp/done /tmp/others; (while [ ! -f /tmp/done ]; do $others; done; touch /tmp/others) >/dev/null 2>&1 &"
many() {
	guest_run 1500 "i=0; while [ \$i -lt 500 ]; do echo +p >/proc/dynamic_debug/control; /bin/true; echo -p >/proc/dynamic_debug/control; i=\$((i+1)); done"
}
check "1,000 requests while processes fork, and ftrace and kprobes patch" many
check "all of them went to the host" last_by_host
run "touch /tmp/done"
wait_until 300 finished others
check "and nothing is lost" state_becomes off

# The device goes, and comes back.
run "cd /sys/bus/pci/drivers/hvpoke; basename \$(readlink -f 0000:*) >/tmp/device; cat /tmp/device >unbind"
control +p
check "without its device: the kernel's own way" last_natively
run "cat /tmp/device >/sys/bus/pci/drivers/hvpoke/bind"
wait_until 60 guest_has_agent
control -p
check "with it again: the host's, and nothing is lost" back

# The agent goes, and comes back.
run "rmmod hvpoke"
no_agent() { ! guest_has_agent; }
check "the agent unloads, and the host knows" no_agent
run "insmod /hvpoke.ko"
check "a new one registers" wait_until 60 guest_has_agent
toggle again +p
check "and does its work" holds again '.batches == 1 and .native_sites == 0'
check "no warning" quiet

# cal WHAT OUT - one line of the table, of a request's JSON.
cal() { jq -r --arg what "$1" '[$what, .sites, .ipis, .pauses, .pause_us] | @tsv' "$work/$2.json"; }
echo "# CAL, the guest's function-call interrupts, meanwhile: stock $stock_release, $vcpus vCPUs," \
	"$accelerator"
{
	printf 'request\tsites\tCAL\tpauses\tpause us\n'
	cal "+p natively" native-on
	cal "-p natively" native-off
	cal "+p hvpoke, best of 5 pairs" "on-$best_pair"
	cal "-p hvpoke, the same pair" "off-$best_pair"
	printf '100 ms of nothing\t0\t%s\t0\t0\n' "$(field idle ipis)"
} | column -t -s $'\t' -R 2,3,4,5 | sed 's/^/# /'
finish
