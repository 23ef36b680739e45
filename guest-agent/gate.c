// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one gate through which the kernel patches its running text: "queue this
 * instruction", "finish what is queued", "write this one". Here in place of
 * text_poke_queue(), text_poke_finish() and text_poke_bp() (from 6.16 on
 * smp_text_poke_batch_add(), _finish() and smp_text_poke_single()), for the scopes
 * beyond dynamic debug.
 *
 * Every caller holds text_mutex, which therefore guards all of this, too: what waits,
 * the scope, and that the text is what it seems. A poke waits no longer than in the
 * kernel: until somebody finishes. With two exceptions, of one request each, which
 * hvp_session_holds() allows: what a request's static calls come to (tracing.c), and
 * its kprobes (probes.c). Anybody else's poke or finish sends those as well, so no one
 * ever finds text that the kernel does not expect.
 *
 * What a scope covers is told from who calls: a static key's poke comes from
 * arch_jump_label_transform_queue().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "hvpoke.h"

static struct hvp_batch pending = { .text_locked = true };
static DEFINE_MUTEX(scope_lock);
static u32 scope = HVPOKE_SCOPE_DYNDBG;
static bool closed; /* the agent goes, but its parameters are still there */
static u64 noisy;
/* Of everything that was not a session's. */
static struct hvp_result total;

u32 hvp_gate_scope(void)
{
	return READ_ONCE(scope);
}

u64 hvp_gate_noisy(void)
{
	return READ_ONCE(noisy);
}

bool hvp_gate_waits(void)
{
	return hvp_batch_waits(&pending);
}

void hvp_gate_flush(void)
{
	struct hvp_result *result = hvp_session_gate_result();
	u32 status;

	lockdep_assert_held(hvp_symbols.text_mutex);
	if (!pending.nr)
		return;
	if (!result)
		result = &total;
	status = hvp_batch_flush(&pending, result);
	if (status != HVPOKE_OK)
		result->fallback = status;
}

void hvp_gate_put(const struct hvp_poke *poke)
{
	if (!hvp_batch_add_poke(&pending, poke))
		return;
	/* No memory for more: what waits goes first, and then there is room. */
	hvp_gate_flush();
	if (hvp_batch_add_poke(&pending, poke)) {
		hvp_native_poke(poke);
		hvp_native_poke_finish();
		total.sites++;
		total.native_sites++;
	}
}

static void put(void *addr, const void *opcode, size_t len, const void *emulate)
{
	struct hvp_poke poke = {
		.addr = (unsigned long)addr,
		.len = len,
		.kind = HVPOKE_SITE_INSN,
		.emulated = emulate,
	};
	/* None of the kernel's forms is longer; the original says what it thinks of it. */
	bool native = len > HVPOKE_MAX_INSN;

	/* What a request's static calls come to is not finished by who happens to send it. */
	if (!hvp_session_diverts() && !hvp_session_holds(HVP_HOLD_CALLS) && hvp_noise(poke.addr)) {
		WRITE_ONCE(noisy, noisy + 1);
		native = true;
	}
	if (native) {
		hvp_native_poke_raw(addr, opcode, len, emulate);
		return;
	}
	memcpy(poke.new_insn, opcode, len);
	/* It is read as an instruction of its own length, none of which is longer than this one. */
	if (emulate)
		memcpy(poke.emulate, emulate, len);
	hvp_gate_put(&poke);
}

void hvp_gate_queue(void *addr, const void *opcode, size_t len, const void *emulate)
{
	put(addr, opcode, len, emulate);
}

/* What was queued the kernel's own way is in the kernel's queue. */
void hvp_gate_finish(void)
{
	hvp_gate_flush();
	hvp_native_poke_finish();
}

void hvp_gate_single(void *addr, const void *opcode, size_t len, const void *emulate)
{
	put(addr, opcode, len, emulate);
	if (!hvp_session_holds(HVP_HOLD_CALLS) && !hvp_static_call_updating())
		hvp_gate_finish();
}

void hvp_gate_take(struct hvp_batch *batch)
{
	u32 i;

	lockdep_assert_held(hvp_symbols.text_mutex);
	for (i = 0; i < pending.nr_pokes; i++) {
		if (hvp_batch_add_poke(batch, &pending.poke[i])) {
			/* Some of them are there twice then, which changes nothing. */
			hvp_gate_flush();
			return;
		}
	}
}

void hvp_gate_taken(void)
{
	pending.nr_pokes = 0;
	/* Whoever sees in hvp_gate_waits() that none wait sees the new text, too. */
	smp_store_release(&pending.nr, 0);
}

/*
 * Up: the diversions come after the scope is set, so that the host knows the scope when
 * the first batch comes. Down: the other way round, with nothing left waiting.
 */
int hvp_scope_set(u32 to)
{
	int err = 0;

	if (to > HVPOKE_SCOPE_ALL)
		return -EINVAL;
	mutex_lock(&scope_lock);
	if (closed && to != HVPOKE_SCOPE_DYNDBG)
		err = -ENODEV;
	if (err || to == scope)
		goto out;
	if (to != HVPOKE_SCOPE_DYNDBG)
		err = hvp_symbols_find_gate();
	if (!err && to == HVPOKE_SCOPE_ALL)
		err = hvp_tracing_init();
	if (err)
		goto out;
	hvp_session_shut_out();
	hvp_event_files_release();
	hvp_diversions_disable();
	mutex_lock(hvp_symbols.text_mutex);
	hvp_gate_flush();
	WRITE_ONCE(scope, to);
	mutex_unlock(hvp_symbols.text_mutex);
	hvp_ranges_stale();
	err = hvp_diversions_enable(to);
	if (err)
		WRITE_ONCE(scope, HVPOKE_SCOPE_DYNDBG);
	else if (to == HVPOKE_SCOPE_ALL)
		hvp_event_files_divert();
	hvp_session_let_in();
	/* The host is to know at once; one that is away learns it when it is back. */
	hvp_ranges_stale();
	hvp_ranges_sync();
out:
	mutex_unlock(&scope_lock);
	return err;
}

static const char *const names[] = {
	[HVPOKE_SCOPE_DYNDBG] = "dyndbg",
	[HVPOKE_SCOPE_STATIC_KEYS] = "static_keys",
	[HVPOKE_SCOPE_ALL] = "all",
};

/* Before the agent is up it is only noted: hvp_gate_init(). */
static u32 wanted = HVPOKE_SCOPE_DYNDBG;
static bool up;

static int param_set(const char *value, const struct kernel_param *kp)
{
	int to = sysfs_match_string(names, value);

	if (to < 0) {
		pr_err("the scope is one of dyndbg, static_keys and all\n");
		return to;
	}
	if (up)
		return hvp_scope_set(to);
	wanted = to;
	return 0;
}

static int param_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", names[hvp_gate_scope()]);
}

static const struct kernel_param_ops scope_ops = {
	.set = param_set,
	.get = param_get,
};

module_param_cb(scope, &scope_ops, NULL, 0644);
MODULE_PARM_DESC(scope,
		 "What goes to the host: dyndbg (default), static_keys, or all text patching");

static int gate_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "sites %u\nnative_sites %u\nbatches %u\nnoisy %llu\n",
			  READ_ONCE(total.sites), READ_ONCE(total.native_sites),
			  READ_ONCE(total.batches), hvp_gate_noisy());
}

static const struct kernel_param_ops gate_ops = { .get = gate_get };

module_param_cb(gate, &gate_ops, NULL, 0444);
MODULE_PARM_DESC(gate,
		 "What was patched outside of requests since the agent was loaded (read only)");

/* Those that are inside of the gate may go on. */
void hvp_gate_close(void)
{
	mutex_lock(&scope_lock);
	closed = true;
	mutex_unlock(&scope_lock);
	hvp_scope_set(HVPOKE_SCOPE_DYNDBG);
}

/* Nobody is inside any more. */
void hvp_gate_exit(void)
{
	hvp_diversions_exit();
	hvp_batch_free(&pending);
}

int hvp_gate_init(void)
{
	up = true;
	return wanted == HVPOKE_SCOPE_DYNDBG ? 0 : hvp_scope_set(wanted);
}
