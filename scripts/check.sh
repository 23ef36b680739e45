#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check.sh [PATTERN] - run every test (or those whose name matches the shell
# pattern) and end with "N passed, N failed, N skipped". Each suite is a
# program that prints TAP; logs are in build/check/.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

pattern=${1:-*}
logs=build/check
rm -rf "$logs"
mkdir -p "$logs"
passed=0 failed=0 skipped=0
failures=() skips=()

# suite NAME COMMAND... - run one; its output and its code and seconds go to logs.
suite() {
	local log=$logs/${1//\//-} started=$SECONDS
	timeout -k 10 "${SUITE_TIMEOUT:-2400}" "${@:2}" >"$log.log" 2>&1 </dev/null
	echo "$? $((SECONDS - started))" >"$log.code"
}

# count NAME - its TAP lines. A suite that dies, or prints fewer results than it
# planned, counts one failure more.
count() {
	local name=$1 log=$logs/${1//\//-}.log code seconds planned=0 seen=0 line
	local ok=0 bad=0 skip=0
	read -r code seconds <"${log%.log}.code"
	while IFS= read -r line; do
		case $line in
		"1..0 # SKIP"*) skip=$((skip + 1)) && skips+=("$name: ${line#*# SKIP }") ;;
		1..[0-9]*) planned=$((planned + ${line#1..})) ;;
		"ok "*"# SKIP"* | "not ok "*"# SKIP"*)
			skip=$((skip + 1)) seen=$((seen + 1))
			skips+=("$name: ${line#* - }") ;;
		"ok "*) ok=$((ok + 1)) seen=$((seen + 1)) ;;
		"not ok "*)
			bad=$((bad + 1)) seen=$((seen + 1))
			failures+=("$name: ${line#* - }") ;;
		esac
	done <"$log"
	if [ "$planned" != "$seen" ] || { [ "$code" != 0 ] && [ $bad = 0 ]; }; then
		bad=$((bad + 1))
		failures+=("$name: ended with code $code after $seen of $planned results, see $log")
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '%-44s %4d passed %3d failed %3d skipped %5d s\n' "$name" $ok $bad $skip "$seconds"
}

# Is it one of those that are wanted?
# shellcheck disable=SC2053 # a pattern is wanted
wanted() { [[ $1 == $pattern ]]; }

# run NAME COMMAND... - one suite.
run() {
	wanted "$1" || return 0
	progress "running $1"
	suite "$@"
	progress_end
	count "$1"
}

# run_accels NAME PROGRAM - one with tests of QEMU under TCG and with KVM.
run_accels() {
	case ${with_kvm[*]} in
	*kvm-guest.sh)
		run "$1" env "HVPOKE_TESTS=*tcg*" "$2"
		run "$1-kvm" "${with_kvm[@]}" "HVPOKE_TESTS='*kvm*'" "$2" ;;
	*) run "$1" "$2" ;;
	esac
}

# stock SCRIPT SERIES VCPUS - note a suite of a stock kernel under QEMU, for stock_run. Most
# emulate in one thread: two at a time take hardly longer than one.
stock_noted=()
stock() {
	local name=qemu/$1-$2
	[ "$3" = 2 ] || name+=-$3-vcpus
	! wanted "$name" || stock_noted+=("$name tests/qemu/test_$1.sh $2 $3")
}
stock_run() {
	local i
	for ((i = 0; i < ${#stock_noted[@]}; i += 2)); do
		progress "running ${stock_noted[i]%% *} ${stock_noted[i + 1]:+and ${stock_noted[i + 1]%% *}}"
		# shellcheck disable=SC2086 # several words are wanted
		suite ${stock_noted[i]} &
		# shellcheck disable=SC2086
		[ -z "${stock_noted[i + 1]:-}" ] || suite ${stock_noted[i + 1]}
		wait
		progress_end
		count "${stock_noted[i]%% *}"
		[ -z "${stock_noted[i + 1]:-}" ] || count "${stock_noted[i + 1]%% *}"
	done
}

# build VARIANT TARGET... - a build that fails is a failed test.
build() {
	local variant=$1 log=$logs/build-$1.log
	shift
	progress "building $variant: $*"
	if ! make --no-print-directory -j"$(nproc)" VARIANT="$variant" "$@" >"$log" 2>&1; then
		progress_end
		tail -n 30 "$log"
		failed=$((failed + 1))
		failures+=("build of $variant $*, see $log")
		return 1
	fi
	progress_end
}

# tests_in DIR - the programs in it, but for those that need fault points, which a release has none of.
tests_in() {
	local test
	for test in "$1"/test_*; do
		[ -x "$test" ] && [ -f "$test" ] || continue
		case ${test##*/} in
		test_crash* | test_short) ;;
		*) echo "$test" ;;
		esac
	done
}

export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=0:exitcode=66

build release programs kvm-tests linux-tests qemu-tests soak-bins \
	build/release/tests/failing/test_vm build/release/tests/failing/test_vm_control
build asan programs unit-tests qemu-tests failing-tests
build tsan programs unit-tests qemu-tests
build faults build/faults/tests/kvm/test_crash_vmm build/faults/hvpoked build/faults/tests/qemu/test_crash
build fuzz fuzz-targets

# Where this machine has no /dev/kvm, what needs it runs on an emulated one that has. If that
# cannot be had either, guests that need no kernel mode run with a KVM that is played.
with_kvm=()
played=(env "LD_PRELOAD=$PWD/build/release/tests/kvm/libplayedkvm.so")
if [ "$(kvm_backend)" = none ]; then
	if scripts/kvm-guest.sh true >"$logs/kvm-guest.log" 2>&1; then
		echo "no /dev/kvm here: the tests of hvpoke-vmm run on an AMD machine that QEMU emulates"
		with_kvm=(scripts/kvm-guest.sh)
	else
		echo "no /dev/kvm here, and none to be had: the tests of hvpoke-vmm run with one that is played"
		with_kvm=("${played[@]}")
	fi
fi

for test in build/asan/tests/unit/test_*; do
	[ -x "$test" ] && [ -f "$test" ] && run "asan/${test##*/}" "$test"
done
# Each call of libc and json-c fails once. A VM: with KVM, or played, which ASan's handlers disturb.
for test in build/asan/tests/failing/test_*; do
	[ -x "$test" ] && [ -f "$test" ] || continue
	case $(kvm_backend)/${test##*/} in
	none/test_vm*)
		run "failing/${test##*/}" "${played[@]}" "build/release/tests/failing/${test##*/}" ;;
	*/test_vm*) run "failing/${test##*/}" "build/release/tests/failing/${test##*/}" ;;
	*) run "failing/${test##*/}" "$test" ;;
	esac
done
# What runs threads, once more under TSan.
for name in pause guest batch race request control control_async control_socket client clients service service_changes \
	cli_changes audit undo; do
	[ -x "build/tsan/tests/unit/test_$name" ] &&
		run "tsan/test_$name" "build/tsan/tests/unit/test_$name"
done
# A glance at each fuzz target; "make fuzz" takes hours.
for target in tests/fuzz/fuzz_*.c; do
	target=${target##*/fuzz_}
	run "fuzz/${target%.c}" scripts/fuzz.sh smoke "${target%.c}"
done
PATH=$PWD/build/release:$PATH
for test in tests/cli/*.sh; do
	run "cli/$(basename "$test" .sh)" "$test"
done
# Where vCPUs must run side by side, an emulated machine's only CPU does not do: real processors
# run the guest's code then, with a KVM that is played.
for test in $(tests_in build/release/tests/kvm); do
	case ${with_kvm[*]}/${test##*/} in
	*kvm-guest.sh/test_torn | *kvm-guest.sh/test_forms) run "kvm/${test##*/}" "${played[@]}" "$test" ;;
	*) run "kvm/${test##*/}" "${with_kvm[@]}" "$test" ;;
	esac
done
# Killed at every step of a batch.
run faults/test_crash_vmm "${with_kvm[@]}" build/faults/tests/kvm/test_crash_vmm
# A glance at the soaks: "make soak" has them whole.
soak_kvm=(env)
[ "$(kvm_backend)" != none ] || soak_kvm=("${played[@]}")
for test in build/release/tests/soak/*; do
	[ -x "$test" ] && [ -f "$test" ] &&
		run "soak/${test##*/}" "${soak_kvm[@]}" BATCHES=10000 HOURS=0.25 "$test"
done
for name in hvpoked hvpoked_faults crash short exec; do
	for variant in asan tsan; do
		run "$variant/test_$name" "build/$variant/tests/qemu/test_$name"
	done
done
run_accels asan/test_crash_qemu build/asan/tests/qemu/test_crash_qemu
# A sanitizer's build has no sandbox, this one has.
run faults/test_crash build/faults/tests/qemu/test_crash
for test in $(tests_in build/release/tests/qemu); do
	case $test in
	*/test_qemu) run_accels "qemu/${test##*/}" "$test" ;;
	*) run "qemu/${test##*/}" "$test" ;;
	esac
done
run qemu/limits tests/qemu/test_limits.sh 6.1
run qemu/libvirt tests/qemu/test_libvirt.sh
run qemu/libvirt-stock-6.1 tests/qemu/test_libvirt_stock.sh 6.1
run qemu/libvirt-stock-6.12 tests/qemu/test_libvirt_stock.sh 6.12
stock stock 6.1 2
stock stock 6.12 2
stock stock 6.1 4
stock stock 6.12 4
stock stock 7 2
stock gate 6.1 2
stock gate 6.12 4
stock gate 7 2
stock stock_crash 6.1 2
stock requests 6.1 2
stock requests 7 2
stock undo 6.1 2
stock missing 6.1 2
run qemu/selftests tests/qemu/test_selftests.sh
run modules tests/modules/test_modules.sh
stock_run
run linux/foreign-host tests/linux/test_foreign_host.sh
# Here rather than on an emulated machine.
progress "building the guest's kernel"
scripts/build-kernel.sh >"$logs/build-kernel.log" 2>&1
progress_end
run linux/2-vcpus "${with_kvm[@]}" tests/linux/test_linux.sh 2
run linux/4-vcpus "${with_kvm[@]}" tests/linux/test_linux.sh 4
run linux/refusal "${with_kvm[@]}" tests/linux/test_refusal.sh

echo
for line in "${skips[@]}"; do echo "skipped: $line"; done
for line in "${failures[@]}"; do echo "FAILED: $line"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
