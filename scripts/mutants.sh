#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# mutants.sh [NAME...] - take each protection of tests/mutants/ out of a copy of the tree, and
# see its test fail. Prints TAP, and how each failed as a comment. A patch says:
#
#   Takes out: what is taken out
#   Test: VARIANT FOLDER/PROGRAM (below tests/)
#
# With no NAME all of them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/lib.sh
. tests/linux/tap.sh

copy=build/mutants
log=$PWD/$copy/log
patches=()
if [ $# = 0 ]; then
	patches=(tests/mutants/*.patch)
else
	for name; do patches+=("tests/mutants/$name.patch"); done
fi

# The objects of the copy are kept from one run to the next, so nothing that is the same is
# touched, and what a patch has touched stays newer than its object.
git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
	if [ ! -f "$file" ] || cmp -s "$file" "$copy/tree/$file"; then continue; fi
	mkdir -p "$copy/tree/$(dirname "$file")"
	cp "$file" "$copy/tree/$file"
done

# header NAME FILE
header() { sed -n "s/^$1: //p" "$2" | head -n 1; }

# built TARGET - in the copy.
built() {
	local variant=${1#build/}
	make -s -C "$copy/tree" VARIANT="${variant%%/*}" "$1" >"$log.build" 2>&1 ||
		{ tail -n 20 "$log.build"; return 1; }
}

# ends_badly PROGRAM - the first failure is enough: after it many a test hangs. One that does
# nothing for long has not failed.
ends_badly() {
	local pid until=$((SECONDS + 900)) preload=
	[[ $1 != */kvm/* ]] || [ "$(kvm_backend)" != none ] ||
		preload=$PWD/$copy/tree/build/release/tests/kvm/libplayedkvm.so
	CMOCKA_MESSAGE_OUTPUT=TAP env ${preload:+LD_PRELOAD="$preload"} "$copy/tree/$1" >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		if grep -v SKIP "$log" | grep -q '^not ok'; then
			kill -KILL "$pid"
		elif [ "$SECONDS" -gt "$until" ]; then
			kill -KILL "$pid"
			echo "neither passed nor failed in 15 minutes"
			return 1
		fi
	done
	! wait "$pid" 2>/dev/null
}

# fails FILE - apply, build, run, take back.
fails() {
	local variant program ok
	read -r variant program <<<"$(header Test "$1")"
	patch -s -p1 -F3 -d "$copy/tree" <"$1" || { echo "the patch does not apply"; return 1; }
	built "build/$variant/tests/$program" &&
		{ [[ $program != kvm/* ]] || built build/release/tests/kvm/libplayedkvm.so; } &&
		ends_badly "build/$variant/tests/$program"
	ok=$?
	patch -s -p1 -F3 -R -d "$copy/tree" <"$1" || die "the patch cannot be taken back"
	return "$ok"
}

plan ${#patches[@]}
for file in "${patches[@]}"; do
	: >"$log"
	check "without this $(header Test "$file") fails: $(header "Takes out" "$file")" fails "$file"
	grep -E "^not ok|error: Fail|^guest: |Assert|ERROR: |runtime error" "$log" | grep -v SKIP | head -n 3 |
		sed 's/^/#   /'
done
finish
