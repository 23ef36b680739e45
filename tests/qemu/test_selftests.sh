#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_selftests.sh - the kernel's own tests of live patching, in a kernel built with them,
# with lockdep and with the agent, whose scope is "all": under QEMU, emulated, with hvpoked
# for its host. Prints TAP. CASES 7.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh
. scripts/gate-costs.sh

vcpus=2
plan 41
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"

stock_test_begin "check-selftests"
trap stock_test_end EXIT

kernel=$(scripts/build-kernel.sh selftest) || die "the guest's kernel cannot be built"
guest_kernel=${kernel%/*}/bzImage
guest_initrd=build/stock/selftest.cpio
qemu_initramfs "$guest_initrd" "${kernel%/*}"/test_static_key{s,_base}.ko tests/qemu/actions.sh ||
	die "the guest could not be prepared"

log() { tr -d '\r' <"$guest_log"; }
# Lockdep gives up after its first finding.
quiet() {
	! log | grep -E 'WARNING:|BUG:|INFO: |Oops|Call Trace' &&
		run "grep 'debug_locks: *1' /proc/lockdep_stats"
}
# results - "NAME: RESULT" of each test that the log tells of; what others say comes between.
results() {
	log | awk '
		{ sub(/^\[ *[0-9.]+\] (trace_kprobe: )?/, "") }
		/^Testing .*:/ { begin($0) }
		name && /(PASSED|OK|FAILED!|failed!|NG: .*)$/ { print name ": " $NF; name = "" }
		function begin(line) {
			if (name) print name ": NONE"
			sub(/^Testing /, "", line); sub(/:.*/, "", line); name = line
		}
		END { if (name) print name ": NONE" }'
}
passed() { grep -cxE "$1: (PASSED|OK)" "$work/results"; }

# The kernel's tests, which are initcalls, in the order in which it would run them.
# tests/linux/selftests.c says why they come later here.
tests=(test_static_call_init jump_label_test init_trace_selftests event_trace_self_tests_init
	kprobe_trace_self_tests_init)
list=$(IFS=,; echo "${tests[*]}")

host_start "$sockets" || die "hvpoked does not start"
# shellcheck disable=SC2046 # several words are wanted
qemu_start selftests "$vcpus" "$sockets" \
	"hvpoke.scope=all initcall_blacklist=$list hvpoke_selftests.run=$list" \
	$(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 900
check "the agent has registered" guest_has_agent
check "its scope is all" run "grep -qx all /sys/module/hvpoke/parameters/scope"
first() { log | grep -E "hvpoke: .*go to the host|hvpoke_selftests: " | head -n 1 | grep "go to the host"; }
check "it was there before the first test began" first

for name in "${tests[@]}"; do
	check "$name has run" eval 'log | grep -F "hvpoke_selftests: $name returned 0"'
done
results >"$work/results"
for name in "tracer function" "dynamic ftrace" "dynamic ftrace ops #1" "dynamic ftrace ops #2" \
	"ftrace recursion" "ftrace recursion safe" "ftrace regs" "tracer function_graph" \
	"tracer wakeup" "kprobe tracing"; do
	check "the kernel's test of $name passes" [ "$(passed "$name")" = 1 ]
done
# Once alone and once with the function tracer on.
events=$(run "mount -t tracefs tracefs /sys/kernel/tracing; grep -cv ^syscalls: /sys/kernel/tracing/available_events")
check "those of each of $events trace events, twice" [ "$(passed 'event [^ ]*')" = $((2 * events)) ]
check "those of their groups" [ "$(passed 'event system [^ ]*')" -gt 40 ]
check "and of all events" [ "$(passed 'all events')" = 2 ]
check "no other fails" eval '! grep -vE ": (PASSED|OK)$" "$work/results"'
check "KUnit's tests of kprobes pass" eval 'log | grep -E "[] ]ok 1 .*kprobes_test$" && ! log | grep "not ok"'
check "the gate's sites went to the host, none natively: $(gate sites)" \
	eval '[ "$(gate sites)" -gt 10000 ] && [ "$(gate native_sites)" = 0 ]'
check "in pauses: $(pauses)" [ "$(pauses)" -gt 100 ]
check "no warning, and lockdep is at work still" quiet
run "cat /sys/module/hvpoke/parameters/gate" | sed 's/^/# /'

# What user space asks for.
switched() {
	for what in schedstats events kprobes function; do
		action "$what" on && action "$what" off || return 1
	done
}
check "256 kprobes are made" action kprobes make
check "a static key, all events, the kprobes and the function tracer go on and off" switched
dyndbg="echo +p >/proc/dynamic_debug/control && echo -p >/proc/dynamic_debug/control"
check "dynamic debug likewise" run "$dyndbg"
module="insmod /test_static_key_base.ko && insmod /test_static_keys.ko && rmmod test_static_keys test_static_key_base"
check "a module's test of static keys passes" run "$module"
from_host() {
	"$hvpoke" toggle selftests +p && "$hvpoke" toggle selftests -p &&
		"$hvpoke" key selftests on sched_schedstats &&
		"$hvpoke" key selftests off sched_schedstats &&
		"$hvpoke" event selftests on 'sched:*' && "$hvpoke" event selftests off 'sched:*'
}
check "the host switches dynamic debug, a key and events" from_host
run "rm -f /tmp/done; for c in '$dyndbg' '$module' '/actions.sh schedstats on && /actions.sh schedstats off'; do (while [ ! -f /tmp/done ] && eval \"\$c\"; do :; done; echo \$? >>/tmp/ended) >/dev/null 2>&1 & done"
at_once() {
	switched && from_host && switched && from_host &&
		run "touch /tmp/done; sleep 3; [ \$(grep -cx 0 /tmp/ended) = 3 ]"
}
check "all of that at once" at_once
check "no site was patched by the guest itself" [ "$(gate native_sites)" = 0 ]
check "no warning, and lockdep is at work still" quiet

# Ways that are seldom taken.
scopes() {
	local scope
	for scope in dyndbg static_keys all; do
		run "echo $scope >/sys/module/hvpoke/parameters/scope" &&
			"$hvpoke" scope selftests dyndbg && "$hvpoke" scope selftests "$scope" &&
			action events on && action events off || return 1
	done
}
check "every scope, set from within and by the host" scopes
device() {
	run "cd /sys/bus/pci/drivers/hvpoke && basename \$(readlink -f 0000:*) >/tmp/device && cat /tmp/device >unbind" &&
		switched && run "cat /tmp/device >/sys/bus/pci/drivers/hvpoke/bind" &&
		wait_until 30 guest_has_agent && switched
}
check "the device goes, and comes back" device
host_stop -KILL
check "without the host all of that goes the kernel's own way" switched
host_start "$sockets"
check "a new one finds the guest" wait_until 30 guest_has_agent
check "and serves it" from_host
check "no warning, and lockdep is at work still" quiet
run "cat /sys/module/hvpoke/parameters/gate" | sed 's/^/# /'
finish
