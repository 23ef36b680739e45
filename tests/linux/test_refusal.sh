#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_refusal.sh - a host that refuses every batch (max_sites 100): the guest
# does its requests the kernel's own way, loses nothing, and says so once.
# Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/guest.sh
. tests/linux/tap.sh
. tests/linux/vm.sh

test_begin check-refusal

plan 7
needs_kvm
guest_prepare small || die "the guest kernel does not build"
guest_start "$name" 2 "" --max-sites 100
check "boots and the agent registers" guest_wait 900

toggle on '+p'
check "+p: no batch was taken, all went the kernel's own way, with the reason" \
	holds on '.batches == 0 and .pauses == 0 and .sites > 600 and .native_sites == .sites
		and .fallback != null'
check "every site is its JMP, keys and flags agree" state --expect all-on
toggle off '-p'
check "-p: every site is a NOP again" state --expect all-off
said() { [ "$(grep -c "the kernel's own way.*said once" "$guest_log")" = 1 ]; }
check "the guest's log says so once" said
toggle few 'module usbcore func usb_* +p'
check "a batch within the limit is taken" \
	holds few '.batches == 1 and .fallback == null and .sites > 0 and .native_sites == 0'
check "the host counted both refusals" \
	jq -e '.refused == 2 and .batches == 1' <("$hvpoke" stats --json "$name")
finish
