# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced where guests run at full speed (VMX, SVM), and where QEMU runs them: a
# stock Debian kernel, hvpoke.ko and busybox in an initramfs. What is fetched is
# kept in the cache, by the kernel's release.

# stock_package SERIES - the newest package of a stock kernel.
stock_package() {
	apt-cache pkgnames "linux-image-$1." |
		grep -E "^linux-image-[0-9.]+(-[0-9]+)?(\+deb[0-9]+)?-amd64$" | sort -V | tail -n 1
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
# without .ko) from the package, which is not installed, and its headers, which
# are: as root. Sets stock_release and stock_dir, which has vmlinuz and MODULE.ko.
stock_fetch() {
	local image headers
	image=$(stock_package "$1")
	if [ -z "$image" ]; then
		echo "hvpoke: updating apt's package lists" >&2
		apt-get update -qq && image=$(stock_package "$1")
	fi
	[ -n "$image" ] || die "no stock Linux $1 image in the configured apt sources"
	shift
	stock_release=${image#linux-image-}
	headers=linux-headers-$stock_release
	stock_dir=$cache/stock-$stock_release
	mkdir -p "$stock_dir"
	if ! stock_has "$@"; then
		progress "fetching the Debian package $image"
		(cd "$stock_dir" && apt-get -o APT::Sandbox::User=root download -qq "$image" &&
			dpkg -x "$image"_*.deb root && mv "root/boot/vmlinuz-$stock_release" vmlinuz &&
			stock_unpack "$@" && rm -rf root ./*.deb) >&2 || die "cannot fetch or unpack $image"
	fi
	if [ ! -d "/lib/modules/$stock_release/build" ]; then
		echo "hvpoke: installing Debian package: $headers" >&2
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends "$headers" >/dev/null || die "cannot install $headers"
	fi
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
		path=$(find root/lib/modules -name "$module.ko*")
		case $path in
		*.xz) xz -dc "$path" >"$module.ko" ;;
		*) cp "$path" "$module.ko" ;;
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
