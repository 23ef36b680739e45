# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Sourced by the scripts: progress, the machine, the caches.

cache=${HVPOKE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hvpoke}

# progress TEXT - on a terminal a line that the next one replaces; else a plain line.
progress() {
	if [ -t 2 ]; then
		printf '\r\033[K%s ...' "$*" >&2
	elif [ -z "${HVPOKE_QUIET:-}" ]; then
		echo "$* ..." >&2
	fi
}
progress_end() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

die() {
	progress_end
	echo "${0##*/}: $*" >&2
	exit 1
}

# vmx, svm or pvm: what runs guests behind /dev/kvm; "none" without it.
kvm_backend() {
	[ -w /dev/kvm ] || { echo none; return; }
	local b found=
	for b in intel:vmx amd:svm pvm:pvm; do
		[ ! -d "/sys/module/kvm_${b%:*}" ] || found=$found${b#*:}
	done
	# None, or more than one: not to be told from here (vmm/kvm_backend.c does the same).
	case $found in
	vmx | svm | pvm) echo "$found" ;;
	*) echo unknown ;;
	esac
}

# One line about the machine, for reports.
machine() {
	local model
	model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	echo "$(nproc) x ${model:-unknown CPU}, Linux $(uname -r), KVM back end: $(kvm_backend)"
}

# wait_until SECONDS COMMAND... - until it succeeds.
wait_until() {
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.2
	done
}
