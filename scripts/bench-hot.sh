#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-hot.sh - sites are switched while every vCPU runs through some of them: how long a
# request takes, what INT3s are hit, and what it costs the running code. A small guest
# with 2 vCPUs under hvpoke-vmm; JSON. See docs/comparison.md, row 2.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/guest.sh

export HVPOKE_QUIET=1
case $(kvm_backend) in
pvm | unknown) ;;
*) die "the small guest is for KVM back ends that emulate guest kernel mode" ;;
esac
work=$(mktemp -d)
export HVPOKE_RUNTIME_DIR=$work
trap 'guest_stop >/dev/null 2>&1; rm -rf "$work"' EXIT
guest_prepare "$(kvm_backend)" >&2 || die "the guest could not be prepared"
guest_start bench-hot 2 "hvpoke_busy.spin=1 hvpoke_busy.hot=2 hvpoke_busy.tick=1"
guest_wait 600 && guest_wait_busy 120 || die "the guest did not come up"

# The guest's own count, once a second: "rounds us".
counts() { sed -n 's/.*hvpoke_busy: \([0-9]*\) rounds at \([0-9]*\) us.*/\1 \2/p' "$guest_log"; }
count_after() { wait_until 60 eval "[ \$(counts | wc -l) -gt $1 ]"; counts | tail -n 1; }
ask() { "$hvpoke" toggle --json bench-hot "$@" >>"$work/$phase.json" || die "a request failed"; }

# during PHASE COMMAND... - what the running code did meanwhile, and what the requests cost.
during() {
	local before after
	phase=$1
	: >"$work/$phase.json"
	before=$(count_after "$(counts | wc -l)")
	"${@:2}"
	after=$(count_after "$(counts | wc -l)")
	jq -s --arg phase "$phase" --argjson rounds $((${after% *} - ${before% *})) \
		--argjson us $((${after#* } - ${before#* })) '{
		phase: $phase, requests: length, sites: (map(.sites) | add),
		request_us: (if length > 0 then (map(.guest_us) | add) / length else null end),
		int3: (map(.int3) | add), ipis: (map(.ipis) | add), pauses: (map(.pauses) | add),
		# Two vCPUs, eight sites a round.
		ns_a_site: ($us * 1000 * 2 / ($rounds * 8))}' "$work/$phase.json"
}
pairs() {
	local i
	for ((i = 0; i < $1; i++)); do ask "${@:2}" '+p' && ask "${@:2}" '-p'; done
}
ask_clean() { "$hvpoke" toggle bench-hot '=_' >/dev/null; }
ask_clean
{
	during idle sleep 10
	during native pairs 1 --native
	during hvpoke pairs 5
} | jq -s .
