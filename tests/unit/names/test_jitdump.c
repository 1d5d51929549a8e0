// SPDX-License-Identifier: Apache-2.0
/*
 * jitdump: code that is loaded, moved and replaced, by time; lines; unwind information;
 * growth; and damaged files.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/jit/jit.h"

static uint8_t file[1 << 20];
static size_t len;
static struct jit_table table;

static void put32(uint32_t v)
{
	memcpy(file + len, &v, 4);
	len += 4;
}

static void put64(uint64_t v)
{
	memcpy(file + len, &v, 8);
	len += 8;
}

static void put_text(const char *s)
{
	memcpy(file + len, s, strlen(s) + 1);
	len += strlen(s) + 1;
}

static void begin(uint32_t magic, uint64_t flags)
{
	len = 0;
	put32(magic);
	put32(1);
	put32(48); /* a header may have more */
	put32(62);
	put64(0);
	put64(0);
	put64(flags);
	put64(0);
}

static void load(uint64_t time, uint64_t addr, uint64_t size, const char *name)
{
	put32(0);
	put32((uint32_t)(56 + strlen(name) + 1 + 8));
	put64(time);
	put64(0);
	put64(addr);
	put64(addr);
	put64(size);
	put64(0);
	put_text(name);
	put64(0xc3); /* code */
}

static void move(uint64_t time, uint64_t from, uint64_t to)
{
	put32(1);
	put32(64);
	put64(time);
	put64(0);
	put64(to);
	put64(from);
	put64(to);
	put64(0x10);
	put64(0);
}

static void lines(uint64_t addr, uint64_t rows)
{
	put32(2);
	put32(32 + 16 + 5 + 16 + 2 + 16 + 4);
	put64(0);
	put64(addr);
	put64(rows);
	put64(addr);
	put64(10);
	put_text("a.js");
	put64(addr + 4);
	put64(11);
	put_text("\xff");
	put64(addr + 8);
	put64(12);
	put_text("b.c");
}

static void close_record(void)
{
	put32(3);
	put32(16);
	put64(0);
}

static int setup(void **state)
{
	memset(file, 0, sizeof(file));
	begin(JITDUMP_MAGIC, 0);
	return 0;
}

static int teardown(void **state)
{
	jit_table_fini(&table);
	return 0;
}

static void read_part(size_t n)
{
	struct symbolizer_src src;

	symbolizer_src_mem(&src, file, n);
	assert_int_equal(jitdump_read(&table, &src), 0);
}

static struct jit_query find(uint64_t addr, uint64_t at)
{
	struct jit_query q = { .addr = addr, .at = at };

	assert_int_equal(jit_table_find(&table, &q, 1), 0);
	return q;
}

static const char *name_at(uint64_t addr, uint64_t at)
{
	struct jit_query q = find(addr, at);
	static char name[JIT_NAME_MAX];
	struct symbolizer_src src;

	symbolizer_src_mem(&src, file, len);
	if (!q.found || q.found->name == JIT_GONE)
		return "-";
	assert_true(perfmap_name(&src, q.found, name) > 0);
	return name;
}

static void names_by_time(void **state)
{
	load(100, 0x1000, 0x10, "one");
	load(200, 0x1000, 0x10, "two");
	load(300, 0x1008, 0x10, "three");
	close_record();
	read_part(len);
	assert_true(table.dump);
	assert_false(table.cut);
	assert_string_equal(name_at(0x1000, 100), "one");
	assert_string_equal(name_at(0x1000, 199), "one");
	assert_int_equal(find(0x1000, 150).until, 200);
	assert_string_equal(name_at(0x1000, 200), "two");
	assert_string_equal(name_at(0x100f, 299), "two");
	assert_string_equal(name_at(0x100f, 300), "three");
	assert_string_equal(name_at(0x1007, 300), "two");
	assert_true(find(0x1007, 300).until == UINT64_MAX);
	assert_string_equal(name_at(0x1018, 300), "-");
	/* Its record came late: the first later one. */
	assert_string_equal(name_at(0x1000, 1), "one");
	assert_string_equal(name_at(0x1010, 1), "three");
}

static void code_moves(void **state)
{
	load(100, 0x1000, 0x10, "one");
	move(200, 0x1000, 0x5000);
	load(300, 0x1000, 0x10, "two");
	move(400, 0x5000, 0x6000);
	move(500, 0x7000, 0x8000); /* of nothing */
	read_part(len);
	assert_string_equal(name_at(0x1000, 199), "one");
	assert_string_equal(name_at(0x1000, 200), "-");
	assert_int_equal(find(0x1000, 200).until, 300);
	assert_string_equal(name_at(0x1000, 300), "two");
	assert_string_equal(name_at(0x500f, 200), "one");
	assert_string_equal(name_at(0x5000, 400), "-");
	assert_string_equal(name_at(0x6000, 400), "one");
	assert_string_equal(name_at(0x8000, 500), "-");
}

static void line_at(uint64_t addr, uint64_t at, const char *want, uint32_t line)
{
	struct jit_query q = find(addr, at);
	struct symbolizer_src src;
	struct jit_line out;

	symbolizer_src_mem(&src, file, len);
	assert_non_null(q.found);
	assert_int_equal(jitdump_line(&src, q.found, addr, &out), 0);
	assert_string_equal(out.file, want);
	assert_int_equal(out.line, line);
	assert_true(addr >= out.start && addr < out.end);
}

static void code_has_lines(void **state)
{
	struct symbolizer_src src;
	struct jit_line out;

	lines(0x1000, 3);
	load(100, 0x1000, 0x10, "one");
	load(100, 0x2000, 0x10, "no lines");
	lines(0x3000, 3); /* of other code */
	load(100, 0x4000, 0x10, "none either");
	move(200, 0x1000, 0x5000);
	lines(0x6000, 100); /* fewer rows than announced */
	load(100, 0x6000, 0x10, "six");
	read_part(len);
	line_at(0x1000, 100, "a.js", 10);
	line_at(0x1003, 100, "a.js", 10);
	line_at(0x1004, 100, "a.js", 11);
	line_at(0x100f, 100, "b.c", 12);
	line_at(0x5004, 200, "a.js", 11);
	line_at(0x6009, 100, "b.c", 12);
	assert_int_equal(find(0x2000, 100).found->lines, 0);
	assert_int_equal(find(0x4000, 100).found->lines, 0);
	symbolizer_src_mem(&src, file, 60);
	assert_true(jitdump_line(&src, find(0x1000, 100).found, 0x1000, &out) <
		    0);
}

/* A name of 'n' bytes, then a row behind it. */
static void long_name(uint64_t addr, size_t n)
{
	char name[8192];

	memset(name, 'x', n);
	name[n] = '\0';
	put32(2);
	put32((uint32_t)(32 + 16 + n + 1 + 16 + 4));
	put64(0);
	put64(addr);
	put64(2);
	put64(addr);
	put64(10);
	put_text(name);
	put64(addr + 4);
	put64(11);
	put_text("b.c");
	load(100, addr, 0x10, "long");
}

static void names_of_any_length(void **state)
{
	static const size_t sizes[] = { 1022, 1023, 1024, 1500, 4095, 5117 };
	struct symbolizer_src src;
	struct jit_line out;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		long_name(0x1000 * (i + 1), sizes[i]);
	long_name(0x9000, 5118);
	read_part(len);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		line_at(0x1000 * (i + 1) + 5, 100, "b.c", 11);
	/* No path is that long. */
	symbolizer_src_mem(&src, file, len);
	assert_true(jitdump_line(&src, find(0x9005, 100).found, 0x9005, &out) <
		    0);
}

/* Rows that are not in the function, which has been moved to low addresses. */
static void rows_far_off(void **state)
{
	static const uint64_t far[] = { UINT64_MAX, UINT64_MAX - 0x10000, 0 };
	struct jit_query q;
	struct symbolizer_src src;
	struct jit_line out;

	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		put32(2);
		put32(32 + 16 + 5 + 16 + 4);
		put64(0);
		put64(0x10000 * (i + 1));
		put64(2);
		put64(0x10000 * (i + 1));
		put64(10);
		put_text("a.js");
		put64(far[i]);
		put64(11);
		put_text("b.c");
		load(100, 0x10000 * (i + 1), 0x10, "far");
		move(200, 0x10000 * (i + 1), 0x100 * (i + 1));
	}
	read_part(len);
	symbolizer_src_mem(&src, file, len);
	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		q = find(0x100 * (i + 1) + 8, 200);
		assert_non_null(q.found);
		assert_int_equal(jitdump_line(&src, q.found,
					      0x100 * (i + 1) + 8, &out),
				 0);
		assert_int_equal(out.line, 10);
		assert_int_equal(out.start, 0x100 * (i + 1));
		assert_int_equal(out.end, 0x100 * (i + 1) + 0x10);
	}
}

static void it_grows(void **state)
{
	size_t whole;

	load(100, 0x1000, 0x10, "one");
	lines(0x2000, 3);
	load(200, 0x2000, 0x10, "two");
	move(300, 0x1000, 0x3000);
	whole = len;
	for (size_t n = 0; n <= whole; n++)
		read_part(n);
	assert_int_equal(table.n, 4);
	line_at(0x2000, 200, "a.js", 10);
	assert_string_equal(name_at(0x3000, 300), "one");
	/* It shrank: it is another file now. */
	begin(JITDUMP_MAGIC, 0);
	load(100, 0x9000, 0x10, "nine");
	read_part(len);
	assert_int_equal(table.n, 1);
	assert_string_equal(name_at(0x9000, 100), "nine");
}

static void what_is_not_read(void **state)
{
	static const struct {
		uint32_t magic;
		uint64_t flags;
		uint32_t version;
	} bad[] = {
		{ 0x4454694a, 0, 1 }, /* of the other byte order */
		{ JITDUMP_MAGIC, 1, 1 }, /* times of another clock */
		{ JITDUMP_MAGIC, 0, 2 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		begin(bad[i].magic, bad[i].flags);
		memcpy(file + 4, &bad[i].version, 4);
		load(100, 0x1000, 0x10, "one");
		read_part(len);
		assert_int_equal(table.n, 0);
		assert_true(table.cut);
		jit_table_fini(&table);
	}
}

static void damaged_records(void **state)
{
	size_t at;

	load(100, 0x1000, 0x10, "one");
	load(100, UINT64_MAX - 1, 0x10, "wraps");
	load(100, 0x2000, 0, "empty");
	put32(77); /* unknown */
	put32(24);
	put64(0);
	put64(0);
	load(200, 0x3000, 0x10, "two");
	at = len;
	put32(0); /* without an end */
	put32(0);
	put64(0);
	load(200, 0x4000, 0x10, "not reached");
	read_part(len);
	assert_true(table.cut);
	assert_int_equal(table.n, 2);
	assert_int_equal(table.end, at);
	read_part(len);
	assert_int_equal(table.n, 2);
}

/* A million records that move a function in a circle. */
static void moves_without_end(void **state)
{
	const struct jit_entry e = { .start = 1, .size = 1 };

	for (size_t i = 0; i < 500000; i++)
		jit_table_add(&table, &e);
	for (size_t i = 0; i < 10000; i++)
		move(i, 2, 3);
	read_part(len);
	assert_true(table.cut);
	assert_int_equal(table.n, 500000);
}

/* --- unwind information ------------------------------------------------------ */

/* The CFA is rsp + 8 + 8 * n from the second byte on, of code of 'size' bytes. */
static void unwind(uint64_t addr, uint32_t size, uint8_t n)
{
	const uint8_t cie[] = { 20,   0,    0,	 0, 0,	  0,	0,  0,
				1,    'z',  'R', 0, 1,	  0x78, 16, 1,
				0x1b, 0x0c, 7,	 8, 0x90, 1,	0,  0 };
	const uint8_t program[] = { 0, 0x41, 0x0e, (uint8_t)(8 * n + 8) };
	uint64_t frames = (addr + size + 7) & ~7ULL;

	put32(4);
	put32(40 + 24 + 20 + 4 + 20);
	put64(0);
	put64(24 + 20 + 4 + 20);
	put64(20);
	put64(0);
	memcpy(file + len, cie, sizeof(cie));
	len += sizeof(cie);
	put32(16);
	put32(28);
	put32((uint32_t)(addr - (frames + 24 + 8)));
	put32(size);
	memcpy(file + len, program, sizeof(program));
	len += sizeof(program);
	put32(0);
	len += 20;
}

static struct symbolizer_rows_info info;

static struct symbolizer_rows *rows_at(uint64_t at)
{
	struct symbolizer_rows *rows;
	struct symbolizer_src src;

	symbolizer_src_mem(&src, file, len);
	assert_int_equal(jit_table_rows(&table, &src, at, &rows), 0);
	symbolizer_rows_info(rows, &info);
	return rows;
}

/* The offset of the CFA from rsp at an address at a time; 0: no row. */
static int32_t cfa_at(uint64_t addr, uint64_t at)
{
	struct symbolizer_rows *rows = rows_at(at);
	struct symbolizer_rule rule;

	symbolizer_rows_rule(rows, symbolizer_rows_find(rows, addr), &rule);
	symbolizer_rows_free(rows);
	return rule.cfa.n;
}

static void rows_of_functions(void **state)
{
	unwind(0x1000, 0x10, 1);
	load(100, 0x1000, 0x10, "one");
	load(100, 0x1010, 0x10, "has none");
	unwind(0x1020, 0x9, 2);
	lines(0x1020, 3);
	load(100, 0x1020, 0x9, "two");
	read_part(len);
	assert_int_equal(cfa_at(0xfff, 100), 0);
	assert_int_equal(cfa_at(0x1000, 100), 8);
	assert_int_equal(cfa_at(0x1001, 100), 16);
	assert_int_equal(cfa_at(0x100f, 100), 16);
	assert_int_equal(cfa_at(0x1010, 100), 0);
	assert_int_equal(cfa_at(0x1028, 100), 24);
	assert_int_equal(cfa_at(0x1029, 100), 0);
	assert_null(info.damage);
	/* Its record came late; and nothing changes at any time. */
	assert_int_equal(cfa_at(0x1001, 1), 16);
	assert_int_equal(info.before, 1);
	assert_int_equal(info.after, UINT64_MAX - 1);
}

static void rows_by_time(void **state)
{
	unwind(0x1000, 0x10, 1);
	load(100, 0x1000, 0x10, "one");
	unwind(0x9000, 0x10, 9);
	load(150, 0x9000, 0x10, "stays");
	move(200, 0x1000, 0x5000);
	unwind(0x1000, 0x10, 2);
	load(300, 0x1000, 0x10, "two");
	load(400, 0x5008, 0x10, "three");
	read_part(len);
	assert_int_equal(cfa_at(0x1001, 199), 16);
	assert_int_equal(info.before, 99);
	assert_int_equal(info.after, 1);
	assert_int_equal(cfa_at(0x1001, 200), 0); /* gone */
	assert_int_equal(cfa_at(0x5001, 200), 16); /* moved */
	assert_int_equal(info.before, 0);
	assert_int_equal(info.after, 100);
	assert_int_equal(cfa_at(0x1001, 300), 24);
	assert_int_equal(cfa_at(0x5001, 399), 16);
	/* Nothing is left of code that was written over. */
	assert_int_equal(cfa_at(0x5001, 400), 0);
	assert_int_equal(cfa_at(0x9001, 400), 80);
	assert_int_equal(info.before, 0);
	assert_true(info.after == UINT64_MAX - 400);
}

/* All points, by comparison with the rule itself: the last that counts wins. */
static void live_is_as_defined(void **state)
{
	struct jit_live live[40];
	uint64_t from, until, f2, u2;
	uint32_t seed = 1;

	for (int round = 0; round < 300; round++) {
		jit_table_fini(&table);
		for (uint32_t i = 0; i < 40; i++) {
			struct jit_entry e;

			seed = seed * 1103515245 + 12345;
			e = (struct jit_entry){
				.start = seed >> 8 & 0xff,
				.size = 1 + (seed >> 16 & 7),
				.from = seed >> 20 & 0x3f,
			};
			assert_int_equal(jit_table_add(&table, &e), 0);
		}
		for (uint64_t at = 0; at < 64; at++) {
			assert_int_equal(jit_table_live(&table, at, live, &from,
							&until),
					 0);
			assert_true(from <= at && until > at);
			for (size_t i = 0; i < 40; i++) {
				const struct jit_entry *e =
					&table.v[live[i].entry];
				bool hidden = false;

				for (size_t k = 0; k < 40; k++) {
					const struct jit_entry *o = &table.v[k];
					bool counts = o->from <= at;

					if (o == e ||
					    o->start >= e->start + e->size ||
					    e->start >= o->start + o->size)
						continue;
					if (e->from <= at)
						hidden |= counts && o > e;
					else
						hidden |= counts || o < e;
				}
				assert_int_equal(live[i].hidden, hidden);
			}
			if (at + 1 >= 64 || until <= at + 1)
				continue;
			/* Within these points it is the same. */
			struct jit_live next[40];

			assert_int_equal(jit_table_live(&table, at + 1, next,
							&f2, &u2),
					 0);
			for (size_t i = 0; i < 40; i++)
				assert_int_equal(live[i].hidden,
						 next[i].hidden);
		}
	}
}

static void rows_of_others(void **state)
{
	/* An entry for code of another function gives no row there. */
	unwind(0x1000, 0x10, 1);
	memcpy(file + 48 + 40 + 24 + 8, (uint32_t[]){ -0x18U - 0x80 }, 4);
	load(100, 0x1000, 0x10, "liar");
	unwind(0x2000, 0x20, 2); /* which ends later */
	load(100, 0x2000, 0x10, "liar too");
	load(100, 0x2010, 0x10, "victim");
	read_part(len);
	for (uint64_t at = 0xf00; at < 0x1100; at++)
		assert_int_equal(cfa_at(at, 100), 0);
	assert_int_equal(cfa_at(0x200f, 100), 0);
	assert_int_equal(cfa_at(0x2010, 100), 0);
}

static void no_unwind_information(void **state)
{
	struct symbolizer_rows *rows;
	struct symbolizer_src src;

	load(100, 0x1000, 0x10, "one");
	read_part(len);
	symbolizer_src_mem(&src, file, len);
	assert_int_equal(jit_table_rows(&table, &src, 100, &rows), -ENODATA);
	unwind(0x1000, 0x10, 1); /* of nothing yet */
	read_part(len);
	assert_int_equal(cfa_at(0x1001, 100), 0);
	assert_null(info.damage);
}

/* Sizes that exceed the record, or limits. */
static void damaged_unwind_information(void **state)
{
	static const struct {
		size_t at;
		uint64_t v;
	} bad[] = { { 16, UINT64_MAX }, { 16, 69 },	    { 16, 20 },
		    { 16, 0 },		{ 24, UINT64_MAX }, { 24, 68 } };
	size_t at = len;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		len = at;
		unwind(0x1000, 0x10, 1);
		memcpy(file + at + bad[i].at, &bad[i].v, 8);
		load(100, 0x1000, 0x10, "one");
		jit_table_fini(&table);
		read_part(len);
		assert_int_equal(cfa_at(0x1001, 100), 0);
		assert_non_null(info.damage);
	}
	/* A record that ends before its own fields. */
	len = at;
	put32(4);
	put32(16);
	put64(0);
	load(100, 0x1000, 0x10, "one");
	jit_table_fini(&table);
	read_part(len);
	assert_int_equal(cfa_at(0x1001, 100), 0);
}

/* Above 4 GiB there are no rows; below, all is as usual. */
static void rows_far_apart(void **state)
{
	unwind(0x1000, 0x10, 1);
	load(100, 0x1000, 0x10, "one");
	unwind(0x7f0000000000, 0x10, 2);
	load(100, 0x7f0000000000, 0x10, "two");
	read_part(len);
	assert_int_equal(cfa_at(0x1001, 100), 16);
	assert_int_equal(cfa_at(0x7f0000000001, 100), 0);
}

/* A million pieces of code that cover each other take a second or so. */
static void many_that_overlap(void **state)
{
	struct jit_live *live = calloc(JIT_ENTRIES_MAX, sizeof(*live));
	uint64_t from, until;
	size_t seen = 0;

	assert_non_null(live);
	for (uint32_t i = 0; i < JIT_ENTRIES_MAX; i++)
		jit_table_add(&table,
			      &(struct jit_entry){ .start = i * 7919 % 65536,
						   .size = 1 + i % 65536,
						   .from = i });
	assert_int_equal(jit_table_live(&table, 500000, live, &from, &until),
			 0);
	for (size_t i = 0; i < table.n; i++)
		seen += !live[i].hidden;
	assert_true(seen && seen < 65536);
	free(live);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(names_by_time),
		T(code_moves),
		T(code_has_lines),
		T(names_of_any_length),
		T(rows_far_off),
		T(it_grows),
		T(what_is_not_read),
		T(damaged_records),
		T(moves_without_end),
		T(rows_of_functions),
		T(rows_by_time),
		T(live_is_as_defined),
		T(rows_of_others),
		T(no_unwind_information),
		T(damaged_unwind_information),
		T(rows_far_apart),
		T(many_that_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
