// SPDX-License-Identifier: Apache-2.0
/*
 * arch_x86_64_top: see arch_top_run(). The values are those of the sample, so nothing has
 * to be known about the function but that its instructions are executed in order. A
 * conditional jump is taken as not taken: compilers have one depth of the stack at an
 * address, however it was reached. What follows a call may belong to another function if
 * the call does not return, so that is the end. Instructions are decoded by Zydis.
 */
#include <Zydis/Zydis.h>

#include "tracehandler/unwind/top.h"

#define AHEAD_STEPS 16

struct ahead {
	const struct trace_stack *stack;
	size_t word;
	uint64_t sp, fp;
	bool fp_known;
	bool frame; /* fp was set from sp: it is the function's own */
	/* Words that were stored; the last one first. */
	struct {
		uint64_t at, v;
		bool known;
	} stored[AHEAD_STEPS];
	size_t n;
};

enum ahead_step {
	AHEAD_GO_ON,
	AHEAD_RETURN,
	AHEAD_END
};

static void ahead_store(struct ahead *t, uint64_t at, uint64_t v, bool known)
{
	t->stored[t->n].at = at;
	t->stored[t->n].v = v;
	t->stored[t->n++].known = known;
}

static bool ahead_load(const struct ahead *t, uint64_t at, uint64_t *out)
{
	for (size_t i = t->n; i--;)
		if (t->stored[i].at == at) {
			*out = t->stored[i].v;
			return t->stored[i].known;
		}
	*out = 0;
	return trace_piece_read(&t->stack->here, at, out, t->word);
}

static bool ahead_is(const struct ahead *t, const ZydisDecodedOperand *o,
		     ZydisRegister r64, ZydisRegister r32)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o->reg.value == (t->word == 8 ? r64 : r32);
}

static bool ahead_is_sp(const struct ahead *t, const ZydisDecodedOperand *o)
{
	return ahead_is(t, o, ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_ESP);
}

static bool ahead_is_fp(const struct ahead *t, const ZydisDecodedOperand *o)
{
	return ahead_is(t, o, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_EBP);
}

/* The address of a word of the stack, by one of the two registers. */
static bool ahead_address(const struct ahead *t, const ZydisDecodedOperand *o,
			  uint64_t *out)
{
	uint64_t disp;

	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    o->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	disp = o->mem.disp.has_displacement ? (uint64_t)o->mem.disp.value : 0;
	switch (o->mem.base) {
	case ZYDIS_REGISTER_RSP:
	case ZYDIS_REGISTER_ESP:
		*out = t->sp + disp;
		return true;
	case ZYDIS_REGISTER_RBP:
	case ZYDIS_REGISTER_EBP:
		*out = t->fp + disp;
		return t->fp_known;
	default:
		return false;
	}
}

/* What is left of it changes neither of the two. */
static enum ahead_step ahead_other(struct ahead *t,
				   const ZydisDecodedInstruction *in,
				   const ZydisDecodedOperand *ops)
{
	ZydisRegister r;

	for (size_t i = 0; i < in->operand_count; i++) {
		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		r = ZydisRegisterGetLargestEnclosing(in->machine_mode,
						     ops[i].reg.value);
		if (r == ZYDIS_REGISTER_RSP || r == ZYDIS_REGISTER_ESP)
			return AHEAD_END;
		if (r != ZYDIS_REGISTER_RBP && r != ZYDIS_REGISTER_EBP)
			continue;
		if (t->frame)
			return AHEAD_END;
		t->fp_known = false;
	}
	return AHEAD_GO_ON;
}

static enum ahead_step ahead_push(struct ahead *t,
				  const ZydisDecodedInstruction *in,
				  const ZydisDecodedOperand *ops)
{
	if (in->operand_width != 8 * t->word)
		return AHEAD_END;
	t->sp -= t->word;
	ahead_store(t, t->sp, t->fp, ahead_is_fp(t, &ops[0]) && t->fp_known);
	return AHEAD_GO_ON;
}

static enum ahead_step ahead_pop(struct ahead *t,
				 const ZydisDecodedInstruction *in,
				 const ZydisDecodedOperand *ops)
{
	if (in->operand_width != 8 * t->word ||
	    ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ahead_is_sp(t, &ops[0]))
		return AHEAD_END;
	if (ahead_is_fp(t, &ops[0])) {
		t->fp_known = ahead_load(t, t->sp, &t->fp);
		t->frame = false;
	}
	t->sp += t->word;
	return AHEAD_GO_ON;
}

static enum ahead_step ahead_mov(struct ahead *t,
				 const ZydisDecodedInstruction *in,
				 const ZydisDecodedOperand *ops)
{
	uint64_t at;

	if (ahead_is_fp(t, &ops[0]) && ahead_is_sp(t, &ops[1])) {
		t->fp = t->sp;
		t->fp_known = t->frame = true;
		return AHEAD_GO_ON;
	}
	if (ahead_is_sp(t, &ops[0]) && ahead_is_fp(t, &ops[1]) && t->fp_known) {
		t->sp = t->fp;
		return AHEAD_GO_ON;
	}
	if (ahead_is_fp(t, &ops[1]) && ahead_address(t, &ops[0], &at)) {
		ahead_store(t, at, t->fp, t->fp_known);
		return AHEAD_GO_ON;
	}
	if (ahead_is_fp(t, &ops[0]) && !t->frame &&
	    ahead_address(t, &ops[1], &at)) {
		t->fp_known = ahead_load(t, at, &t->fp);
		return AHEAD_GO_ON;
	}
	return ahead_other(t, in, ops);
}

static enum ahead_step ahead_lea(struct ahead *t,
				 const ZydisDecodedInstruction *in,
				 const ZydisDecodedOperand *ops)
{
	uint64_t at;

	if (ahead_is_sp(t, &ops[0]) && ahead_address(t, &ops[1], &at)) {
		t->sp = at;
		return AHEAD_GO_ON;
	}
	if (ahead_is_fp(t, &ops[0]) && ops[1].mem.base != ops[0].reg.value &&
	    ahead_address(t, &ops[1], &at)) {
		t->fp = at;
		t->fp_known = t->frame = true;
		return AHEAD_GO_ON;
	}
	return ahead_other(t, in, ops);
}

static enum ahead_step ahead_add(struct ahead *t,
				 const ZydisDecodedInstruction *in,
				 const ZydisDecodedOperand *ops)
{
	uint64_t v = ops[1].imm.value.u;

	if (ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return ahead_other(t, in, ops);
	if (in->mnemonic == ZYDIS_MNEMONIC_SUB)
		v = -v;
	if (ahead_is_sp(t, &ops[0]))
		t->sp += v;
	else if (ahead_is_fp(t, &ops[0]) && t->frame)
		t->fp += v;
	else
		return ahead_other(t, in, ops);
	return AHEAD_GO_ON;
}

static enum ahead_step ahead_leave(struct ahead *t,
				   const ZydisDecodedInstruction *in,
				   const ZydisDecodedOperand *ops)
{
	if (!t->fp_known)
		return AHEAD_END;
	t->sp = t->fp + t->word;
	t->fp_known = ahead_load(t, t->fp, &t->fp);
	t->frame = false;
	return AHEAD_GO_ON;
}

static const struct {
	ZydisMnemonic mnemonic;
	enum ahead_step (*step)(struct ahead *t,
				const ZydisDecodedInstruction *in,
				const ZydisDecodedOperand *ops);
} ahead_steps[] = {
	{ ZYDIS_MNEMONIC_PUSH, ahead_push },
	{ ZYDIS_MNEMONIC_POP, ahead_pop },
	{ ZYDIS_MNEMONIC_MOV, ahead_mov },
	{ ZYDIS_MNEMONIC_LEA, ahead_lea },
	{ ZYDIS_MNEMONIC_ADD, ahead_add },
	{ ZYDIS_MNEMONIC_SUB, ahead_add },
	{ ZYDIS_MNEMONIC_LEAVE, ahead_leave },
};

static enum ahead_step ahead_step(struct ahead *t,
				  const ZydisDecodedInstruction *in,
				  const ZydisDecodedOperand *ops)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_RET:
		return in->mnemonic == ZYDIS_MNEMONIC_RET &&
				       in->meta.branch_type !=
					       ZYDIS_BRANCH_TYPE_FAR
			       ? AHEAD_RETURN
			       : AHEAD_END;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_INTERRUPT:
		return AHEAD_END;
	default:
		break;
	}
	if (in->mnemonic == ZYDIS_MNEMONIC_UD2 ||
	    in->mnemonic == ZYDIS_MNEMONIC_HLT)
		return AHEAD_END;
	for (size_t i = 0; i < sizeof(ahead_steps) / sizeof(*ahead_steps); i++)
		if (ahead_steps[i].mnemonic == in->mnemonic)
			return ahead_steps[i].step(t, in, ops);
	return ahead_other(t, in, ops);
}

/* The caller, whose return address is the word at 'at'. */
static bool ahead_caller(const struct ahead *t, uint64_t at, uint64_t drop,
			 struct trace_top *out)
{
	out->sp = at + t->word + drop;
	out->fp = t->fp;
	out->fp_known = t->fp_known;
	return ahead_load(t, at, &out->ip) && out->ip &&
	       at >= t->stack->regs->gpr[ABI_REG_SP];
}

/* That of a frame which is set up. */
static bool ahead_frame_caller(struct ahead *t, struct trace_top *out)
{
	uint64_t at = t->fp + t->word;

	t->fp_known = ahead_load(t, t->fp, &t->fp);
	return ahead_caller(t, at, 0, out);
}

bool arch_top_run(const struct trace_stack *s, struct trace_top *out)
{
	struct ahead t = { .stack = s,
			   .word = s->compat ? 4 : 8,
			   .sp = s->regs->gpr[ABI_REG_SP],
			   .fp = s->regs->gpr[ABI_REG_BP],
			   .fp_known = true };
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	enum ahead_step step = AHEAD_GO_ON;
	ZydisDecodedInstruction in;
	ZydisDecoder d;
	size_t at = 0, set = 0;

	if (ZYAN_FAILED(ZydisDecoderInit(
		    &d,
		    s->compat ? ZYDIS_MACHINE_MODE_LEGACY_32
			      : ZYDIS_MACHINE_MODE_LONG_64,
		    s->compat ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64)))
		return false;
	for (int i = 0; i < AHEAD_STEPS && step == AHEAD_GO_ON; i++) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(
			    &d, s->code + at, s->code_len - at, &in, ops)))
			break;
		at += in.length;
		step = ahead_step(&t, &in, ops);
		/* What follows may still move it, as in code of HotSpot. */
		set += t.frame;
	}
	if (step == AHEAD_RETURN)
		return ahead_caller(&t, t.sp,
				    ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE
					    ? ops[0].imm.value.u
					    : 0,
				    out);
	return t.frame && (set > 1 || step == AHEAD_END) &&
	       ahead_frame_caller(&t, out);
}
