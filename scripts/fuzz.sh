#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# fuzz.sh run [TARGET] [SECONDS] - fuzz one target or all of them (as many at a time as there
#	are cores), each for SECONDS (3600). What is found to be new goes to
#	build/fuzz/corpus/TARGET, which the next run starts from. Ends with an error, and the
#	command that does it again, if something was found.
# fuzz.sh smoke TARGET - what `make check` does: all that is kept in the tree, and then some
#	thousand new inputs. Prints TAP.
#
# The targets are in build/fuzz (make VARIANT=fuzz fuzz-targets).
set -euo pipefail
cd "$(dirname "$0")/.."

SMOKE_RUNS=20000
SMOKE_SECONDS=10
# More than this for one input is a hang, even on a machine that emulates everything.
HANG_SECONDS=120

export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

targets() {
	local file
	for file in tests/fuzz/fuzz_*.c; do
		file=${file##*/fuzz_}
		echo "${file%.c}"
	done
}

program() { echo "build/fuzz/tests/fuzz/fuzz_$1"; }

check_target() {
	[ -n "$1" ] && [ -f "tests/fuzz/fuzz_$1.c" ] && return
	echo "fuzz.sh: no target \"$1\"; there are: $(targets | xargs)" >&2
	exit 2
}

# The number that libFuzzer printed behind "NAME: " last, in the log.
stat_of() { sed -n "s/^.*$2:* *\([0-9][0-9]*\).*/\1/p" "$1" | tail -n 1; }

# options TARGET FINDINGS - for all runs.
options() {
	local dict=tests/fuzz/$1.dict
	printf '%s\n' "-artifact_prefix=$2/" -timeout=$HANG_SECONDS -rss_limit_mb=2048 \
		-print_final_stats=1 -max_len="$(max_len "$1")"
	[ ! -f "$dict" ] || echo "-dict=$dict"
}

# Some inputs want to be longer than what libFuzzer takes from the seeds.
max_len() {
	case $1 in
	client | control | loader) echo 65536 ;;
	*) echo 8192 ;;
	esac
}

# fuzz TARGET SECONDS - one target, until it finds something or the time is over.
fuzz() {
	local target=$1 seconds=$2 seeds=tests/fuzz/corpus/$1 corpus=build/fuzz/corpus/$1
	local findings=build/fuzz/findings/$1 log=build/fuzz/$1.log code=0 opts dirs
	mkdir -p "$corpus" "$findings"
	mapfile -t opts < <(options "$target" "$findings")
	# New inputs go to the first of them.
	mapfile -t dirs < <(printf '%s\n' "$corpus" "$seeds"; regressions "$target")
	"$(program "$target")" "${opts[@]}" -max_total_time="$seconds" "${dirs[@]}" \
		>"$log" 2>&1 || code=$?
	printf '%-10s %12s executions %6s edges of %6s %6s features %6s inputs kept\n' "$target" \
		"$(stat_of "$log" 'stat::number_of_executed_units')" "$(stat_of "$log" ' cov')" \
		"$(stat_of "$log" 'Loaded 1 modules[^(]*(')" "$(stat_of "$log" ' ft')" \
		"$(find "$corpus" -type f | wc -l)"
	[ $code != 0 ] || return 0
	tail -n 60 "$log"
	echo "fuzz.sh: $target found something, see $log; again with:"
	echo "  $(program "$target") $(sed -n 's/.*Test unit written to //p' "$log")"
	return 1
}

regressions() {
	[ ! -d "tests/fuzz/regressions/$1" ] || echo "tests/fuzz/regressions/$1"
}

run() {
	local failed=0
	if [ -n "$1" ]; then
		check_target "$1"
		fuzz "$1" "$2"
		return
	fi
	echo "$(targets | wc -l) targets, $2 s each, $(nproc) at a time; logs in build/fuzz"
	targets | xargs -P "$(nproc)" -I{} "$0" run {} "$2" || failed=1
	return $failed
}

# tap NUMBER NAME LOG COMMAND... - one result; what went wrong is shown.
tap() {
	local number=$1 name=$2 log=$3
	shift 3
	if "$@" >"$log" 2>&1; then
		echo "ok $number - $name: $(stat_of "$log" 'stat::number_of_executed_units') executions"
	else
		sed 's/^/# /' "$log" | tail -n 100
		echo "not ok $number - $name; again with: $*"
	fi
}

smoke() {
	local target=$1 work=build/fuzz/smoke/$1 opts number=1
	check_target "$target"
	rm -rf "$work"
	mkdir -p "$work/corpus" "$work/findings"
	mapfile -t opts < <(options "$target" "$work/findings")
	echo "1..$((2 + $(regressions "$target" | wc -l)))"
	tap $number "seeds" "$work/seeds.log" "$(program "$target")" "${opts[@]}" -runs=0 \
		"tests/fuzz/corpus/$target"
	for regression in $(regressions "$target"); do
		number=$((number + 1))
		tap $number "what was found before" "$work/regressions.log" "$(program "$target")" \
			"${opts[@]}" -runs=0 "$regression"
	done
	# The same ones each time: whether a change passes is no matter of luck. "run" searches.
	tap $((number + 1)) "new inputs" "$work/new.log" "$(program "$target")" "${opts[@]}" -seed=1 \
		-runs=$SMOKE_RUNS -max_total_time=$SMOKE_SECONDS "$work/corpus" \
		"tests/fuzz/corpus/$target"
	rm -rf "$work/corpus"
}

case ${1:-} in
run) run "${2:-}" "${3:-3600}" ;;
smoke) smoke "${2:-}" ;;
*) sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
