# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the tests of a Linux guest (after guest.sh and tap.sh): one VM, its
# requests from the host's command line, and its memory seen from outside.

# test_begin NAME - of the VM, and of the folder below build/ for what it leaves.
test_begin() {
	name=$1
	work=build/$1
	mkdir -p "$work"
	HVPOKE_RUNTIME_DIR=$(mktemp -d)
	export HVPOKE_RUNTIME_DIR HVPOKE_QUIET=1
	trap 'guest_stop >/dev/null 2>&1; rm -rf "$HVPOKE_RUNTIME_DIR"' EXIT
}

needs_kvm() { [ "$(kvm_backend)" != none ] || skip_rest "/dev/kvm is missing or not writable"; }

# check_int3 DESCRIPTION COMMAND... - a check of what the VMM counts of the guest's INT3s.
check_int3() {
	if grep -q "QEMU TCG CPU" /proc/cpuinfo; then
		skip "$1" "QEMU's SVM does not let a #BP of int3 be intercepted"
	else
		check "$@"
	fi
}

# toggle OUT ARGS... - a host request; its JSON goes to $work/OUT.json.
toggle() {
	local out=$1
	shift
	"$hvpoke" toggle --json --timeout 900 "$name" "$@" >"$work/$out.json"
}

# field OUT NAME - of that JSON.
field() { jq -r ".$2" "$work/$1.json"; }

# holds OUT EXPRESSION - is what the jq expression says true of that JSON?
holds() { jq -e "$2" "$work/$1.json" >/dev/null || { cat "$work/$1.json" >&2; false; }; }

# The guest's sites as tests/linux/sites.c sees them.
state() { build/release/tests/linux/sites "$guest_vmlinux" "$guest_pid" "$@"; }

# text OUT - all of the guest's kernel text into $work/OUT.text.
text() {
	build/release/tests/linux/sites --text "$work/$1.text" "$guest_vmlinux" "$guest_pid" \
		>/dev/null
}
