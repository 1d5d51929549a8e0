// SPDX-License-Identifier: Apache-2.0
/* The code that symbolize knows by its instructions, on x86-64. */
#include "tests/unit/rows/test_rows.h"

static struct symbolizer_rows_build begin(void)
{
	return (struct symbolizer_rows_build){
		.base = TEXT,
		.exec[0] = { TEXT, TEXT + TEXT_SIZE },
		.n_exec = 1,
	};
}

static struct symbolizer_rows *end(struct symbolizer_rows_build *b)
{
	struct symbolizer_rows_info info = { 0 };
	struct symbolizer_rows *rows;

	assert_int_equal(symbolizer_rows_end(b, &info, &rows), 0);
	symbolizer_rows_build_fini(b);
	return rows;
}

/* _init of this code: its frame grows at 'grown' and is gone at 'ret'. */
static void expect_init(const char *code, size_t len, uint64_t grown,
			uint64_t ret)
{
	struct symbolizer_rows_build b = begin();
	struct symbolizer_rows *rows;

	assert_int_equal(arch_add_init(&b, TEXT, (const uint8_t *)code, len),
			 0);
	rows = end(&b);
	assert_string_equal(rule_at(rows, 0), "r7+8");
	assert_string_equal(rule_at(rows, grown - 1), "r7+8");
	assert_string_equal(rule_at(rows, grown), "r7+16");
	assert_string_equal(rule_at(rows, ret - 1), "r7+16");
	assert_string_equal(rule_at(rows, ret), "r7+8");
	assert_string_equal(rule_at(rows, ret + 1), "gap");
	symbolizer_rows_free(rows);
}

static void init_of_each_c_library(void **state)
{
	/* glibc: endbr64; sub $8, %rsp; nop; add $8, %rsp; ret */
	expect_init(C("\xf3\x0f\x1e\xfa\x48\x83\xec\x08\x90"
		      "\x48\x83\xc4\x08\xc3\x90"),
		    8, 13);
	expect_init(C("\x48\x83\xec\x08\x90\x48\x83\xc4\x08\xc3"), 4, 9);
	/* musl: push %rax; a call; pop %rcx, no end; pop %rax; ret */
	expect_init(C("\x50\xe8\0\0\0\0\x59\x58\xc3\x90\x90"), 1, 8);
}

static void other_code_is_no_init(void **state)
{
	static const char *const codes[] = {
		"\x55\x48\x89\xe5\x90\x90\x90\x90\x5d\xc3\x90\x90",
		"\x48\x83\xec\x18\x90\x48\x83\xc4\x18\xc3\x90\x90",
		"\x50\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90",
	};
	struct symbolizer_rows_build b = begin();
	struct symbolizer_rows *rows;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		for (size_t len = 0; len <= 12; len++)
			assert_int_equal(
				arch_add_init(&b, TEXT,
					      (const uint8_t *)codes[i], len),
				0);
	rows = end(&b);
	assert_int_equal(info_of(rows).rows, 0);
	symbolizer_rows_free(rows);
}

static size_t stub(const char *code, uint64_t *slot)
{
	uint8_t b[ARCH_PLT_STUB] = { 0 };

	memcpy(b, code, 12);
	return arch_plt_stub(b, 0x1000, slot);
}

static void stubs_of_each_linker(void **state)
{
	uint64_t slot;

	assert_int_equal(stub("\xff\x25\x10\0\0\0\x68\0\0\0\0\xe9", &slot), 16);
	assert_int_equal(slot, 0x1016);
	assert_int_equal(
		stub("\xff\x25\xf0\xff\xff\xff\x66\x90\0\0\0\0", &slot), 8);
	assert_int_equal(slot, 0xff6);
	assert_int_equal(
		stub("\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\0\0\0\x0f", &slot), 16);
	assert_int_equal(slot, 0x101b);
	assert_int_equal(stub("\xff\x35\x10\0\0\0\xff\x25\x10\0\0\0", &slot),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_of_each_c_library),
		cmocka_unit_test(other_code_is_no_init),
		cmocka_unit_test(stubs_of_each_linker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
