# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced where guests run at full speed (VMX, SVM), and where QEMU runs them: a
# stock Debian kernel, hvpoke.ko and busybox in an initramfs. What is fetched is
# kept in the cache, by the kernel's release.
. scripts/newer-suite.sh

# The machine's own suites, or the newer ones: what asks their apt, and what stands before
# the path of what is installed of them.
stock_apt=stock_own_apt
stock_root=
stock_own_apt() { "$@"; }
stock_use() {
	case $1 in
	own) stock_apt=stock_own_apt stock_root= ;;
	newer) stock_apt=newer_apt stock_root=$newer_root ;;
	esac
}

# stock_package SERIES - the newest package of a stock kernel.
stock_package() {
	$stock_apt apt-cache pkgnames "linux-image-$1." 2>/dev/null |
		grep -E "^linux-image-[0-9.]+(-[0-9]+)?(\+deb[0-9]+)?-amd64$" | sort -V | tail -n 1
}

# stock_find SERIES - where apt has it, the machine's own suites first, and the lists as
# they are; sets stock_release.
stock_find() {
	local lists suites image
	for lists in old new; do
		for suites in own newer; do
			stock_use $suites
			[ $lists = old ] || stock_update $suites
			image=$(stock_package "$1")
			stock_release=${image#linux-image-}
			[ -z "$image" ] || return 0
		done
	done
	return 1
}
stock_update() {
	echo "hvpoke: updating apt's package lists ($1 suites)" >&2
	case $1 in
	own) apt-get update -qq ;;
	newer) newer_update ;;
	esac
}

# 6.1 where Debian has it, else 6.12.
stock_series() {
	local series
	for series in 6.1 6.12; do
		[ -n "$(stock_package $series)" ] && break
	done
	echo "$series"
}

# stock_fetch SERIES [MODULE...] - the kernel and some of its modules (file names
# without .ko) from its packages, which are not installed, and its headers, which
# are: as root. Sets stock_release and stock_dir, which has vmlinuz and MODULE.ko.
stock_fetch() {
	local lock
	mkdir -p "$cache"
	exec {lock}>"$cache/stock.lock" && flock "$lock" # another test may fetch the same one
	stock_find "$1" ||
		die "no stock Linux $1 image in the configured apt sources, nor in Debian's stable and its backports"
	shift
	stock_dir=$cache/stock-$stock_release
	mkdir -p "$stock_dir"
	stock_has "$@" || stock_download "$@"
	stock_headers
	exec {lock}>&-
}

# stock_had SERIES [MODULE...] - the same, but where it cannot be had that is said in
# stock_why.
stock_had() {
	stock_why=$(stock_fetch "$@" 2>&1) || { stock_why=${stock_why##*$'\n'}; return 1; }
	stock_fetch "$@"
}

# From 7.x on the image and the modules are packages of their own.
stock_download() {
	local packages package code work=$stock_dir/work.$$
	mapfile -t packages < <($stock_apt apt-cache pkgnames linux- |
		grep -xF "$(printf 'linux-%s-'"$stock_release"'\n' image binary modules)")
	progress "fetching the Debian packages ${packages[*]}"
	mkdir "$work"
	(cd "$work" && $stock_apt apt-get -o APT::Sandbox::User=root download -qq "${packages[@]}" &&
		for package in *.deb; do dpkg -x "$package" root || exit; done &&
		mv "$(find root -name 'vmlinuz*' -type f)" ../vmlinuz && stock_unpack "$@") >&2
	code=$?
	rm -rf "$work"
	[ $code = 0 ] || die "cannot fetch or unpack ${packages[*]}"
}

stock_headers() {
	local headers=linux-headers-$stock_release
	[ ! -d "$stock_root/lib/modules/$stock_release/build" ] || return 0
	echo "hvpoke: installing Debian package: $headers${stock_root:+, in $stock_root}" >&2
	if [ -n "$stock_root" ]; then
		newer_install "$headers"
	else
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends "$headers" >/dev/null
	fi || die "cannot install $headers"
}

stock_has() {
	local file
	for file in vmlinuz "${@/%/.ko}"; do
		[ -f "$stock_dir/$file" ] || return 1
	done
}

stock_unpack() {
	local module path
	for module; do
		path=$(find root -name "$module.ko*")
		case $path in
		*.xz) xz -dc "$path" >"../$module.ko" ;;
		*) cp "$path" "../$module.ko" ;;
		esac || return 1
	done
}

# The guest's PID 1: loads the module, keeps every CPU busy, and stays.
stock_init() {
	cat <<'END'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox insmod /hvpoke.ko || /bin/busybox poweroff -f
n=$(/bin/busybox nproc)
i=0
while [ $i -lt $n ]; do
	/bin/busybox taskset -c $i /bin/busybox sh -c 'while :; do :; done' &
	i=$((i + 1))
done
echo "$n CPUs busy"
while :; do /bin/busybox sleep 3600; done
END
}

stock_initramfs() {
	local root
	root=$(mktemp -d)
	mkdir -p "$root/bin"
	cp /bin/busybox "$root/bin/busybox" &&
		cp "build/modules/$stock_release/hvpoke.ko" "$root/hvpoke.ko" &&
		stock_init >"$root/init" && chmod +x "$root/init" &&
		(cd "$root" && find . | cpio --quiet -o -H newc) >"$1"
	local code=$?
	rm -rf "$root"
	return $code
}

stock_prepare() {
	stock_fetch "$(stock_series)"
	progress "building hvpoke.ko for $stock_release"
	scripts/build-modules.sh "$stock_release" >&2 || return 1
	mkdir -p build/stock
	stock_initramfs build/stock/initramfs.cpio || die "cannot make the initramfs"
	guest_kernel=$stock_dir/vmlinuz
	guest_initrd=build/stock/initramfs.cpio
	# init/main.c has some messages on from the start; all sites begin in one state.
	guest_cmdline="console=ttyS0 reboot=k panic=1 dyndbg=-p"
	guest_busy=
	guest_vmlinux=
	guest_about="stock Debian kernel $stock_release, hvpoke.ko in an initramfs"
}
