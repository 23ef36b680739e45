#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_requests.sh SERIES VCPUS - what the host may ask for besides dynamic debug: static
# keys and trace events of a stock Debian kernel under QEMU, emulated, with hvpoked for its
# host. What each leaves is compared with what the kernel's own way leaves, and with what
# the guest's own files say. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh

series=$1 vcpus=$2
export HVPOKE_QUIET=1
plan 48
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"

stock_test_begin "check-requests-$series-$vcpus"
trap stock_test_end EXIT

# ip_tables has the only sites of a key that x_tables has.
guest_files=(tests/qemu/state.sh)
stock_had "$series" x_tables ip_tables || skip_rest "$stock_why"
qemu_prepare "$series" x_tables ip_tables || die "the guest could not be prepared"

run() { guest_run 180 "$@"; }
state() { run "/state.sh $1"; }
same() { run "cmp /tmp/$1.text /tmp/$2.text && cmp /tmp/$1.control /tmp/$2.control"; }
differ() { ! run "cmp -s /tmp/$1.text /tmp/$2.text"; }
# state_is NAME - is it the state that was saved as NAME?
state_is() { state now && same now "$1"; }
# ask OUT COMMAND ARGS... - from the host; its JSON goes to $work/OUT.json.
options=(--json)
ask() {
	local out=$work/$1.json command=$2
	shift 2
	"$hvpoke" "$command" "${options[@]}" "$guest_name" "$@" >"$out"
}
natively() {
	local options=(--json --native)
	ask "$@"
}
holds() { jq -e "$2" "$work/$1.json" >/dev/null || { cat "$work/$1.json"; false; }; }
field() { jq -r ".$2" "$work/$1.json"; }
one_batch='.batches == 1 and .pauses == 1 and .native_sites == 0 and .fallback == null'
nothing='.changed == 0 and .sites == 0 and .pauses == 0'
# refused OUT ERRNO TEXT COMMAND... - with that error, for that reason, and nothing changed.
refused() {
	local out=$1
	! ask "$1" "${@:4}" 2>/dev/null &&
		holds "$out" ".error.data | .errno == $2 and $nothing and (.message | contains(\"$3\"))"
}
list() { ask "$1" key list "$2"; }
# is KEY true|false - what the list says of the key.
is() { list is "$1" && holds is "map(.enabled) == [$2]"; }
reads() { [ "$(run "cat $1")" = "$2" ]; }
quiet() { ! run "dmesg | grep -E 'WARNING:|BUG:|Oops|Call Trace|no instruction of this'"; }

host_start "$sockets" || die "hvpoked does not start"
qemu_start requests "$vcpus" "$sockets" "" $(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 300
run "insmod /hvpoke.ko; mount -t tracefs tracefs /sys/kernel/tracing"
check "the module loads and the agent registers" wait_until 60 guest_has_agent
covered() { ! run "dmesg | grep 'hvpoke: not covered'"; }
check "on this kernel all is covered" covered

# The list of keys.
check "the list of keys comes" list all '*'
check "it has sched_schedstats, off, with its many sites" \
	holds all 'map(select(.name == "sched_schedstats")) | length == 1 and (.[0] | .enabled == false and .sites > 10)'
check "it is longer than what one answer holds" holds all 'map(.name | length + 9) | add > 3072'
part() {
	list part '*_enabled*' && holds part 'length > 2' &&
		[ "$(jq -c 'map(.name)' "$work/part.json")" = \
			"$(jq -c 'map(.name | select(contains("_enabled")))' "$work/all.json")" ]
}
check "a glob lists the part that it says" part
nobody() { list none 'no_such_*' 2>/dev/null && holds none 'length == 0'; }
check "and a glob that matches none, none" nobody

# On and off: the kernel's own way first.
state off
natively native-on key on sched_schedstats
check "natively on: the kernel patches, no pause" \
	holds native-on '.matched == 1 and .changed == 1 and .pauses == 0 and .sites > 10 and .native_sites == .sites'
state on
check "it changes the text" differ on off
natively native-off key off sched_schedstats
check "natively off: the text is as before" state_is off
ask on key on sched_schedstats
check "on: one batch, one pause" holds on ".matched == 1 and .changed == 1 and $one_batch"
check "as many sites as natively" [ "$(field on sites)" = "$(field native-on sites)" ]
check "the text is what the kernel's own way leaves" state_is on
check "the kernel's sysctl says so" reads /proc/sys/kernel/sched_schedstats 1
check "the list says so" is sched_schedstats true
# The scheduler's counters of the first CPU: they move as long as the key is on.
counters() { run "sed -n 's/^cpu0 \(\([0-9]* \)\{6\}\).*/\1/p' /proc/schedstat"; }
before=$(counters)
check "/proc/schedstat moves" [ "$(counters)" != "$before" ]
ask again key on sched_schedstats
check "on once more: nothing to be done" holds again ".matched == 1 and $nothing"
ask off key off sched_schedstats
check "off: one batch, one pause" holds off ".matched == 1 and .changed == 1 and $one_batch"
check "the text is as before" state_is off
before=$(counters)
check "/proc/schedstat stands still" [ "$(counters)" = "$before" ]

bpf() {
	ask bpf key on bpf_stats_enabled_key && holds bpf ".changed == 1 and $one_batch" &&
		is bpf_stats_enabled_key true && state bpf && differ bpf off &&
		ask bpf key off bpf_stats_enabled_key && holds bpf ".changed == 1 and $one_batch" &&
		is bpf_stats_enabled_key false && state_is off
}
check "bpf_stats_enabled_key likewise" bpf

# What is refused, and why.
check "a name that is unknown" refused unknown 2 "no symbol of this name" key on no_such_key
check "a symbol that is no key" refused no-key 22 "not a static key" key on jiffies
check "a key that is read-only" refused read-only 1 "read-only" key off cr_pinning
check "a key that goes off by itself" refused deferred 16 "by itself" key on ipv6_flowlabel_exclusive
run "mkdir /tmp/cgroup && mount -t cgroup2 none /tmp/cgroup && echo +cpuset >/tmp/cgroup/cgroup.subtree_control && mkdir /tmp/cgroup/a /tmp/cgroup/b"
check "a key with two users" refused counted 16 ", 2 now" key off cpusets_enabled_key
check "stays on" is cpusets_enabled_key true
run "rmdir /tmp/cgroup/a /tmp/cgroup/b"

# A key of a module, whose sites are another module's.
load="insmod /x_tables.ko && insmod /ip_tables.ko"
unload="rmmod ip_tables x_tables"
run "$load"
module() {
	list module 'x_tables:*' &&
		holds module 'map(select(.name == "x_tables:xt_tee_enabled" and .sites > 0)) | length == 1' &&
		ask module key "$1" x_tables:xt_tee_enabled &&
		holds module ".matched == 1 and .changed == 1 and $one_batch" &&
		is x_tables:xt_tee_enabled "$2"
}
check "a module's key is listed, and goes on" module on true
check "and off" module off false
check "it is not the kernel's" refused not-core 2 "no symbol" key on ip_tables:xt_tee_enabled
run "$unload"
check "without the module it is gone" refused gone 2 "no symbol" key on x_tables:xt_tee_enabled

# Trace events: the same events as in tracefs, and the same text. They have static calls,
# too, which only the widest scope covers, and some of which cannot wait: a few pauses.
few_pauses='.pauses >= 1 and .pauses <= 3 and .native_sites == 0 and .fallback == null'
ask scope scope all
check "the scope is all" holds scope '.scope == "all"'
tracing=/sys/kernel/tracing
nr_events() { run "find $tracing/events -mindepth 3 -maxdepth 3 -name enable | wc -l"; }
nr_on() { run "wc -l <$tracing/set_event"; }
state off
natively events-native event on '*:*'
state events
natively events-native event off '*:*'
check "all events natively off: text as before" state_is off
ask events event on '*:*'
all_on() {
	holds events ".matched == $(nr_events) and .changed == .matched and $few_pauses" &&
		[ "$(nr_on)" = "$(field events matched)" ] && reads $tracing/events/enable 1
}
check "all events on: those of tracefs, in a few pauses" all_on
check "the text is what the kernel's own way leaves" state_is events
# Not all of it: there is more all the time.
recorded() { run "grep -m 1 $1: $tracing/trace"; }
check "they are recorded" wait_until 60 recorded sched_switch
ask events event off '*:*'
all_off() {
	holds events ".changed == .matched and $few_pauses" && [ "$(nr_on)" = 0 ] &&
		reads $tracing/events/enable 0
}
check "all events off, likewise" all_off
check "the text is as before" state_is off
run "echo >$tracing/trace"
unrecorded() { ! recorded sched_switch; }
check "nothing is recorded any more" unrecorded

run "echo 1 >$tracing/events/irq/enable"
ask sched event on 'sched:sched_sw*'
some() {
	holds sched '.matched == .changed and .matched > 0' && reads $tracing/events/irq/enable 1 &&
		[ "$(run "grep ^sched $tracing/set_event | sort")" = \
			"$(run "cd $tracing/events; ls -d sched/sched_sw* | sed s,/,:, | sort")" ]
}
check "a glob switches those that match, no others" some
ask sched event on sched
check "a system alone is all of its events" reads $tracing/events/sched/enable 1
ask sched event off '*:*'
check "those that the guest had on go off as well" reads $tracing/events/enable 0
ask sched event on 'no_such:*' 2>/dev/null
check "no event that matches: nothing happens" holds sched ".matched == 0 and $nothing"

# Several changes at once.
ask queue queue add key on sched_schedstats event on 'sched:*'
ask queue queue add toggle 'file init/* +p'
ask queue queue commit
all_three() {
	holds queue ".changed > 2 and $few_pauses" && is sched_schedstats true &&
		reads $tracing/events/sched/enable 1 &&
		[ "$(run "grep -c '^init/.* =p ' /proc/dynamic_debug/control")" -gt 0 ]
}
check "a queue of a key, events and a query is one request" all_three
ask queue queue commit key off sched_schedstats key on no_such_key event off 'sched:*'
partly() {
	holds queue '.error.data | .errno == 2 and .bad_query == 1' && is sched_schedstats false &&
		reads $tracing/events/sched/enable 0
}
check "one that is refused does not stop the others" partly

# Modules that come and go meanwhile.
churn() {
	run "(i=0; while [ \$i -lt 40 ]; do $load; $unload; i=\$((i+1)); done; touch /tmp/churned) >/dev/null 2>&1 &"
	local n=0
	until run "[ -f /tmp/churned ]"; do
		list churn '*:*' || return 1
		ask churn queue commit key on x_tables:xt_tee_enabled event on 'sched:*' 2>/dev/null
		ask churn queue commit key off x_tables:xt_tee_enabled event off 'sched:*' 2>/dev/null
		n=$((n + 1))
	done
	echo "$n times"
	[ $n -gt 3 ] && reads $tracing/events/sched/enable 0
}
check "requests while modules load and unload" churn
check "no warning" quiet
finish
