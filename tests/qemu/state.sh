#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# state.sh NAME [SIZE] - runs in the guest: the kernel's text, dynamic debug's descriptors
# with their static keys, and its control file, into /tmp/NAME.text, NAME.keys and
# NAME.control, those of modules included; if usbcore is loaded, the SIZE bytes of its text,
# too. Read through /proc/kcore, so it is what the guest's memory holds.

descriptor=56 # sizeof(struct _ddebug)

# memory ADDRESS BYTES
# Addresses have their sign bit set: differences are right, comparisons are made of those.
memory() {
	od -A n -v -t x8 -w56 -j 64 -N $((56 * $(od -A n -t u2 -j 56 -N 2 /proc/kcore))) /proc/kcore |
	while read -r _ offset address _ _ size _; do
		distance=$(($1 - 0x$address))
		[ $distance -ge 0 ] && [ $distance -lt $((0x$size)) ] || continue
		dd if=/proc/kcore bs=65536 iflag=skip_bytes,count_bytes,fullblock \
			skip=$((0x$offset + distance)) count="$2" 2>/dev/null
		break
	done
}
symbol() { sed -n "s/^\([0-9a-f]*\) [A-Za-z] $1\$/0x\1/p" /proc/kallsyms; }
# between FIRST END - the kernel's memory from one symbol to the other.
between() {
	start=$(symbol "$1")
	memory "$start" $(($(symbol "$2") - start))
}

between _stext _etext >"/tmp/$1.text"
between __start___dyndbg __stop___dyndbg >"/tmp/$1.keys"
usbcore=/sys/module/usbcore/sections/.text
[ ! -f $usbcore ] || memory "$(cat $usbcore)" "$2" >>"/tmp/$1.text"
cat /proc/dynamic_debug/control >"/tmp/$1.control"
for file in /sys/module/*/sections/__dyndbg; do
	[ -f "$file" ] || continue
	module=${file#/sys/module/}
	module=${module%%/*}
	memory "$(cat "$file")" $((descriptor * $(grep -cF "[$module]" "/tmp/$1.control"))) >>"/tmp/$1.keys"
done

# At least what the smallest kernel's text would be, and a descriptor for each line but the
# heading: a dump that failed must not pass.
[ "$(stat -c %s "/tmp/$1.text")" -gt 8000000 ] &&
	[ "$(stat -c %s "/tmp/$1.keys")" = $((descriptor * ($(wc -l <"/tmp/$1.control") - 1))) ]
