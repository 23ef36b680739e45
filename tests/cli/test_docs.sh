#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# test_docs.sh - what is written about hvpoke and its protocol is what hvpoke
# does: commands, options, error codes, methods. Prints TAP. Run from anywhere;
# hvpoke is taken from PATH.
#
# shellcheck disable=SC2317,SC2016 # functions that are called by name; no expansion is meant
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

man=docs/man/hvpoke.1
protocol=proto/control.md
completion=configs/completion/hvpoke.bash
nr=0 failed=0

# check NAME COMMAND... - one result; what COMMAND prints explains a failure.
check() {
	local name=$1 log
	shift
	nr=$((nr + 1))
	if log=$("$@" 2>&1); then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		printf '%s\n' "${log:-no output}" | sed 's/^/# /'
		failed=1
	fi
}

commands() { hvpoke help | sed -n 's/^  \([a-z-]*\) .*/\1/p'; }
# Without the first dash, which mdoc(7) adds.
options() { hvpoke help | grep -o -e '--[a-z-]*' | sed 's/^-//' | sort -u; }
# The codes of all calls of hvp_call_fail() and of the server's own refusals.
codes() {
	grep -hozP '(hvp_call_fail\([^,]*,|refuse\([^,"]*(, [^,"]*)*,|complain\(client,|turn_away\(fd,)\s*"[a-z-]+"' \
		patcher/control*.c patcher/service*.c vmm/vm_control.c qemu/vm_control.c |
		tr '\0' '\n' | grep -o '"[a-z-]*"' | tr -d '"' | grep -vx null | sort -u
}
# The codes of the table in the protocol's text.
promised() { sed -n '/^## Errors/,/^## Methods/s/^| `\([a-z-]*\)` .*/\1/p' "$protocol"; }
methods() {
	{
		sed -n 's/^\t{ *"\([a-z-]*\)", hvp_service_.*/\1/p' patcher/service.h
		sed -n 's/^\t{ *"\([a-z]*\)", handle_.*/\1/p' vmm/vm_control.c
		echo subscribe
	} | sort -u
}

# each LIST PATTERN FILE - every word of what LIST prints is in FILE, as PATTERN says (@: the word).
each() {
	local words word missing=0
	words=$("$1")
	[ "$(wc -w <<<"$words")" -ge 3 ] || { echo "$1 found only: $words"; return 1; }
	for word in $words; do
		grep -q -E -e "${2//@/$word}" "$3" || { echo "$word is missing in $3"; missing=1; }
	done
	return "$missing"
}

# documented_codes - no code is promised that nobody uses.
documented_codes() {
	local code missing=0
	for code in $(promised); do
		codes | grep -qx "$code" || { echo "$code is never used"; missing=1; }
	done
	return "$missing"
}

exits() {
	local expected=$1 code
	shift
	HVPOKE_RUNTIME_DIR=/nonexistent "$@" >/dev/null
	code=$?
	[ "$code" = "$expected" ] || { echo "exit code $code, not $expected: $*"; return 1; }
}

# The example's kernel command line is the one that the demo and the tests use.
same_cmdline() {
	diff <(jq -r .cmdline configs/small.json) \
		<(grep -v '^#' configs/kernel/software-backend.cmdline | xargs)
}

# Documents name tests that there are: files, or functions, or what several begin with.
tests_exist() {
	local name missing=0
	for name in $(grep -ho 'test_[a-z0-9_]*' docs/*.md README.md | sort -u); do
		compgen -G "tests/*/$name.*" >/dev/null ||
			grep -rqE "void $name" tests --include='*.c' || { echo "there is no $name"; missing=1; }
	done
	return "$missing"
}

check "configs/small.json has the small guest's command line" same_cmdline
check "every test that a document names is there" tests_exist
check "the man page has every command" each commands '^\.Cm .*\<@\>|^\.It Cm .*\<@\>' $man
check "the man page has every option" each options 'Fl @\>' $man
check "the completion has every command" each commands "commands='.*\<@\>" $completion
check "the completion has every option" each options '-@\>' $completion
check "the protocol's text has every error code" each codes '^\| `@` ' $protocol
check "the protocol's text has no other error code" documented_codes
check "the protocol's text has every method" each methods '^### .*\<@\>' $protocol
check "hvpoke without a command exits with 2" exits 2 hvpoke
check "hvpoke with a bad query exits with 2" exits 2 hvpoke toggle nosuch 'fun x +p'
check "hvpoke with an unknown VM exits with 3" exits 3 hvpoke info nosuch
check "hvpoke list without VMs exits with 0" exits 0 hvpoke list
if command -v mandoc >/dev/null; then
	# Not -W style: it looks for the other manual among those installed.
	check "the man page has no mandoc findings" mandoc -T lint -W warning $man
else
	nr=$((nr + 1))
	echo "ok $nr - # SKIP mandoc is not installed"
fi
echo "1..$nr"
exit $failed
