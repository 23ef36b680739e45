#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-modules.sh [RELEASE...] - hvpoke.ko for these kernels, or for every 6.1,
# 6.12 and 7.x whose headers are installed, here or in the chroot of a newer suite.
# Prints one line for each; ends with 0 if all were built. Each goes to
# build/modules/RELEASE/hvpoke.ko, with the log of the build (W=1 where there is perl)
# beside it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/lib.sh
. scripts/newer-suite.sh

if [ $# = 0 ]; then
	for dir in {,"$newer_root"}/lib/modules/{6.1,6.12,7}.*/build; do
		[ -f "$dir/Makefile" ] || continue
		dir=${dir%/build}
		set -- "$@" "${dir##*/}"
	done
fi
if [ $# = 0 ]; then
	echo "build-modules: no headers of a Linux 6.1, 6.12 or 7.x are installed (/lib/modules/*/build)" >&2
	exit 1
fi

# The kernel's build writes beside the sources, so it gets a copy of them. What
# has not changed keeps its time stamp and is not built again.
copy() {
	mkdir -p "$1/guest-agent" "$1/proto"
	copy_changed guest-agent "$1" && copy_changed proto "$1"
}
copy_changed() {
	local file
	for file in "$1"/*.[ch] "$1"/Kbuild; do
		[ -f "$file" ] || continue
		cmp -s "$file" "$2/$file" || cp "$file" "$2/$file" || return 1
	done
}

# W=1 runs kernel-doc, for which perl-base is not enough.
warnings=
perl -MPod::Usage -e 1 2>/dev/null && warnings=W=1

# build TREE COMMAND... - the kernel's own build; COMMAND runs it where the tree is TREE.
build() {
	local tree=$1
	shift
	copy "$out/src" &&
		"$@" make -C "$headers" M="$tree/$out/src/guest-agent" CONFIG_HVPOKE=m $warnings modules \
			>"$out/log" 2>&1
}

failed=0
for release; do
	out=build/modules/$release
	headers=/lib/modules/$release/build
	where=("$PWD")
	if [ ! -f "$headers/Makefile" ] && [ -f "$newer_root$headers/Makefile" ]; then
		where=(/src newer_run)
	fi
	mkdir -p "$out"
	exec {lock}>"$out/lock" && flock $lock # another test may want the same one
	if [ ${#where[@]} = 1 ] && [ ! -f "$headers/Makefile" ]; then
		rm -f "$out/hvpoke.ko"
		echo "hvpoke.ko for $release: not built, no headers in $headers"
		failed=1
	elif build "${where[@]}" && # never without one: another test may be taking it
		cp "$out/src/guest-agent/hvpoke.ko" "$out/hvpoke.ko.new" &&
		mv "$out/hvpoke.ko.new" "$out/hvpoke.ko"; then
		echo "hvpoke.ko for $release: $out/hvpoke.ko"
	else
		rm -f "$out/hvpoke.ko"
		echo "hvpoke.ko for $release: not built, see $out/log"
		failed=1
	fi
done
exit $failed
