#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak.sh - what must hold for long: a million batches, and a day of requests. Prints the
# figures and writes build/soak.json; ends with 0 if nothing has failed or grown.
#   BATCHES (1000000)   on 4 vCPUs that run the sites
#   HOURS (24)          of the simulated day
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/lib.sh

bin=build/release/tests/soak
work=build/soak
mkdir -p "$work"
export BATCHES=${BATCHES:-1000000} HOURS=${HOURS:-24} CMOCKA_MESSAGE_OUTPUT=TAP
failed=0

echo "machine: $(machine)"
echo "load:    $(cut -d ' ' -f 1-3 /proc/loadavg)"
if [ "$(kvm_backend)" = none ]; then
	echo "no /dev/kvm: vCPUs are threads that run the guest's code in user mode (tests/kvm/played)"
	played=$PWD/build/release/tests/kvm/libplayedkvm.so
fi

# soak NAME - its figures as it prints them, and its JSON.
soak() {
	local started=$SECONDS
	rm -f "$work/$1.json"
	echo
	echo "$1"
	env ${played:+LD_PRELOAD=$played} SOAK_JSON="$work/$1.json" "$bin/$1" 2>&1 | tee "$work/$1.log" |
		sed -n '/^# ok\|^# not ok/d; s/^# /  /p; s/^not ok/FAILED/p'
	if [ "${PIPESTATUS[0]}" != 0 ] || grep -q '^not ok.*SKIP\|^guest:' "$work/$1.log"; then
		echo "  FAILED: see $work/$1.log"
		failed=1
	fi
	[ -s "$work/$1.json" ] || echo null >"$work/$1.json"
	echo "  $((SECONDS - started)) s"
}

names=()
for soak in "$bin"/*; do
	[[ -x $soak && -f $soak ]] && names+=("${soak##*/}")
done
for name in "${names[@]}"; do
	soak "$name"
done
for name in "${names[@]}"; do
	jq --arg name "$name" '{($name): .}' "$work/$name.json"
done | jq -s --arg machine "$(machine)" 'add + {machine: $machine}' >build/soak.json
echo
echo "written: build/soak.json"
exit $failed
