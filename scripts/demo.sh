#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# demo.sh - boot a Linux guest with every vCPU busy and switch all of its debug
# sites on and off from the host: the kernel's own way, then through hvpoke.
# Prints a table, writes build/demo.json.
#   VMM (hvpoke-vmm, or qemu where there is no /dev/kvm)
#   HVPOKE_DEMO_VCPUS (2)   HVPOKE_DEMO_PAIRS (5) pairs through hvpoke
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/guest.sh

vcpus=${HVPOKE_DEMO_VCPUS:-2}
pairs=${HVPOKE_DEMO_PAIRS:-5}
backend=$(kvm_backend)
case ${VMM:-} in
'' | hvpoke-vmm) ;;
qemu) backend=qemu ;;
*) die "VMM=$VMM: there are hvpoke-vmm (the default) and qemu" ;;
esac
if [ "$backend" = none ]; then
	[ "${VMM:-}" != hvpoke-vmm ] || die "/dev/kvm is missing or not writable, which hvpoke-vmm needs"
	cat <<-'END'
	/dev/kvm is missing or not writable, so this runs under QEMU, emulated. For hvpoke-vmm:
	  - on a physical x86-64 machine: switch on VT-x or AMD-V in the firmware,
	    then "modprobe kvm_intel" or "modprobe kvm_amd"
	  - in a virtual machine: let its host allow nested virtualization
	  - as another user than root: join the group "kvm"
	END
	backend=qemu
fi
[ "$backend" != qemu ] || scripts/deps.sh qemu || exit 1

echo "machine: $(machine)"
HVPOKE_RUNTIME_DIR=$(mktemp -d)
export HVPOKE_RUNTIME_DIR
work=build/demo
rm -rf "$work" build/demo.json
mkdir -p "$work"
trap 'guest_stop >/dev/null 2>&1; rm -rf "$HVPOKE_RUNTIME_DIR"' EXIT

guest_prepare "$backend" || die "the guest could not be prepared, see above"
echo "guest:   $guest_about, $vcpus vCPUs, every one busy in user mode"
guest_start demo "$vcpus" "$guest_busy"
guest_wait 600 || die "the guest did not come up"
guest_wait_busy 120 || die "the guest's load did not start"
kernel=$(guest_info | jq -r .agent.kernel)
echo "booted:  Linux $kernel, agent $(guest_info | jq -r .agent.version)"

# request OUT ARGS... - one request from the host CLI.
request() {
	local out=$work/$1.json
	shift
	progress "hvpoke $*"
	"$hvpoke" "$@" --json >"$out" || { cat "$out" >&2; die "hvpoke $* failed"; }
	progress_end
}

# What a kernel has switched on by itself would be missing from the first +p.
request clean toggle demo '=_'
request native-on toggle --native demo '+p'
request native-off toggle --native demo '-p'
for ((i = 1; i <= pairs; i++)); do
	request "hvpoke-on-$i" toggle demo '+p'
	request "hvpoke-off-$i" toggle demo '-p'
done
# As many requests, as long, that patch nothing: what is counted there is others'
# business, the way of a request into the guest and back among it.
idle_ms=$(jq -s 'map(.guest_us) | add / 1000 / length | ceil' "$work"/hvpoke-*.json)
for ((i = 1; i <= 2 * pairs; i++)); do
	request "idle-$i" idle demo "$idle_ms"
done
guest_stop || die "the guest did not end cleanly"

jq -n --arg backend "${backend/qemu/tcg}" --arg kernel "$kernel" --argjson vcpus "$vcpus" \
	--argjson pairs "$pairs" --argjson idle_ms "$idle_ms" --arg machine "$(machine)" \
	--slurpfile native <(cat "$work"/native-{on,off}.json) \
	--slurpfile poke <(for ((i = 1; i <= pairs; i++)); do cat "$work"/hvpoke-{on,off}-$i.json; done) --slurpfile idle <(cat "$work"/idle-*.json) '
	def total(f): map(f) | add; # null of nulls: not counted by this host
	# What a pair cost: the one in the middle, so that what others do now and then does
	# not become a fraction of an interrupt. The totals are there as well.
	def pair_median: [range(0; length; 2) as $i | .[$i].ipis + .[$i + 1].ipis] | sort |
		.[(length / 2) | floor];
	def median: sort | .[(length / 2) | floor];
	{
		kvm_backend: $backend, kernel: $kernel, vcpus: $vcpus,
		sites: ($native[0].sites),
		native_ipis_pair: ($native | total(.ipis)),
		hvpoke_ipis_pair: ($poke | pair_median),
		idle_ipis: ($idle | pair_median),
		native_int3: ($native | total(.int3)),
		hvpoke_int3: ($poke | total(.int3)),
		hvpoke_pauses: ($poke | total(.pauses)),
		hvpoke_requests: ($poke | length),
		pause_us_p50: ($poke | map(.pause_us) | median),
		native_guest_us: ($native | total(.guest_us)),
		hvpoke_guest_us: (($poke | total(.guest_us)) / $pairs),
		hvpoke_native_sites: ($poke | total(.native_sites)),
		hvpoke_fallbacks: ($poke | map(select(.fallback != null)) | length),
		hvpoke_sites: ($poke | map(.sites) | unique),
		hvpoke_ipis_total: ($poke | total(.ipis)), idle_ipis_total: ($idle | total(.ipis)),
		idle_ms: $idle_ms, machine: $machine
	}' >build/demo.json || die "the figures could not be put together, see $work"

row() {
	jq -rs --arg name "$1" --arg n "${3:-1}" 'def per(f): (map(f) | add) as $sum | if $sum == null then null else $sum / ($n | tonumber) end;
		def fix(d): if . == null then "-" else . * pow(10; d) | round / pow(10; d) | tostring end;
		[$name, (per(.sites) | fix(0)), (per(.ipis) | fix(1)), (per(.int3) | fix(0)),
		 (per(.pauses) | fix(0)), (per(.pause_us) | fix(1)), (per(.apply_us) | fix(1)),
		 (per(.guest_us / 1e6) | fix(3))] | @tsv' $2
}
{
	printf 'request\tsites\tIPIs\tINT3\tpauses\tpause us\tapply us\tguest s\n'
	row "+p natively" "$work/native-on.json"
	row "-p natively" "$work/native-off.json"
	row "+p hvpoke, mean of $pairs" "$(echo "$work"/hvpoke-on-*.json)" "$pairs"
	row "-p hvpoke, mean of $pairs" "$(echo "$work"/hvpoke-off-*.json)" "$pairs"
} | column -t -s $'\t' -R 2,3,4,5,6,7,8
cat <<END

IPIs: the guest's function-call interrupts on all CPUs while the request ran,
whoever caused them. The median pair through hvpoke has $(jq .hvpoke_ipis_pair build/demo.json), a pair of requests as long
that patch nothing $(jq .idle_ipis build/demo.json); in all $(jq .hvpoke_ipis_total build/demo.json) and $(jq .idle_ipis_total build/demo.json) in $pairs pairs. Text patching has no part in
either: $(jq .hvpoke_native_sites build/demo.json) sites were patched by the guest itself.
INT3: breakpoints hit in the kernel's text, the agent's own probes not counted; only
hvpoke-vmm can count them.
guest s: the request as the guest's clock saw it.
END
[ "$backend" != pvm ] || cat <<END
This machine's KVM emulates guest kernel mode, so the guest's seconds are not
those of a guest on VMX or SVM; both ways ran on the same guest in this run.
END
[ "$backend" != qemu ] || cat <<END
QEMU emulates this guest (TCG): the times are those of QEMU's translator and of its
gdbstub, by which the text is written there, not those of a guest on KVM.
END
jq -e '.hvpoke_fallbacks == 0 and .hvpoke_native_sites == 0 and (.hvpoke_int3 // 0) == 0
	and .hvpoke_pauses == .hvpoke_requests and .hvpoke_sites == [.sites]' \
	build/demo.json >/dev/null ||
	die "hvpoke did not do all of it in one pause each; see build/demo.json"
# Two CPUs have some noise of their own: a per cent of the native figure is far above it.
jq -e '.sites >= 600 and .native_ipis_pair >= 1000
	and .hvpoke_ipis_pair <= .idle_ipis + .native_ipis_pair / 100' build/demo.json >/dev/null ||
	die "the figures are not what hvpoke promises; see build/demo.json"
echo "figures: build/demo.json"
