#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-gate.sh SERIES VCPUS - what it costs a stock Debian kernel under QEMU, emulated, to
# patch its text, its own way and through hvpoke, on one guest: JSON. The figures of both
# are of the same action, the second time it was done.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. scripts/gate-costs.sh

export HVPOKE_QUIET=1
work=$(mktemp -d)
mkdir "$work/cost"
chmod 755 "$work"
export HVPOKE_RUNTIME_DIR=$work/vms
trap 'guest_stop; host_stop; rm -rf "$work"' EXIT

stock_had "$1" || die "$stock_why"
guest_files=(tests/qemu/actions.sh)
qemu_prepare "$1" >&2 || die "the guest could not be prepared"
host_start "$work" || die "hvpoked does not start"
# shellcheck disable=SC2046 # several words are wanted
qemu_start bench "$2" "$work" "" $(qemu_device "$work")
guest_wait_shell 180 >&2 || die "Linux $stock_release does not boot"
run "insmod /hvpoke.ko" >&2 && wait_until 30 guest_has_agent || die "the agent does not register"
action kprobes make >&2 || die "no 256 kprobes"

# measure WHO
measure() {
	local what value
	for what in "${gate_actions[@]}"; do
		action "$what" on && action "$what" off || return 1
		for value in on off; do
			cost "$work/cost" "$1" "$what" "$value" || return 1
		done
	done
}
measure native >&2 || die "the kernel's own way failed"
"$hvpoke" scope bench all >/dev/null || die "the agent does not take the scope"
measure hvpoke >&2 || die "hvpoke's way failed"
cost "$work/cost" idle schedstats off

jq -s --arg kernel "$stock_release" --argjson vcpus "$2" --arg table "$(cost_table "$work/cost")" \
	'{kernel: $kernel, vcpus: $vcpus, accelerator: "tcg", costs: ., table: $table}' \
	"$work"/cost/*
