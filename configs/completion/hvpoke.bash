# SPDX-License-Identifier: GPL-2.0-or-later
# Bash completion for hvpoke(1): commands, options, and the VMs whose sockets
# are in the runtime directory. Needs nothing but bash.

_hvpoke_vms()
{
	local dir socket

	if [[ $HVPOKE_RUNTIME_DIR ]]; then
		dir=$HVPOKE_RUNTIME_DIR
	elif ((EUID == 0)); then
		dir=/run/hvpoke
	elif [[ $XDG_RUNTIME_DIR ]]; then
		dir=$XDG_RUNTIME_DIR/hvpoke
	else
		return
	fi
	for socket in "$dir"/*.sock; do
		[[ -S $socket ]] || continue
		# Nobody listens at a dead VM's socket: the kernel's table says so.
		grep -qF " 00010000 " < <(grep -F " $socket" /proc/net/unix 2>/dev/null) || continue
		socket=${socket##*/}
		printf '%s\n' "${socket%.sock}"
	done
}

_hvpoke()
{
	local cur=${COMP_WORDS[COMP_CWORD]} command='' verb='' word words='' i args=0
	local commands='list info toggle key event queue scope stats log undo idle pause resume quit libvirt-setup help'

	COMPREPLY=()
	# What stands before the cursor: the command, and how many arguments it has.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--timeout | --connect | --socket-dir | --count) ((i++)) ;;
		--*) ;;
		*)
			if [[ $command ]]; then
				((args++))
				((args == 2)) && verb=$word
			else
				command=$word
			fi
			;;
		esac
	done
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--timeout | --connect | --socket-dir | --count) return ;;
	esac

	if [[ $cur == --* ]]; then
		words='--json --connect --help'
		case $command in
		'') words='--json --connect --help --version' ;;
		libvirt-setup) words+=' --socket-dir --yes' ;;
		toggle | key | event | queue) words+=' --native --timeout' ;;
		log) words+=' --count --follow' ;;
		idle | scope | undo) words+=' --timeout' ;;
		esac
	elif [[ ! $command ]]; then
		words=$commands
	elif ((args == 0)); then
		case $command in
		help) words=$commands ;;
		info | toggle | key | event | queue | scope | stats | log | undo | idle | pause | resume | quit)
			if [[ $cur == */* ]]; then
				compopt -o filenames 2>/dev/null
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
				return
			fi
			words=$(_hvpoke_vms)
			;;
		esac
	elif ((args == 1)); then
		case $command in
		key) words='list on off' ;;
		event) words='on off' ;;
		queue) words='add show clear commit' ;;
		scope) words='dyndbg static_keys all' ;;
		esac
	elif [[ $command == queue && $verb == @(add|commit) ]]; then
		case ${COMP_WORDS[COMP_CWORD - 1]} in
		key | event) words='on off' ;;
		*) words='toggle key event' ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _hvpoke hvpoke
