#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench.sh - the figures: prints tables, writes build/bench.json. Nothing here
# passes or fails by time, except where docs/specification.md promises a ratio
# or a bound; those are printed with what was promised.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

bin=build/release/tests/bench
work=build/bench
mkdir -p "$work"

echo "machine: $(machine)"
echo "load:    $(cut -d ' ' -f 1-3 /proc/loadavg) (an idle machine gives the figures meant here)"

# measure NAME PROGRAM... - its JSON, or null where it cannot run.
measure() {
	local name=$1
	shift
	progress "measuring $name"
	if ! "$@" >"$work/$name.json" 2>"$work/$name.log"; then
		progress_end
		echo "$name: not measured: $(tail -n 1 "$work/$name.log")"
		echo null >"$work/$name.json"
	fi
	progress_end
}

if [ "$(kvm_backend)" = none ]; then
	echo "pause, vmm_cost: not measured: /dev/kvm is missing or not writable"
	echo null | tee "$work/pause.json" >"$work/vmm_cost.json"
else
	measure pause "$bin/pause"
	measure vmm_cost "$bin/vmm_cost"
fi
measure sort "$bin/sort"

# start_small N - CPU time until the first guest instruction, with the demo's kernel
# to load: the median of N starts, in microseconds.
start_small() {
	local kernel i
	kernel=$(scripts/build-kernel.sh) || return 1
	HVPOKE_RUNTIME_DIR=$(mktemp -d)
	export HVPOKE_RUNTIME_DIR
	for ((i = 0; i < $1; i++)); do
		build/release/hvpoke-vmm --name bench --vcpus 2 --kernel "$kernel" \
			--initrd "${kernel%/*}/initramfs.cpio" --serial null &
		for _ in {1..100}; do
			build/release/hvpoke stats --json bench 2>/dev/null |
				jq -e '.start_cpu_us | select(. > 0)' && break
			sleep 0.05
		done
		build/release/hvpoke quit bench >/dev/null
		wait $!
	done | jq -s 'sort | .[(length / 2) | floor]'
	rm -rf "$HVPOKE_RUNTIME_DIR"
}
if [ "$(kvm_backend)" = pvm ]; then
	measure start_small start_small 9
else
	echo null >"$work/start_small.json"
fi

jq -n --arg machine "$(machine)" --arg backend "$(kvm_backend)" \
	--slurpfile pause "$work/pause.json" --slurpfile cost "$work/vmm_cost.json" \
	--slurpfile small "$work/start_small.json" --slurpfile sort "$work/sort.json" '{
		machine: $machine, kvm_backend: $backend,
		pause: $pause[0], vmm_cost: $cost[0], sort: $sort[0],
		start_cpu_us_small_kernel: $small[0],
		pause_ratio_1905_to_0_2_vcpus: ([$pause[0][]? | select(.vcpus == 2)] |
			(map(select(.sites == 1905))[0].pause_us_p50) as $many |
			(map(select(.sites == 0))[0].pause_us_p50) as $none |
			if $many and $none then $many / $none else null end)
	}' >build/bench.json || die "the figures could not be put together, see $work"

echo
echo "One pause: every vCPU but the caller spins in the guest; microseconds from the"
echo "first kick until the last vCPU was let go. More vCPUs than cores take turns."
jq -r '["vCPUs", "sites", "pauses", "p50", "p99", "kick", "apply", "wake"],
	(.pause[]? | [.vcpus, .sites, .n, .pause_us_p50, .pause_us_p99, .kick_us_p50,
		.apply_us_p50, .wake_us_p50] | map(. * 10 | round / 10)) | @tsv' build/bench.json |
	column -t -s $'\t' -R 1,2,3,4,5,6,7,8
echo
jq -r '"1,905 sites on 2 vCPUs cost \(.pause_ratio_1905_to_0_2_vcpus // "?" |
	if type == "number" then . * 100 | round / 100 else . end) times the pause for none (promised: at most 2.5)"' \
	build/bench.json
jq -r '.vmm_cost | if . == null then empty else
	"hvpoke-vmm beside its guest'"'"'s memory: \(.resident_kib) KiB resident (promised: at most 4096)\n" +
	"CPU from start to the first guest instruction: \(.start_cpu_us / 10 | round / 100) ms for a kernel of one page"
	end' build/bench.json
jq -r '.start_cpu_us_small_kernel | if . == null then empty else
	"  and \(. / 10 | round / 100) ms with the demo'"'"'s kernel to copy (promised: at most 10)" end' build/bench.json
jq -r '.sort | if . == null then empty else
	"sorting \(.entries) entries: radix \(.radix_us | round) us, heap sort \(.heap_us | round) us: \(.ratio * 10 | round / 10) times faster"
	end' build/bench.json
echo "figures: build/bench.json"
