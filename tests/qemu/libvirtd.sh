# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the tests on libvirt (after lib.sh and tap.sh): a real libvirtd, which is
# started if there is none, and hvpoke with its domains. $sockets is hvpoked's folder.

uri=qemu:///system
libvirtd_pids=()

virsh() { command virsh -q -c "$uri" "$@"; }
hvpoke() { timeout 60 "${HVPOKE_BUILD:-build/release}"/hvpoke --connect "$uri" "$@"; }
setup() { timeout 60 "${HVPOKE_BUILD:-build/release}"/hvpoke libvirt-setup --socket-dir "$sockets" "$@"; }
definition() { virsh dumpxml --inactive "$1"; }
domain_state() { virsh domstate "$1" | head -n 1; }

# What the tests need of the machine, or the rest of them is skipped.
libvirtd_start() {
	local program
	[ "$(id -u)" = 0 ] || skip_rest "only root may start libvirtd"
	for program in libvirtd virtlogd virsh qemu-system-x86_64 jq; do
		command -v "$program" >/dev/null || skip_rest "$program is not installed"
	done
	virsh version >/dev/null 2>&1 && return
	virtlogd >"$sockets/virtlogd.log" 2>&1 &
	libvirtd_pids=($!)
	libvirtd >"$sockets/libvirtd.log" 2>&1 &
	# Ended in this order: libvirtd before virtlogd.
	libvirtd_pids=($! "${libvirtd_pids[@]}")
	wait_until 30 virsh version >/dev/null 2>&1 || skip_rest "libvirtd does not start"
}

libvirtd_stop() {
	local pid
	for pid in "${libvirtd_pids[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
}

domain_remove() {
	virsh destroy "$1" >/dev/null 2>&1
	virsh undefine "$1" >/dev/null 2>&1
}
