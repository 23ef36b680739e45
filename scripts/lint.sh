#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# lint.sh [FILE...] - clang-format, clang-tidy, sparse and checkpatch. Looks at
# everything, or at the FILEs. Prints findings only, and ends with 0 if there
# are none. Needs scripts/deps.sh lint.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/lib.sh

work=build/lint
mkdir -p "$work"
failed=0

# Files of the repository, whether committed yet or not, by pattern.
files() { git ls-files --cached --others --exclude-standard -- "$@" | sort -u; }

if [ $# -gt 0 ]; then
	mapfile -t sources < <(files "$@" | grep '\.[ch]$')
else
	mapfile -t sources < <(files '*.c' '*.h')
fi
only() { printf '%s\n' "${sources[@]}" | grep -E "$1" || true; }

# step NAME COMMAND... - run it, show what it says if it fails.
step() {
	local name=$1 log=$work/$1.log
	shift
	progress "lint: $name"
	if "$@" >"$log" 2>&1; then
		progress_end
		return
	fi
	progress_end
	echo "lint: $name has findings, all of them in $log:" >&2
	head -n 40 "$log"
	failed=1
}

# The ABI is laid out by hand, as the table that it is.
format() {
	only . | sed '\|^proto/hvpoke_abi\.h$|d' | xargs -r clang-format --dry-run -Werror 2>&1 |
		sed -n 's/: error: code should be/: should be/p'
	return "${PIPESTATUS[2]}"
}

# The warnings of the build are the compiler's business (-Werror); here only
# the checks of .clang-tidy. Code of the guest kernel is not host code.
tidy() {
	only '^(patcher|sandbox|vmm|qemu|tests)/.*\.c$' |
		sed '\#^tests/linux/\(busy\|selftests\)\.c$#d; \|^tests/qemu/guest/|d' |
		xargs -r -P "$(nproc)" -n 4 sh -c '
			clang-tidy --quiet "$@" -- -D_GNU_SOURCE -Iproto -Ipatcher -Isandbox -Ivmm -Iqemu -Itests/kvm \
				-std=gnu11 $(pkg-config --cflags json-c libxml-2.0) 2>/dev/null' sh
}

# Sparse over the module, with the newest headers installed.
run_sparse() {
	local headers
	headers=$(printf '%s\n' /lib/modules/6.*/build | sort -V | tail -n 1)
	[ -f "$headers/Makefile" ] || { echo "no kernel headers are installed"; return 1; }
	rm -rf "$work/sparse"
	mkdir -p "$work/sparse/guest-agent" "$work/sparse/proto"
	cp guest-agent/*.[ch] guest-agent/Kbuild "$work/sparse/guest-agent"
	cp proto/*.h "$work/sparse/proto"
	make -C "$headers" M="$PWD/$work/sparse/guest-agent" CONFIG_HVPOKE=m C=2 CHECK=sparse \
		modules >"$work/sparse/log" 2>&1 || { cat "$work/sparse/log"; return 1; }
	# What the kernel's own headers make it say is not ours.
	! grep -E 'sparse/(guest-agent|proto)/.*(warning|error):' "$work/sparse/log"
}

# The kernel's own style check, from the source package; kept in the cache.
checkpatch=$cache/checkpatch/scripts/checkpatch.pl
get_checkpatch() {
	local tarball=/usr/src/linux-source-6.1.tar.xz

	[ -x "$checkpatch" ] && [ ! "$tarball" -nt "$cache/checkpatch" ] && return
	mkdir -p "$cache/checkpatch"
	tar -C "$cache/checkpatch" --strip-components=1 -xJf "$tarball" \
		linux-source-6.1/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch} &&
		touch "$cache/checkpatch"
}
# Left out: FILE_PATH_CHANGES, which is about a patch; LINUX_VERSION_CODE, which
# a module for several kernels needs, and CONSTANT_COMPARISON, which takes that for
# the constant. In proto/, which user space compiles too: BIT(), and what X macros and
# _Static_assert break by nature.
run_checkpatch() {
	local ignore=FILE_PATH_CHANGES,LINUX_VERSION_CODE,CONSTANT_COMPARISON failed=0

	get_checkpatch || return
	only '^guest-agent/' | run_on "$ignore" || failed=1
	ignore+=,BIT_MACRO,CAMELCASE,COMPLEX_MACRO,MACRO_ARG_REUSE,MACRO_WITH_FLOW_CONTROL
	ignore+=,MULTISTATEMENT_MACRO_USE_DO_WHILE,TRAILING_SEMICOLON
	only '^proto/' | run_on "$ignore" || failed=1
	return $failed
}
run_on() {
	xargs -r perl "$checkpatch" --no-tree --strict --terse --max-line-length=100 --show-types \
		--no-summary --ignore "$1" -f
}

step clang-format format
step clang-tidy tidy
step checkpatch run_checkpatch
[ -z "$(only '^(guest-agent|proto)/')" ] || step sparse run_sparse
[ "$failed" = 0 ] && echo "lint: no findings in ${#sources[@]} files"
exit "$failed"
