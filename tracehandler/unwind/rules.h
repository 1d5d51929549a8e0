/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: a cache of unwind rules, by rows and address. Nearly all frames of compiled
 * code have the same form: the CFA is a register plus an offset, callee-saved
 * registers are in words below it, the return address in the first. Such a rule
 * takes 16 bytes and is cached; others are read from the rows each time.
 */
#ifndef TRACEHANDLER_RULES_H
#define TRACEHANDLER_RULES_H

#include <stdint.h>

#include "symbolize/symbolize.h"
#include "tracehandler/unwind/arch.h"

enum trace_rule_kind {
	TRACE_RULE_GAP, /* no row covers the address */
	TRACE_RULE_USUAL,
	TRACE_RULE_OTHER, /* rule 'id' of the rows */
};

struct trace_rule {
	int32_t cfa; /* USUAL: offset from register 'cfa_reg' */
	uint16_t id;
	uint8_t kind; /* enum trace_rule_kind */
	uint8_t cfa_reg;
	/* Where arch_saved[i] is, in words from the CFA; 0: unchanged. */
	int8_t saved[ARCH_SAVED];
	/* The function begins at the address: no call leads there. */
	uint8_t begins;
	uint8_t pad;
};

struct trace_rule_slot {
	const struct symbolizer_rows *rows;
	uint64_t vaddr;
	struct trace_rule rule;
};

struct trace_rules {
	struct trace_rule_slot *slots; /* pairs, most recently used first */
};

int trace_rules_init(struct trace_rules *c); /* 0 or -ENOMEM */
void trace_rules_fini(struct trace_rules *c);
/* To be called before rows are freed: others may get their address. */
void trace_rules_forget(struct trace_rules *c);

/*
 * The rule of the address 'vaddr'. If that is a gap and 'call' (the address is a
 * return address less one) the rule of the next: return addresses made by hand
 * (makecontext(3)) are beginnings of functions. 'c' NULL: without a cache.
 */
void trace_rules_find(struct trace_rules *c, const struct symbolizer_rows *rows,
		      uint64_t vaddr, bool call, struct trace_rule *out);

#endif /* TRACEHANDLER_RULES_H */
