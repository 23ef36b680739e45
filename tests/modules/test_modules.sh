#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The agent builds as a module against the stock 6.1, 6.12 and 7.x, without a warning.
# Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. scripts/lib.sh
. scripts/stock-guest.sh
. tests/linux/tap.sh
export HVPOKE_QUIET=1

quiet() { ! grep -i 'warning' "build/modules/$1/log"; }
says() { modinfo -F "$2" "build/modules/$1/hvpoke.ko" | grep -q "$3"; }

plan 9
for series in 6.1 6.12 7; do
	if ! stock_had "$series"; then
		for what in builds "builds without a warning" "is for that kernel"; do
			tap_n=$((tap_n + 1))
			echo "ok $tap_n - $series: $what # SKIP $stock_why"
		done
		continue
	fi
	check "$series: builds" scripts/build-modules.sh "$stock_release"
	check "$series: builds without a warning" quiet "$stock_release"
	check "$series: is for that kernel" says "$stock_release" vermagic "^$stock_release "
done
finish
