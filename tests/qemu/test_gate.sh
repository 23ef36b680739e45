#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_gate.sh SERIES VCPUS - a stock Debian kernel under QEMU, emulated, with the agent's
# scope "all": whatever patches the kernel's text goes to the host. Each action is done the
# kernel's own way first, and what it leaves of the text is what hvpoke has to leave.
# Prints TAP, with a table of what each action costs.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh
. scripts/gate-costs.sh

series=$1 vcpus=$2
export HVPOKE_QUIET=1
plan 68
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"

stock_test_begin "check-gate-$series-$vcpus"
trap stock_test_end EXIT

guest_files=(tests/qemu/state.sh tests/qemu/same_text.sh tests/qemu/actions.sh)
stock_had "$series" usb-common usbcore || skip_rest "$stock_why"
qemu_prepare "$series" usb-common usbcore || die "the guest could not be prepared"

state() { run "/state.sh $1"; }
same() { run "cmp /tmp/$1.text /tmp/$2.text"; }
where() { run "cmp -l /tmp/now.text /tmp/$1.text | head -n 8"; }
# But for what the agent diverts.
text_is() { state now && run "/same_text.sh now $1"; }
text_becomes() { wait_until 120 text_is "$1"; }
scope() { "$hvpoke" scope stock "$1" >/dev/null; }
is_scope() { [ "$("$hvpoke" scope stock --json | jq -r .scope)" = "$1" ]; }
host_start "$sockets" || die "hvpoked does not start"
# shellcheck disable=SC2046 # several words are wanted
qemu_start stock "$vcpus" "$sockets" "" $(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 300
run "insmod /usb-common.ko && insmod /usbcore.ko && insmod /hvpoke.ko"
check "the agent registers" wait_until 60 guest_has_agent
check "its scope is dyndbg" is_scope dyndbg
check "256 kprobes are made" action kprobes make

# The kernel's own way, the first time to have what is made once.
for what in "${gate_actions[@]}"; do
	action "$what" on && action "$what" off
done
settled off
native_paused=$(pauses)
for what in "${gate_actions[@]}"; do
	cost "$work" native "$what" on
	settled "$what"
	cost "$work" native "$what" off
	check "natively, $what leaves the text as it was" state_becomes off
done
check "no host took part" [ "$(pauses)" = "$native_paused" ]

check "the host sets the scope" scope all
check "and sees it" is_scope all
check "the text differs in what the agent diverts, and in nothing else" text_is off
for what in "${gate_actions[@]}"; do
	check "$what on, through the host" cost "$work" hvpoke "$what" on
	check "the text is what the kernel's own way leaves" text_becomes "$what"
	check "$what off" cost "$work" hvpoke "$what" off
	check "the text is as it was" text_becomes off
done
nothing_native() { [ "$(gate native_sites)" = 0 ]; }
check "no site was patched by the guest itself" nothing_native
cost "$work" idle schedstats off

echo "# function-call interrupts, pauses and ms of one request: Linux $stock_release, $vcpus vCPUs, QEMU (TCG)"
cost_table "$work" | sed 's/^/# /'
# Interrupts of others come and go, on a busy machine some 40 a second; those of patching would be
# hundreds or thousands.
spared() {
	local value idle
	idle=$(cost_of "$work/idle.schedstats.off" ipis)
	for value in on off; do
		[ "$(cost_of "$work/hvpoke.$1.$value" ipis)" -le $((120 + idle)) ] &&
			[ "$(cost_of "$work/native.$1.$value" ipis)" -gt 400 ] || return 1
	done
}
for what in events kprobes function; do
	check "$what: natively hundreds of interrupts, through the host the idle noise" spared "$what"
done
pauses_of() { echo "$(cost_of "$work/hvpoke.$1.on" pauses) $(cost_of "$work/hvpoke.$1.off" pauses)"; }
check "a static key is one pause" [ "$(pauses_of schedstats)" = "1 1" ]
# Of more than a thousand: the kprobes' own stages, and the keys and calls that belong to no
# tracepoint and cannot wait (tracing.c), of which 7.x has more.
few() { local pauses=($(pauses_of events)); [ "${pauses[0]}" -le 12 ] && [ "${pauses[1]}" -le 12 ]; }
check "all trace events are a few pauses" few

# The tracers work.
tracing=/sys/kernel/tracing
run "echo >$tracing/trace; echo 1 >$tracing/events/sched/enable; sleep 1; echo 0 >$tracing/events/sched/enable"
check "events are recorded" run "[ \$(grep -c sched_switch $tracing/trace) -gt 10 ]"
run "echo >$tracing/trace; sleep 1"
check "and no longer, once they are off" run "! grep -q sched_switch $tracing/trace"
run "echo function >$tracing/current_tracer; dd if=/proc/version of=/dev/null 2>/dev/null; echo 0 >$tracing/tracing_on"
check "functions are traced" run "grep -q 'vfs_read <-' $tracing/trace"
run "echo nop >$tracing/current_tracer; echo 1 >$tracing/tracing_on"
run "for at in 5 9; do echo p:hvp_hit vfs_read+\$at >>$tracing/kprobe_events && break; done 2>/dev/null; echo 1 >$tracing/events/kprobes/hvp_hit/enable; sleep 1; dd if=/dev/zero of=/dev/null bs=1 count=50 2>/dev/null"
hits() { run "awk '\$1 == \"hvp_hit\" { print \$2 }' $tracing/kprobe_profile"; }
check "a kprobe's hits are counted" [ "$(hits)" -ge 50 ]
run "echo 0 >$tracing/events/kprobes/hvp_hit/enable; sleep 1"
before=$(hits)
run "dd if=/dev/zero of=/dev/null bs=1 count=50 2>/dev/null"
check "and no longer, once it is off" [ "$(hits)" = "$before" ]
run "echo '-:hvp_hit' >>$tracing/kprobe_events"

# From the host.
check "a key by name, from the host: one pause" eval \
	'"$hvpoke" key stock on sched_schedstats --json | jq -e ".pauses == 1 and .changed == 1 and .fallback == null"'
check "the kernel sees it" run "grep -qx 1 /proc/sys/kernel/sched_schedstats"
check "and off again" eval '"$hvpoke" key stock off sched_schedstats --json | jq -e ".pauses == 1 and .changed == 1"'
check "events by a glob, from the host" eval \
	'"$hvpoke" event stock on "sched:*" --json | jq -e ".pauses <= 2 and .changed > 10 and .native_sites == 0"'
check "they are on" run "[ \$(cat $tracing/events/sched/enable) = 1 ]"
check "a queue of several kinds is one commit" eval \
	'"$hvpoke" queue stock add toggle "module usbcore +p" && "$hvpoke" queue stock add key on sched_schedstats &&
	"$hvpoke" queue stock add event off "sched:*" && "$hvpoke" queue stock commit --json |
	jq -e ".pauses <= 2 and .changed > 20 and .fallback == null"'
"$hvpoke" toggle stock 'module usbcore -p' >/dev/null
"$hvpoke" key stock off sched_schedstats >/dev/null
check "the text is as it was" text_becomes off

# Under load, while processes fork and dynamic debug is switched as well.
run "rm -f /tmp/done /tmp/done.*; (while [ ! -f /tmp/done ]; do /bin/true; echo 'module usbcore +p' >/proc/dynamic_debug/control; echo 'module usbcore -p' >/proc/dynamic_debug/control; done; touch /tmp/done.1) >/dev/null 2>&1 &"
run "(while [ ! -f /tmp/done ]; do rmmod usbcore; insmod /usbcore.ko dyndbg=+p; done; touch /tmp/done.2) >/dev/null 2>&1 &"
toggles() {
	seconds=1500 run "i=0; while [ \$i -lt 67 ]; do for a in schedstats bpf_stats events; do /actions.sh \$a on; /actions.sh \$a off; done; i=\$((i+1)); done"
}
check "200 toggles of keys and events under load" toggles
filter="vfs_* ext4_* tcp_* pci_*"
more() {
	seconds=1200 run "cd $tracing; echo '$filter' >set_ftrace_filter; i=0; while [ \$i -lt 20 ]; do echo function >current_tracer; echo 1 >events/kprobes/enable; echo nop >current_tracer; echo 0 >events/kprobes/enable; i=\$((i+1)); done; echo >set_ftrace_filter"
}
check "20 of the function tracer and the kprobes" more
run "touch /tmp/done"
over() { run "[ -f /tmp/done.1 ] && [ -f /tmp/done.2 ]"; }
wait_until 300 over
run "rmmod usbcore; insmod /usbcore.ko"
check "no site was patched by the guest itself" nothing_native
check "the text is as it was" text_becomes off
check "events are recorded still" run "echo >$tracing/trace; echo 1 >$tracing/events/sched/enable; sleep 1; echo 0 >$tracing/events/sched/enable; [ \$(grep -c sched_switch $tracing/trace) -gt 10 ]"

# The host dies, with the gate taken over.
host_stop -KILL
uptime() { run "cut -d . -f 1 /proc/uptime"; }
begun=$(uptime)
action events on
check "the host is gone: events go the kernel's own way" text_becomes events
# The kprobes among them are hundreds of batches, each of which could wait for half a second.
check "and do not wait for it at each site" [ $(($(uptime) - begun)) -lt 90 ]
action events off
host_start "$sockets"
wait_until 60 guest_has_agent
before=$(pauses)
action schedstats on
action schedstats off
check "it is there again: the host's" [ "$(pauses)" = $((before + 2)) ]
check "nothing is lost" text_becomes off

# Static keys only.
check "the scope is static keys" scope static_keys
run "echo 0 >$tracing/options/record-cmd" # that are three keys
before=$(pauses)
action schedstats on
action schedstats off
check "a key goes to the host" [ "$(pauses)" = $((before + 2)) ]
action kprobes on
action kprobes off
check "and kprobes do not" [ "$(pauses)" = $((before + 2)) ]

check "the scope is dyndbg again" scope dyndbg
before=$(pauses)
action schedstats on
action schedstats off
check "a key does not go to the host" [ "$(pauses)" = "$before" ]
check "the text is to the byte what it was" state_becomes off
run "rmmod hvpoke"
check "the agent unloads" [ -z "$(run "grep ^hvpoke /proc/modules")" ]
check "no warning" quiet
finish
