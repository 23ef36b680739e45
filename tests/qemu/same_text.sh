#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# same_text.sh A B - runs in the guest: are /tmp/A.text and /tmp/B.text (state.sh) the same,
# but for the first bytes of the functions that the agent diverts in its widest scope, and for
# what ftrace calls first, which depends on how many users it has?
diverted='text_poke_queue text_poke_finish text_poke_bp smp_text_poke_batch_add
	smp_text_poke_batch_finish smp_text_poke_single arch_arm_kprobe arch_disarm_kprobe
	arch_optimize_kprobes arch_unoptimize_kprobes arch_unoptimize_kprobe __static_call_update
	arch_static_call_transform event_enable_write system_enable_write ftrace_event_write
	tracing_set_trace_write __unregister_kprobe_top ftrace_call ftrace_regs_call'
[ -f /tmp/diverted ] || {
	pattern=$(echo $diverted | sed 's/ /|/g')
	start=$(sed -n 's/^\([0-9a-f]*\) [Tt] _stext$/0x\1/p' /proc/kallsyms)
	grep -E " [Tt] ($pattern)$" /proc/kallsyms | while read -r address _; do
		echo $((0x$address - start))
	done >/tmp/diverted
}
# A function begins with an ENDBR or not, then comes ftrace's call, or an INT3.
cmp -l "/tmp/$1.text" "/tmp/$2.text" | awk '
	FILENAME == "/tmp/diverted" { start[n++] = $1; next }
	{ for (i = 0; i < n; i++) if ($1 - 1 >= start[i] && $1 - 1 < start[i] + 9) next
	  print "offset " $1 - 1 ": " $2 " " $3; if (++bad == 20) exit }
	END { exit bad > 0 }' /tmp/diverted -
