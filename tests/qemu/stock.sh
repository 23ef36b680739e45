# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the tests of stock kernels under QEMU (after lib.sh, qemu-guest.sh and tap.sh):
# a guest with a shell, its requests and the host's, and what they leave in its memory.

# stock_test_begin NAME - work, below build/, for what is left of the test, and sockets, for
# hvpoked and the guest's serial ports: the addresses of sockets are short.
stock_test_begin() {
	work=build/$1
	rm -rf "$work"
	mkdir -p "$work"
	sockets=$(mktemp -d /tmp/hvpoke-stock-XXXXXX)
	chmod 755 "$sockets"
	export HVPOKE_RUNTIME_DIR=$sockets/vms
}

stock_test_end() {
	guest_stop
	host_stop
	cp "$sockets"/*.{log,console} "$work" 2>/dev/null
	rm -rf "$sockets"
}

# stock_test_prepare SERIES - the guest's kernel and root, with usbcore and state.sh.
stock_test_prepare() {
	guest_files=(tests/qemu/state.sh)
	stock_had "$1" usb-common usbcore || skip_rest "$stock_why"
	qemu_prepare "$1" usb-common usbcore || die "the guest could not be prepared"
	usbcore_text=$((0x$(readelf -SW "$stock_dir/usbcore.ko" |
		sed -n 's/.* \.text  *PROGBITS  *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\).*/\1/p')))
}

run() { guest_run 180 "$@"; }
# In the guest's own way of asking.
control() { run "echo '$1' >/proc/dynamic_debug/control"; }

# The state as tests/qemu/state.sh saves it: text, descriptors with their keys, control file.
state() { run "/state.sh $1 $usbcore_text"; }
same() { run "for f in text keys control; do cmp /tmp/$1.\$f /tmp/$2.\$f || exit; done"; }
# In text and keys both; cmp's 2 is an error.
differ() { run "for f in text keys; do cmp -s /tmp/$1.\$f /tmp/$2.\$f; [ \$? = 1 ] || exit 1; done"; }
# state_is NAME - is it the state that was saved as NAME? If not, where is it another?
state_is() { state now && { same now "$1" || ! where "$1"; }; }
where() { run "for f in text keys control; do echo \$f:; cmp -l /tmp/now.\$f /tmp/$1.\$f | head -n 8; done"; }
# state_becomes NAME - the same, where others have patched who may not be done: kprobes are
# optimized, and the other way round, when the kernel finds the time.
state_becomes() { wait_until 120 state_is "$1"; }
# settled NAME - the state, saved as NAME, once it stays what it is.
settled() {
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		state "$1"
		sleep 2
		! state_is "$1" >/dev/null || return 0
	done
	return 1
}
# counts NAME - of the saved static keys: "how many  count" for each count there is. A struct
# _ddebug is 14 words, the eleventh of which is the count of its key.
counts() { run "od -A n -v -t d4 -w56 -j 40 /tmp/$1.keys | sed 's/^ *\([-0-9]*\).*/\1/' | sort | uniq -c"; }
# counts_are NAME N COUNT - N keys, each with that count?
counts_are() { counts "$1" && [ "$(counts "$1" | xargs)" = "$2 $3" ]; }

# last FIELD - of the agent's last request.
last() { run "sed -n 's/^$1 //p' /sys/module/hvpoke/parameters/last_request"; }
last_by_host() { [ "$(last native_sites)" = 0 ] && [ "$(last batches)" = 1 ]; }

# toggle OUT ARGS... - from the host; its JSON goes to $work/OUT.json.
toggle() {
	local out=$1
	shift
	"$hvpoke" "${hvpoke_options[@]}" toggle --timeout 180 --json "$guest_name" "$@" >"$work/$out.json"
}
field() { jq -r ".$2" "$work/$1.json"; }
holds() { jq -e "$2" "$work/$1.json" >/dev/null || { cat "$work/$1.json"; false; }; }

# Mixed queries: the same through hvpoke as natively, on the same text.
as_native() {
	toggle clean =_ && toggle query-native --native "$1" && state query &&
		toggle clean =_ && toggle query "$1" && state_is query &&
		holds query '.pauses <= 1 and .native_sites == 0' &&
		[ "$(field query changed)" = "$(field query-native changed)" ]
}

# messages - how often one known site's message comes when it is run.
messages() {
	run "dmesg -c >/dev/null; echo add >/sys/class/mem/null/uevent; dmesg | grep -cF \"kobject: 'null'\""
}

logged() { run "dmesg | grep -F \"$1\""; }
# The console without what 6.1 warns of by itself: free_module() marks a module UNFORMED a
# moment before dynamic debug forgets its sites (kernel/module/main.c), and who switches
# one in between is told that its jump label cannot be patched. It is left alone then, by
# the kernel, before anybody is asked to patch it.
log_without_own() {
	case $stock_release in
	6.1.*)
		awk '/ cut here / { held = $0; next }
			held != "" { if (/can.t patch jump_label at/) skip = 1; else print held; held = "" }
			!skip; / end trace / { skip = 0 }' "$guest_log" ;;
	*) cat "$guest_log" ;;
	esac
}
# The whole log: the console has all but debug messages.
quiet() { ! log_without_own | grep -E 'WARNING:|BUG:|Oops|Call Trace|no instruction of this'; }
