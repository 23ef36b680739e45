#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_undo.sh SERIES VCPUS - what is recorded of a stock Debian kernel under QEMU, emulated,
# with hvpoked for its host, and batches put back: the text is as before them, and the
# kernel, which knows nothing of it, does not stumble over it, whoever patches next and by
# whichever way. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh

series=$1 vcpus=$2
export HVPOKE_QUIET=1
plan 36
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"

stock_test_begin "check-undo-$series-$vcpus"
trap stock_test_end EXIT
stock_test_prepare "$series"

# text_is NAME - is the text as it was when the state was saved as NAME?
text_is() { state now && run "cmp /tmp/now.text /tmp/$1.text"; }
# ask OUT COMMAND ARGS... - from the host; its JSON goes to $work/OUT.json.
ask() {
	local out=$work/$1.json command=$2
	shift 2
	"$hvpoke" "$command" --json "$guest_name" "$@" >"$out"
}
one_batch='.batches == 1 and .pauses == 1 and .native_sites == 0 and .fallback == null'
# last_id - of the last batch that was applied for a client.
last_id() {
	"$hvpoke" log --json --count 1000 "$guest_name" |
		jq -s 'map(select(.kind == "batch" and .by == "client" and .status == "OK")) | last | .id'
}
# undone OUT ID SITES
undone() {
	ask "$1" undo "$2" && holds "$1" ".undone == $2 and .sites == $3 and .pauses == 1"
}
# refused OUT CODE ID
refused() { ! ask "$1" undo "$3" 2>/dev/null && holds "$1" ".error.code == \"$2\""; }
sysctl_reads() { [ "$(run "cat /proc/sys/kernel/sched_schedstats")" = "$1" ]; }

host_start "$sockets" || die "hvpoked does not start"
qemu_start undo "$vcpus" "$sockets" "dyndbg=-p" $(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 300
run "insmod /hvpoke.ko"
check "the module loads and the agent registers" wait_until 60 guest_has_agent

# Debug sites.
toggle clean =_
state off
toggle on 'file kernel/* +p; file drivers/* +p; file lib/* +p'
check "+p: one batch, one pause" holds on "$one_batch and .sites > 100"
state on
nr=$(field on sites)
id=$(last_id)
"$hvpoke" log --json "$guest_name" >"$work/log.json"
check "the log has the batch, its pause, and who asked for what" jq -es \
	"map(select(.id == $id)) | .[0] | .sites == $nr and .written == $nr and .pause_us > 0 and .method == \"toggle\" and .uid == $(id -u) and (.what | startswith(\"file kernel\"))" "$work/log.json"
check "and the request" jq -es \
	"map(select(.kind == \"request\")) | last | .ended == \"done\" and .sites == $nr and .batches == 1" "$work/log.json"
check "people can read it" shows "file kernel/* +p" "$hvpoke" log "$guest_name"
check "undo: one batch, one pause" undone undo "$id" "$nr"
check "the text is as before the batch" text_is off
check "once more: the sites do not hold what it wrote" refused again changed "$id"
check "nothing has changed by that" text_is off

# The kernel believes that the sites are on.
toggle native-off --native '-p'
check "natively -p: the kernel finds nothing to patch, and no fault" \
	holds native-off '.changed > 100 and .sites == 0'
check "and all is as before the batch, flags and keys too" state_is off
toggle native-on --native 'file kernel/* +p; file drivers/* +p; file lib/* +p'
check "natively +p: as it was with the batch" state_is on
toggle off '-p'
toggle on 'file kernel/* +p; file drivers/* +p; file lib/* +p'
id=$(last_id)
check "on, and put back" undone undo "$id" "$nr"
redo=$(field undo id)
toggle off '-p'
check "-p through hvpoke: nothing to be written" holds off '.changed > 100 and .sites == 0 and .fallback == null'
check "and all is as before" state_is off
toggle on 'file kernel/* +p; file drivers/* +p; file lib/* +p'
check "+p again: all is on" state_is on
check "the undo itself cannot be put back now, its text is another" refused redo changed "$redo"
check "on, and put back once more" undone undo "$(last_id)" "$nr"
check "an undo can be put back" undone redo "$(field undo id)" "$nr"
check "then all is on" state_is on
toggle clean =_
check "=_ clears all" state_is off

# A key whose flip never comes to the agent: the guest's own sysctl.
ask key key on sched_schedstats
check "a key goes on" holds key "$one_batch"
check "and its text is put back" undone undo "$(last_id)" "$(field key sites)"
run "echo 0 >/proc/sys/kernel/sched_schedstats"
check "the guest switches it off itself" sysctl_reads 0
check "the text is as before" text_is off
run "echo 1 >/proc/sys/kernel/sched_schedstats; echo 0 >/proc/sys/kernel/sched_schedstats"
check "on and off again: as before" text_is off

# What is not put back.
refuses_others() {
	ask scope scope all
	run "mkdir -p /sys/kernel/tracing; mount -t tracefs tracefs /sys/kernel/tracing"
	ask event event on 'sched:sched_switch' && holds event '.batches >= 1' || return
	local id
	for id in $("$hvpoke" log --json --count 1000 "$guest_name" |
		jq 'select(.kind == "batch" and .method == "event" and .status == "OK") | .id'); do
		ask other undo "$id" 2>/dev/null && return 1
		holds other '.error.code == "no-labels"' && other=yes
	done
	ask event event off 'sched:sched_switch'
	ask scope scope dyndbg
	[ "${other:-}" = yes ]
}
check "static calls are not put back" refuses_others
loaded_again() {
	run "insmod /usb-common.ko && insmod /usbcore.ko" &&
		toggle module 'module usbcore +p' && holds module "$one_batch" || return
	local id
	id=$(last_id)
	run "rmmod usbcore && insmod /usbcore.ko dyndbg=+p" || return
	refused gone gone "$id" && toggle module 'module usbcore -p' && holds module '.sites > 10' &&
		run "rmmod usbcore usb-common"
}
check "nor what was written to a module that was loaded again" loaded_again
check "nor a batch that never was" refused never no-batch 123456

# A former hvpoked's batches are recorded, but not kept.
id=$(last_id)
host_stop
host_start "$sockets"
check "hvpoked is started again, and the agent comes back" wait_until 60 guest_has_agent
check "its log goes on" jq -es "map(.id) | max >= $id" \
	<("$hvpoke" log --json --count 1000 "$guest_name")
check "but what was written is not kept" refused former no-batch "$id"

# The agent goes: from then on nobody is between the kernel and its sites.
toggle on 'file kernel/* +p; file drivers/* +p; file lib/* +p'
undone undo "$(last_id)" "$nr"
run "rmmod hvpoke"
state left
check "before it goes, all that was put back is done again" \
	logged "$nr sites that the host had put back are as the kernel expects them"
control '-p'
control 'file kernel/* +p; file drivers/* +p; file lib/* +p'
check "so the kernel's own way finds what it expects, and leaves the same" state_is left
check "no warning" quiet
finish
