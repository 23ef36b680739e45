#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# actions.sh WHAT on|off - runs in the guest: something that has the kernel patch its text.
#   schedstats, bpf_stats   a static key each
#   events                  all trace events
#   function                the function tracer, on every function there is
#   kprobes                 256 kprobes behind a function's first instruction; made by "kprobes make"
set -e
tracing=/sys/kernel/tracing
[ -f $tracing/events/enable ] || mount -t tracefs tracefs $tracing
[ "$2" = on ] && value=1 || value=0

# Of functions that do not run all the time. Not every address takes one.
make_probes() {
	made=0
	for f in $(awk '$2 ~ /^[tT]$/ && $3 ~ /^(ext4|vfs|tcp|udp|dev|pci|acpi|netlink|inet)_/ &&
			$3 !~ /\./ { print $3 }' /proc/kallsyms | sort -u); do
		echo "p:hvp_$made $f+5" >>$tracing/kprobe_events 2>/dev/null || continue
		made=$((made + 1))
		[ $made -lt 256 ] || return 0
	done
	return 1
}

case $1 in
schedstats) echo $value >/proc/sys/kernel/sched_schedstats ;;
bpf_stats) echo $value >/proc/sys/kernel/bpf_stats_enabled ;;
events) echo $value >$tracing/events/enable ;;
function) [ $value = 1 ] && tracer=function || tracer=nop
	echo $tracer >$tracing/current_tracer ;;
kprobes)
	if [ "$2" = make ]; then
		make_probes
	else
		echo $value >$tracing/events/kprobes/enable
		# The kernel optimizes, or the other way round, some ticks later.
		sleep 1
	fi ;;
*) exit 2 ;;
esac
