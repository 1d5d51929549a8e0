// SPDX-License-Identifier: Apache-2.0
/*
 * From the stack of g0 to the goroutine that left its own for it: made-up stacks of each
 * function of Go's runtime that changes stacks. What does not fit together ends the stack
 * with a mark, never with a caller that may not be one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tracehandler/unwind/walk.h"

#define C_CODE 0x10000ULL
#define ASMCGOCALL 0x11000ULL
#define ASMCGOCALL_OLD 0x11800ULL /* without a frame pointer: up to Go 1.20 */
#define SYSTEMSTACK 0x12000ULL
#define SWITCH 0x13008ULL /* in systemstack_switch, where a goroutine goes on */
#define MCALL 0x14000ULL
#define MORESTACK 0x15000ULL
#define NANOTIME 0x16000ULL
#define CALLER 0x17010ULL /* a return address */
#define GOEXIT 0x18001ULL /* likewise */
#define OTHER 0x19000ULL

static const char table[] = "10000 rsp+16 c-16\n"
			    "11000 rsp+16 c-16 elsewhere:c\n"
			    "11800 rsp+8 u elsewhere:c\n"
			    "12000 rsp+16 c-16 elsewhere:call\n"
			    "13000 rsp+8 u\n"
			    "13001 rsp+16 c-16\n"
			    "14000 rsp+16 c-16 elsewhere:park\n"
			    "15000 rsp+8 u elsewhere:grow\n"
			    "16000 rsp+8 u elsewhere:vdso\n"
			    "16002 rsp+32 c-16 elsewhere:vdso\n"
			    "17000 rsp+32 c-16\n"
			    "18000 rsp+8 u none\n"
			    "19000 rsp+16 c-16 elsewhere\n"
			    "19100 end\n";

#define G 0xc000000700ULL
#define G0_STACK 0x7f0000001000ULL /* a copy of 64 words */
#define G0_BASE (G0_STACK + 0x180)
#define GO_STACK 0xc000010000ULL /* likewise */
#define GO_SP (GO_STACK + 0x80)
#define GO_END (GO_STACK + 0x200)

/* A sample in a function that the changing function has called; its frame is empty. */
struct made {
	uint64_t g0[64], goroutine[64];
	struct abi_regs regs;
	struct abi_go go;
	struct trace_stack s;
	uint64_t pcs[16];
	enum trace_end why;
	size_t n;
	struct symbolizer_rows *rows;
};

static uint64_t *word(struct made *m, uint64_t at)
{
	if (at - G0_STACK < sizeof(m->g0))
		return &m->g0[(at - G0_STACK) / 8];
	assert_true(at - GO_STACK < sizeof(m->goroutine));
	return &m->goroutine[(at - GO_STACK) / 8];
}

/* The stack that was left; 'pc' has its frame at GO_SP. */
static void leave(struct made *m, uint64_t pc)
{
	m->go = (struct abi_go){ .state = ABI_GO_SAVED,
				 .g = G,
				 .pc = pc,
				 .sp = GO_SP,
				 .bp = GO_SP + 0x20,
				 .end = GO_END,
				 .base = G0_BASE };
	if (pc == SWITCH) { /* the caller's frame pointer, and its address */
		*word(m, GO_SP) = GO_SP + 0x20;
		*word(m, GO_SP + 8) = CALLER;
		*word(m, GO_SP + 16 + 24) = GOEXIT;
	} else {
		*word(m, GO_SP + 24) = GOEXIT;
	}
}

/* The sample: interrupted in C_CODE, which was called from 'pc' with this sp. */
static void call_from(struct made *m, uint64_t pc, uint64_t sp)
{
	m->regs.ip = C_CODE + 4;
	m->regs.gpr[ABI_REG_SP] = sp - 16;
	*word(m, sp - 16) = 0;
	*word(m, sp - 8) = pc + 4;
}

static void begin(struct made *m, uint64_t pc)
{
	struct symbolizer_rows_error error;

	memset(m, 0, sizeof(*m));
	assert_int_equal(symbolizer_rows_parse(table, strlen(table), &m->rows,
					       &error),
			 0);
	m->s = (struct trace_stack){
		.regs = &m->regs,
		.here = { .bytes = (const uint8_t *)m->g0,
			  .start = G0_STACK,
			  .size = sizeof(m->g0) },
		.left = { .bytes = (const uint8_t *)m->goroutine,
			  .start = GO_STACK,
			  .size = sizeof(m->goroutine) },
		.go = &m->go,
	};
	leave(m, pc);
}

static void on_code(void *arg, uint64_t pc, struct trace_code *out)
{
	if (pc - C_CODE >= 0x9100)
		return;
	out->state = TRACE_CODE_HERE;
	out->start = C_CODE;
	out->end = C_CODE + 0x9100;
	out->rows = arg;
}

static void walk(struct made *m)
{
	m->n = trace_walk(&m->s, NULL, on_code, m->rows, m->pcs,
			  ARRAY_SIZE(m->pcs), &m->why);
	symbolizer_rows_free(m->rows);
}

/* Whole: C code, the function 'pc', its caller, goexit. */
static void is_whole(struct made *m, uint64_t pc)
{
	walk(m);
	assert_int_equal(m->why, TRACE_END_ROOT);
	assert_int_equal(m->n, 4);
	assert_int_equal(m->pcs[0], C_CODE + 4);
	assert_int_equal(m->pcs[1], pc + 4);
	assert_int_equal(m->pcs[2], CALLER);
	assert_int_equal(m->pcs[3], GOEXIT);
}

static void is_marked(struct made *m, size_t n)
{
	walk(m);
	assert_int_equal(m->why, TRACE_END_OTHER);
	assert_int_equal(m->n, n);
}

/* --- systemstack ------------------------------------------------------------- */

static void begin_systemstack(struct made *m)
{
	begin(m, SWITCH);
	call_from(m, SYSTEMSTACK, G0_BASE);
}

static void systemstack_leads_to_its_caller(void **state)
{
	struct made m;

	begin_systemstack(&m);
	is_whole(&m, SYSTEMSTACK);
	/* Interrupted in it, on the new stack. */
	begin_systemstack(&m);
	m.regs.ip = SYSTEMSTACK + 4;
	m.regs.gpr[ABI_REG_SP] = G0_BASE;
	walk(&m);
	assert_int_equal(m.why, TRACE_END_ROOT);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.pcs[0], SYSTEMSTACK + 4);
	assert_int_equal(m.pcs[1], CALLER);
	/* A saved frame pointer of nowhere is not needed. */
	begin_systemstack(&m);
	m.go.bp = 0;
	is_whole(&m, SYSTEMSTACK);
}

static void systemstack_that_does_not_fit_is_marked(void **state)
{
	struct made m;

	begin_systemstack(&m);
	m.s.go = NULL;
	is_marked(&m, 2);
	begin_systemstack(&m);
	m.go.base -= 8; /* that of another call of the runtime */
	is_marked(&m, 2);
	begin_systemstack(&m);
	m.go.state = ABI_GO_NONE;
	is_marked(&m, 2);
	begin_systemstack(&m);
	m.go.state = ABI_GO_VDSO;
	is_marked(&m, 2);
	begin_systemstack(&m);
	m.go.pc = OTHER; /* what it saved has no usual rule */
	is_marked(&m, 2);
	begin_systemstack(&m);
	m.go.pc = 1;
	is_marked(&m, 2);
	begin_systemstack(&m);
	m.s.left.size = 0; /* not copied */
	is_marked(&m, 2);
}

/* One may be left once: a stack that leads to itself ends. */
static void it_is_left_once(void **state)
{
	struct made m;

	begin_systemstack(&m);
	*word(&m, GO_SP + 8) = SYSTEMSTACK + 4;
	m.go.base = GO_SP + 16;
	call_from(&m, SYSTEMSTACK, G0_BASE);
	m.regs.gpr[ABI_REG_SP] = GO_SP; /* as if it was there */
	*word(&m, GO_SP + 8) = SYSTEMSTACK + 4;
	is_marked(&m, 3);
}

/* --- asmcgocall -------------------------------------------------------------- */

/* With its words at sp + 'slot', as far below the begin of the stack as 'gap'. */
static void begin_c(struct made *m, uint64_t pc, uint64_t gap, uint64_t slot)
{
	uint64_t sp = G0_BASE - gap;

	begin(m, SWITCH);
	call_from(m, pc, sp);
	*word(m, sp + slot) = G;
	*word(m, sp + slot - 8) = GO_END - GO_SP;
}

static void asmcgocall_leads_to_its_caller(void **state)
{
	struct made m;

	begin_c(&m, ASMCGOCALL, 16, 8);
	is_whole(&m, ASMCGOCALL);
	begin_c(&m, ASMCGOCALL, 24, 8);
	is_whole(&m, ASMCGOCALL);
	begin_c(&m, ASMCGOCALL, 64, 48); /* Go 1.21 */
	is_whole(&m, ASMCGOCALL);
	begin_c(&m, ASMCGOCALL_OLD, 72, 48);
	is_whole(&m, ASMCGOCALL_OLD);
}

static void asmcgocall_that_does_not_fit_is_marked(void **state)
{
	struct made m;

	begin_c(&m, ASMCGOCALL, 16, 8);
	m.go.g += 8;
	is_marked(&m, 2);
	begin_c(&m, ASMCGOCALL, 16, 8);
	m.go.end += 8;
	is_marked(&m, 2);
	begin_c(&m, ASMCGOCALL, 16, 8);
	m.go.sp -= 8; /* it was left from somewhere else meanwhile */
	is_marked(&m, 2);
	begin_c(&m, ASMCGOCALL, 16, 8);
	m.s.go = NULL;
	is_marked(&m, 2);
	begin_c(&m, ASMCGOCALL, 16, 16);
	is_marked(&m, 2);
}

/* Called by the runtime on g0: it goes on there. */
static void asmcgocall_may_stay_on_its_stack(void **state)
{
	uint64_t sp = G0_BASE - 0x80, was = sp + 24;
	struct made m;

	for (int i = 0; i < 2; i++) {
		begin_c(&m, ASMCGOCALL, 0x80, 8);
		*word(&m, sp + 8) = 0;
		*word(&m, sp) = was;
		*word(&m, was) = 0; /* the frame pointer */
		*word(&m, was + 8) = CALLER;
		*word(&m, was + 16 + 24) = GOEXIT;
		m.s.go = i ? &m.go : NULL;
		is_whole(&m, ASMCGOCALL);
	}
	begin_c(&m, ASMCGOCALL_OLD, 0x80, 48);
	*word(&m, sp + 48) = 0;
	*word(&m, sp + 40) = sp + 72;
	*word(&m, sp + 72) = CALLER;
	*word(&m, sp + 80 + 24) = GOEXIT;
	is_whole(&m, ASMCGOCALL_OLD);
	/* Words of another frame's, below and far above. */
	for (int i = 0; i < 2; i++) {
		begin_c(&m, ASMCGOCALL, 0x80, 8);
		*word(&m, sp + 8) = 0;
		*word(&m, sp) = i ? sp - 8 : sp + 0x100;
		is_marked(&m, 2);
	}
	/* Interrupted before it has written there. */
	begin_c(&m, ASMCGOCALL, 0x80, 8);
	*word(&m, sp + 8) = 0;
	*word(&m, sp) = was;
	m.regs.ip = ASMCGOCALL + 4;
	m.regs.gpr[ABI_REG_SP] = sp;
	is_marked(&m, 1);
}

/* --- mcall and morestack ----------------------------------------------------- */

static void begin_park(struct made *m)
{
	begin(m, CALLER);
	call_from(m, MCALL, G0_BASE - 8);
	*word(m, G0_BASE - 8) = G;
}

static void mcall_leads_to_its_caller_or_is_the_root(void **state)
{
	struct made m;

	begin_park(&m);
	is_whole(&m, MCALL);
	begin_park(&m);
	m.go.state = ABI_GO_NONE;
	walk(&m);
	assert_int_equal(m.why, TRACE_END_ROOT);
	assert_int_equal(m.n, 2);
	/* The goroutine is the next one. */
	begin_park(&m);
	m.go.g += 8;
	is_marked(&m, 2);
	/* Not the first frame of this stack. */
	begin_park(&m);
	m.go.base += 8;
	is_marked(&m, 2);
	begin_park(&m);
	m.go.base += 8;
	m.go.state = ABI_GO_NONE;
	is_marked(&m, 2);
	begin_park(&m);
	m.s.go = NULL;
	is_marked(&m, 2);
}

static void morestack_leads_to_the_function_or_is_the_root(void **state)
{
	struct made m;

	begin(&m, CALLER);
	call_from(&m, MORESTACK, G0_BASE);
	is_whole(&m, MORESTACK);
	begin(&m, CALLER);
	call_from(&m, MORESTACK, G0_BASE);
	m.go.state = ABI_GO_NONE;
	walk(&m);
	assert_int_equal(m.why, TRACE_END_ROOT);
	assert_int_equal(m.n, 2);
	begin(&m, CALLER);
	call_from(&m, MORESTACK, G0_BASE - 8);
	is_marked(&m, 2);
	begin(&m, CALLER);
	call_from(&m, MORESTACK, G0_BASE);
	m.go.state = ABI_GO_VDSO;
	is_marked(&m, 2);
}

/* --- the vDSO ---------------------------------------------------------------- */

/* Its frame at 'fp', on either stack, and the C code's below 'sp'. */
static void begin_vdso(struct made *m, uint64_t sp, uint64_t fp)
{
	begin(m, CALLER);
	m->go = (struct abi_go){ .state = ABI_GO_VDSO, .g = G, .end = GO_END };
	call_from(m, NANOTIME, sp);
	*word(m, sp - 16) = fp; /* C code saved it */
	*word(m, fp) = fp + 0x20;
	*word(m, fp + 8) = CALLER;
	*word(m, fp + 16 + 24) = GOEXIT;
}

static void a_call_of_the_vdso_leads_to_its_caller(void **state)
{
	struct made m;

	begin_vdso(&m, G0_BASE, GO_STACK + 0x40);
	is_whole(&m, NANOTIME);
	/* The runtime itself asks for the time, on g0. */
	begin_vdso(&m, G0_BASE - 0x80, G0_BASE - 0x80 + 40);
	m.s.go = NULL;
	is_whole(&m, NANOTIME);
	begin_vdso(&m, G0_BASE - 0x80, G0_BASE - 0x80 + 40);
	m.go.state = ABI_GO_NONE;
	is_whole(&m, NANOTIME);
}

static void a_frame_pointer_of_something_else_is_not_followed(void **state)
{
	struct made m;

	begin_vdso(&m, G0_BASE, GO_STACK + 0x40);
	m.s.go = NULL;
	is_marked(&m, 2);
	begin_vdso(&m, G0_BASE, GO_STACK + 0x40);
	*word(&m, G0_BASE - 16) = 0x1234; /* of neither stack */
	is_marked(&m, 2);
	begin_vdso(&m, G0_BASE - 0x80, G0_BASE - 0xa0);
	m.go.state = ABI_GO_NONE;
	is_marked(&m, 2);
}

/* Before its frame and after it, and where it has changed stacks already. */
static void interrupted_around_a_call_of_the_vdso(void **state)
{
	uint64_t fp = GO_STACK + 0x40;
	struct made m;

	for (int i = 0; i < 4; i++) {
		begin_vdso(&m, G0_BASE, fp);
		m.regs.ip = i ? NANOTIME + 8 : NANOTIME;
		m.regs.gpr[ABI_REG_BP] = fp;
		m.regs.gpr[12] = i == 2 ? fp - 16 : 0;
		m.regs.gpr[ABI_REG_SP] = i == 0	  ? fp + 8
					 : i == 1 ? fp - 16
						  : G0_BASE;
		if (i == 3) {
			is_marked(&m, 1);
			continue;
		}
		walk(&m);
		assert_int_equal(m.why, TRACE_END_ROOT);
		assert_int_equal(m.n, 3);
		assert_int_equal(m.pcs[1], CALLER);
	}
}

/* Zeros are no root, wherever they are read. */
static void no_caller_at_all_is_marked(void **state)
{
	struct made m;

	begin_systemstack(&m);
	*word(&m, GO_SP + 8) = 0;
	is_marked(&m, 2);
	begin_park(&m);
	m.go.pc = 0;
	is_marked(&m, 2);
	begin_vdso(&m, G0_BASE, GO_STACK + 0x40);
	*word(&m, GO_STACK + 0x48) = 0;
	is_marked(&m, 2);
}

static void other_functions_have_no_known_caller(void **state)
{
	struct made m;

	begin(&m, SWITCH);
	call_from(&m, OTHER, G0_BASE);
	is_marked(&m, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(systemstack_leads_to_its_caller),
		cmocka_unit_test(systemstack_that_does_not_fit_is_marked),
		cmocka_unit_test(it_is_left_once),
		cmocka_unit_test(asmcgocall_leads_to_its_caller),
		cmocka_unit_test(asmcgocall_that_does_not_fit_is_marked),
		cmocka_unit_test(asmcgocall_may_stay_on_its_stack),
		cmocka_unit_test(mcall_leads_to_its_caller_or_is_the_root),
		cmocka_unit_test(
			morestack_leads_to_the_function_or_is_the_root),
		cmocka_unit_test(a_call_of_the_vdso_leads_to_its_caller),
		cmocka_unit_test(
			a_frame_pointer_of_something_else_is_not_followed),
		cmocka_unit_test(interrupted_around_a_call_of_the_vdso),
		cmocka_unit_test(no_caller_at_all_is_marked),
		cmocka_unit_test(other_functions_have_no_known_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
