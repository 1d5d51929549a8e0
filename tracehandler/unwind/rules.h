/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: unwind rules as the walk uses them, by rows and address. Nearly all
 * frames of compiled code are of one kind: the CFA is a register and an
 * offset, what was saved lies in words below it, the return address in the
 * first. Such a rule takes 16 bytes and is looked up once; the others are
 * asked of the rows each time.
 */
#ifndef TRACEHANDLER_RULES_H
#define TRACEHANDLER_RULES_H

#include <stdint.h>

#include "symbolize/symbolize.h"
#include "tracehandler/unwind/arch.h"

enum trace_rule_kind {
	TRACE_RULE_GAP, /* no row says anything */
	TRACE_RULE_USUAL,
	TRACE_RULE_OTHER, /* rule 'id' of the rows */
};

struct trace_rule {
	int32_t cfa; /* USUAL: from register 'cfa_reg' */
	uint16_t id;
	uint8_t kind; /* enum trace_rule_kind */
	uint8_t cfa_reg;
	/* Where arch_saved[i] lies, in words from the CFA; 0: unchanged. */
	int8_t saved[ARCH_SAVED];
	/* It is of the address itself: nobody called from the one before. */
	uint8_t begins;
	uint8_t pad;
};

struct trace_rule_slot {
	const struct symbolizer_rows *rows;
	uint64_t vaddr;
	struct trace_rule rule;
};

struct trace_rules {
	struct trace_rule_slot *slots; /* pairs; the first was used last */
	size_t mask;
};

int trace_rules_init(struct trace_rules *c); /* 0 or -ENOMEM */
void trace_rules_fini(struct trace_rules *c);
/* Rows are about to be freed: their addresses may come again. */
void trace_rules_forget(struct trace_rules *c);

/*
 * The rule of the address 'vaddr', or, if that is a gap and a 'call' led
 * there, of the one behind: return addresses made by hand (makecontext(3)) are
 * beginnings of functions. 'c' NULL: asks the rows themselves.
 */
void trace_rules_find(struct trace_rules *c, const struct symbolizer_rows *rows,
		      uint64_t vaddr, bool call, struct trace_rule *out);

#endif /* TRACEHANDLER_RULES_H */
