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

# gap VMM ACCELERATOR COMMAND... - a row of the pause as the guest sees it; where it cannot
# be measured, the reason for that.
gap() {
	local name=gap-$1-$2
	measure "$name" "${@:3}"
	[ "$(cat "$work/$name.json")" != null ] ||
		jq -n --arg vmm "$1" --arg accelerator "$2" \
			--arg missing "$(tail -n 1 "$work/$name.log")" '$ARGS.named' >"$work/$name.json"
}

gap hvpoke-vmm kvm "$bin/gap_vmm"
gap QEMU kvm "$bin/gap_qemu" kvm
gap QEMU tcg "$bin/gap_qemu" tcg

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

if [ "$(kvm_backend)" = pvm ]; then
	measure hot scripts/bench-hot.sh
else
	echo null >"$work/hot.json"
fi

# Whoever patches the kernel's text, on stock kernels. About a minute each.
for series in 6.1 6.12 7; do
	for vcpus in 2 4; do
		measure "patching-$series-$vcpus-vcpus" scripts/bench-gate.sh "$series" "$vcpus"
	done
done

jq -n --arg machine "$(machine)" --arg backend "$(kvm_backend)" \
	--slurpfile hot "$work/hot.json" --slurpfile patching <(cat "$work"/patching-*.json) --slurpfile pause "$work/pause.json" --slurpfile cost "$work/vmm_cost.json" \
	--slurpfile small "$work/start_small.json" --slurpfile sort "$work/sort.json" \
	--slurpfile gaps <(cat "$work"/gap-{hvpoke-vmm-kvm,QEMU-kvm,QEMU-tcg}.json) '{
		machine: $machine, kvm_backend: $backend,
		pause: $pause[0], vmm_cost: $cost[0], sort: $sort[0],
		start_cpu_us_small_kernel: $small[0],
		hot: $hot[0],
		patching: ($patching | map(select(.))),
		# That it is KVM was asked; what is behind KVM is the machine'"'"'s.
		gaps: ($gaps | map(if .accelerator == "kvm" then .accelerator = "kvm-" + $backend else . end)),
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
cat <<'END'
The pause as the guest sees it: a vCPU does nothing but read its clock (the TSC), another
one sends batches. In microseconds, the largest gap between two reads: with a batch
("patched"), and in as long a time without ("quiet": what the host's scheduler does by
itself, and how often that vCPU gets to read). "host" is the pause by the host's clock.
END
jq -r '["VMM", "runs on", "vCPUs", "sites", "batches", "patched p50", "p99", "max", "quiet p50", "p99", "max",
		"host p50", "p99"],
	(.gaps[] | select(.missing | not) | [.vmm, .accelerator, .vcpus, .sites, .windows] +
		([.patched_gap_us[], .idle_gap_us[], .host_pause_us.p50, .host_pause_us.p99] |
		map(. * 10 | round / 10))) | @tsv' build/bench.json |
	column -t -s $'\t' -R 3,4,5,6,7,8,9,10,11,12,13
jq -r '.gaps[] | select(.missing) | "\(.vmm) on \(.accelerator): not measured: \(.missing)"' build/bench.json
cat <<'END'
Only rows that run on the same thing compare. tcg: QEMU translates every instruction, writes
the text through its gdbstub, and stops the guest's clock with the guest, which so sees
less than the host. kvm-pvm: KVM emulates guest kernel mode. kvm-vmx, kvm-svm: native.
END
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
cat <<'END'

All sites switched while both vCPUs of a small guest run through eight of them all the time
(hvpoke-vmm; kernel mode is emulated, and the request itself takes its share of the vCPUs):
END
jq -r '.hot | if . == null then "not measured" else
	(["", "requests", "sites", "us a request", "INT3 hits", "IPIs", "pauses", "ns a site run through"],
	 (.[] | [.phase, .requests, .sites, .request_us, .int3, .ipis, .pauses, .ns_a_site] |
	  map(if type == "number" then round else . // "-" end)) | @tsv) end' build/bench.json |
	column -t -s $'\t' -R 2,3,4,5,6,7,8
cat <<'END'

What patching costs a stock Debian kernel under QEMU (tcg): function-call interrupts of
all CPUs, whoever caused them, by the kernel's own way and through hvpoke on the same guest.
"(nothing)": as many come in a moment with nothing switched. Times are from outside,
with the shell's own, and those of an emulator.
END
jq -r '.patching[] | "\nLinux \(.kernel), \(.vcpus) vCPUs\n\(.table)"' build/bench.json
echo
echo "figures: build/bench.json"
