#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_missing.sh SERIES VCPUS - CASES 6: a stock Debian kernel that lacks, as far as anybody
# can tell (tests/modules/hide), one of the functions that hvpoke.ko looks up. Without a needed
# one the module says which and why and does not load; without an optional one it loads and
# says what is not covered. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh

series=$1 vcpus=$2
export HVPOKE_QUIET=1

# Each a name, and what the log says of it.
needed=(
	"ddebug_exec_queries|this kernel has no function ddebug_exec_queries (inlined, renamed by the compiler or gone); without it a dynamic debug request cannot be diverted"
	"arch_jump_label_transform_queue|this kernel has no function arch_jump_label_transform_queue"
	"arch_jump_label_transform_apply|this kernel has no function arch_jump_label_transform_apply"
	"__module_address|this kernel has no function __module_address"
	"text_mutex|this kernel does not show text_mutex; without it"
	"init_mm|this kernel does not show init_mm; without it"
	"_stext|this kernel does not tell where its text begins and ends"
)
decoys=(ddebug_exec_queries __module_address)
optional=(
	"ddebug_tables|not covered: negated terms in the host's queries"
	"__start___jump_table|not covered: static keys in the host's requests"
	"modules|not covered: static keys of modules in the host's requests"
	"trace_event_enable_disable|not covered: trace events in the host's requests"
)
# Looked up when the scope is to be a wider one.
gate=(text_poke_queue text_poke_finish)
plan $((3 + 3 * ${#needed[@]} + 2 * ${#decoys[@]} + 3 * ${#optional[@]} + 4 * ${#gate[@]} + 5))
command -v qemu-system-x86_64 >/dev/null || skip_rest "qemu-system-x86_64 is not installed"
stock_test_begin "check-missing-$series"
trap stock_test_end EXIT
stock_had "$series" || skip_rest "$stock_why"

# hide_build RELEASE - tests/modules/hide as a module of that kernel.
hide_build() {
	local out=$PWD/build/modules/$1/hide
	mkdir -p "$out" && cp tests/modules/hide/{hide.c,Kbuild} "$out" &&
		make -C "/lib/modules/$1/build" M="$out" modules >"$out/log" 2>&1
}
hide_build "$stock_release" || skip_rest "hide.ko does not build, see build/modules/$stock_release/hide/log"
guest_files=("build/modules/$stock_release/hide/hide.ko")
qemu_prepare "$series" || die "the guest could not be prepared"

host_start "$sockets" || die "hvpoked does not start"
# shellcheck disable=SC2046 # several words are wanted
qemu_start missing "$vcpus" "$sockets" "no_timer_check" $(qemu_device "$sockets")
check "boots with $vcpus vCPUs" guest_wait_shell 300

loads() { run "insmod /hvpoke.ko"; }
unloads() { run "rmmod hvpoke"; }
loaded() { run "grep -q '^hvpoke ' /proc/modules"; }
# hide NAME [DECOY] - and an empty log.
hide() { run "insmod /hide.ko symbol=$1 decoy=${2:-0} && dmesg -c >/dev/null"; }
# Whether hvpoke.ko had loaded or not.
show() { run "rmmod hvpoke 2>/dev/null; rmmod hide"; }
is_refused() { ! loads && ! loaded; }
# A few sites: here nobody asks how long they take.
ask() { run "echo 'file kobject.c $1' >/proc/dynamic_debug/control"; }
patches() { ask +p && last_by_host && ask -p && last_by_host; }
patches_natively() { ask +p && ask -p; }
wide() { run "echo all >/sys/module/hvpoke/parameters/scope"; }
not_wide() { ! wide && run "grep -x dyndbg /sys/module/hvpoke/parameters/scope"; }

check "with all there it loads" loads
check "and unloads" unloads
for entry in "${needed[@]}"; do
	name=${entry%%|*}
	hide "$name" >/dev/null
	check "without $name it does not load" is_refused
	check "and says which and why" logged "hvpoke: ${entry#*|}"
	show >/dev/null
	check "requests go the kernel's own way" patches_natively
done
for name in "${decoys[@]}"; do
	hide "$name" 1 >/dev/null
	check "a module's function that is called $name is not taken for it" is_refused
	check "and the log says so" logged "hvpoke: this kernel has no function $name"
	show >/dev/null
done
for entry in "${optional[@]}"; do
	name=${entry%%|*}
	hide "$name" >/dev/null
	check "without $name it loads" loads
	check "and says what is not covered" logged "hvpoke: ${entry#*|}"
	check "what is covered works" patches
	show >/dev/null
done
for name in "${gate[@]}"; do
	hide "$name" >/dev/null
	check "without $name it loads" loads
	check "but takes no wider scope" not_wide
	check "and the log says why" logged "hvpoke: this kernel has neither $name nor "
	check "dynamic debug works" patches
	show >/dev/null
done
check "in the end it loads" loads
check "and works" patches
check "and takes the wider scope" wide
no_decoy() { ! grep -a "the decoy was called" "$guest_log"; }
check "no decoy was ever called" no_decoy
check "no warning" quiet
finish
