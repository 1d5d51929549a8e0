// SPDX-License-Identifier: Apache-2.0
/* Demangled names, and the limit of their cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/demangle.h"

static void cxx_and_rust_names_are_made_readable(void **state)
{
	static const char *const names[][2] = {
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_Z3foov.constprop.0", "foo() [clone .constprop.0]" },
		{ "_RNvMCs1234_1aINtB2_1AKj3_E3new", "<a::A<3>>::new" },
		{ "$s4main3fooyyF", NULL }, /* Swift */
		{ "_$s4main3fooyyF", NULL },
		{ "main", NULL },
		{ "_start", NULL },
		{ "_Z", NULL },
		{ "_ZN3fooE_and_rest", NULL },
	};
	struct strbuf sb = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		strbuf_reset(&sb);
		strbuf_puts(&sb, "kept ");
		if (names[i][1]) {
			assert_true(
				symbolizer_demangle(names[i][0], &sb, NULL));
			assert_string_equal(sb.data + 5, names[i][1]);
		} else {
			assert_false(
				symbolizer_demangle(names[i][0], &sb, NULL));
			assert_string_equal(sb.data, "kept ");
		}
	}
	strbuf_fini(&sb);
}

/* Each parameter is a function of two of the one before: 2^n characters. */
static void cxx_bomb(char *bomb, int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	strcpy(bomb, "_Z1fPFiiiE");
	for (int i = 0; i < n; i++)
		sprintf(bomb + strlen(bomb), "PFvS%c_S%c_E", digits[2 * i],
			digits[2 * i]);
}

/* Each type is a tuple of two of the one before. */
#define RUST_FEW "_RINvC1a1fTllETB7_B7_ETBb_Bb_ETBj_Bj_E"
#define RUST_MANY                                                         \
	RUST_FEW "TBr_Br_ETBz_Bz_ETBH_BH_ETBP_BP_ETBX_BX_ETB15_B15_ETB1d" \
		 "_B1d_ETB1n_B1n_ETB1x_B1x_ETB1H_B1H_E"

/*
 * A type of n levels, each with two of the one before, expanded as a pack that
 * is not in it: 2^n steps without output.
 */
static void cxx_slow(char *name, int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	strcpy(name, "_Z1fIJiEEvDp1PI");
	for (int i = 1; i < n; i++)
		strcat(name, "S0_I");
	strcat(name, "iE");
	for (int i = 1; i < n; i++)
		sprintf(name + strlen(name), i < 36 ? "S%c_E" : "S1%c_E",
			digits[i % 36]);
}

static uint64_t cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The clock ends it: alone it would take longer than there is. */
static void a_name_has_its_time(void **state)
{
	struct symbolizer_demangle_cost cost = { 0 };
	uint64_t before = cpu_ms();
	struct strbuf sb = { 0 };
	char name[1024];

	cxx_slow(name, 4);
	assert_true(symbolizer_demangle(name, &sb, &cost));
	assert_int_equal(cost.exceeded, 0);
	strbuf_reset(&sb);
	cxx_slow(name, 40);
	for (int i = 1; i <= 5; i++) {
		assert_false(symbolizer_demangle(name, &sb, &cost));
		assert_int_equal(cost.exceeded, i);
		assert_int_equal(sb.len, 0);
		/* And the next one is as good as ever. */
		assert_true(symbolizer_demangle("_Z3foov", &sb, &cost));
		assert_string_equal(sb.data, "foo()");
		strbuf_reset(&sb);
	}
	assert_true(cost.ticks >= 5);
	assert_true(cpu_ms() - before < 5000);
	strbuf_fini(&sb);
}

/* A binder of so many lifetimes, of a path that is skipped: no text. */
#define RUST_SLOW "_RMIC1aFGzzzzzzzzz_EuEu"
/* ... behind a punycode identifier, for which there is a buffer. */
#define RUST_SLOW_PUNY "_RMIC1aTNvC1au8gdel_5qaFGzzzzzzzzz_EuEEu"

static void a_rust_name_has_its_time(void **state)
{
	static const char *const slow[] = { RUST_SLOW, RUST_SLOW_PUNY };
	struct symbolizer_demangle_cost cost = { 0 };
	uint64_t before = cpu_ms();
	struct strbuf sb = { 0 };

	for (unsigned int i = 0; i < 10; i++) {
		assert_false(symbolizer_demangle(slow[i % ARRAY_SIZE(slow)],
						 &sb, &cost));
		assert_int_equal(cost.exceeded, i + 1);
		assert_int_equal(sb.len, 0);
		assert_true(symbolizer_demangle("_RNvCs1234_1au8gdel_5qa", &sb,
						&cost));
		assert_string_equal(sb.data, "a::g\xc3\xb6"
					     "del");
		strbuf_reset(&sb);
	}
	assert_true(cost.ticks >= 20);
	assert_true(cpu_ms() - before < 10000);
	strbuf_fini(&sb);
}

static void hostile_symbols_cost_little(void **state)
{
	struct strbuf sb = { 0 };
	char name[3000];

	memset(name, 'P', sizeof(name) - 1);
	memcpy(name, "_Z1f", 4);
	name[sizeof(name) - 1] = '\0';
	assert_false(symbolizer_demangle(name, &sb, NULL));
	cxx_bomb(name, 4);
	assert_true(symbolizer_demangle(name, &sb, NULL));
	cxx_bomb(name, 17);
	assert_false(symbolizer_demangle(name, &sb, NULL));
	assert_true(symbolizer_demangle(RUST_FEW "E", &sb, NULL));
	assert_false(symbolizer_demangle(RUST_MANY "E", &sb, NULL));
	assert_true(sb.cap <= 4 * SYMBOLIZER_DEMANGLED_MAX);
	strbuf_fini(&sb);
}

static int setup(void **state)
{
	return symbolizer_demangle_start();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cxx_and_rust_names_are_made_readable),
		cmocka_unit_test(hostile_symbols_cost_little),
		cmocka_unit_test(a_name_has_its_time),
		cmocka_unit_test(a_rust_name_has_its_time),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
