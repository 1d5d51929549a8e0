// SPDX-License-Identifier: Apache-2.0
/* A table as bytes, and the bytes of a stranger as a table. */
#include "symbolize/rows/rows_table.h"
#include "tests/unit/rows/test_rows.h"

/* A table with a bit of everything, over three pages, with damage. */
static struct symbolizer_rows *rich(void)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);

	put_fde(&eh, cie, 0x100, 0x20,
		C("\x41\x0e\x10\x86\x02\x43\x0d\x06\x5b\x0c\x07\x08"));
	/* An expression of a CFA, and one of a place. */
	put_fde(&eh, cie, 0x10000, 0x20010,
		C("\x0f\x05\x77\x10\x06\x23\x08\x48\x10\x06\x02\x80\x04"));
	put_fde(&eh, cie, 0x40000, 0x10,
		C("\x0e\x20\x44\x0e\x80\x80\x04\x44\x3f")); /* wide */
	return rows_of(&eh);
}

static int released;

static void on_release(void *arg, const void *map, size_t len)
{
	assert_ptr_equal(arg, &released);
	assert_int_equal(len, ((const struct rows_head *)map)->size);
	free((void *)(uintptr_t)map);
	released++;
}

/* The bytes of a table, to be written to; freed by who gets them. */
static uint8_t *copy_of(const struct symbolizer_rows *rows, size_t *len)
{
	const void *bytes = symbolizer_rows_bytes(rows, len);
	uint8_t *copy = malloc(*len);

	assert_non_null(copy);
	memcpy(copy, bytes, *len);
	return copy;
}

static void a_table_is_the_same_elsewhere(void **state)
{
	struct symbolizer_rows *rows = rich(), *again;
	struct symbolizer_rows_info a = info_of(rows), b;
	struct symbolizer_rule x, y;
	uint64_t at, at2;
	uint16_t id;
	size_t len;
	uint8_t *copy = copy_of(rows, &len);

	assert_int_equal(symbolizer_rows_adopt(copy, len, on_release, &released,
					       &again),
			 0);
	b = info_of(again);
	assert_int_equal(a.rows, b.rows);
	assert_int_equal(a.rules, b.rules);
	assert_int_equal(a.bytes, b.bytes);
	assert_int_equal(a.text, b.text);
	assert_non_null(a.damage);
	assert_string_equal(a.damage, b.damage);
	assert_string_equal(a.section, b.section);
	assert_int_equal(a.section_offset, b.section_offset);
	assert_int_equal(a.file_offset, b.file_offset);
	for (size_t i = 0; i < a.rows; i++) {
		id = symbolizer_rows_at(rows, i, &at);
		assert_int_equal(symbolizer_rows_at(again, i, &at2), id);
		assert_int_equal(at, at2);
		symbolizer_rows_rule(rows, id, &x);
		symbolizer_rows_rule(again, symbolizer_rows_find(again, at),
				     &y);
		assert_memory_equal(&x, &y, sizeof(x));
	}
	symbolizer_rows_free(rows);
	assert_string_equal(rule_at(again, 0x10000), "expr+0");
	assert_string_equal(rule_at(again, 0x2ffff), "expr+0 6=*expr+1");
	released = 0;
	symbolizer_rows_free(again);
	assert_int_equal(released, 1);
}

static void an_empty_table_too(void **state)
{
	struct bytes eh = { 0 };
	struct symbolizer_rows *rows, *again;
	const void *bytes;
	size_t len;

	usual_cie(&eh);
	rows = rows_of(&eh);
	bytes = symbolizer_rows_bytes(rows, &len);
	assert_int_equal(symbolizer_rows_adopt(bytes, len, NULL, NULL, &again),
			 0);
	assert_int_equal(info_of(again).rows, 0);
	assert_int_equal(symbolizer_rows_find(again, TEXT), 0);
	symbolizer_rows_free(again);
	symbolizer_rows_free(rows);
}

static struct rows_head *head_of(struct symbolizer_rows *t)
{
	return (void *)(uintptr_t)t->head;
}

/* --- one lie each, told to a copy ------------------------------------------- */

static void lie_magic(struct symbolizer_rows *t)
{
	head_of(t)->magic++;
}

static void lie_size(struct symbolizer_rows *t)
{
	head_of(t)->size--;
}

static void lie_counts(struct symbolizer_rows *t)
{
	/* Of the same length in all. */
	head_of(t)->n_rules++;
	head_of(t)->n_rows--;
}

static void lie_items(struct symbolizer_rows *t)
{
	head_of(t)->n_words++;
	head_of(t)->n_rows--;
}

static void lie_base(struct symbolizer_rows *t)
{
	head_of(t)->base++;
}

static void lie_high(struct symbolizer_rows *t)
{
	head_of(t)->base = UINT64_MAX & ~0xffffULL;
}

static void lie_text(struct symbolizer_rows *t)
{
	memset(head_of(t)->damage, 'a', sizeof(t->head->damage));
}

static void lie_terminal(struct symbolizer_rows *t)
{
	head_of(t)->damage[3] = '\033';
}

static void lie_section(struct symbolizer_rows *t)
{
	memset(head_of(t)->section, 'a', sizeof(t->head->section));
}

/* Word 'i' of a rule, to be written to. */
static struct rows_word *word_of(struct symbolizer_rows *t, uint32_t rule,
				 size_t i)
{
	return (struct rows_word *)(uintptr_t)&t
		->rules[t->rule_starts[rule - 1] / 4 + i];
}

/* Changes item 'i' of a rule, which stays as long as it is. */
static void change(struct symbolizer_rows *t, uint32_t rule, size_t i,
		   void (*how)(struct rows_item *item))
{
	struct rows_word words[2], *at = word_of(t, rule, i);
	struct rows_item item;

	assert_int_equal(rows_item_unpack(at, &item), 1);
	how(&item);
	assert_int_equal(rows_item_pack(&item, words), 1);
	*at = words[0];
}

#define LIE_ITEM(name, rule, i, what)                     \
	static void to_##name(struct rows_item *item)     \
	{                                                 \
		item->what;                               \
	}                                                 \
	static void lie_##name(struct symbolizer_rows *t) \
	{                                                 \
		change(t, rule, i, to_##name);            \
	}

LIE_ITEM(first, 1, 0, to = 3)
LIE_ITEM(no_register, 2, 1, v.reg = 7) /* that has none */
LIE_ITEM(column, 2, 1, to = 17)
LIE_ITEM(from, 2, 1, v.from = SYMBOLIZER_AT_EXPR + 1)
LIE_ITEM(plt, 2, 1, v.from = SYMBOLIZER_PLT)
LIE_ITEM(gap, 1, 0, v.from = SYMBOLIZER_SAME)
LIE_ITEM(signal, 2, 1, signal = true)

/* The number of an expression, where there is one. */
static void lie_about_expr(struct symbolizer_rows *t, uint8_t from, int16_t n)
{
	struct rows_item item;
	struct rows_word words[2];

	for (uint32_t i = 0; i < t->head->n_words; i++) {
		rows_item_unpack(word_of(t, 1, i), &item);
		if (item.v.from != from)
			continue;
		item.v.n = n;
		rows_item_pack(&item, words);
		*word_of(t, 1, i) = words[0];
	}
}

static void lie_expr(struct symbolizer_rows *t)
{
	lie_about_expr(t, SYMBOLIZER_EXPR, (int16_t)t->head->n_exprs);
}

static void lie_expr_minus(struct symbolizer_rows *t)
{
	lie_about_expr(t, SYMBOLIZER_AT_EXPR, -1);
}

static void lie_unused_bit(struct symbolizer_rows *t)
{
	word_of(t, 1, 0)->pad = 1;
}

/* The last word of a rule says that there is another. */
static void lie_wide(struct symbolizer_rows *t)
{
	word_of(t, 1, 0)->wide = 1;
}

static uint32_t *u32_of(const uint32_t *p)
{
	return (uint32_t *)(uintptr_t)p;
}

static void lie_rule_start(struct symbolizer_rows *t)
{
	u32_of(t->rule_starts)[1] += 2;
}

static void lie_rule_order(struct symbolizer_rows *t)
{
	u32_of(t->rule_starts)[1] = 0x7ffffffc;
}

static void lie_expr_start(struct symbolizer_rows *t)
{
	u32_of(t->expr_starts)[1] = t->expr_starts[2];
}

static void lie_expr_end(struct symbolizer_rows *t)
{
	u32_of(t->expr_starts)[t->head->n_exprs]++;
}

static void lie_page(struct symbolizer_rows *t)
{
	u32_of(t->pages)[1] = t->head->n_rows + 1;
}

static void lie_pages_end(struct symbolizer_rows *t)
{
	u32_of(t->pages)[t->head->n_pages]--;
}

static void lie_pages_order(struct symbolizer_rows *t)
{
	u32_of(t->pages)[2] = 0;
}

static struct rows_row *row_of(struct symbolizer_rows *t, size_t i)
{
	return (struct rows_row *)(uintptr_t)&t->rows[i];
}

static void lie_row_order(struct symbolizer_rows *t)
{
	row_of(t, 1)->pc = t->rows[0].pc;
}

static void lie_row_rule(struct symbolizer_rows *t)
{
	row_of(t, 1)->rule = (uint16_t)(t->head->n_rules + 1);
}

static void lie_row_same(struct symbolizer_rows *t)
{
	row_of(t, 1)->rule = t->rows[0].rule;
}

static void lie_last(struct symbolizer_rows *t)
{
	row_of(t, t->head->n_rows - 1)->rule = 1;
}

static const struct {
	const char *what;
	void (*tell)(struct symbolizer_rows *t);
} lies[] = {
#define LIE(name)                 \
	{                         \
#name, lie_##name \
	}
	LIE(magic),	 LIE(size),	  LIE(counts),	    LIE(items),
	LIE(base),	 LIE(high),	  LIE(text),	    LIE(terminal),
	LIE(section),	 LIE(first),	  LIE(no_register), LIE(column),
	LIE(from),	 LIE(gap),	  LIE(plt),	    LIE(unused_bit),
	LIE(wide),	 LIE(signal),	  LIE(expr),	    LIE(expr_minus),
	LIE(rule_start), LIE(rule_order), LIE(expr_start),  LIE(expr_end),
	LIE(page),	 LIE(pages_end),  LIE(pages_order), LIE(row_order),
	LIE(row_rule),	 LIE(row_same),	  LIE(last),
#undef LIE
};

static void every_lie_is_refused(void **state)
{
	struct symbolizer_rows *rows = rich(), *out = NULL;
	struct symbolizer_rows mine;
	uint8_t *copy;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		copy = copy_of(rows, &len);
		symbolizer_rows_lay(&mine, (const void *)copy);
		lies[i].tell(&mine);
		if (symbolizer_rows_adopt(copy, len, on_release, NULL, &out) !=
		    -EINVAL)
			fail_msg("taken: a lie about %s", lies[i].what);
		free(copy); /* it stayed ours */
	}
	symbolizer_rows_free(rows);
}

static void every_other_length_is_refused(void **state)
{
	struct symbolizer_rows *rows = rich(), *out;
	size_t len, n;
	uint8_t *copy = copy_of(rows, &len), *cut;

	for (n = 0; n < len; n++) {
		cut = malloc(n + 1); /* of its exact size for valgrind */
		assert_non_null(cut);
		memcpy(cut, copy, n);
		assert_int_equal(symbolizer_rows_adopt(cut, n, NULL, NULL,
						       &out),
				 -EINVAL);
		free(cut);
	}
	copy = realloc(copy, len + 8);
	assert_non_null(copy);
	assert_int_equal(symbolizer_rows_adopt(copy, len + 8, NULL, NULL, &out),
			 -EINVAL);
	assert_int_equal(symbolizer_rows_adopt(copy + 4, len, NULL, NULL, &out),
			 -EINVAL);
	free(copy);
	symbolizer_rows_free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_the_same_elsewhere),
		cmocka_unit_test(an_empty_table_too),
		cmocka_unit_test(every_lie_is_refused),
		cmocka_unit_test(every_other_length_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
