#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_release.sh - what a release must not have in it. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/linux/tap.sh

plan 2
faults() { grep -c HVPOKE_FAULT "$1"; }
for program in hvpoked hvpoke-vmm; do
	check "$program has no fault points" [ "$(faults "build/release/$program")" = 0 ]
done
finish
