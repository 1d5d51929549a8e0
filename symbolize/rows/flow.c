// SPDX-License-Identifier: Apache-2.0
/*
 * flow: see symbolize/rows/flow.h. A forward analysis by a worklist: each instruction has
 * the state of the frame before it; where paths meet, what differs is not known.
 *
 * Which functions return, and the targets of switch statements, follow from the states,
 * and the states from them: all is done in a few rounds, each with what the one before
 * has found. A function returns if a path leads from its start to a return.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/rows/flow.h"

#define ROUNDS 3
#define RETURNS_PASSES 64
#define CUTS_PASSES 8

#define REG_FP SYMBOLIZER_REG_FP
#define REG_SP SYMBOLIZER_REG_SP

#define SP_MAX (1 << 28) /* bytes of a frame */

/* --- nodes ------------------------------------------------------------------ */

struct flow_node *flow_at(const struct flow *f, uint32_t at)
{
	uint32_t i = at - f->start < f->size ? f->index[at - f->start] : 0;

	return i ? &f->nodes[i - 1] : NULL;
}

/* The node of the instruction at 'at'; NULL: f->err is set, or no code is there. */
static struct flow_node *flow_node(struct flow *f, uint32_t at)
{
	struct flow_node *node = flow_at(f, at);
	uint32_t off = at - f->start;

	if (node || off >= f->size || f->err)
		return node;
	if (f->n_nodes >= FLOW_NODES_MAX)
		f->err = -E2BIG;
	else
		f->err = VECTOR_ROOM(f->nodes, f->n_nodes, f->cap_nodes);
	if (f->err)
		return NULL;
	node = &f->nodes[f->n_nodes++];
	memset(node, 0, sizeof(*node));
	node->returns = true;
	arch_flow_decode(f->code + off, f->size - off, f->base + at, f->base,
			 &node->in);
	if (node->in.op == FLOW_CONSTANT)
		node->in.op = f->fixed ? FLOW_ADDRESS : FLOW_PLAIN;
	f->index[off] = (uint32_t)f->n_nodes;
	return node;
}

static void flow_queue(struct flow *f, struct flow_node *node)
{
	if (node->queued || f->err)
		return;
	f->err = VECTOR_ROOM(f->queue, f->n_queue, f->cap_queue);
	if (f->err)
		return;
	node->queued = true;
	f->queue[f->n_queue++] = node->in.at;
}

/* --- states ----------------------------------------------------------------- */

/* Keeps in *to what both have; whether that changed it. */
static bool flow_meet(struct flow_state *to, const struct flow_state *from)
{
	bool changed = false;

	if (to->sp != from->sp && to->sp != FLOW_UNKNOWN) {
		to->sp = FLOW_UNKNOWN;
		changed = true;
	}
	if (to->fp != from->fp && to->fp != FLOW_UNKNOWN) {
		to->fp = FLOW_UNKNOWN;
		changed = true;
	}
	for (int i = 0; i < FLOW_REGS; i++) {
		if (to->saved[i] != from->saved[i] &&
		    to->saved[i] != FLOW_LOST) {
			to->saved[i] = FLOW_LOST;
			changed = true;
		}
		if (to->reg[i] != from->reg[i] && to->reg[i]) {
			to->reg[i] = 0;
			changed = true;
		}
	}
	return changed;
}

/* A path with the state 'st' leads to 'at'. */
static void flow_go(struct flow *f, uint32_t at, const struct flow_state *st)
{
	struct flow_node *node = flow_node(f, at);

	if (!node || flow_is_start(f, at))
		return;
	if (!node->reached) {
		node->reached = true;
		node->state = *st;
	} else if (!flow_meet(&node->state, st)) {
		return;
	}
	flow_queue(f, node);
}

/* A function starts at 'at'. */
static void flow_begin(struct flow *f, uint32_t at)
{
	struct flow_node *node = flow_node(f, at);

	if (!node)
		return;
	node->reached = true;
	memset(&node->state, 0, sizeof(node->state));
	node->state.sp = ARCH_ENTRY_CFA;
	node->state.fp = FLOW_UNKNOWN;
	flow_queue(f, node);
}

static void flow_called(struct flow *f, uint32_t at)
{
	uint32_t off = at - f->start;

	if (off >= f->size || flow_is_start(f, at))
		return;
	f->marks[off] |= FLOW_START;
	flow_begin(f, at);
}

static void flow_write(struct flow_state *st, uint8_t reg)
{
	if (reg >= FLOW_REGS)
		return;
	if (!st->saved[reg])
		st->saved[reg] = FLOW_LOST;
	if (reg == REG_FP)
		st->fp = FLOW_UNKNOWN;
	st->reg[reg] = 0;
}

static void flow_move_sp(struct flow_state *st, int64_t n)
{
	if (st->sp == FLOW_UNKNOWN)
		return;
	n = st->sp - n;
	st->sp = n < ARCH_ENTRY_CFA || n > SP_MAX ? FLOW_UNKNOWN : (int32_t)n;
}

/* Where b + n is, in bytes below the CFA; 0: not known. */
static int32_t flow_below(const struct flow_state *st, uint8_t b, int32_t n)
{
	int32_t reg = b == REG_SP   ? st->sp
		      : b == REG_FP ? st->fp
				    : FLOW_UNKNOWN;
	int64_t below = (int64_t)reg - n;

	return reg == FLOW_UNKNOWN || below <= ARCH_ENTRY_CFA || below > SP_MAX
		       ? 0
		       : (int32_t)below;
}

/* Register 'reg' is stored there: the caller's value is, if it still has that. */
static void flow_store(struct flow_state *st, uint8_t reg, int32_t below)
{
	if (!below)
		return;
	for (int i = 0; i < FLOW_REGS; i++)
		if (st->saved[i] == below)
			st->saved[i] = FLOW_LOST;
	if (reg < FLOW_REGS && !st->saved[reg])
		st->saved[reg] = below;
}

static void flow_load(struct flow_state *st, uint8_t reg, int32_t below)
{
	bool back = below && reg < FLOW_REGS && st->saved[reg] == below;

	flow_write(st, reg);
	if (back)
		st->saved[reg] = 0;
}

static void flow_unpush(struct flow_state *st, uint8_t reg)
{
	flow_load(st, reg, flow_below(st, REG_SP, 0));
	flow_move_sp(st, 8);
}

/* What the instruction does to the frame. */
static void flow_step(struct flow_state *st, const struct flow_insn *in)
{
	uint32_t sum;

	switch (in->op) {
	case FLOW_PUSH:
		flow_move_sp(st, -8);
		flow_store(st, in->a, flow_below(st, REG_SP, 0));
		return;
	case FLOW_POP:
		flow_unpush(st, in->a);
		return;
	case FLOW_ADD_SP:
		flow_move_sp(st, in->n);
		return;
	case FLOW_SP_FROM:
		st->sp = in->a == REG_FP && st->fp != FLOW_UNKNOWN
				 ? st->fp
				 : FLOW_UNKNOWN;
		flow_move_sp(st, in->n);
		return;
	case FLOW_FROM_SP:
		flow_write(st, in->a);
		if (in->a == REG_FP && st->sp != FLOW_UNKNOWN &&
		    in->n > -SP_MAX && in->n < SP_MAX)
			st->fp = st->sp - in->n;
		return;
	case FLOW_STORE:
		flow_store(st, in->a, flow_below(st, in->b, in->n));
		return;
	case FLOW_LOAD:
		flow_load(st, in->a, flow_below(st, in->b, in->n));
		return;
	case FLOW_LEAVE:
		st->sp = st->fp;
		flow_unpush(st, REG_FP);
		return;
	case FLOW_ADDRESS:
		flow_write(st, in->a);
		if (in->to < FLOW_VALUE_MAX)
			st->reg[in->a] = FLOW_IS_ADDRESS | in->to;
		return;
	case FLOW_COPY:
		sum = st->reg[in->b];
		flow_write(st, in->a);
		st->reg[in->a] = sum;
		return;
	case FLOW_TABLE:
		sum = st->reg[in->b];
		flow_write(st, in->a);
		if ((sum & FLOW_KIND) == FLOW_IS_ADDRESS)
			st->reg[in->a] = FLOW_IS_ENTRY | (sum & ~FLOW_KIND);
		return;
	case FLOW_SUM:
		sum = st->reg[in->a] ^ st->reg[in->b];
		flow_write(st, in->a);
		/* One is the table, the other its entry. */
		if (sum == (FLOW_IS_ADDRESS ^ FLOW_IS_ENTRY))
			st->reg[in->a] =
				FLOW_IS_TARGET | (st->reg[in->b] & ~FLOW_KIND);
		return;
	case FLOW_LOSE_SP:
		st->sp = FLOW_UNKNOWN;
		break;
	default:
		break;
	}
	for (uint8_t i = 0; i < FLOW_REGS; i++)
		if (in->writes & 1U << i && i != REG_SP)
			flow_write(st, i);
}

/* --- paths ------------------------------------------------------------------ */

static void flow_after_call(struct flow_state *st)
{
	for (uint8_t i = 0; i < FLOW_REGS; i++)
		if (arch_flow_scratch & 1U << i)
			flow_write(st, i);
}

static bool flow_call_returns(const struct flow *f, const struct flow_node *n)
{
	const struct flow_node *to = flow_at(f, n->in.to);

	return (!to || to->returns) && !n->cut && !flow_is_final(f, n->in.to);
}

/* From one instruction to those that may follow. */
static void flow_follow(struct flow *f, struct flow_node *node)
{
	struct flow_insn in = node->in;
	struct flow_state st = node->state, before = st;
	uint32_t next = in.at + in.len;

	flow_step(&st, &in);
	if (in.op == FLOW_ADDRESS && in.to - f->start < f->size)
		f->marks[in.to - f->start] |= FLOW_WEAK;
	switch (in.op) {
	case FLOW_BRANCH:
		flow_go(f, in.to, &st);
		break;
	case FLOW_JUMP:
		flow_go(f, in.to, &st);
		return;
	case FLOW_JUMP_REG:
	case FLOW_JUMP_TABLE:
		flow_table(f, &in, &before);
		for (size_t i = 0; i < f->n_targets; i++)
			flow_go(f, f->targets[i], &st);
		return;
	case FLOW_CALL:
		flow_called(f, in.to);
		if (f->err || !flow_call_returns(f, flow_at(f, in.at)))
			return;
		flow_after_call(&st);
		break;
	case FLOW_RETURN:
	case FLOW_STOP:
		return;
	default:
		break;
	}
	flow_go(f, next, &st);
}

/* Ends it when it has taken too long. */
static void flow_spent(struct flow *f)
{
	if (f->steps > FLOW_STEPS_MAX)
		f->err = -E2BIG;
}

static void flow_run(struct flow *f)
{
	struct flow_node *node;

	while (f->n_queue && !f->err) {
		node = flow_at(f, f->queue[--f->n_queue]);
		node->queued = false;
		f->steps++;
		flow_spent(f);
		if (!f->err)
			flow_follow(f, node);
	}
}

/* Whether it is inside an instruction that is executed otherwise. */
static bool flow_is_inside(const struct flow *f, uint32_t at)
{
	const struct flow_node *node;

	for (uint32_t back = 1; back < 16 && back <= at - f->start; back++) {
		node = flow_at(f, at - back);
		if (node && node->reached && node->in.len > back)
			return true;
	}
	return false;
}

/* An address that no path leads to is a start, if it is used. */
static void flow_run_weak(struct flow *f)
{
	for (uint32_t off = 0; off < f->size && !f->err; off++) {
		const struct flow_node *node;

		if ((f->marks[off] & (FLOW_WEAK | FLOW_DATA)) != FLOW_WEAK)
			continue;
		node = flow_at(f, f->start + off);
		if ((node && node->reached) ||
		    flow_is_inside(f, f->start + off))
			continue;
		flow_begin(f, f->start + off);
		flow_run(f);
	}
}

/* --- which functions return -------------------------------------------------- */

static bool flow_returns_at(const struct flow *f, uint32_t at)
{
	const struct flow_node *node = flow_at(f, at);

	return !node || !node->reached || node->returns;
}

static bool flow_node_returns(struct flow *f, const struct flow_node *node)
{
	const struct flow_insn *in = &node->in;
	uint32_t next = in->at + in->len;

	switch (in->op) {
	case FLOW_RETURN:
		return true;
	case FLOW_STOP:
		return false;
	case FLOW_JUMP:
		return flow_returns_at(f, in->to) && !flow_is_final(f, in->to);
	case FLOW_BRANCH:
		return flow_returns_at(f, in->to) || flow_returns_at(f, next);
	case FLOW_JUMP_REG:
	case FLOW_JUMP_TABLE:
		flow_table(f, in, &node->state);
		for (size_t i = 0; i < f->n_targets; i++)
			if (flow_returns_at(f, f->targets[i]))
				return true;
		return !f->n_targets;
	case FLOW_CALL:
		return flow_call_returns(f, node) && flow_returns_at(f, next);
	default:
		return flow_returns_at(f, next);
	}
}

/* The least solution: nothing returns that does not lead to a return. */
static void flow_find_returns(struct flow *f)
{
	bool changed = true;
	struct flow_node *node;

	for (size_t i = 0; i < f->n_nodes; i++)
		f->nodes[i].returns = !f->nodes[i].reached;
	for (int pass = 0; changed && !f->err && pass < RETURNS_PASSES;
	     pass++) {
		changed = false;
		for (uint32_t off = f->size; off-- && !f->err;) {
			node = flow_at(f, f->start + off);
			flow_spent(f);
			if (!node || node->returns ||
			    !flow_node_returns(f, node))
				continue;
			node->returns = changed = true;
		}
	}
	for (size_t i = 0; changed && i < f->n_nodes; i++)
		f->nodes[i].returns = true; /* not known in time */
}

/* --- where a path is none ---------------------------------------------------- */

/* Whether nothing but padding is between 'at' and an aligned address. */
static bool flow_is_padded(const struct flow *f, uint32_t at)
{
	const struct flow_node *node;

	while (at % ARCH_FUNCTION_ALIGN) {
		node = flow_at(f, at);
		if (!node || node->in.op != FLOW_NOTHING)
			return false;
		at += node->in.len;
	}
	return true;
}

static bool flow_wrong_at(const struct flow *f, uint32_t at)
{
	const struct flow_node *node = flow_at(f, at);

	return node && node->reached && node->wrong && !flow_is_start(f, at);
}

static bool flow_leaves_wrong(const struct flow_node *node)
{
	return node->state.sp != FLOW_UNKNOWN &&
	       node->state.sp != ARCH_ENTRY_CFA;
}

static bool flow_node_wrong(struct flow *f, struct flow_node *node)
{
	const struct flow_insn *in = &node->in;
	uint32_t next = in->at + in->len;

	switch (in->op) {
	case FLOW_RETURN:
		return flow_leaves_wrong(node);
	case FLOW_JUMP:
		if (in->to - f->start >= f->size || flow_is_start(f, in->to))
			return flow_leaves_wrong(node);
		return flow_wrong_at(f, in->to);
	case FLOW_BRANCH:
		return flow_wrong_at(f, in->to) || flow_wrong_at(f, next);
	case FLOW_JUMP_REG:
	case FLOW_JUMP_TABLE:
	case FLOW_STOP:
		return false;
	case FLOW_CALL:
		if (!flow_call_returns(f, node) || !flow_wrong_at(f, next))
			return false;
		node->cut = flow_is_padded(f, next);
		return !node->cut;
	default:
		return flow_wrong_at(f, next);
	}
}

/*
 * A path that returns with a frame that is not gone is none: the call that leads to it
 * does not return, and behind it, aligned, another function begins.
 */
static void flow_find_cuts(struct flow *f)
{
	bool changed = true;
	struct flow_node *node;

	for (size_t i = 0; i < f->n_nodes; i++)
		f->nodes[i].wrong = false;
	for (int pass = 0; changed && pass < CUTS_PASSES; pass++) {
		changed = false;
		for (uint32_t off = f->size; off--;) {
			node = flow_at(f, f->start + off);
			if (!node || !node->reached || node->wrong ||
			    !flow_node_wrong(f, node))
				continue;
			node->wrong = changed = true;
		}
	}
}

/* Each round begins with the starts that are certain. */
static void flow_round(struct flow *f)
{
	for (size_t i = 0; i < f->n_nodes; i++)
		f->nodes[i].reached = f->nodes[i].queued = false;
	f->n_queue = 0;
	for (uint32_t off = 0; off < f->size; off++)
		if (f->marks[off] & FLOW_START)
			flow_begin(f, f->start + off);
	flow_run(f);
	flow_run_weak(f);
}

int flow_solve(struct flow *f)
{
	for (int round = 0; round < ROUNDS && !f->err; round++) {
		if (round) {
			flow_find_cuts(f);
			flow_find_returns(f);
		}
		flow_round(f);
	}
	return f->err;
}
