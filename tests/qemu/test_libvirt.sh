#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_libvirt.sh - hvpoke over a real libvirtd (started if there is none), with domains of a
# guest of our own (tests/qemu/guest) under TCG. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. tests/linux/tap.sh
. tests/qemu/libvirtd.sh

plan 28
sockets=$(mktemp -d /tmp/hvpoke-libvirt-XXXXXX)
chmod 755 "$sockets"
export HVPOKE_RUNTIME_DIR=$sockets/vms
domain=hvpoke-test-$$
host_pid=
cleanup() {
	local d
	for d in "$domain"{,-bare,-pc,-plug,-tty,-full,-transient}; do domain_remove "$d"; done
	[ -z "$host_pid" ] || kill "$host_pid"
	libvirtd_stop
	rm -rf "$sockets"
}
trap cleanup EXIT

libvirtd_start
"${HVPOKE_BUILD:-build/release}"/hvpoked --socket-dir "$sockets" >"$sockets/hvpoked.log" 2>&1 &
host_pid=$!
cp "${HVPOKE_BUILD:-build/release}"/tests/qemu/guest.elf "$sockets/guest.elf"
chmod 644 "$sockets/guest.elf"

# define NAME MACHINE DEVICES COMMANDLINE
define() {
	cat >"$sockets/$1.xml" <<-END
	<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
	  <name>$1</name>
	  <memory unit='MiB'>64</memory>
	  <vcpu>2</vcpu>
	  <os><type arch='x86_64' machine='$2'>hvm</type><kernel>$sockets/guest.elf</kernel></os>
	  <features><acpi/></features>
	  <devices>
	    <emulator>/usr/bin/qemu-system-x86_64</emulator>
	    $3
	  </devices>
	  $4
	</domain>
	END
	virsh define "$sockets/$1.xml" >/dev/null
}
monitor="<qemu:commandline><qemu:arg value='-qmp'/>
<qemu:arg value='unix:$sockets/qmp,reconnect=1'/></qemu:commandline>"

has_agent() { hvpoke info --json "$1" 2>/dev/null | jq -e .agent.present >/dev/null; }

define "$domain" q35 "" ""
before=$(definition "$domain")
unchanged() { fails_with 1 "+    <shmem" setup "$domain" && [ "$before" = "$(definition "$domain")" ]; }
check "libvirt-setup shows the difference and asks first" unchanged
check "libvirt-setup takes a root port that is free (CASES 11)" \
	shows "free PCIe root port" setup "$domain" --yes
check "the definition has the device and the monitor" \
	shows "unix:$sockets/qmp,reconnect=1" definition "$domain"
check "a second libvirt-setup finds nothing to do" shows "all that it needs already" setup "$domain"
check "a domain that is shut off is listed as such" \
	jq_is ".[] | select(.name == \"$domain\") | .state == \"shut off\"" hvpoke list --json
check "and cannot be toggled, with the reason" fails_with 3 "shut off" hvpoke toggle "$domain" +p

virsh start "$domain" >/dev/null
check "the agent of a started domain registers" wait_until 60 has_agent "$domain"
check "+p by the domain's name switches every site in one pause" \
	jq_is '.matched == 2048 and .sites == 2048 and .pauses == 1 and .fallback == null' \
	hvpoke toggle --json "$domain" +p
check "'!module x* -p' switches them back" \
	jq_is '.matched == 0 and .sites == 2048' hvpoke toggle --json "$domain" '!module virtio* -p'
stays_running() {
	local i
	for i in {1..20}; do
		hvpoke toggle "$domain" +p >/dev/null && hvpoke toggle "$domain" -p >/dev/null &&
			[ "$(domain_state "$domain")" = running ] || return 1
	done
}
check "libvirt sees the domain running after each of 40 requests" stays_running
check "stats and info come through libvirt's name" \
	jq_is '.batches == 42 and .refused == 0' hvpoke stats --json "$domain"
check "'module !virtio* +p' is explained" \
	fails_with 2 "the '!' belongs before the keyword" hvpoke toggle "$domain" 'module !virtio* +p'
check "an unknown domain is answered with those there are" \
	fails_with 3 "$domain" hvpoke info no-such-domain
suspended() {
	virsh suspend "$domain" >/dev/null && fails_with 1 "paused" hvpoke toggle "$domain" +p &&
		[ "$(domain_state "$domain")" = paused ] && virsh resume "$domain" >/dev/null &&
		[ "$(domain_state "$domain")" = running ] && hvpoke toggle "$domain" +p
}
check "a domain that an operator suspended stays suspended" suspended

# On a terminal it asks. hvpoke's own exit code is script's (-e).
define "$domain-tty" q35 "" ""
before=$(definition "$domain-tty")
# answer TEXT: libvirt-setup on a terminal, at which somebody types that
answer() {
	script -qec "${HVPOKE_BUILD:-build/release}/hvpoke libvirt-setup --socket-dir $sockets $domain-tty" \
		/dev/null <<<"$1"
}
says_no() {
	local out
	out=$(answer n) && return 1
	echo "$out"
	grep -qF "definition like this? [y/N]" <<<"$out" && [ "$before" = "$(definition "$domain-tty")" ]
}
says_yes() { answer y && shows "$sockets/ivshmem" definition "$domain-tty"; }
check "on a terminal libvirt-setup asks, and no is no" says_no
check "and yes is yes" says_yes
check "with --json it says that nothing is to be done" \
	jq_is '.changed == "nothing" and (.message | length > 0)' setup --json "$domain-tty"

# A connection by way of another host, as libvirt sees it: over a program's standard input.
cat >"$sockets/elsewhere" <<-END
	#!/bin/sh
	exec virt-ssh-helper qemu:///system
END
chmod 755 "$sockets/elsewhere"
remote() {
	timeout 60 "${HVPOKE_BUILD:-build/release}"/hvpoke \
		--connect "qemu+ext://me@elsewhere/system?command=$sockets/elsewhere" "$@"
}
check "a domain on another host has its socket there" \
	fails_with 3 "runs on elsewhere" remote info "$domain"
check "and is listed by what libvirt says" \
	jq_is ".[] | select(.name == \"$domain\") | .state == \"running\" and .agent == null" \
	remote list --json

# No root port at all: one is added, and the guest finds the device behind it.
define "$domain-bare" q35 "<controller type='usb' model='none'/><memballoon model='none'/>" ""
check "where no root port is free one is added (CASES 11)" \
	shows "a new one" setup "$domain-bare" --yes
virsh start "$domain-bare" >/dev/null
check "and its guest finds the device there" wait_until 60 has_agent "$domain-bare"
virsh destroy "$domain-bare" >/dev/null

# Running without a monitor: only the definition can be changed.
define "$domain-pc" pc "" ""
virsh start "$domain-pc" >/dev/null
check "a domain without the device is told how to get it" \
	fails_with 3 "libvirt-setup" hvpoke toggle "$domain-pc" +p
check "a running domain without a monitor: the definition is changed, and it says so" \
	shows "The running QEMU was not" setup "$domain-pc" --yes
virsh destroy "$domain-pc" >/dev/null

# Running with one: the device can be plugged in.
define "$domain-plug" q35 "" "$monitor"
virsh start "$domain-plug" >/dev/null
check "a running domain with a monitor gets the device at once" \
	shows "was hot-plugged" setup "$domain-plug" --yes
check "and libvirt has it in the running domain" shows "ivshmem-doorbell" virsh dumpxml "$domain-plug"
check "and then it has all that it needs" \
	shows "The running domain has all that it needs already" setup "$domain-plug"
virsh destroy "$domain-plug" >/dev/null

# Running with one, but with no root port: that cannot be plugged in.
define "$domain-full" q35 "<controller type='usb' model='none'/><memballoon model='none'/>" "$monitor"
virsh start "$domain-full" >/dev/null
check "where it cannot be hot-plugged, the definition is changed, and it says so" \
	shows "could not be hot-plugged" setup "$domain-full" --yes
virsh destroy "$domain-full" >/dev/null

# Without a definition there is nothing to be changed.
sed "s/$domain-full/$domain-transient/" "$sockets/$domain-full.xml" >"$sockets/transient.xml"
virsh create "$sockets/transient.xml" >/dev/null
check "a transient domain is told where to add it" fails_with 1 "is transient" setup "$domain-transient"
finish
