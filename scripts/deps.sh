#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# deps.sh GROUP - install the Debian packages that GROUP needs and lacks, and
# say so. Groups: build, check, bench, demo, qemu, fuzz, lint, coverage. Uses the configured
# apt sources.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

build="gcc make pkg-config libc6-dev libjson-c-dev libseccomp-dev libcap-ng-dev libvirt-dev libxml2-dev"
guest="busybox-static cpio kmod"
small="linux-source-6.1 bc flex bison libelf-dev libssl-dev xz-utils python3"
demo="$build $guest jq bsdextrautils"
qemu="$demo qemu-system-x86 xz-utils"
# Where KVM emulates guest kernel mode the guest's kernel is built from source.
case $(kvm_backend) in
pvm | unknown) demo="$demo $small" ;;
esac
fuzz="$build clang libclang-rt-dev"
check="$demo $small libcmocka-dev mandoc qemu-system-x86 xz-utils binutils perl libvirt-daemon-system libvirt-clients debootstrap $fuzz"
bench="$demo libcmocka-dev qemu-system-x86"
lint="$check clang-format clang-tidy sparse"
coverage="$build libcmocka-dev qemu-system-x86 mandoc gcovr jq"

group=${1:-}
case "$group" in
build|check|bench|demo|qemu|fuzz|lint|coverage) packages=${!group} ;;
*) echo "usage: scripts/deps.sh build|check|bench|demo|qemu|fuzz|lint|coverage" >&2; exit 2 ;;
esac

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in $packages; do
	installed "$package" || missing+=("$package")
done

# The newest stock headers package of a kernel series, e.g. 6.1 or 6.12.
newest_headers() {
	apt-cache pkgnames "linux-headers-$1." |
		grep -E "^linux-headers-${1//./\\.}\.[0-9][^a-z]*(\+deb[0-9]+)?-amd64$" |
		sort -V | tail -n 1
}

have_headers() { compgen -G "/lib/modules/$1.*/build/Makefile" >/dev/null; }

series=()
if [ "$group" = check ] || [ "$group" = lint ]; then
	for s in 6.1 6.12; do
		have_headers "$s" || series+=("$s")
	done
fi

[ ${#missing[@]} -gt 0 ] || [ ${#series[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "hvpoke: missing packages: ${missing[*]} ${series[*]/#/linux-headers-}" >&2
	echo "hvpoke: run this as root, or install them yourself, and try again" >&2
	exit 1
fi

echo "hvpoke: updating apt's package lists"
apt-get update -qq
for s in "${series[@]}"; do
	package=$(newest_headers "$s")
	if [ -n "$package" ]; then
		missing+=("$package")
	else
		echo "hvpoke: no headers of Linux $s in the configured apt sources;" \
			"its module build will be skipped"
	fi
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "hvpoke: installing Debian packages: ${missing[*]}"
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	"${missing[@]}" >/dev/null
