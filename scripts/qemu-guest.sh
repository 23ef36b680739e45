# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the demo and the tests (after lib.sh): a stock Debian kernel under
# QEMU, emulated, with hvpoked for its host, and a shell in the guest.
. scripts/stock-guest.sh

hvpoked=build/release/hvpoked
hvpoke=build/release/hvpoke
hvpoke_options=() # such as --connect URI
host_pid=
guest_pid=
guest_files=() # what else goes into the guest's root

# The guest's PID 1: runs what the host writes to the second serial port.
qemu_init() {
	cat <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
stty -F /dev/ttyS1 raw -echo
exec </dev/ttyS1 >/dev/ttyS1 2>&1
echo ready
while IFS= read -r command; do
	sh -c "$command" </dev/null
	echo "= $?"
done
END
}

# qemu_initramfs OUT FILE... - busybox, PID 1 and the FILEs, in the guest's root.
qemu_initramfs() {
	local out=$1 root code
	shift
	root=$(mktemp -d)
	mkdir -p "${out%/*}" "$root/bin"
	cp /bin/busybox "$root/bin/busybox" && cp "$@" "$root" &&
		qemu_init >"$root/init" && chmod +x "$root/init" &&
		(cd "$root" && find . | cpio --quiet -o -H newc) >"$out"
	code=$?
	rm -rf "$root"
	return $code
}

# qemu_prepare SERIES [MODULE...] - sets guest_kernel, guest_initrd and stock_release. The
# initramfs goes to the folder $work, if there is one: other tests have other files in theirs.
qemu_prepare() {
	local modules
	stock_fetch "$@"
	shift
	scripts/build-modules.sh "$stock_release" >&2 || return 1
	guest_kernel=$stock_dir/vmlinuz
	guest_initrd=${work:-build/stock}/qemu-$stock_release.cpio
	modules=("${@/#/$stock_dir/}")
	qemu_initramfs "$guest_initrd" "${modules[@]/%/.ko}" \
		"build/modules/$stock_release/hvpoke.ko" "${guest_files[@]}"
}

# host_start DIR [OPTION...] - hvpoked, its sockets in DIR.
host_start() {
	"$hvpoked" --socket-dir "$1" "${@:2}" 2>>"$1/hvpoked.log" &
	host_pid=$!
	wait_until 10 test -S "$1/qmp" || { cat "$1/hvpoked.log" >&2; return 1; }
}

# With a thread for each vCPU QEMU (7.2) may translate an instruction just as another vCPU
# writes it, and keep what it has read: an INT3 that the kernel's own patching has long
# taken back is run once more. Kernels since 6.9 do not expect that of any CPU, and panic
# ("Oops: int3"); 6.1 looks, finds none and runs it again, now and then for ever.
qemu_accel=tcg,thread=single

# guest_begin NAME DIR - sets guest_name and guest_log, for the first serial port, and
# makes the pipe for the second: the guest's shell will listen to guest_run.
guest_begin() {
	guest_name=$1
	guest_log=$2/$1.console
	rm -f "$2/$1".{in,out}
	mkfifo "$2/$1.in" "$2/$1.out"
	exec {guest_in}<>"$2/$1.in" {guest_out}<>"$2/$1.out"
}

# What the kernel's command line begins with. Its check of the timer counts ticks in a loop,
# and gives up for good where the machine is too busy for QEMU's. There its watchdog takes the TSC
# for unstable, too, by switching static keys, in the middle of a test.
qemu_cmdline="console=ttyS0 panic=-1 log_buf_len=4M no_timer_check tsc=reliable"

# qemu_start NAME VCPUS DIR CMDLINE [OPTION...] - begins a guest and sets guest_pid. DIR is
# hvpoked's, and for what is left.
qemu_start() {
	guest_begin "$1" "$3"
	qemu-system-x86_64 -name "guest=$1" -M q35 -accel "$qemu_accel" -cpu max -smp "$2" -m 512 \
		-display none -nodefaults -no-reboot -serial "file:$guest_log" \
		-serial "pipe:$3/$1" -kernel "$guest_kernel" -initrd "$guest_initrd" \
		-append "$qemu_cmdline $4" "${@:5}" >"$3/$1.qemu.log" 2>&1 </dev/null &
	guest_pid=$!
}

# What a guest needs to be served by hvpoked: hvpoked(8).
qemu_device() {
	echo -chardev "socket,id=hvpoke,path=$1/ivshmem" \
		-device "ivshmem-doorbell,chardev=hvpoke,vectors=1" -qmp "unix:$1/qmp,reconnect=1"
}

# guest_read SECONDS END - what the guest's shell says before the line that is END and
# perhaps more, which is left in guest_last.
guest_read() {
	local until=$((SECONDS + $1)) part begun=
	while [ $SECONDS -lt $until ]; do
		# When a second is over, so much of a line may have been read.
		if ! IFS= read -r -t 1 part <&"$guest_out"; then
			begun+=$part
			[ -z "$guest_pid" ] || kill -0 "$guest_pid" 2>/dev/null && continue
			echo "no answer from the guest: its QEMU has ended" >&2
			return 124
		fi
		guest_last=$begun$part begun=
		case $guest_last in
		"$2"*) return ;;
		*) printf '%s\n' "$guest_last" ;;
		esac
	done
	echo "no answer from the guest within $1 s" >&2
	return 124
}

guest_wait_shell() { guest_read "$1" ready; }

# guest_run SECONDS COMMAND - one line, for the guest's shell; its output and exit code.
guest_run() {
	printf '%s\n' "$2" >&"$guest_in"
	guest_read "$1" "= " && return "${guest_last#= }"
}

guest_info() { "$hvpoke" "${hvpoke_options[@]}" info --json "$guest_name" 2>/dev/null; }
guest_has_agent() { [ "$(guest_info | jq -r '.agent.present' 2>/dev/null)" = true ]; }

guest_stop() {
	[ -n "$guest_pid" ] || return 0
	kill "$guest_pid" 2>/dev/null
	wait "$guest_pid"
	guest_pid=
	exec {guest_in}>&- {guest_out}>&-
}

host_stop() {
	[ -n "$host_pid" ] || return 0
	kill "${1:--TERM}" "$host_pid" 2>/dev/null
	wait "$host_pid" 2>/dev/null
	host_pid=
}
