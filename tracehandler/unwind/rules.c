// SPDX-License-Identifier: Apache-2.0
/* rules: see tracehandler/unwind/rules.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracehandler/unwind/rules.h"

#define RULES_PAIRS 4096 /* of slots of 32 bytes */

int trace_rules_init(struct trace_rules *c)
{
	c->slots = calloc(2 * RULES_PAIRS, sizeof(*c->slots));
	return c->slots ? 0 : -ENOMEM;
}

void trace_rules_fini(struct trace_rules *c)
{
	free(c->slots);
	c->slots = NULL;
}

void trace_rules_forget(struct trace_rules *c)
{
	memset(c->slots, 0, 2 * RULES_PAIRS * sizeof(*c->slots));
}

static bool rules_saved_word(const struct symbolizer_value *v, int8_t *words)
{
	if (v->from == SYMBOLIZER_SAME) {
		*words = 0;
		return true;
	}
	*words = (int8_t)(v->n / ARCH_WORD);
	return v->from == SYMBOLIZER_AT_CFA && v->n < 0 &&
	       v->n >= -128 * ARCH_WORD && v->n % ARCH_WORD == 0;
}

/* Whether the short form can express the rule. */
static bool rules_is_short(const struct symbolizer_rule *rule,
			   struct trace_rule *out)
{
	uint32_t left = (1U << SYMBOLIZER_REGS) - 1;
	const struct symbolizer_value *ra = &rule->regs[ARCH_REG_RA],
				      *sp = &rule->regs[ARCH_REG_SP];

	if (rule->signal || rule->cfa.from != SYMBOLIZER_REG ||
	    rule->cfa.reg >= SYMBOLIZER_REGS || ra->from != SYMBOLIZER_AT_CFA ||
	    ra->n != -ARCH_WORD || sp->from != SYMBOLIZER_CFA || sp->n != 0)
		return false;
	left &= ~(1U << ARCH_REG_RA | 1U << ARCH_REG_SP);
	for (int i = 0; i < ARCH_SAVED; i++) {
		if (!rules_saved_word(&rule->regs[arch_saved[i]],
				      &out->saved[i]))
			return false;
		left &= ~(1U << arch_saved[i]);
	}
	for (int i = 0; i < SYMBOLIZER_REGS; i++)
		if (left & 1U << i && rule->regs[i].from != SYMBOLIZER_SAME)
			return false;
	out->cfa = rule->cfa.n;
	out->cfa_reg = rule->cfa.reg;
	return true;
}

static void rules_read(const struct symbolizer_rows *rows, uint64_t vaddr,
		       bool call, struct trace_rule *out)
{
	struct symbolizer_rule rule;

	memset(out, 0, sizeof(*out));
	out->id = symbolizer_rows_find(rows, vaddr);
	if (!out->id && call) {
		out->id = symbolizer_rows_find(rows, vaddr + 1);
		out->begins = out->id != 0;
	}
	if (!out->id)
		return;
	symbolizer_rows_rule(rows, out->id, &rule);
	out->kind = rules_is_short(&rule, out) ? TRACE_RULE_USUAL
					       : TRACE_RULE_OTHER;
}

void trace_rules_find(struct trace_rules *c, const struct symbolizer_rows *rows,
		      uint64_t vaddr, bool call, struct trace_rule *out)
{
	struct trace_rule_slot *s, first;
	/* No address has its top bit set: 'call' takes its place. */
	uint64_t key = vaddr << 1 | call;
	uint64_t h = (key ^ (uintptr_t)rows >> 4) * 0x9e3779b97f4a7c15ULL;

	if (!c) {
		rules_read(rows, vaddr, call, out);
		return;
	}
	s = &c->slots[2 * ((h >> 40) % RULES_PAIRS)];
	if (s->rows == rows && s->vaddr == key) {
		*out = s->rule;
		return;
	}
	first = s[0];
	if (s[1].rows == rows && s[1].vaddr == key) {
		s[0] = s[1];
	} else {
		s->rows = rows;
		s->vaddr = key;
		rules_read(rows, vaddr, call, &s->rule);
	}
	s[1] = first;
	*out = s->rule;
}
