// SPDX-License-Identifier: Apache-2.0
/* What call frame information means as unwind rows: instructions, tables. */
#include "tests/unit/rows/test_rows.h"

/* --- functions, gaps, neighbours --------------------------------------------- */

static void a_function_has_its_rows_and_nothing_around_it(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;
	uint64_t at;

	/* push rbp; mov rbp, rsp; ...; ret */
	put_fde(&eh, cie, 0x100, 0x20,
		C("\x41\x0e\x10\x86\x02\x43\x0d\x06\x5b\x0c\x07\x08"));
	rows = rows_of(&eh);
	assert_string_equal(rule_at(rows, 0xff), "gap");
	assert_string_equal(rule_at(rows, 0x100), "r7+8");
	assert_string_equal(rule_at(rows, 0x101), "r7+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, 0x103), "r7+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, 0x104), "r6+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, 0x11e), "r6+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, 0x11f), "r7+8 6=*cfa-16");
	assert_string_equal(rule_at(rows, 0x120), "gap");
	assert_string_equal(rule_at(rows, 0xffffffff), "gap");
	assert_int_equal(symbolizer_rows_find(rows, 0), 0);
	assert_int_equal(symbolizer_rows_find(rows, UINT64_MAX), 0);
	assert_int_equal(info_of(rows).rows, 5);
	assert_int_equal(info_of(rows).rules, 4);
	assert_int_equal(symbolizer_rows_at(rows, 4, &at), 0);
	assert_int_equal(at, TEXT + 0x120);
	assert_int_equal(symbolizer_rows_at(rows, 1, &at),
			 symbolizer_rows_find(rows, TEXT + 0x101));
	assert_int_equal(at, TEXT + 0x101);
	symbolizer_rows_free(rows);
}

static void functions_come_in_any_order_and_merge(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, 0x300, 0x10, C("\x41\x0e\x10\x42\x0e\x08"));
	put_fde(&eh, cie, 0x200, 0x10, C(""));
	put_fde(&eh, cie, 0x310, 0x10, C("")); /* begins as the last ends */
	put_fde(&eh, cie, 0x210, 0x10,
		C("\x44\x0e\x08")); /* says nothing new */
	rows = rows_of(&eh);
	/* 200 r7+8, 220 gap, 300 r7+8, 301 r7+16, 303 r7+8, 320 gap */
	assert_int_equal(info_of(rows).rows, 6);
	assert_int_equal(info_of(rows).rules, 2);
	assert_string_equal(rule_at(rows, 0x21f), "r7+8");
	assert_string_equal(rule_at(rows, 0x220), "gap");
	assert_string_equal(rule_at(rows, 0x302), "r7+16");
	assert_string_equal(rule_at(rows, 0x31f), "r7+8");
	symbolizer_rows_free(rows);
}

static void rows_cross_pages(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;
	uint64_t at;

	/* Over three pages of 64 KiB, with a row in the first only. */
	put_fde(&eh, cie, 0xfff0, 0x20020, C("\x48\x0e\x10"));
	put_fde(&eh, cie, 0x40000, 0x10, C("\x0e\x20"));
	rows = rows_of(&eh);
	assert_string_equal(rule_at(rows, 0xfff7), "r7+8");
	assert_string_equal(rule_at(rows, 0xfff8), "r7+16");
	assert_string_equal(rule_at(rows, 0x10000), "r7+16");
	assert_string_equal(rule_at(rows, 0x2ffff), "r7+16");
	assert_string_equal(rule_at(rows, 0x3000f), "r7+16");
	assert_string_equal(rule_at(rows, 0x30010), "gap");
	assert_string_equal(rule_at(rows, 0x40000), "r7+32");
	assert_string_equal(rule_at(rows, 0x40010), "gap");
	for (size_t i = 0; i < info_of(rows).rows; i++) {
		uint16_t rule = symbolizer_rows_at(rows, i, &at);

		assert_int_equal(symbolizer_rows_find(rows, at), rule);
	}
	assert_int_equal(symbolizer_rows_at(rows, 3, &at), 3);
	assert_int_equal(at, TEXT + 0x40000);
	symbolizer_rows_free(rows);
}

static void of_two_functions_the_later_start_wins(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, 0x100, 0x100, C("\x0e\x10\x02\x48\x0e\x18"));
	put_fde(&eh, cie, 0x140, 0x20, C("\x0e\x20"));
	put_fde(&eh, cie, 0x140, 0x40, C("\x0e\x30")); /* not the first there */
	rows = rows_of(&eh);
	assert_string_equal(rule_at(rows, 0x13f), "r7+16");
	assert_string_equal(rule_at(rows, 0x140), "r7+32");
	assert_string_equal(rule_at(rows, 0x15f), "r7+32");
	assert_string_equal(rule_at(rows, 0x160), "gap");
	symbolizer_rows_free(rows);
}

static void what_is_no_code_has_no_rows(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, -TEXT, 0x100, C("")); /* thrown away: at 0 */
	put_fde(&eh, cie, 0x100, 0, C("")); /* empty */
	put_fde(&eh, cie, TEXT_SIZE - 0x10, 0x100, C("")); /* hangs over */
	rows = rows_of(&eh);
	assert_int_equal(symbolizer_rows_find(rows, 0), 0);
	assert_string_equal(rule_at(rows, 0x100), "gap");
	assert_string_equal(rule_at(rows, TEXT_SIZE - 1), "r7+8");
	assert_string_equal(rule_at(rows, TEXT_SIZE), "gap");
	assert_int_equal(info_of(rows).rows, 2);
	symbolizer_rows_free(rows);
}

/* --- instructions ------------------------------------------------------------- */

static void locations_advance_in_every_form(void **state)
{
	static const char code[] = "\x41\x0e\x10" /* 1 */
				   "\x02\x80\x0e\x18" /* 0x80 in one byte */
				   "\x03\x00\x02\x0e\x20" /* 0x200 in two */
				   "\x04\x00\x01\x00\x00\x0e\x28"; /* in four */

	expect_rule(code, 0x80, "r7+16");
	expect_rule(code, 0x81, "r7+24");
	expect_rule(code, 0x280, "r7+24");
	expect_rule(code, 0x281, "r7+32");
	expect_rule(code, 0x380, "r7+32");
	expect_rule(code, 0x381, "r7+40");
	/* Beyond the end of the function nothing comes of it. */
	expect_rule("\x04\x00\x00\x01\x00\x0e\x28", 0xfff, "r7+8");
}

static void a_location_is_set(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh), at = eh.n + 4 + 4 + 4 + 4 + 1 + 1;
	struct symbolizer_rows *rows;
	uint32_t to = (uint32_t)(TEXT + 0x140 - (EH + at));
	uint8_t code[] = { 0x01, 0, 0, 0, 0, 0x0e, 0x10 };

	memcpy(code + 1, &to, 4);
	put_fde(&eh, cie, 0x100, 0x80, code, sizeof(code));
	rows = rows_of(&eh);
	assert_string_equal(rule_at(rows, 0x13f), "r7+8");
	assert_string_equal(rule_at(rows, 0x140), "r7+16");
	symbolizer_rows_free(rows);
}

static void the_frame_is_by_any_register(void **state)
{
	expect_rule("\x0c\x0a\x00", 0, "r10+0");
	expect_rule("\x0d\x03", 0, "r3+8");
	expect_rule("\x0e\xa0\x1f", 0, "r7+4000");
	expect_rule("\x12\x06\x7e", 0, "r6+16"); /* factored: -2 * -8 */
	expect_rule("\x13\x02", 0, "r7-16");
}

static void registers_are_saved_in_every_form(void **state)
{
	expect_rule("\x86\x02\x83\x03", 0, "r7+8 3=*cfa-24 6=*cfa-16");
	expect_rule("\x05\x0c\x04", 0, "r7+8 12=*cfa-32");
	expect_rule("\x11\x0c\x7d", 0, "r7+8 12=*cfa+24"); /* signed */
	expect_rule("\x2f\x0c\x02", 0, "r7+8 12=*cfa+16"); /* GNU, negative */
	expect_rule("\x14\x03\x02", 0, "r7+8 3=cfa-16");
	expect_rule("\x15\x03\x7e", 0, "r7+8 3=cfa+16");
	expect_rule("\x09\x06\x0c", 0, "r7+8 6=r12+0");
	expect_rule("\x07\x03", 0, "r7+8 3=none");
	expect_rule("\x86\x02\x08\x06", 0, "r7+8"); /* same value */
	expect_rule("\x86\x02\xc6", 0, "r7+8"); /* restore */
	expect_rule("\x86\x02\x06\x06", 0, "r7+8");
	expect_rule("\x05\x11\x04\x91\x04", 0, "r7+8"); /* xmm0: not ours */
	expect_rule("\x2e\x10", 0, "r7+8"); /* GNU_args_size says nothing */
}

static void states_are_remembered(void **state)
{
	static const char code[] = "\x0e\x10\x86\x02\x41\x0a\x0e\x08\xc6\x41"
				   "\x0a\x0e\x20\x41\x0b\x41\x0b";

	expect_rule(code, 0, "r7+16 6=*cfa-16");
	expect_rule(code, 1, "r7+8");
	expect_rule(code, 2, "r7+32");
	expect_rule(code, 3, "r7+8");
	expect_rule(code, 4, "r7+16 6=*cfa-16");
}

/* rsp + 8 + (((rip & 15) >= n) << 3), as linkers write it. */
#define PLT(n) "\x0b\x77\x08\x80\x00\x3f\x1a" n "\x2a\x33\x24\x22"

static void expressions_of_real_code_are_plain_rules(void **state)
{
	expect_rule("\x0f" PLT("\x3b"), 0, "plt+11");
	expect_rule("\x0f" PLT("\x39"), 0, "plt+9");
	/* A realigned stack: the old one is kept below rbp. */
	expect_rule("\x0f\x03\x76\x78\x06", 0, "*r6-8");
	/* Registers in a signal frame. */
	expect_rule("\x10\x06\x03\x77\xf8\x00", 0, "r7+8 6=*r7+120");
	expect_rule("\x16\x03\x02\x76\x10", 0, "r7+8 3=r6+16");
	expect_rule("\x16\x03\x03\x76\x10\x06", 0, "r7+8 3=*r6+16");
}

static void other_expressions_are_kept(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh), len;
	struct symbolizer_rows *rows;
	struct symbolizer_rule r;
	const uint8_t *p;

	/* CFA: *(rsp + 16) + 8; rbx at the same; rbp is r12 + rip. */
	put_fde(&eh, cie, 0, 0x10,
		C("\x0f\x05\x77\x10\x06\x23\x08\x10\x03\x05\x77\x10\x06\x23\x08"
		  "\x16\x06\x02\x80\x04"));
	put_fde(&eh, cie, 0x10, 0x10, C("\x10\x06" PLT("\x3b")));
	rows = rows_of(&eh);
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0), "expr+0 3=*expr+0 6=expr+1");
	symbolizer_rows_rule(rows, symbolizer_rows_find(rows, TEXT), &r);
	p = symbolizer_rows_expr(rows, r.cfa.n, &len);
	assert_int_equal(len, 5);
	assert_memory_equal(p, "\x77\x10\x06\x23\x08", 5);
	p = symbolizer_rows_expr(rows, r.regs[6].n, &len);
	assert_int_equal(len, 2);
	assert_memory_equal(p, "\x80\x04", 2);
	/* That of a PLT is a rule for the frame only. */
	assert_string_equal(rule_at(rows, 0x10), "r7+8 6=*expr+2");
	assert_null(symbolizer_rows_expr(rows, 3, &len));
	assert_null(symbolizer_rows_expr(rows, -1, &len));
	symbolizer_rows_free(rows);
}

static void an_expression_sets_register_and_offset_aside(void **state)
{
	/* As libgcrypt has it, where its hand-written functions return. */
	static const char code[] = "\x0e\x38\x0f\x03\x76\x78\x06\x41\x0a\x0e"
				   "\x30\x41\x0d\x03\x41\x0b\x41\x0d\x07";

	expect_rule(code, 0, "*r6-8");
	expect_rule(code, 1, "*r6-8"); /* an offset does not end it */
	expect_rule(code, 2, "r3+48"); /* a register does */
	expect_rule(code, 3, "*r6-8");
	expect_rule(code, 4, "r7+56");
}

static void the_return_address_may_be_elsewhere(void **state)
{
	expect_rule("\x07\x10", 0, "r7+8 16=none"); /* a root */
	expect_rule("\x90\x02", 0, "r7+8 16=*cfa-16");
	expect_rule("\x09\x10\x05", 0, "r7+8 16=r5+0");
	expect_rule("\x10\x10\x02\x77\x10", 0, "r7+8 16=*r7+16");
	expect_rule("\x08\x10", 0, "r7+8 16=none"); /* "as it is": of no use */
}

static void the_stack_pointer_may_be_saved(void **state)
{
	expect_rule("\x87\x03", 0, "r7+8 7=*cfa-24");
	expect_rule("\x08\x07", 0, "r7+8 7=r7+0");
	expect_rule("\x10\x07\x03\x77\xa0\x01", 0, "r7+8 7=*r7+160");
}

/* --- common entries ------------------------------------------------------------ */

static void a_column_of_its_own_for_the_return_address(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = put_cie(&eh, true, "zR", C("\x1b"), C("\x0c\x07\x00"));
	struct symbolizer_rows *rows;

	eh.b[cie + 4 + 4 + 1 + 3 + 2] = 11; /* r11 */
	put_fde(&eh, cie, 0, 0x10, C("\x44\x8b\x01"));
	rows = rows_of(&eh);
	assert_string_equal(rule_at(rows, 0), "r7+0 16=r11+0");
	assert_string_equal(rule_at(rows, 4), "r7+0 11=*cfa-8");
	symbolizer_rows_free(rows);
}

static void augmentations_are_understood(void **state)
{
	struct bytes eh = { 0 };
	struct symbolizer_rows *rows;
	size_t cie;

	/* A personality is passed over, wherever it leads; so are LSDAs. */
	cie = put_cie(&eh, true, "zPLR", C("\x9b\1\2\3\4\x1b\x1b"), C(USUAL));
	put_fde(&eh, cie, 0, 0x10, C(""));
	cie = put_cie(&eh, true, "zRS", C("\x1b"), C(USUAL));
	put_fde(&eh, cie, 0x10, 0x10, C(""));
	rows = rows_of(&eh);
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0), "r7+8");
	assert_string_equal(rule_at(rows, 0x10), "r7+8 signal");
	symbolizer_rows_free(rows);
}

/* A function whose addresses are written in 'encoding', by 'size' bytes. */
static void expect_encoding(uint8_t encoding, size_t size, uint64_t start)
{
	struct bytes eh = { 0 };
	size_t cie = put_cie(&eh, true, "zR", &encoding, 1, C(USUAL)), at;
	struct symbolizer_rows *rows;
	uint64_t len = 0x20;

	at = begin_entry(&eh);
	put4(&eh, (uint32_t)(eh.n - cie));
	start -= (encoding & 0x70) == 0x10 ? EH + eh.n : 0;
	put(&eh, &start, size);
	put(&eh, &len, size);
	put1(&eh, 0);
	end_entry(&eh, at);
	rows = rows_of(&eh);
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0x100), "r7+8");
	assert_string_equal(rule_at(rows, 0x11f), "r7+8");
	assert_string_equal(rule_at(rows, 0x120), "gap");
	symbolizer_rows_free(rows);
}

static void addresses_in_every_encoding(void **state)
{
	expect_encoding(0x00, 8, TEXT + 0x100);
	expect_encoding(0x03, 4, TEXT + 0x100);
	expect_encoding(0x04, 8, TEXT + 0x100);
	expect_encoding(0x0b, 4, TEXT + 0x100);
	expect_encoding(0x0c, 8, TEXT + 0x100);
	expect_encoding(0x10, 8, TEXT + 0x100);
	expect_encoding(0x1b, 4, TEXT + 0x100);
	expect_encoding(0x1c, 8, TEXT + 0x100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_has_its_rows_and_nothing_around_it),
		cmocka_unit_test(functions_come_in_any_order_and_merge),
		cmocka_unit_test(rows_cross_pages),
		cmocka_unit_test(of_two_functions_the_later_start_wins),
		cmocka_unit_test(what_is_no_code_has_no_rows),
		cmocka_unit_test(locations_advance_in_every_form),
		cmocka_unit_test(a_location_is_set),
		cmocka_unit_test(the_frame_is_by_any_register),
		cmocka_unit_test(registers_are_saved_in_every_form),
		cmocka_unit_test(states_are_remembered),
		cmocka_unit_test(expressions_of_real_code_are_plain_rules),
		cmocka_unit_test(other_expressions_are_kept),
		cmocka_unit_test(an_expression_sets_register_and_offset_aside),
		cmocka_unit_test(the_return_address_may_be_elsewhere),
		cmocka_unit_test(the_stack_pointer_may_be_saved),
		cmocka_unit_test(a_column_of_its_own_for_the_return_address),
		cmocka_unit_test(augmentations_are_understood),
		cmocka_unit_test(addresses_in_every_encoding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
