#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-kernel.sh [NAME] - build a guest kernel with the agent built in, the small one
# unless NAME says otherwise.
#
# From Debian's linux-source-6.1, tinyconfig and configs/kernel/NAME.config.
# Prints the path of the vmlinux on stdout; bzImage, initramfs.cpio, config and
# modules, if it has any, lie beside it. Everything else goes to stderr.
#
# All of it is kept under ${HVPOKE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/hvpoke}:
#   linux-VERSION/{src,log,lock}   one tree
#   linux-VERSION/build-CONFIG/    built incrementally, for each NAME.config
#   kernel-KEY/                    finished kernels, by what went into them
# A finished kernel is never written again, so a guest may boot it while the
# next one is built. Calls may run at the same time; they take turns.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${HVPOKE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hvpoke}
tarball=/usr/src/linux-source-6.1.tar.xz
fragment=configs/kernel/${1:-small}.config
steps=1450	# lines that make prints for a whole build of the small one, for the percentage
keep=6		# finished kernels, and half as many builds

say() { echo "build-kernel: $*" >&2; }
die() { say "$*"; exit 1; }

if [ ! -r "$top/$fragment" ]; then
	die "there is no $fragment"
fi
if [ ! -r "$tarball" ]; then
	die "$tarball is missing; install the Debian package linux-source-6.1 (scripts/deps.sh demo)"
fi
version=$(dpkg-query -W -f '${Version}' linux-source-6.1 2>/dev/null) || version=
[ -n "$version" ] || version=$(stat -c '%s-%Y' "$tarball")

# Our own source: name inside of drivers/virt/hvpoke/ and where it is.
sources() {
	local f

	for f in "$top"/guest-agent/*.[ch] "$top"/guest-agent/{Kbuild,Kconfig} "$top"/proto/*.h \
		 "$top"/tests/linux/{Kbuild,Kconfig,busy.c,selftests.c}; do
		[ -f "$f" ] && printf '%s\n' "${f#"$top"/}"
	done
	return 0
}

key=$(
	cd "$top"
	{
		echo "$version"
		gcc --version | head -n 1
		sources | xargs sha256sum
		sha256sum scripts/build-kernel.sh "$fragment" tests/linux/init.S
	} | sha256sum | cut -c 1-16
)
fragment=$top/$fragment
out=$cache/kernel-$key

finished() { [ -f "$out/vmlinux" ] && [ -f "$out/initramfs.cpio" ]; }

if finished; then
	touch "$out"
	echo "$out/vmlinux"
	exit 0
fi

tree=$cache/linux-$version
src=$tree/src log=$tree/log
build=$tree/build-$(sha256sum <"$fragment" | cut -c 1-8)
mkdir -p "$tree"
exec 9>"$tree/lock"
if ! flock -n 9; then
	say "waiting for another build in $tree"
	flock 9
fi
if finished; then
	echo "$out/vmlinux"
	exit 0
fi

# show WHAT PID: wait for PID, with a line of progress.
show() {
	local what=$1 pid=$2 begin=$SECONDS done percent

	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.5
		[ -t 2 ] || continue
		done=$(grep -c '^  [A-Z]' "$log" || true)
		percent=$((done * 100 / steps))
		[ "$percent" -le 99 ] || percent=99
		[ "$what" = compiling ] && percent="$percent%" || percent=
		printf '\rbuild-kernel: %s %s %ds \033[K' "$what" "$percent" \
			$((SECONDS - begin)) >&2
	done
	[ ! -t 2 ] || printf '\r\033[K' >&2
	if ! wait "$pid"; then
		tail -n 25 "$log" >&2
		die "$what failed; the whole log is $log"
	fi
	say "$what: done in $((SECONDS - begin)) s"
}

# prune DIR PATTERN N: leave the N newest.
prune() {
	find "$1" -maxdepth 1 -name "$2" -printf '%T@ %p\n' | sort -rn | tail -n +$(($3 + 1)) |
		cut -d ' ' -f 2- | xargs -r -d '\n' rm -rf
}

unpack() {
	[ -f "$src/.unpacked" ] && return
	say "unpacking $tarball (Linux $version) into $tree"
	rm -rf "$src" "$tree"/build-*
	mkdir -p "$src"
	tar -C "$src" --strip-components=1 -xJf "$tarball" >"$log" 2>&1 &
	show unpacking $!
	echo 'source "drivers/virt/hvpoke/Kconfig"' >>"$src/drivers/virt/Kconfig"
	echo 'obj-y += hvpoke/' >>"$src/drivers/virt/Makefile"
	touch "$src/.unpacked"
}

# Copy our source in; files whose content is the same keep their time stamp, so
# that make rebuilds only what changed. Files that are gone here go there too.
copy_in() {
	local dir=$src/drivers/virt/hvpoke f want
	local -a part=()

	mkdir -p "$dir"
	want=$(cd "$top" && sources)
	[ -f "$top/guest-agent/Kconfig" ] && part+=(guest-agent)
	[ -f "$top/tests/linux/Kconfig" ] && part+=(tests/linux)
	for f in $want; do
		cmp -s "$top/$f" "$dir/$f" || install -D -m 644 "$top/$f" "$dir/$f"
	done
	(cd "$dir" && find . -type f -printf '%P\n') | while read -r f; do
		case $f in Kconfig | Makefile) continue ;; esac
		grep -qxF "$f" <<<"$want" || rm "$dir/$f"
	done
	printf 'source "drivers/virt/hvpoke/%s/Kconfig"\n' "${part[@]}" >"$dir/Kconfig"
	printf 'obj-y += %s/\n' "${part[@]}" >"$dir/Makefile"
}

configure() {
	make -C "$src" O="$build" tinyconfig
	cat "$fragment" >>"$build/.config"
	make -C "$src" O="$build" olddefconfig
}

# Every line of the fragment must have taken effect.
check_config() {
	local line bad=0

	while read -r line; do
		case $line in
		CONFIG_HVPOKE=*) [ -f "$top/guest-agent/Kconfig" ] || continue ;;
		CONFIG_*=*) ;;
		*' is not set')
			line=${line#\# }
			! grep -q "^${line% is not set}=" "$build/.config" && continue
			line="# $line" ;;
		*) continue ;;
		esac
		grep -qxF "$line" "$build/.config" && continue
		say "no effect in this kernel's configuration: $line"
		bad=1
	done <"$fragment"
	[ "$bad" = 0 ] || die "see $build/.config; something that these lines depend on is off"
}

build_kernel() {
	local want targets=(vmlinux bzImage)

	! grep -q '^CONFIG_.*=m$' "$fragment" || targets+=(modules)

	mkdir -p "$build"
	want=$({ cat "$fragment"; find "$src/drivers/virt/hvpoke" -name Kconfig -exec cat {} +; } |
		sha256sum)
	if [ "$(cat "$build/.fragment" 2>/dev/null)" != "$want" ]; then
		rm -f "$build/.fragment"
		configure >"$log" 2>&1 &
		show configuring $!
		check_config
		echo "$want" >"$build/.fragment"
	fi
	say "compiling, about 5 minutes from nothing on 2 cores"
	make -C "$src" O="$build" -j"$(nproc)" KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=hvpoke \
		KBUILD_BUILD_HOST=hvpoke "${targets[@]}" >"$log" 2>&1 &
	show compiling $!
}

# An initramfs of one program that spins: where system calls do not reach the
# guest kernel, a PID 1 can do no more.
initramfs() {
	gcc -nostdlib -static -Wl,--build-id=none -Wl,-z,noexecstack -o "$1/spin" \
		"$top/tests/linux/init.S"
	"$build/usr/gen_init_cpio" - >"$1/initramfs.cpio" <<-LIST
		dir /dev 0755 0 0
		nod /dev/console 0600 0 0 c 5 1
		file /init $1/spin 0755 0 0
	LIST
	rm "$1/spin"
}

trap 'say "failed at line $LINENO"' ERR
unpack
copy_in
build_kernel

tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cp "$build/vmlinux" "$build/arch/x86/boot/bzImage" "$tmp"
cp "$build/.config" "$tmp/config"
find "$build" -name '*.ko' -exec cp -t "$tmp" {} +
initramfs "$tmp"
chmod 755 "$tmp"
rm -rf "$out"
mv -T "$tmp" "$out"
touch "$build"
prune "$cache" 'kernel-*' "$keep"
prune "$tree" 'build-*' $((keep / 2))
echo "$out/vmlinux"
