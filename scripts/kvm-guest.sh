#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kvm-guest.sh COMMAND - run a shell command in this directory on a machine that has
# /dev/kvm: one that QEMU emulates, an AMD CPU with SVM, by a stock Debian kernel. It sees
# this machine's files, read-only, and this tree, which it may write to.
#
# What fails in it fails here, with its exit code. Its times are those of an emulated machine.
#   HVPOKE_KVM_GUEST_CPUS (1)   HVPOKE_KVM_GUEST_MIB (2048)
# One CPU: KVM patches the text of its own kernel when the first VM is made and when the last
# one goes, and with several QEMU now and then runs a stale INT3 for ever (docs/decisions.md).
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/stock-guest.sh

# In the order in which they need each other.
modules=(irqbypass kvm ccp kvm-amd netfs fscache 9pnet 9p virtio_ring virtio
	virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci 9pnet_virtio overlay)
tree=$PWD
[ $# -gt 0 ] || { echo "usage: scripts/kvm-guest.sh COMMAND..." >&2; exit 2; }
command=$*

# What the command is told of its environment.
environment() {
	declare -px PATH HOME "${!HVPOKE_@}" "${!CMOCKA_@}" "${!ASAN_@}" "${!UBSAN_@}" "${!TSAN_@}" \
		"${!GCOV_@}" "${!XDG_CACHE_@}" 2>/dev/null
}

init() {
	cat <<-END
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		export PATH=/bin
		mkdir -p /proc /sys /dev /host /over /root
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mount -t devtmpfs dev /dev
		stty -F /dev/ttyS1 raw -echo
		for m in ${modules[*]}; do insmod /modules/\$m.ko; done
		mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host
		mount -t tmpfs tmpfs /over
		mkdir /over/upper /over/work
		mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work overlay /root
		for d in proc sys dev; do mount --move /\$d /root/\$d; done
		mkdir -p /root/dev/pts /root/dev/shm
		ln -s /proc/self/fd /root/dev/fd
		mount -t devpts devpts /root/dev/pts
		for d in dev/shm tmp run; do mount -t tmpfs -o mode=1777 tmpfs /root/\$d; done
		ip link set lo up
		mkdir -p "/root$tree"
		mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=mmap tree "/root$tree"
		cp /command /root/run/command
		# Through a pipe: no terminal, nobody shows progress.
		{ chroot /root /bin/bash /run/command </root/dev/null; echo "= \$?"; } 2>&1 |
			cat >/root/dev/ttyS1
		sync
		echo o >/root/proc/sysrq-trigger
		sleep 60
	END
}

# The guest's root, in $work/root.
prepare() {
	local module
	mkdir -p "$work"/root/{bin,modules} && cp /bin/busybox "$work/root/bin" || return
	for module in "${modules[@]}"; do
		cp "$stock_dir/$module.ko" "$work/root/modules" || return
	done
	init >"$work/root/init" && chmod +x "$work/root/init" || return
	{ environment && printf 'cd %q\n%s\n' "$tree" "$command"; } >"$work/root/command"
	(cd "$work/root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
}

emulate() {
	qemu-system-x86_64 -M q35 -accel tcg -cpu max,+svm -smp "${HVPOKE_KVM_GUEST_CPUS:-1}" \
		-m "${HVPOKE_KVM_GUEST_MIB:-2048}" -display none -nodefaults -no-reboot \
		-serial "file:$work/console" -serial stdio -kernel "$stock_dir/vmlinuz" \
		-initrd "$work/initramfs" -append "console=ttyS0 panic=-1 no_timer_check" \
		-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=host,mount_tag=host \
		-fsdev "local,id=tree,path=$tree,security_model=none,multidevs=remap" \
		-device virtio-9p-pci,fsdev=tree,mount_tag=tree 2>"$work/qemu" </dev/null
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stock_fetch 6.1 "${modules[@]}"
prepare || die "cannot make the guest's initramfs"
code=
while IFS= read -r line || [ -n "$line" ]; do
	case $line in
	"= "*) code=${line#= } ;;
	*) printf '%s\n' "$line" ;;
	esac
done < <(emulate)
if [ -z "$code" ]; then
	cat "$work/qemu" >&2
	tail -n 20 "$work/console" >&2
	die "the emulated machine ended before the command did; its last words are above"
fi
exit "$code"
