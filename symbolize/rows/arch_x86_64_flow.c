// SPDX-License-Identifier: Apache-2.0
/*
 * arch_x86_64_flow: what an instruction does to a frame; see symbolize/rows/flow.h.
 * Instructions are decoded by Zydis.
 */
#include <Zydis/Zydis.h>

#include "base/base.h"
#include "symbolize/rows/flow.h"

/* System V ABI, figure 3.4: all but rbx, rbp, rsp and r12 to r15. */
const uint16_t arch_flow_scratch = 0x0f37;

#define REG_FP SYMBOLIZER_REG_FP
#define REG_SP SYMBOLIZER_REG_SP

struct decoding {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t at, base;
	struct flow_insn *out;
};

/* The DWARF number of a general register, whole or in part. */
static uint8_t flow_reg(ZydisRegister r)
{
	/* By the number in instructions: System V ABI, figure 3.36. */
	static const uint8_t dwarf[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	ZydisRegister whole =
		ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	int id;

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return FLOW_NO_REG;
	id = whole - ZYDIS_REGISTER_RAX;
	return id < 8 ? dwarf[id] : (uint8_t)id;
}

/* A register of 64 bits, or FLOW_NO_REG. */
static uint8_t flow_whole(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->size == 64
		       ? flow_reg(o->reg.value)
		       : FLOW_NO_REG;
}

static bool flow_is_mem(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       o->mem.segment != ZYDIS_REGISTER_FS &&
	       o->mem.segment != ZYDIS_REGISTER_GS;
}

/* A register and a displacement. */
static bool flow_is_place(const ZydisDecodedOperand *o, uint8_t *reg,
			  int32_t *n)
{
	int64_t disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;

	if (!flow_is_mem(o) || o->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	*reg = flow_reg(o->mem.base);
	*n = (int32_t)disp;
	return *reg != FLOW_NO_REG && *n == disp;
}

static uint32_t flow_to(const struct decoding *d, uint64_t addr)
{
	return addr - d->base < FLOW_NOWHERE ? (uint32_t)(addr - d->base)
					     : FLOW_NOWHERE;
}

/* An address relative to the next instruction. */
static bool flow_is_relative(const struct decoding *d,
			     const ZydisDecodedOperand *o, uint32_t *to)
{
	ZyanU64 addr;

	if (!flow_is_mem(o) || o->mem.base != ZYDIS_REGISTER_RIP ||
	    o->mem.index != ZYDIS_REGISTER_NONE ||
	    ZYAN_FAILED(ZydisCalcAbsoluteAddress(&d->in, o, d->at, &addr)))
		return false;
	*to = flow_to(d, addr);
	return true;
}

static void flow_branch(struct decoding *d, enum flow_op op)
{
	const ZydisDecodedOperand *o = &d->ops[0];
	ZyanU64 addr;

	d->out->op = (uint8_t)op;
	d->out->to = FLOW_NOWHERE;
	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative &&
	    !ZYAN_FAILED(ZydisCalcAbsoluteAddress(&d->in, o, d->at, &addr)))
		d->out->to = flow_to(d, addr);
}

static void flow_jump(struct decoding *d)
{
	const ZydisDecodedOperand *o = &d->ops[0];
	uint32_t to;

	d->out->op = FLOW_JUMP_REG;
	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		flow_branch(d, FLOW_JUMP);
	} else if (flow_is_relative(d, o, &to)) {
		d->out->op = FLOW_RETURN; /* through a slot, as a stub does */
	} else if (flow_is_mem(o) && o->mem.base == ZYDIS_REGISTER_NONE &&
		   o->mem.scale == 8 && o->mem.disp.has_displacement) {
		d->out->op = FLOW_JUMP_TABLE;
		d->out->to = flow_to(d, (uint64_t)o->mem.disp.value);
	} else {
		d->out->a = flow_whole(o);
	}
}

/* A call of the next instruction is how the address is read. */
static void flow_call(struct decoding *d)
{
	flow_branch(d, FLOW_CALL);
	if (d->out->to == flow_to(d, d->at + d->in.length))
		d->out->op = FLOW_LOSE_SP;
}

static void flow_push(struct decoding *d)
{
	d->out->op = d->in.operand_width == 64 ? FLOW_PUSH : FLOW_LOSE_SP;
	d->out->a = flow_whole(&d->ops[0]);
}

static void flow_pop(struct decoding *d)
{
	d->out->a = flow_whole(&d->ops[0]);
	d->out->op = d->in.operand_width == 64 && d->out->a != REG_SP
			     ? FLOW_POP
			     : FLOW_LOSE_SP;
}

static void flow_lea(struct decoding *d)
{
	struct flow_insn *i = d->out;
	uint8_t a = flow_whole(&d->ops[0]), reg;
	int32_t n;

	if (a == FLOW_NO_REG)
		return;
	i->a = a;
	if (flow_is_relative(d, &d->ops[1], &i->to)) {
		i->op = FLOW_ADDRESS;
	} else if (flow_is_place(&d->ops[1], &reg, &n)) {
		i->n = n;
		if (reg == REG_SP)
			i->op = a == REG_SP ? FLOW_ADD_SP : FLOW_FROM_SP;
		else if (a == REG_SP) {
			i->op = FLOW_SP_FROM;
			i->a = reg;
		}
	}
}

static void flow_mov(struct decoding *d)
{
	struct flow_insn *i = d->out;
	const ZydisDecodedOperand *o = d->ops;
	uint8_t a = flow_whole(&o[0]), b = flow_whole(&o[1]);

	if (o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && o[0].size >= 32) {
		i->a = flow_reg(o[0].reg.value);
		i->to = flow_to(d, o[1].imm.value.u);
		if (i->a != FLOW_NO_REG && i->a != REG_SP)
			i->op = FLOW_CONSTANT;
	} else if (b == REG_SP && a != FLOW_NO_REG && a != REG_SP) {
		i->op = FLOW_FROM_SP;
		i->a = a;
	} else if (a == REG_SP && b != FLOW_NO_REG && b != REG_SP) {
		i->op = FLOW_SP_FROM;
		i->a = b;
	} else if (a != FLOW_NO_REG && b != FLOW_NO_REG) {
		i->op = FLOW_COPY;
		i->a = a;
		i->b = b;
	} else if (b != FLOW_NO_REG && flow_is_place(&o[0], &i->b, &i->n)) {
		i->op = FLOW_STORE;
		i->a = b;
	} else if (a != FLOW_NO_REG && a != REG_SP &&
		   flow_is_place(&o[1], &i->b, &i->n)) {
		i->op = FLOW_LOAD;
		i->a = a;
	}
}

static void flow_add(struct decoding *d)
{
	const ZydisDecodedOperand *o = d->ops;
	uint8_t a = flow_whole(&o[0]), b = flow_whole(&o[1]);
	int64_t n = o[1].imm.value.s;

	if (a == REG_SP && o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    n == (int32_t)n && n != INT32_MIN) {
		d->out->op = FLOW_ADD_SP;
		d->out->n = d->in.mnemonic == ZYDIS_MNEMONIC_SUB ? (int32_t)-n
								 : (int32_t)n;
	} else if (d->in.mnemonic == ZYDIS_MNEMONIC_ADD && a != FLOW_NO_REG &&
		   a != REG_SP && b != FLOW_NO_REG) {
		d->out->op = FLOW_SUM;
		d->out->a = a;
		d->out->b = b;
	}
}

static void flow_movsxd(struct decoding *d)
{
	const ZydisDecodedOperand *m = &d->ops[1];
	uint8_t a = flow_whole(&d->ops[0]), b;

	if (a == FLOW_NO_REG || a == REG_SP || !flow_is_mem(m) ||
	    m->mem.scale != 4 || m->mem.disp.value)
		return;
	b = flow_reg(m->mem.base);
	if (b == FLOW_NO_REG)
		return;
	d->out->op = FLOW_TABLE;
	d->out->a = a;
	d->out->b = b;
}

static void flow_cmp(struct decoding *d)
{
	if (d->ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	d->out->op = FLOW_COMPARE;
	d->out->n = (int32_t)d->ops[1].imm.value.s;
}

static void flow_leave(struct decoding *d)
{
	d->out->op = FLOW_LEAVE;
}

static void flow_stop(struct decoding *d)
{
	d->out->op = FLOW_STOP;
}

static const struct {
	ZydisMnemonic mnemonic;
	void (*decode)(struct decoding *d);
} flow_decoders[] = {
	{ ZYDIS_MNEMONIC_MOV, flow_mov },
	{ ZYDIS_MNEMONIC_LEA, flow_lea },
	{ ZYDIS_MNEMONIC_CMP, flow_cmp },
	{ ZYDIS_MNEMONIC_CALL, flow_call },
	{ ZYDIS_MNEMONIC_JMP, flow_jump },
	{ ZYDIS_MNEMONIC_PUSH, flow_push },
	{ ZYDIS_MNEMONIC_PUSHFQ, flow_push },
	{ ZYDIS_MNEMONIC_POP, flow_pop },
	{ ZYDIS_MNEMONIC_POPFQ, flow_pop },
	{ ZYDIS_MNEMONIC_ADD, flow_add },
	{ ZYDIS_MNEMONIC_SUB, flow_add },
	{ ZYDIS_MNEMONIC_MOVSXD, flow_movsxd },
	{ ZYDIS_MNEMONIC_LEAVE, flow_leave },
	{ ZYDIS_MNEMONIC_HLT, flow_stop },
	{ ZYDIS_MNEMONIC_UD2, flow_stop },
	{ ZYDIS_MNEMONIC_INT3, flow_stop },
};

static void flow_writes(struct decoding *d)
{
	uint8_t reg;

	for (size_t i = 0; i < d->in.operand_count; i++) {
		if (d->ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(d->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = flow_reg(d->ops[i].reg.value);
		if (reg != FLOW_NO_REG)
			d->out->writes |= (uint16_t)(1U << reg);
	}
}

void arch_flow_decode(const uint8_t *code, size_t len, uint64_t at,
		      uint64_t base, struct flow_insn *out)
{
	struct decoding d = { .at = at, .base = base, .out = out };
	ZydisDecoder decoder;

	*out = (struct flow_insn){ .at = (uint32_t)(at - base),
				   .to = FLOW_NOWHERE,
				   .len = 1,
				   .op = FLOW_STOP,
				   .a = FLOW_NO_REG,
				   .b = FLOW_NO_REG };
	if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(
		    ZydisDecoderDecodeFull(&decoder, code, len, &d.in, d.ops)))
		return;
	out->len = d.in.length;
	out->op = FLOW_PLAIN;
	flow_writes(&d);
	if (d.in.meta.category == ZYDIS_CATEGORY_COND_BR)
		flow_branch(&d, FLOW_BRANCH);
	else if (d.in.meta.category == ZYDIS_CATEGORY_RET)
		out->op = FLOW_RETURN;
	else if (d.in.meta.category == ZYDIS_CATEGORY_NOP ||
		 d.in.meta.category == ZYDIS_CATEGORY_WIDENOP)
		out->op = FLOW_NOTHING;
	else
		for (size_t i = 0; i < ARRAY_SIZE(flow_decoders); i++)
			if (flow_decoders[i].mnemonic == d.in.mnemonic)
				flow_decoders[i].decode(&d);
	if (out->op == FLOW_PLAIN && out->writes & 1U << REG_SP)
		out->op = FLOW_LOSE_SP;
}
