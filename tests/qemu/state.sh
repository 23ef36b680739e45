#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# state.sh NAME [SIZE] - runs in the guest: the kernel's text, and what dynamic debug says
# of its sites, into /tmp/NAME.text and /tmp/NAME.control; if usbcore is loaded, the SIZE
# bytes of its text, too. Read through /proc/kcore, so it is what the guest's memory holds.

# Addresses have their sign bit set: differences are right, comparisons are made of those.
read_text() {
	od -A n -v -t x8 -w56 -j 64 -N $((56 * $(od -A n -t u2 -j 56 -N 2 /proc/kcore))) /proc/kcore |
	while read -r _ offset address _ _ size _; do
		distance=$(($1 - 0x$address))
		[ $distance -ge 0 ] && [ $distance -lt $((0x$size)) ] || continue
		dd if=/proc/kcore bs=4096 skip=$(((0x$offset + distance) / 4096)) \
			count=$((($2 + 4095) / 4096)) 2>/dev/null
		break
	done
}
symbol() { sed -n "s/^\([0-9a-f]*\) [Tt] $1\$/0x\1/p" /proc/kallsyms; }

start=$(symbol _stext)
read_text "$start" $(($(symbol _etext) - start)) >"/tmp/$1.text"
usbcore=/sys/module/usbcore/sections/.text
[ ! -f $usbcore ] || read_text "$(cat $usbcore)" "$2" >>"/tmp/$1.text"
cat /proc/dynamic_debug/control >"/tmp/$1.control"
# At least what the smallest kernel's text would be: a dump that failed must not pass.
[ "$(stat -c %s "/tmp/$1.text")" -gt 8000000 ]
