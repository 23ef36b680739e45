#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_linux.sh VCPUS - a Linux guest under hvpoke-vmm, toggled from the host
# CLI, natively and through hvpoke. After each step tests/linux/sites.c, which
# shares no code with hvpoke, reads the guest's text, keys and flags from the
# outside. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/guest.sh
. tests/linux/tap.sh
. tests/linux/vm.sh

vcpus=$1
test_begin check-linux-"$vcpus"

plan 40
needs_kvm
guest_prepare small || die "the guest kernel does not build"
guest_start "$name" "$vcpus" "$guest_busy hvpoke_busy.tick=1"
check "boots with $vcpus vCPUs and the agent registers" guest_wait 900
check "all vCPUs are up" grep -q "Brought up 1 node, $vcpus CPUs" "$guest_log"
wait_until 60 grep -q "CPUs busy" "$guest_log"
check "all vCPUs are busy" grep -q "$vcpus CPUs busy" "$guest_log"

text off0
check "before any request every site is a NOP" state --expect all-off

# The kernel's own way, for what it writes and what it costs.
toggle native-on --native '+p'
check "native +p: the kernel patches, no batch reaches the host" \
	holds native-on '.batches == 0 and .pauses == 0 and .sites > 600 and .native_sites == .sites'
check "native +p: every site is its JMP, keys and flags agree" state --expect all-on
text native-on
toggle native-off --native '-p'
check_int3 "native: CPUs that ran through the sites met INT3s" \
	[ $(($(field native-on int3) + $(field native-off int3))) -gt 0 ]
check "native -p: every site is a NOP again" state --expect all-off

# The same through hvpoke.
toggle on '+p'
check "+p: one batch, one pause, no fallback, nothing patched by the guest" \
	holds on '.batches == 1 and .pauses == 1 and .fallback == null and .native_sites == 0'
check "+p: as many descriptors and sites as natively" \
	[ "$(field on matched) $(field on changed) $(field on sites)" = \
	"$(field native-on matched) $(field native-on changed) $(field native-on sites)" ]
check "+p: every site is its JMP, keys and flags agree" state --expect all-on
text on
check "+p: the whole kernel text is what the native way wrote" \
	cmp "$work/native-on.text" "$work/on.text"
check_int3 "+p: no INT3 was hit" holds on '.int3 == 0'
check "messages of an enabled site appear" wait_for_new_line "$guest_log" "hvpoke_busy: tick" 30
toggle off '-p'
check "-p: every site is a NOP again" state --expect all-off
text off
check "-p: the whole kernel text is as it was at first" cmp "$work/off0.text" "$work/off.text"
check "messages of a disabled site have stopped" no_new_line "$guest_log" "hvpoke_busy: tick" 5
check "hvpoke's pair costs the guest fewer interrupts than a fifth of the native pair" \
	[ $((($(field on ipis) + $(field off ipis)) * 5)) -lt \
	$(($(field native-on ipis) + $(field native-off ipis))) ]

# Queries.
toggle neg '!module usb* +p'
check "!module: just the sites of other modules are on" state --expect on-if '!module usb*'
toggle several '-p; module usbcore +p ; module usbcore func usb_* -p'
check "several queries in one request: one pause, the last word counts" \
	holds several '.pauses == 1 and .batches == 1'
check "several queries: just what is left of usbcore is on" \
	state --expect on-if 'module usbcore' '!func usb_*'
toggle none 'module no_such_module +p'
check "a query that matches nothing: success, 0 matched, no pause needed" \
	holds none '.matched == 0 and .changed == 0 and .sites == 0'
"$hvpoke" toggle "$name" 'modul usb* +p' >/dev/null 2>"$work/bad.txt"
check "a malformed query is refused with its word and column" \
	grep -q 'column 1' "$work/bad.txt"
"$hvpoke" toggle "$name" '=_' >/dev/null
check "=_ clears all" state --expect all-off

# A request of the guest's own: one write of two queries, as to the control file.
"$hvpoke" stats --json "$name" >"$work/before.json"
asked=$(lines_of "$guest_log" "hvpoke_busy: asked")
"$hvpoke" toggle "$name" 'func busy_ask +t; func hvp_result_report +p' >/dev/null
asks() { [ "$(lines_of "$guest_log" "hvpoke_busy: asked")" -gt "$asked" ]; }
check "the guest asks for something itself" wait_until 60 asks
"$hvpoke" stats --json "$name" >"$work/after.json"
# One batch for the host's request that set it off, one for the guest's.
check "its two queries were one batch and one pause" \
	[ "$(($(field after batches) - $(field before batches))) $(($(field after pauses) - $(field before pauses)))" = "2 2" ]
check "it says what it cost" \
	grep -q 'request of the guest: .* 0 the kernel.s own way, 1 batches' "$guest_log"
"$hvpoke" toggle "$name" 'func hvp_result_report -p' >/dev/null
check "just what it asked for is on" state --expect on-if 'module usbcore'

# Other scopes. A key that the kernel flips by itself all the time must not pause the guest.
"$hvpoke" scope "$name" static_keys >/dev/null
"$hvpoke" key --json "$name" on busy_key >"$work/key.json"
check "scope static_keys: a key is switched in one pause" \
	holds key '.pauses == 1 and .changed == 1 and .native_sites == 0 and .fallback == null'
"$hvpoke" key --json "$name" off busy_key >"$work/key-off.json"
check "and off again" holds key-off '.pauses == 1 and .changed == 1'
"$hvpoke" stats --json "$name" >"$work/before.json"
"$hvpoke" toggle "$name" 'func busy_flip +t' >/dev/null
noisy() {
	"$hvpoke" idle "$name" 10 >/dev/null # the agent tells with the answer to a request
	"$hvpoke" stats --json "$name" >"$work/after.json"
	[ "$(field after noisy)" -gt 60 ]
}
check "a key that the kernel flips by itself is left to it, and counted" wait_until 120 noisy
check "most of its flips pause nothing" \
	[ $(($(field after pauses) - $(field before pauses))) -lt $(field after noisy) ]
"$hvpoke" toggle "$name" 'func busy_flip -t' >/dev/null
right() { ! grep -q "flipped 10 times" "$guest_log"; }
check "the key was always what it was flipped to" right
"$hvpoke" scope "$name" all >"$work/scope.txt"
toggle all '+p'
check "scope all: dynamic debug as before" \
	holds all '.batches == 1 and .pauses == 1 and .fallback == null and .native_sites == 0'
"$hvpoke" scope "$name" dyndbg >/dev/null
"$hvpoke" toggle "$name" '=_' >/dev/null
check "scope dyndbg: =_ clears all" state --expect all-off

# A batch is put back: the kernel believes that its sites are on, and does not stumble.
toggle on '+p'
"$hvpoke" log --json --count 1000 "$name" >"$work/log.json"
id=$(jq -s 'map(select(.kind == "batch" and .method == "toggle" and .status == "OK")) | last | .id' \
	"$work/log.json")
"$hvpoke" undo --json "$name" "$id" >"$work/undo.json"
check "undo of a +p: all its sites, in one pause" \
	holds undo ".undone == $id and .sites == $(field on sites) and .pauses == 1"
text undone
check "the whole kernel text is as it was at first" cmp "$work/off0.text" "$work/undone.text"
toggle off '-p'
check "-p: nothing is left to be written, and nothing goes the kernel's own way" \
	holds off '.changed > 600 and .sites == 0 and .native_sites == 0 and .fallback == null'
check "then flags and keys agree with the text again" state --expect all-off

# The way out.
guest_stop
check "quit ends the VMM with code 0" [ $? = 0 ]
finish
