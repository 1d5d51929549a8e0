// SPDX-License-Identifier: Apache-2.0
/* The frame pointer walk: synthetic stacks, and a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tracehandler/unwind/unwind.h"

#define BASE 0x7ffd00001000ULL
#define WORDS 64

struct fixture {
	uint64_t words[WORDS];
	struct abi_regs regs;
	struct trace_stack stack;
	uint64_t pcs[WORDS];
	enum trace_end why;
};

/* Address of word i of the stack. */
#define AT(i) (BASE + 8 * (uint64_t)(i))

static void frame(struct fixture *f, size_t i, uint64_t fp, uint64_t ret)
{
	f->words[i] = fp;
	f->words[i + 1] = ret;
}

static bool is_code(void *arg, uint64_t addr)
{
	return addr - 0x400000 < 0x100000 || addr - 0x8048000 < 0x1000;
}

/* Frames at words 4, 10 and 20; the outermost has no caller. */
static void make(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	frame(f, 4, AT(10), 0x401100);
	frame(f, 10, AT(20), 0x401200);
	frame(f, 20, 0, 0x401300);
	f->regs.ip = 0x401000;
	f->regs.gpr[ABI_REG_SP] = AT(2);
	f->regs.gpr[ABI_REG_BP] = AT(4);
	f->stack.regs = &f->regs;
	f->stack.is_code = is_code;
	f->stack.here.bytes = (const uint8_t *)f->words;
	f->stack.here.start = BASE;
	f->stack.here.size = sizeof(f->words);
}

static size_t walk(struct fixture *f)
{
	f->why = TRACE_END_MAX;
	return trace_unwind_fp(&f->stack, f->pcs, ARRAY_SIZE(f->pcs), &f->why);
}

static void test_to_the_root(void **state)
{
	struct fixture f;

	make(&f);
	assert_int_equal(walk(&f), 4);
	assert_int_equal(f.why, TRACE_END_ROOT);
	assert_int_equal(f.pcs[0], 0x401000);
	assert_int_equal(f.pcs[1], 0x401100);
	assert_int_equal(f.pcs[2], 0x401200);
	assert_int_equal(f.pcs[3], 0x401300);
}

/* It has set up no frame: the caller is left out, so the stack is not complete. */
static void test_an_address_below_the_frame(void **state)
{
	struct fixture f;

	make(&f);
	f.words[3] = 0x401234;
	assert_int_equal(walk(&f), 4);
	assert_int_equal(f.why, TRACE_END_TOP);
	f.stack.here.size = 8 * 15;
	assert_int_equal(walk(&f), 3);
	assert_int_equal(f.why, TRACE_END_NO_FP);
}

/* The code ahead leads to the caller: push %rbp; mov %rsp,%rbp; ret. */
static void test_by_the_code(void **state)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3 };
	bool bare = false;
	struct fixture f;

	make(&f);
	f.words[2] = 0x401234;
	f.stack.code = code;
	f.stack.code_len = sizeof(code);
	f.stack.bare = &bare;
	assert_int_equal(walk(&f), 5);
	assert_int_equal(f.why, TRACE_END_ROOT);
	assert_int_equal(f.pcs[1], 0x401234);
	assert_int_equal(f.pcs[2], 0x401100);
	assert_true(bare);
	/* Its value in a caller without frame pointers may be zero. */
	f.regs.gpr[ABI_REG_BP] = 0;
	assert_int_equal(walk(&f), 2);
	assert_int_equal(f.why, TRACE_END_NO_FP);
}

/* A zero return address is a root, too, and not a frame. */
static void test_zero_return_address(void **state)
{
	struct fixture f;

	make(&f);
	frame(&f, 10, AT(20), 0);
	assert_int_equal(walk(&f), 2);
	assert_int_equal(f.why, TRACE_END_ROOT);
}

/* In the interrupted frame zero may be any value, not the mark of a root. */
static void test_zero_in_the_interrupted_frame(void **state)
{
	struct fixture f;

	make(&f);
	f.regs.gpr[ABI_REG_BP] = 0;
	assert_int_equal(walk(&f), 1);
	assert_int_equal(f.why, TRACE_END_NO_FP);
}

static void test_no_frame_pointer_at_all(void **state)
{
	static const uint64_t bad[] = { 1,	   0x401000,  AT(1),
					AT(4) + 4, AT(WORDS), AT(-2),
					~7ULL,	   ~0ULL,     AT(WORDS) - 8 };
	struct fixture f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		make(&f);
		f.regs.gpr[ABI_REG_BP] = bad[i];
		assert_int_equal(walk(&f), 1);
		assert_int_equal(f.why, TRACE_END_NO_FP);
	}
}

/* It never goes down, stays in place, or loops. */
static void test_only_towards_the_end(void **state)
{
	static const uint64_t next[] = { AT(4), AT(10), AT(11), AT(3) };
	struct fixture f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(next); i++) {
		make(&f);
		frame(&f, 10, next[i], 0x401200);
		assert_int_equal(walk(&f), 3);
		assert_int_equal(f.why, TRACE_END_NO_FP);
	}
}

/* A frame behind the last byte copied ends as the copy did. */
static void test_behind_the_copy(void **state)
{
	static const struct {
		enum abi_stack_end end;
		enum trace_end why;
	} ends[] = {
		{ ABI_STACK_WHOLE, TRACE_END_NO_FP },
		{ ABI_STACK_CAP, TRACE_END_CAP },
		{ ABI_STACK_FAULT, TRACE_END_FAULT },
		{ ABI_STACK_RING, TRACE_END_RING },
	};
	struct fixture f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		make(&f);
		f.stack.here.end = ends[i].end;
		f.stack.here.size =
			8 * 21; /* half of the frame at 20 is there */
		assert_int_equal(walk(&f), 3);
		assert_int_equal(f.why, ends[i].why);
		f.stack.here.size = 0;
		assert_int_equal(walk(&f), 1);
		assert_int_equal(f.why, ends[i].why);
	}
}

/* A pointer to elsewhere is not the cap's end. */
static void test_elsewhere_is_not_cut(void **state)
{
	struct fixture f;

	make(&f);
	f.stack.here.end = ABI_STACK_CAP;
	frame(&f, 10, 0x7fffffffe000ULL << 8, 0x401200);
	assert_int_equal(walk(&f), 3);
	assert_int_equal(f.why, TRACE_END_NO_FP);
	frame(&f, 10, 0x55550000ULL, 0x401200);
	assert_int_equal(walk(&f), 3);
	assert_int_equal(f.why, TRACE_END_NO_FP);
}

static void test_depth_limit(void **state)
{
	struct fixture f;

	make(&f);
	assert_int_equal(trace_unwind_fp(&f.stack, f.pcs, 3, &f.why), 3);
	assert_int_equal(f.why, TRACE_END_DEPTH);
	assert_int_equal(trace_unwind_fp(&f.stack, f.pcs, 4, &f.why), 4);
	assert_int_equal(f.why, TRACE_END_ROOT);
}

static void test_addresses_wrap(void **state)
{
	struct fixture f;

	make(&f);
	f.stack.here.start = -sizeof(f.words) - 8;
	f.regs.gpr[ABI_REG_SP] = f.stack.here.start;
	f.regs.gpr[ABI_REG_BP] = -8ULL;
	f.stack.here.end = ABI_STACK_CAP;
	assert_int_equal(walk(&f), 1);
	assert_in_range(f.why, TRACE_END_NO_FP, TRACE_END_CAP);
}

/* 32-bit code: words of four bytes. */
static void test_compat(void **state)
{
	static const uint32_t words[] = { 0, 0xffff1010, 0x8048100,
					  0, 0,		 0x8048200 };
	struct abi_regs regs = { .ip = 0x8048000 };
	struct trace_stack s = {
		.regs = &regs,
		.here = { (const uint8_t *)words, 0xffff1000, sizeof(words),
			  ABI_STACK_WHOLE, 0 },
		.compat = true,
		.is_code = is_code,
	};
	uint64_t pcs[8];
	enum trace_end why;

	regs.gpr[ABI_REG_SP] = 0xffff1000;
	regs.gpr[ABI_REG_BP] = 0xffff1004;
	assert_int_equal(trace_unwind_fp(&s, pcs, 8, &why), 3);
	assert_int_equal(why, TRACE_END_ROOT);
	assert_int_equal(pcs[1], 0x8048100);
	assert_int_equal(pcs[2], 0x8048200);
}

/* --- a real stack -------------------------------------------------------- */

struct real {
	struct abi_regs regs;
	uint8_t copy[16384];
	uint64_t rets[8];
	size_t n;
};

/* Byte by byte: a sanitizer poisons the space between locals. */
static __attribute__((noipa, no_sanitize("address"))) void
real_leaf(struct real *r)
{
	const volatile uint8_t *from;
	size_t i;
	uintptr_t fp = (uintptr_t)__builtin_frame_address(0);

	r->regs.ip = (uintptr_t)real_leaf;
	r->regs.gpr[ABI_REG_BP] = fp;
	r->regs.gpr[ABI_REG_SP] = fp & ~15ULL;
	from = (const volatile uint8_t *)(fp & ~15ULL);
	for (i = 0; i < sizeof(r->copy); i++)
		r->copy[i] = from[i];
	r->rets[r->n++] = (uintptr_t)__builtin_return_address(0);
}

static __attribute__((noipa)) int real_descend(struct real *r, int depth)
{
	volatile int below =
		0; /* used after the call, which is thus no tail call */

	r->rets[r->n++] = (uintptr_t)__builtin_return_address(0);
	if (depth)
		below = real_descend(r, depth - 1);
	else
		real_leaf(r);
	return below + 1;
}

static void test_own_stack(void **state)
{
	uint8_t room[20000]; /* above it, so that the copy stays on the stack */
	static struct real r;
	struct trace_stack s = { .regs = &r.regs, .here.bytes = r.copy };
	uint64_t pcs[64];
	enum trace_end why;
	size_t i, n;

	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	assert_int_equal(real_descend(&r, 5), 6);
	s.here.start = r.regs.gpr[ABI_REG_SP];
	s.here.size = sizeof(r.copy);
	s.here.end = ABI_STACK_CAP;
	n = trace_unwind_fp(&s, pcs, ARRAY_SIZE(pcs), &why);
	assert_true(n >= 1 + r.n);
	assert_int_equal(why, TRACE_END_CAP);
	/* rets: outermost call first, the leaf's last */
	for (i = 0; i < r.n; i++)
		assert_int_equal(pcs[1 + i], r.rets[r.n - 1 - i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_the_root),
		cmocka_unit_test(test_an_address_below_the_frame),
		cmocka_unit_test(test_by_the_code),
		cmocka_unit_test(test_zero_return_address),
		cmocka_unit_test(test_no_frame_pointer_at_all),
		cmocka_unit_test(test_only_towards_the_end),
		cmocka_unit_test(test_behind_the_copy),
		cmocka_unit_test(test_elsewhere_is_not_cut),
		cmocka_unit_test(test_depth_limit),
		cmocka_unit_test(test_addresses_wrap),
		cmocka_unit_test(test_zero_in_the_interrupted_frame),
		cmocka_unit_test(test_compat),
		cmocka_unit_test(test_own_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
