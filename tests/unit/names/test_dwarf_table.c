// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf_pack and dwarf_text: packed rows answer as an array of them would; each text is
 * there once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/dwarf/dwarf_pack.h"
#include "symbolize/dwarf/dwarf_text.h"

#define ROWS 5000

static struct dwarf_pack_row rows[ROWS];

static void pack_all(struct dwarf_pack *p, size_t n)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < n; i++)
		dwarf_pack_add(p, &rows[i]);
	assert_int_equal(dwarf_pack_end(p), 0);
}

static void expect(const struct dwarf_pack *p, uint32_t at, uint32_t a,
		   uint32_t b)
{
	struct dwarf_rows r = dwarf_pack_rows(p);
	struct dwarf_pack_row row;
	uint32_t next;

	assert_true(dwarf_rows_find(&r, at, &row, &next));
	assert_true(row.start <= at && at < next);
	assert_int_equal(row.a, a);
	assert_int_equal(row.b, b);
}

static void no_rows(void **state)
{
	struct dwarf_pack_row row;
	struct dwarf_rows r;
	struct dwarf_pack p;
	uint32_t next;

	pack_all(&p, 0);
	r = dwarf_pack_rows(&p);
	assert_false(dwarf_rows_find(&r, 5, &row, &next));
	assert_int_equal(next, UINT32_MAX);
	dwarf_pack_fini(&p);
}

static void the_last_of_one_address_counts(void **state)
{
	struct dwarf_pack_row row;
	struct dwarf_rows r;
	struct dwarf_pack p;
	uint32_t next;

	rows[0] = (struct dwarf_pack_row){ 10, 1, 1 };
	rows[1] = (struct dwarf_pack_row){ 10, 2, 2 };
	rows[2] = (struct dwarf_pack_row){ 5, 9, 9 }; /* out of order */
	rows[3] = (struct dwarf_pack_row){ 20, 2, 2 }; /* no change */
	rows[4] = (struct dwarf_pack_row){ 30, UINT32_MAX, 0 };
	pack_all(&p, 5);
	assert_int_equal(p.n, 2);
	r = dwarf_pack_rows(&p);
	assert_false(dwarf_rows_find(&r, 9, &row, &next));
	assert_int_equal(next, 10);
	expect(&p, 10, 2, 2);
	expect(&p, 29, 2, 2);
	expect(&p, 30, UINT32_MAX, 0);
	expect(&p, UINT32_MAX - 1, UINT32_MAX, 0);
	dwarf_pack_fini(&p);
}

static void as_an_array_would(void **state)
{
	uint32_t start = 1000;
	struct dwarf_pack p;
	size_t k = 0;

	srandom(1);
	for (size_t i = 0; i < ROWS; i++) {
		start += 1 + (uint32_t)random() % (i % 100 ? 20 : 300000);
		rows[i] =
			(struct dwarf_pack_row){ start, (uint32_t)random() % 4,
						 i % 7 ? 5
						       : (uint32_t)random() };
	}
	for (size_t n = 1; n < ROWS; n += 1 + n) {
		pack_all(&p, n);
		k = 0;
		for (uint32_t at = rows[0].start; at < rows[n - 1].start + 5;
		     at += 1 + (uint32_t)random() % 9) {
			while (k + 1 < n && rows[k + 1].start <= at)
				k++;
			expect(&p, at, rows[k].a, rows[k].b);
		}
		dwarf_pack_fini(&p);
	}
}

static void texts_are_there_once(void **state)
{
	struct dwarf_text t = { 0 };
	struct dwarf_texts block;
	uint32_t at[3000], again;
	char name[32];

	assert_int_equal(dwarf_text_add(&t, "", &again), 0);
	block = dwarf_text_block(&t);
	assert_string_equal(dwarf_texts_at(&block, again), "");
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		assert_int_equal(dwarf_text_add(&t, name, &at[i]), 0);
	}
	for (int i = 0; i < 3000; i++) {
		block = dwarf_text_block(&t);
		assert_true(dwarf_texts_ok(&block));
		snprintf(name, sizeof(name), "name%d", i);
		assert_string_equal(dwarf_texts_at(&block, at[i]), name);
		assert_int_equal(dwarf_text_add(&t, name, &again), 0);
		assert_int_equal(again, at[i]);
	}
	assert_int_equal(t.n, 3000);
	dwarf_text_fini(&t);
}

static void functions(void **state)
{
	static const struct dwarf_function fns[] = {
		{ "", false, 0 },	  { "f", false, 1 },
		{ "f", true, 1 },	  { "f", false, UINT32_MAX },
		{ "f", false, 1U << 28 },
	};
	struct dwarf_text t = { 0 };
	struct dwarf_texts block;
	struct dwarf_function fn;
	char *huge = malloc(2 * SOURCE_TEXT_MAX);
	uint32_t at[5];

	for (int i = 0; i < 5; i++)
		assert_int_equal(dwarf_text_add_function(&t, &fns[i], &at[i]),
				 0);
	block = dwarf_text_block(&t);
	for (int i = 0; i < 5; i++) {
		fn = dwarf_texts_function(&block, at[i]);
		assert_string_equal(fn.text, fns[i].text);
		assert_int_equal(fn.linkage, fns[i].linkage);
		assert_int_equal(fn.line, fns[i].line);
	}
	assert_int_equal(t.n, 5);
	assert_string_equal(dwarf_texts_function(&block, 0).text, "");
	memset(huge, 'x', 2 * SOURCE_TEXT_MAX - 1);
	huge[2 * SOURCE_TEXT_MAX - 1] = '\0';
	fn = (struct dwarf_function){ .text = huge };
	assert_int_equal(dwarf_text_add_function(&t, &fn, &at[0]), 0);
	block = dwarf_text_block(&t);
	assert_int_equal(strlen(dwarf_texts_function(&block, at[0]).text),
			 SOURCE_TEXT_MAX);
	free(huge);
	dwarf_text_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_rows),
		cmocka_unit_test(the_last_of_one_address_counts),
		cmocka_unit_test(as_an_array_would),
		cmocka_unit_test(texts_are_there_once),
		cmocka_unit_test(functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
