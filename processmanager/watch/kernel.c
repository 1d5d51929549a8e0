// SPDX-License-Identifier: Apache-2.0
/* kernel: which tracepoints and calls the running kernel has, and its names of reasons. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "processmanager/watch/internal.h"

const char *const watch_tracepoints[] = {
#define X(program, tracepoint, names) tracepoint,
	WATCH_HOOKS(X)
#undef X
};

static const uint32_t hook_names[] = {
#define X(program, tracepoint, names) names,
	WATCH_HOOKS(X)
#undef X
};

static struct watch_kernel kernel;
static pthread_once_t kernel_once = PTHREAD_ONCE_INIT;

/* Names of enum skb_drop_reason, which differ between kernels, without the prefix. */
static void kernel_reasons(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "skb_drop_reason", BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_enum *e = t ? btf_enum(t) : NULL;
	const char *name;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		name = btf__name_by_offset(btf, e[i].name_off);
		if (e[i].val < 0 || e[i].val >= WATCH_REASONS_MAX || !name ||
		    kernel.reasons[e[i].val])
			continue;
		if (!strncmp(name, "SKB_DROP_REASON_", 16))
			name += 16;
		kernel.reasons[e[i].val] = strdup(name);
	}
}

/* Arguments of a tracepoint; -1: there is none. */
static int kernel_arguments(const struct btf *btf, const char *tracepoint)
{
	const struct btf_type *t;
	char name[64];
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL; /* a pointer */
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	/* The first one is the program's own. */
	return t && btf_is_func_proto(t) ? (int)btf_vlen(t) - 1 : -1;
}

static void watch_kernel_read(void)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct btf *btf = btf__load_vmlinux_btf();

	libbpf_set_print(print);
	if (!btf) {
		kernel.err = errno ? -errno : -ENOTSUP;
		return;
	}
	for (size_t i = 0; i < WATCH_N_HOOKS; i++)
		kernel.has[i] = kernel_arguments(btf, watch_tracepoints[i]) > 0;
	/* The third is the reason; both came with 6.10. */
	kernel.resets_of_none = kernel_arguments(btf, "tcp_send_reset") > 2;
	kernel_reasons(btf);
	btf__free(btf);
}

const struct watch_kernel *watch_kernel(void)
{
	pthread_once(&kernel_once, watch_kernel_read);
	return &kernel;
}

/* --- system calls --------------------------------------------------------------- */

static struct {
	bool known;
	bool has[ABI_WATCH_CALLS];
} kernel_calls;
static pthread_once_t kernel_calls_once = PTHREAD_ONCE_INIT;

/* A weak symbol stands for a call that the kernel was built without (kernel/sys_ni.c). */
static void kernel_symbol(char type, const char *symbol)
{
	const struct watch_call *call;

	for (uint32_t nr = 0; nr < ABI_WATCH_CALLS; nr++) {
		call = watch_call(nr);
		if (call && !strcmp(call->symbol, symbol))
			kernel_calls.has[nr] = type == 'T' || type == 't';
	}
}

static void watch_kernel_read_calls(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[256], type, symbol[64];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, " " WATCH_CALL_SYMBOL) ||
		    sscanf(line, "%*s %c " WATCH_CALL_SYMBOL "%63s", &type,
			   symbol) != 2)
			continue;
		kernel_calls.known = true;
		kernel_symbol(type, symbol);
	}
	if (f)
		fclose(f);
}

bool watch_kernel_has_call(uint32_t nr)
{
	pthread_once(&kernel_calls_once, watch_kernel_read_calls);
	return !kernel_calls.known || kernel_calls.has[nr];
}

/* --- hooks ---------------------------------------------------------------------- */

uint32_t watch_mask_of(const struct watch_set *names)
{
	uint32_t mask = (uint32_t)names->w[0] & (WATCH_MASK_CALLS - 1) &
			~WATCH_SEGMENTS;
	bool exit;

	for (size_t i = ABI_WATCH_NAMES; i < WATCH_N_NAMES; i++)
		if (watch_set_has(names, i) && watch_call_nr(i, &exit) >= 0)
			mask |= WATCH_MASK_CALLS |
				(exit ? WATCH_MASK_EXITS : 0);
	return mask;
}

uint32_t watch_hooks_of(const struct watch_set *names)
{
	const struct watch_kernel *k = watch_kernel();
	uint32_t hooks = 0, mask = watch_mask_of(names);

	for (size_t i = 0; i < WATCH_N_HOOKS; i++)
		if (k->has[i] && hook_names[i] & mask)
			hooks |= WATCH_BIT(i);
	/* What it does for old kernels, the others do in newer ones. */
	if (k->has[WATCH_HOOK_watch_sock_receive])
		hooks &= ~WATCH_BIT(WATCH_HOOK_watch_sock_received);
	return hooks;
}

void watch_hooks_list(uint32_t hooks, struct strbuf *out)
{
	for (size_t h = 0, n = 0; h < WATCH_N_HOOKS; h++)
		if (hooks & WATCH_BIT(h))
			strbuf_printf(out, "%s%s", n++ ? ", " : "",
				      watch_tracepoints[h]);
}

void watch_name_hooks(size_t i, struct strbuf *out)
{
	struct watch_set one = { 0 };

	watch_set_add(&one, i, ABI_WATCH_ANY_CATEGORY);
	watch_hooks_list(watch_hooks_of(&one), out);
}

enum watch_hook watch_hook_of(size_t name)
{
	bool exit;

	if (watch_call_nr(name, &exit) >= 0)
		return exit ? WATCH_HOOK_watch_call_exit
			    : WATCH_HOOK_watch_call_enter;
	switch (name) {
	case ABI_WATCH_TCP_RTT:
		return WATCH_HOOK_watch_tcp_rtt;
	case ABI_WATCH_TCP_CONNECT:
	case ABI_WATCH_TCP_ACCEPT:
	case ABI_WATCH_TCP_CLOSE:
	case ABI_WATCH_TCP_STATE:
		return WATCH_HOOK_watch_sock_state;
	default:
		for (size_t h = WATCH_N_HOOKS; h-- > 0;)
			if (hook_names[h] & WATCH_BIT(name))
				return h;
	}
	return WATCH_N_HOOKS;
}

const char *watch_name_lack(size_t i)
{
	const struct watch_kernel *k = watch_kernel();
	bool exit;
	int nr = watch_call_nr(i, &exit);

	if (i >= WATCH_N_NAMES || watch_hook_of(i) == WATCH_N_HOOKS)
		return NULL;
	if (k->err)
		return "the kernel has no BTF";
	if (!k->has[watch_hook_of(i)])
		return "this kernel has no such tracepoint";
	if (nr >= 0)
		return watch_kernel_has_call((uint32_t)nr)
			       ? NULL
			       : "this kernel has no such system call";
	if (i == ABI_WATCH_TCP_SEND_RESET && !k->resets_of_none)
		return "before Linux 6.10 a reset without a socket is no event";
	if (WATCH_BIT(i) & WATCH_TCP && !k->has[WATCH_HOOK_watch_sock_receive])
		return "before Linux 6.3 an accepted socket belongs to who "
		       "listens until it receives";
	return NULL;
}
