// SPDX-License-Identifier: Apache-2.0
/* DWARF expressions of unwind rules: their values, and that they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tracehandler/unwind/expr.h"

#define BASE 0x7000

/* Memory at BASE: words 0, 0x101, 0x202... */
static bool read_word(void *arg, uint64_t at, uint64_t *out)
{
	if (at < BASE || at >= BASE + 64)
		return false;
	*out = (at - BASE) / 8 * 0x101;
	return true;
}

static bool eval(const char *code, size_t len, uint64_t *out)
{
	static const struct trace_frame_regs regs = {
		.v = { [6] = 0x60, [7] = BASE, [16] = 0x1234b },
		.known = 1U << 6 | 1U << 7 | 1U << 16,
	};
	uint64_t cfa = 0x8000;

	return trace_expr((const uint8_t *)code, len, &regs, &cfa, read_word,
			  NULL, out);
}

#define expect(code, want)                                      \
	do {                                                    \
		uint64_t v_ = 0;                                \
		assert_true(eval(code, sizeof(code) - 1, &v_)); \
		assert_int_equal(v_, (uint64_t)(want));         \
	} while (0)

#define expect_none(code)                                        \
	do {                                                     \
		uint64_t v_ = 0;                                 \
		assert_false(eval(code, sizeof(code) - 1, &v_)); \
	} while (0)

static void the_cfa_is_there_first(void **state)
{
	uint64_t v;

	expect("", 0x8000);
	expect("\x23\x08", 0x8008);
	assert_false(trace_expr(NULL, 0, &(struct trace_frame_regs){ 0 }, NULL,
				read_word, NULL, &v));
}

static void constants_and_registers(void **state)
{
	expect("\x3f", 15);
	expect("\x08\xff", 255);
	expect("\x09\xff", -1);
	expect("\x0a\x00\x80", 0x8000);
	expect("\x0b\x00\x80", -0x8000);
	expect("\x0c\x00\x00\x00\x80", 0x80000000);
	expect("\x0d\x00\x00\x00\x80", -0x80000000LL);
	expect("\x0e\1\0\0\0\0\0\0\x80", 0x8000000000000001);
	expect("\x10\x80\x01", 128);
	expect("\x11\x7f", -1);
	expect("\x76\x78", 0x58);
	expect("\x92\x07\x10", BASE + 16);
	expect_none("\x70\x00"); /* not known */
	expect_none("\x81\x00"); /* a vector register */
}

static void memory_is_read(void **state)
{
	expect("\x77\x10\x06", 0x202);
	expect("\x77\x10\x94\x01", 0x02);
	expect("\x77\x10\x94\x08", 0x202);
	expect_none("\x77\x10\x94\x09");
	expect_none("\x76\x00\x06"); /* cannot be read */
}

static void arithmetic(void **state)
{
	expect("\x35\x32\x1a", 0);
	expect("\x09\xf9\x32\x1b", -3);
	expect("\x35\x33\x1c", 2);
	expect("\x35\x33\x1d", 2);
	expect("\x35\x33\x1e", 15);
	expect("\x35\x1f", -5);
	expect("\x35\x20", ~5ULL);
	expect("\x35\x1f\x19", 5);
	expect("\x35\x32\x21", 7);
	expect("\x35\x32\x22", 7);
	expect("\x31\x34\x24", 16);
	expect("\x31\x08\x40\x24", 0); /* by 64 */
	expect("\x09\xf0\x34\x25", 0x0fffffffffffffff);
	expect("\x09\xf0\x34\x26", -1);
	expect("\x35\x36\x27", 3);
	expect("\x09\xff\x31\x2d", 1); /* signed */
	expect("\x31\x31\x2a\x31\x31\x2c\x22\x31\x31\x29\x22", 3);
	expect("\x32\x31\x2b\x32\x31\x2e\x22", 2);
	expect_none("\x31\x30\x1b");
	expect_none("\x31\x30\x1d");
	expect_none("\x0e\0\0\0\0\0\0\0\x80\x09\xff\x1b"); /* overflows */
}

static void the_stack_is_moved(void **state)
{
	expect("\x35\x12\x22", 10);
	expect("\x35\x36\x13", 5);
	expect("\x35\x36\x14\x1c", 1);
	expect("\x35\x36\x37\x15\x02", 5);
	expect("\x35\x37\x16\x1c", 2);
	expect("\x31\x32\x34\x17\x1c\x1c", 5); /* 1 2 4: 4 1 2: 4 - (1 - 2) */
	expect_none("\x13\x13");
	expect_none("\x15\x05");
	expect_none("\x22\x22");
}

static void jumps(void **state)
{
	expect("\x31\x28\x01\x00\x35\x36", 6); /* over the 5 */
	expect("\x30\x28\x01\x00\x35", 5);
	expect("\x2f\x01\x00\x35", 0x8000);
	expect_none("\x2f\x7f\x7f"); /* out of it */
	expect_none("\x2f\x00\x80");
	expect_none("\x2f\xfd\xff"); /* for ever */
}

static void the_rule_of_a_plt(void **state)
{
	/* rip & 15 is 11. */
	expect("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", BASE + 16);
	expect("\x77\x08\x80\x00\x3f\x1a\x3c\x2a\x33\x24\x22", BASE + 8);
}

static void nonsense_is_refused(void **state)
{
	char many[40];
	uint64_t v;

	expect_none("\x08"); /* cut off */
	expect_none("\x77");
	expect_none("\x77\x80");
	expect_none("\x50"); /* a location, not a value */
	expect_none("\xff\x00");
	memset(many, 0x31, sizeof(many));
	assert_false(eval(many, sizeof(many), &v)); /* overflows the stack */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cfa_is_there_first),
		cmocka_unit_test(constants_and_registers),
		cmocka_unit_test(memory_is_read),
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(the_stack_is_moved),
		cmocka_unit_test(jumps),
		cmocka_unit_test(the_rule_of_a_plt),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
