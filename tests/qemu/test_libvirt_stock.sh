#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_libvirt_stock.sh SERIES - a domain of libvirt's with a stock Debian kernel, emulated,
# which gets hvpoke by the README's "A libvirt guest that you have already"; what requests by
# the domain's name leave is compared with what the kernel's own way leaves. Prints TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
. scripts/qemu-guest.sh
. tests/linux/tap.sh
. tests/qemu/stock.sh
. tests/qemu/libvirtd.sh

series=$1 vcpus=2
export HVPOKE_QUIET=1
plan 38
domain=hvpoke-stock-$$
stock_test_begin "check-libvirt-stock-$series"
cleanup() {
	domain_remove "$domain"
	libvirtd_stop
	stock_test_end
}
trap cleanup EXIT
libvirtd_start
stock_test_prepare "$series"
# Where QEMU's own user can read them.
cp "$guest_kernel" "$sockets/vmlinuz"
cp "$guest_initrd" "$sockets/initrd.img"
hvpoke_options=(--connect "$uri")
guest_begin "$domain" "$sockets"
# libvirt has no setting for the thread (qemu_accel says what it is about).
cat >"$sockets/qemu" <<END
#!/bin/sh
for word; do
	shift
	[ "\$word" != tcg ] || word=$qemu_accel
	set -- "\$@" "\$word"
done
exec qemu-system-x86_64 "\$@"
END
chmod 755 "$sockets/qemu"
cat >"$sockets/domain.xml" <<END
<domain type='qemu'>
  <name>$domain</name>
  <memory unit='MiB'>512</memory>
  <vcpu>$vcpus</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>$sockets/vmlinuz</kernel>
    <initrd>$sockets/initrd.img</initrd>
    <cmdline>$qemu_cmdline</cmdline>
  </os>
  <features><acpi/><apic/></features>
  <devices>
    <emulator>$sockets/qemu</emulator>
    <serial type='file'><source path='$guest_log' append='on'/><target port='0'/></serial>
    <serial type='pipe'><source path='${guest_log%.console}'/><target port='1'/></serial>
  </devices>
</domain>
END
virsh define "$sockets/domain.xml" >/dev/null || die "libvirt does not take the domain"
host_start "$sockets" || die "hvpoked does not start"

boots() { virsh start "$domain" && guest_wait_shell 120; }
runs() { [ "$(domain_state "$domain")" = running ]; }
load() { run "insmod /usb-common.ko && insmod /usbcore.ko && insmod /hvpoke.ko" && wait_until 30 guest_has_agent; }
# A kernel lies elsewhere after each boot: off and on as its own way leaves them.
reference() {
	toggle clean =_ && state off && toggle native-on --native +p && state on && differ on off &&
		holds native-on '.sites > 1900 and .native_sites == .sites' &&
		toggle native-off --native -p && state_is off
}
# One pair through hvpoke, each request in one pause and libvirt's view of the domain right.
by_host() {
	toggle by-host "$1" && runs && state_is "$2" &&
		holds by-host '.pauses == 1 and .batches == 1 and .native_sites == 0 and .fallback == null'
}
pair() { by_host +p on && by_host -p off; }

# As it is today: without the device.
check "the domain boots a stock kernel" boots
check "list shows it running" jq_is ".[] | select(.name == \"$domain\") | .state == \"running\"" \
	hvpoke list --json
check "a request names the command that adds the device" \
	fails_with 3 "libvirt-setup $domain" hvpoke toggle "$domain" +p
refused() { ! run "insmod /hvpoke.ko"; }
check "the module does not load without it" refused
check "and says why" logged "there is no PCI device 1af4:1110"

# The quick start. A guest with acpid would follow "virsh shutdown".
before=$(definition "$domain")
unchanged() { fails_with 1 "+    <shmem" setup "$domain" && [ "$before" = "$(definition "$domain")" ]; }
check "libvirt-setup shows what it would add and asks" unchanged
check "--yes changes the definition, and says that the running domain is not" \
	shows "Shut the domain down and start it again" setup "$domain" --yes
virsh destroy "$domain" >/dev/null
check "the domain starts with the device and boots" boots
check "hvpoke.ko loads and the agent registers" load
check "info shows agent, kernel and accelerator" jq_is \
	".agent.kernel == \"$stock_release\" and .vcpus == $vcpus and .accelerator == \"tcg\" and .monitor" \
	hvpoke info --json "$domain"

# Requests by the domain's name.
check "natively: text, keys and control file change, and change back" reference
check "each static key's count is 0 while it is off" \
	counts_are off "$(field native-on matched)" 0
check "and 1 while it is on" counts_are on "$(field native-on matched)" 1
check "+p: one pause; text, keys and control file as natively; libvirt says running" by_host +p on
check "-p: likewise" by_host -p off
for query in '!module virtio* +p' '!module usb* +pfl; func usb_* +p'; do
	check "'$query' leaves what it leaves natively" as_native "$query"
done
toggle clean =_
check "'module !virtio* +p' is explained" \
	fails_with 2 "the '!' belongs before the keyword" hvpoke toggle "$domain" 'module !virtio* +p'
check "and nothing is changed" state_is off
stats_count() {
	local before
	before=$(hvpoke stats --json "$domain" | jq .batches)
	pair && jq_is ".batches == $before + 2 and .refused == 0" hvpoke stats --json "$domain"
}
check "stats count a pair's two batches" stats_count
stays_running() {
	local i
	for i in {1..20}; do
		toggle on +p && runs && toggle off -p && runs || return 1
	done
}
check "libvirt sees the domain running after each of 40 requests" stays_running
check "and nothing is lost" state_is off

# Translated code is what runs: messages come, and stop.
messages >/dev/null
check "a site that is off prints nothing" [ "$(messages)" = 0 ]
toggle message 'func kobject_uevent_env +p'
check "switched on it prints" [ "$(messages)" != 0 ]
toggle message 'func kobject_uevent_env -p'
check "switched off again it does not" [ "$(messages)" = 0 ]

# What an operator does to the domain, and to hvpoked.
suspended() { [ "$(domain_state "$domain")" = paused ]; }
virsh suspend "$domain" >/dev/null
check "a suspended domain's request is refused" fails_with 1 "paused" hvpoke toggle "$domain" +p
check "and it stays suspended" suspended
virsh resume "$domain" >/dev/null
resumed() { runs && state_is off && pair; }
check "resumed it runs, nothing was changed, and requests work" resumed

host_stop -KILL
host_start "$sockets"
check "a new hvpoked finds the running domain" wait_until 30 guest_has_agent
check "and does its requests" pair

virsh reset "$domain" >/dev/null
check "the domain boots again after virsh reset" guest_wait_shell 120
check "and its agent is found again" load
after_boot() { reference && pair; }
check "and its requests are done" after_boot

virsh destroy "$domain" >/dev/null
check "a request to a domain that was destroyed is answered with that" \
	fails_with 3 "shut off" hvpoke toggle "$domain" +p
check "it starts again" boots
check "and its agent is found again" load
check "and its requests are done" after_boot
all_boots() { [ "$(grep -c 'Linux version' "$guest_log")" = 4 ] && quiet; }
check "no warning in the guest's log, through four boots" all_boots
finish
