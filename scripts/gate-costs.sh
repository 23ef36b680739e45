# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the tests and the benchmark (after qemu-guest.sh): what patching costs a guest
# that has tests/qemu/actions.sh in its root, by whoever does it.

gate_actions=(schedstats bpf_stats events kprobes function)

run() { guest_run "${seconds:-180}" "$@"; }
action() { seconds=300 run "/actions.sh $1 $2"; }
# Function-call interrupts of all CPUs since boot.
ipis() { run "awk '/CAL:/ { for (i = 2; \$i ~ /^[0-9]+\$/; i++) n += \$i; print n }' /proc/interrupts"; }
pauses() { "$hvpoke" stats --json "$guest_name" | jq .pauses; }

# gate FIELD - of what was patched outside of requests.
gate() { run "sed -n 's/^$1 //p' /sys/module/hvpoke/parameters/gate"; }

# cost DIR WHO ACTION VALUE - do it; what it costs goes to DIR/WHO.ACTION.VALUE as JSON.
cost() {
	local ipis pauses code begin
	ipis=$(ipis) pauses=$(pauses) begin=$(date +%s%N)
	action "$3" "$4"
	code=$?
	jq -n --arg who "$2" --arg action "$3" --arg value "$4" --argjson ipis $(($(ipis) - ipis)) \
		--argjson pauses $(($(pauses) - pauses)) \
		--argjson ms $((($(date +%s%N) - begin) / 1000000)) '$ARGS.named' >"$1/$2.$3.$4"
	return $code
}
cost_of() { jq ".$2" "$1"; }

# cost_table DIR - of what was measured there.
cost_table() {
	jq -rs '(map(select(.who == "idle"))[0].ipis) as $idle |
		group_by(.who) | map({(.[0].who): .}) | add |
		["action", "natively", "ms", "hvpoke", "pauses", "ms"],
		(.native[] as $n | .hvpoke[] | select(.action == $n.action and .value == $n.value) |
		 [.action + " " + .value, $n.ipis, $n.ms, .ipis, .pauses, .ms]),
		["(nothing)", $idle] | @tsv' "$1"/{native,hvpoke,idle}.*.* |
		column -t -s $'\t' -R 2,3,4,5,6
}
