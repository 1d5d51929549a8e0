// SPDX-License-Identifier: Apache-2.0
/* Rows as text: read, written, laid over others, given to the symbolizer. */
#include <inttypes.h>

#include "symbolize/symbolize.h"
#include "tests/unit/rows/test_rows.h"

static struct symbolizer_rows *parse(const char *text)
{
	struct symbolizer_rows_error where;
	struct symbolizer_rows *rows = NULL;
	int err = symbolizer_rows_parse(text, strlen(text), &rows, &where);

	if (err)
		fail_msg("line %zu, column %zu: %s", where.line, where.column,
			 where.what);
	return rows;
}

/* All of a table, a line a row. */
static const char *print(const struct symbolizer_rows *rows, bool full)
{
	static struct strbuf out;
	uint64_t at;
	uint16_t id;

	strbuf_reset(&out);
	for (size_t i = 0; i < info_of(rows).rows; i++) {
		id = symbolizer_rows_at(rows, i, &at);
		strbuf_printf(&out, "%" PRIx64 " ", at);
		symbolizer_rows_put(rows, id, full, &out);
		strbuf_puts(&out, "\n");
	}
	return strbuf_str(&out);
}

static void expect_text(const char *text, const char *full, const char *brief)
{
	struct symbolizer_rows *rows = parse(text);

	assert_string_equal(print(rows, true), full);
	assert_string_equal(print(rows, false), brief);
	symbolizer_rows_free(rows);
}

/* Of a row, which ends at 2000. */
#define ROW(text, full, brief)                     \
	expect_text("1000 " text "\n2000 end\n",   \
		    "1000 " full "\n2000 end u\n", \
		    "1000 " brief "\n2000 end u\n")

static void every_form_is_read_and_written(void **state)
{
	ROW("rsp+8 u", "rsp+8 u", "rsp+8 u");
	ROW("rbp+16 c-16", "rbp+16 c-16", "rbp+16 c-16");
	ROW("r10 u", "r10+0 u", "r10+0 u");
	ROW("r10-8 u", "r10-8 u", "r10-8 u");
	ROW("plt u", "plt:9 u", "plt u");
	ROW("plt:11 u", "plt:11 u", "plt u");
	ROW("*rbp-8 *rbp-0", "*rbp-8 *rbp", "deref expr");
	ROW("expr:7708 u", "expr:7708 u", "expr u");
	ROW("rsp+8 expr:77FF01", "rsp+8 expr:77ff01", "rsp+8 expr");
	ROW("sig:*rsp+160 *rsp+120", "sig:*rsp+160 *rsp+120", "sig expr");
	ROW("rsp+8 none", "rsp+8 none", "rsp+8 u");
	ROW("rsp+8 r12", "rsp+8 r12", "rsp+8 r12");
	ROW("rsp+8 r12+8", "rsp+8 r12+8", "rsp+8 expr");
	ROW("rsp+8 cfa-16", "rsp+8 cfa-16", "rsp+8 expr");
	ROW("rsp+8 u u", "rsp+8 u u", "rsp+8 u u"); /* a root */
	ROW("rsp+8 u none", "rsp+8 u u", "rsp+8 u u");
	ROW("rsp+8 u elsewhere", "rsp+8 u elsewhere", "rsp+8 u u");
	ROW("rsp+8 u elsewhere:call", "rsp+8 u elsewhere:call", "rsp+8 u u");
	ROW("rsp+8 u elsewhere:vdso", "rsp+8 u elsewhere:vdso", "rsp+8 u u");
	ROW("rsp+8 u c-8", "rsp+8 u", "rsp+8 u");
	ROW("rsp+8 u c-16", "rsp+8 u c-16", "rsp+8 u c-16");
	ROW("rsp+8 u rdx", "rsp+8 u rdx", "rsp+8 u rdx");
	ROW("rsp+8 u r15=c-24 rbx=r9", "rsp+8 u rbx=r9 r15=c-24", "rsp+8 u");
	ROW("rsp+8 u c-16 rsp=rsp", "rsp+8 u c-16 rsp=rsp", "rsp+8 u c-16");
	ROW("rsp+2147483647 c-2147483648", "rsp+2147483647 c-2147483648",
	    "rsp+2147483647 c-2147483648");
}

static void what_means_nothing_is_passed_over(void **state)
{
	expect_text("# a head\n\n  \t\n0x1000\trsp+8   u # tail\n"
		    "1FFF  rsp+16 u#x=\n2000 end",
		    "1000 rsp+8 u\n1fff rsp+16 u\n2000 end u\n",
		    "1000 rsp+8 u\n1fff rsp+16 u\n2000 end u\n");
}

static const struct {
	const char *text;
	size_t line, column;
	const char *what;
} mistakes[] = {
	{ "", 0, 1, "no rows" },
	{ "# nothing\n", 1, 1, "no rows" },
	{ "1000 rsp+8 u\n", 1, 1, "the last row is no end" },
	{ "1000 rsp+8 u\n1000 end\n", 2, 1,
	  "an address not above the one before" },
	{ "1000 rsp+8 u\n fff end\n", 2, 2,
	  "an address not above the one before" },
	{ "1000 rsp+8 u\n100010000 end\n", 2, 1,
	  "an address too far from the first" },
	{ "x000 end\n", 1, 1, "no hexadecimal address" },
	{ "0x end\n", 1, 1, "no hexadecimal address" },
	{ "11112222333344445 end\n", 1, 1, "no hexadecimal address" },
	{ "1000\n", 1, 5, "no CFA" },
	{ "1000 rsp+8\n", 1, 11, "no rule for rbp" },
	{ "1000 rsp+8 # u\n", 1, 12, "no rule for rbp" },
	{ "1000 c+8 u\n", 1, 6, "no value" },
	{ "1000 rip+8 u\n", 1, 6, "no value" },
	{ "1000 rsp8 u\n", 1, 6, "no value" },
	{ "1000 rsp+ u\n", 1, 6, "no value" },
	{ "1000 rsp+2147483648 u\n", 1, 6, "no value" },
	{ "1000 rsp+8 c\n", 1, 12, "no value" },
	{ "1000 rsp+8 ra\n", 1, 12, "no value" },
	{ "1000 *expr:00 u\n", 1, 6, "no value" },
	{ "1000 plt:16 u\n", 1, 6, "no byte of a PLT stub" },
	{ "1000 plt:x u\n", 1, 6, "no byte of a PLT stub" },
	{ "1000 plt:1x u\n", 1, 6, "no byte of a PLT stub" },
	{ "1000 pltx u\n", 1, 6, "no byte of a PLT stub" },
	{ "1000 expr: u\n", 1, 11, "an expression of no sensible length" },
	{ "1000 expr:123 u\n", 1, 11, "an expression of no sensible length" },
	{ "1000 expr:1g u\n", 1, 12, "no hexadecimal digit" },
	{ "1000 rsp+8 u c-8 rbx\n", 1, 18, "no REGISTER=VALUE" },
	{ "1000 rsp+8 u ra=c-8\n", 1, 14, "no REGISTER=VALUE" },
	{ "1000 rsp+8 u rbx=c-8 rbx=u\n", 1, 22,
	  "a register that has a rule already" },
	{ "1000 rsp+8 u rbp=u\n", 1, 14, "a register that has a rule already" },
	{ "1000 rsp+8 u\n2000 end x\n", 2, 10, "something behind the end" },
	{ "1000 rsp+8 u\n2000 end u u\n", 2, 12, "something behind the end" },
	/* What the short form does not say. */
	{ "1000 deref u\n", 1, 6,
	  "a short form; --full prints what it stands for" },
	{ "1000 sig u\n", 1, 6,
	  "a short form; --full prints what it stands for" },
	{ "1000 rsp+8 expr\n", 1, 12,
	  "a short form; --full prints what it stands for" },
};

static void every_mistake_is_said_with_its_place(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		size_t len = strlen(mistakes[i].text);
		struct symbolizer_rows_error where;
		struct symbolizer_rows *rows;
		char *exact = malloc(len + 1); /* valgrind sees beyond */

		assert_non_null(exact);
		memcpy(exact, mistakes[i].text, len);
		assert_int_equal(symbolizer_rows_parse(exact, len, &rows,
						       &where),
				 -EINVAL);
		if (where.line != mistakes[i].line ||
		    where.column != mistakes[i].column ||
		    strcmp(where.what, mistakes[i].what) != 0)
			fail_msg("'%s': %zu:%zu: %s", mistakes[i].text,
				 where.line, where.column, where.what);
		free(exact);
	}
}

/* --- laid over others ---------------------------------------------------------- */

static void rows_by_hand_go_before_where_they_say_anything(void **state)
{
	struct symbolizer_rows *own = parse("1000 rsp+8 u\n"
					    "1100 expr:7708 u\n"
					    "1200 end\n"
					    "2000 rsp+8 expr:7710\n"
					    "2100 end\n");
	struct symbolizer_rows *over = parse("1080 rbp+16 c-16\n"
					     "1180 end\n"
					     "1300 rsp+16 expr:7720\n"
					     "1400 end\n"
					     "2100 rsp+24 u\n"
					     "2110 end\n");
	struct symbolizer_rows *both;

	assert_int_equal(symbolizer_rows_overlay(own, over, &both), 0);
	symbolizer_rows_free(own);
	symbolizer_rows_free(over);
	assert_string_equal(print(both, true), "1000 rsp+8 u\n"
					       "1080 rbp+16 c-16\n"
					       "1180 expr:7708 u\n"
					       "1200 end u\n"
					       "1300 rsp+16 expr:7720\n"
					       "1400 end u\n"
					       "2000 rsp+8 expr:7710\n"
					       "2100 rsp+24 u\n"
					       "2110 end u\n");
	symbolizer_rows_free(both);
}

static void equal_neighbours_become_one(void **state)
{
	struct symbolizer_rows *own = parse("1000 rsp+8 u\n1100 end\n");
	struct symbolizer_rows *over = parse("1100 rsp+8 u\n1200 end\n");
	struct symbolizer_rows *both;

	assert_int_equal(symbolizer_rows_overlay(own, over, &both), 0);
	assert_string_equal(print(both, true), "1000 rsp+8 u\n1200 end u\n");
	symbolizer_rows_free(both);
	symbolizer_rows_free(own);
	symbolizer_rows_free(over);
}

static void what_lies_too_far_apart_is_refused(void **state)
{
	struct symbolizer_rows *own = parse("1000 rsp+8 u\n1100 end\n");
	struct symbolizer_rows *over =
		parse("100010000 rsp+8 u\n100010010 end\n");
	struct symbolizer_rows *both;

	assert_int_equal(symbolizer_rows_overlay(own, over, &both), -E2BIG);
	symbolizer_rows_free(own);
	symbolizer_rows_free(over);
}

static void a_tables_damage_stays_with_it(void **state)
{
	struct symbolizer_rows *over = parse("20100 rsp+8 u\n20110 end\n");
	struct symbolizer_rows *own, *both;
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);

	put_fde(&eh, cie, 0, 0x10, C("\x44\x3f"));
	own = rows_of(&eh);
	assert_int_equal(symbolizer_rows_overlay(own, over, &both), 0);
	assert_string_equal(info_of(both).damage, info_of(own).damage);
	assert_string_equal(info_of(both).section, ".eh_frame");
	assert_int_equal(info_of(both).file_offset, info_of(own).file_offset);
	assert_int_equal(info_of(both).text, info_of(own).text);
	assert_string_equal(rule_at(both, 0), "r7+8");
	assert_string_equal(rule_at(both, 4), "gap");
	assert_string_equal(rule_at(both, 0x100), "r7+8");
	symbolizer_rows_free(own);
	symbolizer_rows_free(over);
	symbolizer_rows_free(both);
}

/* The biggest there is: all of a real library. */
static void a_real_table_survives_the_way_there_and_back(void **state)
{
	struct symbolizer_rows *rows, *again;
	struct symbolizer_rule a, b;
	struct symbolizer_src src;
	char *text;
	FILE *f = fopen("/proc/self/exe", "r");
	uint64_t at;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	symbolizer_src_fd(&src, fileno(f), (uint64_t)ftell(f));
	assert_int_equal(symbolizer_rows_read(&rows, &src, NULL), 0);
	fclose(f);
	text = strdup(print(rows, true));
	assert_non_null(text);
	again = parse(text);
	assert_int_equal(info_of(again).rows, info_of(rows).rows);
	assert_string_equal(print(again, true), text);
	for (size_t i = 0; i < info_of(rows).rows; i++) {
		symbolizer_rows_rule(rows, symbolizer_rows_at(rows, i, &at),
				     &a);
		symbolizer_rows_rule(again, symbolizer_rows_find(again, at),
				     &b);
		for (int r = 0; r < SYMBOLIZER_REGS; r++)
			assert_int_equal(a.regs[r].from, b.regs[r].from);
		assert_int_equal(a.cfa.from, b.cfa.from);
		assert_int_equal(a.signal, b.signal);
	}
	free(text);
	symbolizer_rows_free(rows);
	symbolizer_rows_free(again);
}

/* --- given to the symbolizer ----------------------------------------------------- */

struct asked {
	uv_loop_t loop;
	struct symbolizer *s;
	struct symbolizer_rows *rows;
	int n, err;
};

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct asked *a = arg;

	a->n++;
	a->err = err;
	a->rows = rows;
}

static void ask_vdso(struct asked *a)
{
	a->n = 0;
	assert_int_equal(
		symbolizer_rows(a->s, symbolizer_vdso(a->s), on_rows, a), 0);
	while (!a->n)
		uv_run(&a->loop, UV_RUN_ONCE);
	assert_int_equal(a->err, 0);
}

static void they_are_given_by_build_id(void **state)
{
	static const uint8_t other[] = { 1, 2, 3 };
	struct symbolizer_opts opts = { 0 };
	const struct symbolizer_ident *id;
	struct asked a = { 0 };
	struct symbolizer_rows *rows = parse("10 r9+24 u\n20 end\n");
	char *before;

	assert_int_equal(uv_loop_init(&a.loop), 0);
	opts.loop = &a.loop;
	assert_int_equal(symbolizer_new(&a.s, &opts), 0);
	id = symbolizer_ident(symbolizer_vdso(a.s));
	assert_true(id->build_id_len > 0);
	ask_vdso(&a);
	before = strdup(print(a.rows, true));
	assert_null(strstr(before, "r9+24"));
	symbolizer_rows_free(a.rows);

	assert_int_equal(symbolizer_rows_by_hand(a.s, id->build_id, 0, rows),
			 -EINVAL);
	assert_int_equal(
		symbolizer_rows_by_hand(a.s, other, sizeof(other), rows), 0);
	ask_vdso(&a);
	assert_string_equal(print(a.rows, true), before);
	symbolizer_rows_free(a.rows);

	rows = parse("10 r9+24 u\n20 end\n");
	assert_int_equal(symbolizer_rows_by_hand(a.s, id->build_id,
						 id->build_id_len, rows),
			 0);
	ask_vdso(&a);
	assert_ptr_equal(strstr(print(a.rows, true), "10 r9+24 u\n20 end"),
			 print(a.rows, true));
	assert_non_null(strstr(print(a.rows, true), strchr(before, '\n')));
	symbolizer_rows_free(a.rows);

	/* The last one counts. */
	rows = parse("10 r8+24 u\n20 end\n");
	assert_int_equal(symbolizer_rows_by_hand(a.s, id->build_id,
						 id->build_id_len, rows),
			 0);
	ask_vdso(&a);
	assert_null(strstr(print(a.rows, true), "r9+24"));
	assert_non_null(strstr(print(a.rows, true), "r8+24"));
	symbolizer_rows_free(a.rows);
	free(before);
	symbolizer_free(a.s);
	uv_run(&a.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&a.loop), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_read_and_written),
		cmocka_unit_test(what_means_nothing_is_passed_over),
		cmocka_unit_test(every_mistake_is_said_with_its_place),
		cmocka_unit_test(
			rows_by_hand_go_before_where_they_say_anything),
		cmocka_unit_test(equal_neighbours_become_one),
		cmocka_unit_test(what_lies_too_far_apart_is_refused),
		cmocka_unit_test(a_tables_damage_stays_with_it),
		cmocka_unit_test(a_real_table_survives_the_way_there_and_back),
		cmocka_unit_test(they_are_given_by_build_id),
	};

	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
