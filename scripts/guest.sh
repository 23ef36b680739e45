# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the demo and the Linux tests (after lib.sh): a Linux guest with the
# agent in it, under hvpoke-vmm. Which one depends on what is behind /dev/kvm:
# see docs/decisions.md, "Two guests". Or, for the demo, under QEMU.

vmm=build/release/hvpoke-vmm
hvpoke=build/release/hvpoke
guest_pid=
guest_log=

# guest_prepare BACKEND - build or fetch what this back end boots, or "small", which boots on
# any, and whose every byte is known; sets
# guest_kernel, guest_initrd, guest_cmdline, guest_about, guest_busy (the command
# line's words that keep every CPU busy) and, where there is
# one, guest_vmlinux (an ELF with symbols).
guest_prepare() {
	case $1 in
	vmx | svm)
		# shellcheck source=scripts/stock-guest.sh
		. scripts/stock-guest.sh
		stock_prepare ;;
	qemu)
		# shellcheck source=scripts/demo-qemu.sh
		. scripts/demo-qemu.sh
		qemu_prepare "$(stock_series)" || return 1
		guest_busy=
		guest_about="stock Debian kernel $stock_release under QEMU, emulated (TCG), hvpoke.ko loaded" ;;
	small | pvm | unknown)
		guest_vmlinux=$(scripts/build-kernel.sh) || return 1
		guest_kernel=$guest_vmlinux
		guest_initrd=$(dirname "$guest_vmlinux")/initramfs.cpio
		guest_cmdline=$(grep -v '^#' configs/kernel/software-backend.cmdline | tr '\n' ' ')
		guest_busy="hvpoke_busy.spin=1 hvpoke_busy.hot=1"
		guest_about="small kernel from Debian's linux-source-6.1, agent built in" ;;
	esac
}

# guest_start NAME VCPUS EXTRA_CMDLINE [OPTION...] - start it in the background.
guest_start() {
	guest_name=$1
	guest_log=build/$1.console
	rm -f "$guest_log"
	"$vmm" --name "$1" --vcpus "$2" --memory 512M --count-int3 --on-reboot exit --kernel "$guest_kernel" \
		--initrd "$guest_initrd" --cmdline "$guest_cmdline $3" \
		--serial "file:$guest_log" "${@:4}" 2>"build/$1.vmm.log" &
	guest_pid=$!
}

guest_info() { "$hvpoke" info --json "$guest_name" 2>/dev/null; }

# guest_wait SECONDS - until its agent has said hello. Fails with the reason.
guest_wait() {
	local begin=$SECONDS
	while :; do
		kill -0 "$guest_pid" 2>/dev/null || {
			progress_end
			echo "hvpoke-vmm ended; its last words:" >&2
			tail -n 5 "build/$guest_name.vmm.log" >&2
			return 1
		}
		[ "$(guest_info | jq -r '.agent.present' 2>/dev/null)" = true ] && break
		if [ $((SECONDS - begin)) -ge "$1" ]; then
			progress_end
			echo "no agent after $1 s; the guest's last words:" >&2
			tail -n 5 "$guest_log" >&2
			return 1
		fi
		[ ! -t 2 ] || progress "booting $guest_name, $((SECONDS - begin)) s"
		sleep 0.5
	done
	progress_end
}

# guest_wait_busy SECONDS - until the guest says that each of its CPUs is busy.
guest_wait_busy() {
	local begin=$SECONDS
	until grep -q 'CPUs busy' "$guest_log"; do
		[ $((SECONDS - begin)) -lt "$1" ] || return 1
		sleep 0.2
	done
}

guest_stop() {
	[ -n "$guest_pid" ] || return 0
	"$hvpoke" quit "$guest_name" >/dev/null 2>&1 || kill "$guest_pid" 2>/dev/null
	wait "$guest_pid"
	local code=$?
	guest_pid=
	return $code
}
