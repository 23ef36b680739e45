# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by guest.sh for the demo: what that does with hvpoke-vmm, with QEMU and hvpoked.
. scripts/qemu-guest.sh

guest_start() {
	local dir=$HVPOKE_RUNTIME_DIR/qemu
	mkdir -p "$dir"
	host_start "$dir" || die "hvpoked does not start"
	# shellcheck disable=SC2046 # several words are wanted
	qemu_start "$1" "$2" "$dir" "$3" $(qemu_device "$dir")
}

guest_wait() {
	progress "booting $guest_name"
	guest_wait_shell "$1" && guest_run 60 "insmod /hvpoke.ko" && wait_until 30 guest_has_agent
	local code=$?
	progress_end
	[ $code = 0 ] || tail -n 5 "$guest_log" "${guest_log%.console}.qemu.log" >&2
	return $code
}

guest_wait_busy() {
	guest_run "$1" 'i=0; while [ $i -lt $(nproc) ]; do taskset -c $i sh -c "while :; do :; done" & i=$((i+1)); done'
}

guest_stop() {
	local code
	[ -n "$guest_pid" ] || return 0
	"$hvpoke" quit "$guest_name" >/dev/null 2>&1 || kill "$guest_pid" 2>/dev/null
	wait "$guest_pid"
	code=$?
	guest_pid=
	host_stop
	return $code
}
