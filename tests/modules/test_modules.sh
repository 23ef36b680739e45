#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The agent builds as a module against every stock 6.1 and 6.12 whose headers are
# installed, without a warning. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/linux/tap.sh

# The newest installed release of a series, if any.
newest() { find /lib/modules -maxdepth 1 -name "$1.*" -printf '%f\n' | sort -V | tail -n 1; }
quiet() { ! grep -i 'warning' "build/modules/$1/log"; }
says() { modinfo -F "$2" "build/modules/$1/hvpoke.ko" | grep -q "$3"; }

plan 6
for series in 6.1 6.12; do
	release=$(newest "$series")
	if [ ! -f "/lib/modules/$release/build/Makefile" ]; then
		for what in builds "builds without a warning" "is for that kernel"; do
			tap_n=$((tap_n + 1))
			echo "ok $tap_n - $series: $what # SKIP no headers of a Linux $series"
		done
		continue
	fi
	check "$series: builds" scripts/build-modules.sh "$release"
	check "$series: builds without a warning" quiet "$release"
	check "$series: is for that kernel" says "$release" vermagic "^$release "
done
finish
