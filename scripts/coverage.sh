#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# coverage.sh [SUITE...] - build with gcov's counters, run the tests (or those SUITEs only),
# print the share of lines and of branches that they reach for each file, and the ones
# that they do not. Fails below the bounds. What is counted, and why: docs/reliability.md.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/lib.sh

min_lines=${MIN_LINES:-95} min_branches=${MIN_BRANCHES:-90}
out=build/coverage
export CMOCKA_MESSAGE_OUTPUT=TAP

# All of the engine, the server and the command line; of the VMM the way of a pause and of
# a doorbell: port access, bus, batch, kick, gate, the control socket's pause and resume.
counted='patcher/|vmm/(bus|doorbell|memory|pause|vcpu|vm|vm_control)\.c$'

progress "building coverage"
make --no-print-directory -j"$(nproc)" -s VARIANT=coverage \
	programs unit-tests kvm-tests qemu-tests failing-tests >"$out.log" 2>&1 || {
	progress_end
	tail -n 30 "$out.log"
	die "the coverage variant does not build"
}
find $out -name '*.gcda' -delete

suites=("$@")
if [ ${#suites[@]} = 0 ]; then
	for test in "$out"/tests/{unit,failing,kvm}/test_* "$out"/tests/qemu/test_hvpoked*; do
		# 100,000 batches more reach nothing that the others do not.
		[[ $test != */test_torn ]] && [ -x "$test" ] && [ -f "$test" ] && suites+=("$test")
	done
	suites+=(tests/cli/test_docs.sh tests/qemu/test_libvirt.sh)
fi
failed=0
PATH=$PWD/$out:$PATH
export HVPOKE_BUILD=$out
# The tests of the VMM where there is no KVM (tests/kvm/played).
played=$PWD/$out/tests/kvm/libplayedkvm.so
for test in "${suites[@]}"; do
	preload=()
	case $(kvm_backend)/$test in
	none/*/tests/kvm/* | none/*/tests/failing/*) preload=(LD_PRELOAD="$played") ;;
	esac
	progress "running $test"
	if ! timeout -k 10 900 env "${preload[@]}" "$test" >"$out/${test##*/}.log" 2>&1 </dev/null; then
		progress_end
		echo "FAILED: $test, see $out/${test##*/}.log"
		failed=1
	fi
done
progress_end

# The side of an assert() that ends the program is not counted.
gcovr --root . --object-directory $out $out --filter "$counted" \
	--exclude-branches-by-pattern '.*\bassert\(' \
	--json $out/coverage.json 2>"$out/gcovr.log" || {
	tail -n 20 "$out/gcovr.log"
	die "gcovr failed"
}

# One row a file, directories and the total behind them; then what was not reached. A line
# or branch that a marker in the source excludes (gcovr: LCOV_EXCL_...) does not count.
jq -r --argjson min_lines "$min_lines" --argjson min_branches "$min_branches" '
def share(a; b): if b == 0 then 100 else (a * 1000 / b | floor) / 10 end;
def pad(n): tostring | if length < n then " " * (n - length) + . else . end;
def row: (.name + " " * (36 - (.name | length)))
	+ (share(.hit; .lines) | pad(8)) + " %" + ("\(.hit)/\(.lines)" | pad(11))
	+ (share(.taken; .branches) | pad(8)) + " %" + ("\(.taken)/\(.branches)" | pad(11));
def sum(name): {name: name, hit: (map(.hit) | add), lines: (map(.lines) | add),
	taken: (map(.taken) | add), branches: (map(.branches) | add)};
[.files[] | {name: .file,
	counts: [.lines[] | select((."gcovr/noncode" | not) and (."gcovr/excluded" | not))]}
 | {name, counts, hit: ([.counts[] | select(.count > 0)] | length), lines: (.counts | length),
	taken: ([.counts[].branches[] | select(.count > 0)] | length),
	branches: ([.counts[].branches[]] | length)}] as $files
| ($files | sum("total")) as $all
| "file                                     lines              branches",
  ($files[] | row),
  (["patcher/cli/", "patcher/", "vmm/"][] as $dir
   | ($files | map(select(.name | startswith($dir))) | select(length > 0)
	| sum($dir + "*") | row)),
  ($all | row),
  "",
  "not reached: lines; of lines that are reached, branches (how many of how many):",
  ($files[] | "  \(.name): " + ([.counts[]
   | if .count == 0 then "\(.line_number)"
     elif any(.branches[]; .count == 0) then
	"\(.line_number) (\([.branches[] | select(.count == 0)] | length)/\(.branches | length))"
     else empty end] | select(length > 0) | join(", "))),
  "",
  "coverage: \(share($all.hit; $all.lines)) % of lines (bound: \($min_lines)), " +
  "\(share($all.taken; $all.branches)) % of branches (bound: \($min_branches))",
  if share($all.hit; $all.lines) < $min_lines or share($all.taken; $all.branches) < $min_branches
  then "BELOW THE BOUND" else empty end
' $out/coverage.json >$out/report.txt || die "the report of gcovr is not what jq expects"
cat $out/report.txt
[ $failed = 0 ] && ! grep -qx "BELOW THE BOUND" $out/report.txt
