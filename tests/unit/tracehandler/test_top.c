// SPDX-License-Identifier: Apache-2.0
/*
 * The caller of an interrupted function without rows: functions in machine code, at each
 * of their instructions, with stack and registers as they are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tracehandler/unwind/top.h"

#define CODE 0x500000ULL
#define CALLER (CODE + 0x8000)
#define STACK 0x7ffd0000ULL /* fits into 32 bits */
#define ENTRY (STACK + 0x400) /* sp at the function's begin */
#define CALLER_FP (STACK + 0x440)

/* An instruction that is interrupted, and what the function has done until then. */
struct state {
	uint8_t at; /* its offset */
	uint8_t depth; /* bytes pushed and allocated */
	enum {
		OF_CALLER, /* fp */
		OF_FRAME, /* the frame's: the word below the return address */
		OF_SP,
	} fp;
	enum trace_top_known known;
};

struct function {
	const char *name;
	bool compat;
	uint8_t len;
	uint8_t code[40];
	struct state states[12]; /* the first has at 0; further ones more */
};

#define FOUND TRACE_TOP_FOUND
#define FRAME TRACE_TOP_FRAME
#define UNSURE TRACE_TOP_UNSURE

static const struct function functions[] = {
	{ "push, mov, pop, ret",
	  false,
	  6,
	  { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3 },
	  { { 0, 0, OF_CALLER, FOUND },
	    { 1, 8, OF_CALLER, FOUND },
	    { 4, 8, OF_FRAME, FOUND },
	    { 5, 0, OF_CALLER, FOUND } } },
	{ "the same in 32-bit code",
	  true,
	  5,
	  { 0x55, 0x89, 0xe5, 0x5d, 0xc3 },
	  { { 0, 0, OF_CALLER, FOUND },
	    { 1, 4, OF_CALLER, FOUND },
	    { 3, 4, OF_FRAME, FOUND },
	    { 4, 0, OF_CALLER, FOUND } } },
	/* sub $24,%rsp; mov %rbp,16(%rsp); mov %rsp,%rbp; add $16,%rbp; call */
	{ "a frame pointer that is moved after it was set",
	  false,
	  27,
	  { 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10,
	    0x48, 0x89, 0xe5, 0x48, 0x83, 0xc5, 0x10, 0xe8, 0,
	    0,	  0,	0,    0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3 },
	  { { 0, 0, OF_CALLER, FOUND },
	    { 4, 24, OF_CALLER, FOUND },
	    { 9, 24, OF_CALLER, FOUND },
	    /* Its value is still that of sp: not the frame's. */
	    { 16, 24, OF_FRAME, FRAME },
	    { 21, 24, OF_FRAME, FOUND },
	    { 25, 8, OF_FRAME, FOUND },
	    { 26, 0, OF_CALLER, FOUND } } },
	{ "no frame",
	  false,
	  4,
	  { 0x8d, 0x47, 0x01, 0xc3 },
	  { { 0, 0, OF_CALLER, FOUND }, { 3, 0, OF_CALLER, FOUND } } },
	/* push; mov; sub $32,%rsp; mov (%rdi),%eax; leave; ret $8 */
	{ "leave, and a return that drops arguments",
	  false,
	  14,
	  { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x8b, 0x07, 0xc9,
	    0xc2, 0x00, 0x00 },
	  { { 0, 0, OF_CALLER, FOUND },
	    { 4, 8, OF_FRAME, FOUND },
	    { 8, 40, OF_FRAME, FOUND },
	    { 10, 40, OF_FRAME, FOUND },
	    { 11, 0, OF_CALLER, FOUND } } },
	/* push %rbx; 1: dec %ecx; jnz 1b; pop %rbx; ret */
	{ "a loop; other registers",
	  false,
	  7,
	  { 0x53, 0xff, 0xc9, 0x75, 0xfc, 0x5b, 0xc3 },
	  { { 0, 0, OF_CALLER, FOUND },
	    { 1, 8, OF_CALLER, FOUND },
	    { 5, 8, OF_CALLER, FOUND } } },
	/* What follows a call may be another function. */
	{ "a call before the return",
	  false,
	  6,
	  { 0xe8, 0, 0, 0, 0, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE }, { 5, 0, OF_CALLER, FOUND } } },
	{ "a jump",
	  false,
	  3,
	  { 0xeb, 0, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE } } },
	{ "a breakpoint",
	  false,
	  2,
	  { 0xcc, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE } } },
	{ "no instruction",
	  false,
	  2,
	  { 0x06, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE } } },
	/* mov %rax,%rsp; ret */
	{ "another stack",
	  false,
	  4,
	  { 0x48, 0x89, 0xc4, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE }, { 3, 0, OF_CALLER, FOUND } } },
	/* xchg %rax,%rsp; ret; and with fp: and $-16,%rsp; ret */
	{ "an exchange",
	  false,
	  3,
	  { 0x48, 0x94, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE } } },
	{ "an alignment",
	  false,
	  5,
	  { 0x48, 0x83, 0xe4, 0xf0, 0xc3 },
	  { { 0, 0, OF_CALLER, UNSURE } } },
};

static bool is_code(void *arg, uint64_t addr)
{
	return addr - CODE < 0x10000;
}

static uint8_t stack[0x800];

static void poke(uint64_t at, uint64_t v, size_t word)
{
	memcpy(stack + (at - STACK), &v, word);
}

/* The stack at one instruction, with 'len' bytes of the code. */
static enum trace_top_known top_at(const struct function *f,
				   const struct state *st, size_t len,
				   struct trace_top *out)
{
	size_t word = f->compat ? 4 : 8;
	struct abi_regs regs = { .ip = CODE + st->at };
	struct trace_stack s = {
		.regs = &regs,
		.here = { stack, STACK, sizeof(stack), ABI_STACK_WHOLE, 0 },
		.compat = f->compat,
		.code = f->code + st->at,
		.code_len = MIN(len, (size_t)f->len - st->at),
		.is_code = is_code,
	};

	memset(stack, 0, sizeof(stack));
	poke(ENTRY, CALLER, word);
	poke(CALLER_FP + word, CALLER + 0x100, word);
	if (st->depth || st->fp == OF_FRAME)
		poke(ENTRY - word, CALLER_FP, word);
	regs.gpr[ABI_REG_SP] = ENTRY - st->depth;
	regs.gpr[ABI_REG_BP] = st->fp == OF_CALLER ? CALLER_FP
			       : st->fp == OF_SP   ? ENTRY - st->depth
						   : ENTRY - word;
	memset(out, 0, sizeof(*out));
	return trace_top(&s, out);
}

static void test_each_instruction(void **state)
{
	const struct function *f;
	const struct state *st;
	struct trace_top top;
	size_t word;

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		f = &functions[i];
		word = f->compat ? 4 : 8;
		for (st = f->states; st == f->states || st->at; st++) {
			if (top_at(f, st, ABI_CODE_MAX, &top) != st->known)
				fail_msg("%s, at %u", f->name, st->at);
			if (st->known != TRACE_TOP_FOUND)
				continue;
			assert_int_equal(top.ip, CALLER);
			assert_int_equal(top.sp, ENTRY + word);
			if (!top.fp_known || top.fp != CALLER_FP)
				fail_msg("%s, at %u: fp", f->name, st->at);
		}
	}
}

/* With fewer bytes less is found, and nothing else. */
static void test_every_cut(void **state)
{
	const struct function *f;
	const struct state *st;
	enum trace_top_known known;
	struct trace_top top;

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		f = &functions[i];
		for (st = f->states; st == f->states || st->at; st++)
			for (size_t len = 0; len < f->len; len++) {
				known = top_at(f, st, len, &top);
				if (known == TRACE_TOP_FOUND)
					assert_int_equal(top.ip, CALLER);
				if (known == TRACE_TOP_FRAME)
					assert_int_equal(st->fp, OF_FRAME);
			}
	}
}

/* Without code bytes an address of code below the frame leaves a doubt. */
static void test_the_stack_alone(void **state)
{
	const struct function *f = &functions[2];
	const struct state *body = &f->states[3];
	struct trace_top top;
	struct abi_regs regs = { .ip = CODE + body->at };
	struct trace_stack s = {
		.regs = &regs,
		.here = { stack, STACK, sizeof(stack), ABI_STACK_WHOLE, 0 },
		.is_code = is_code,
	};

	assert_int_equal(top_at(f, body, 0, &top), TRACE_TOP_FRAME);
	regs.gpr[ABI_REG_SP] = ENTRY - body->depth;
	regs.gpr[ABI_REG_BP] = ENTRY - 8;
	assert_int_equal(trace_top(&s, &top), TRACE_TOP_FRAME);
	poke(ENTRY - 16, CODE + 1, 8);
	assert_int_equal(trace_top(&s, &top), TRACE_TOP_UNSURE);
	poke(ENTRY - 16, 1, 8);
	assert_int_equal(trace_top(&s, &top), TRACE_TOP_FRAME);
	s.here.size = 0x3f4; /* the word below the frame is not copied */
	assert_int_equal(trace_top(&s, &top), TRACE_TOP_UNSURE);
	s.here.size = sizeof(stack);
	s.is_code = NULL;
	assert_int_equal(trace_top(&s, &top), TRACE_TOP_UNSURE);
	s.is_code = is_code;
	regs.ip = CODE - 1; /* not in code */
	assert_int_equal(trace_top(&s, &top), TRACE_TOP_UNSURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_instruction),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_the_stack_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
