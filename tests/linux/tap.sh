# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by test scripts, after lib.sh where they wait: results as TAP (testanything.org).

tap_plan=0
tap_n=0
tap_failed=0

plan() {
	tap_plan=$1
	echo "1..$1"
}

# check DESCRIPTION COMMAND... - passes if the command does.
check() {
	local what=$1 out
	shift
	tap_n=$((tap_n + 1))
	if out=$("$@" 2>&1); then
		echo "ok $tap_n - $what"
	else
		echo "not ok $tap_n - $what"
		echo "# $*"
		[ -z "$out" ] || sed 's/^/# /' <<<"$out" | tail -n 20
		tap_failed=$((tap_failed + 1))
	fi
}

# skip DESCRIPTION REASON - a check that cannot be made on this machine.
skip() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1 # SKIP $2"
}

# skip_rest REASON - all that is left of the plan cannot run on this machine.
skip_rest() {
	while [ $tap_n -lt "$tap_plan" ]; do
		tap_n=$((tap_n + 1))
		echo "ok $tap_n # SKIP $1"
	done
	exit 0
}

# Ends with 0 if all of the plan has passed.
finish() {
	[ $tap_failed = 0 ] && [ $tap_n = "$tap_plan" ]
	exit
}

# jq_is FILTER COMMAND... - the command's JSON, true for the filter.
jq_is() {
	local filter=$1
	shift
	"$@" | jq -e "$filter"
}

# shows TEXT COMMAND... - it succeeds, and says that.
shows() { fails_with 0 "$@"; }

# fails_with CODE TEXT COMMAND... - it ends with that code, and says that.
fails_with() {
	local want=$1 text=$2 out code
	shift 2
	out=$("$@" 2>&1 </dev/null)
	code=$?
	echo "$out"
	[ $code = "$want" ] && grep -qF -- "$text" <<<"$out"
}

# Lines with TEXT in FILE.
lines_of() { grep -c -- "$2" "$1" || true; }

# wait_for_new_line FILE TEXT SECONDS
wait_for_new_line() {
	local before
	before=$(lines_of "$1" "$2")
	more() { [ "$(lines_of "$1" "$2")" -gt "$before" ]; }
	wait_until "$3" more "$1" "$2"
}

# no_new_line FILE TEXT SECONDS - after a moment for what was on its way.
no_new_line() {
	local before
	sleep 2
	before=$(lines_of "$1" "$2")
	sleep "$3"
	[ "$(lines_of "$1" "$2")" = "$before" ]
}
