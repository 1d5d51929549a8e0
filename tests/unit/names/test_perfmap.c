// SPDX-License-Identifier: Apache-2.0
/*
 * perfmap: what counts as an entry, which entry an address has, growth and shrinking,
 * and what a hostile file costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/file.h"
#include "symbolize/jit/jit.h"

#define NEVER UINT64_MAX

static struct jit_table table;

static int teardown(void **state)
{
	jit_table_fini(&table);
	return 0;
}

static size_t read_text(const char *text)
{
	struct symbolizer_src src;

	symbolizer_src_mem(&src, text, strlen(text));
	assert_int_equal(perfmap_read(&table, &src), 0);
	return table.n;
}

/* The name of an address in a file of 'size' bytes at the sample, or "-". */
static const char *name_at(const char *text, uint64_t addr, uint64_t size)
{
	struct jit_query q = { .addr = addr, .at = size };
	static char name[JIT_NAME_MAX];
	struct symbolizer_src src;

	symbolizer_src_mem(&src, text, strlen(text));
	assert_int_equal(jit_table_find(&table, &q, 1), 0);
	if (!q.found || perfmap_name(&src, q.found, name) < 0)
		return "-";
	return name;
}

static void lines_that_are_entries(void **state)
{
	static const char text[] =
		"1000 10 plain\n"
		"0x2000 0x10 prefixed\n"
		"AbC0 1F upper case\n"
		"3000 10 LazyCompile:*foo /path/file.js:12:3\r\n"
		"4000\t10\ttabs\n"
		"5000  10  blanks  \n"
		"ffffffffffffff00 100 to the end\n";

	assert_int_equal(read_text(text), 7);
	assert_string_equal(name_at(text, 0x0fff, NEVER), "-");
	assert_string_equal(name_at(text, 0x1000, NEVER), "plain");
	assert_string_equal(name_at(text, 0x100f, NEVER), "plain");
	assert_string_equal(name_at(text, 0x1010, NEVER), "-");
	assert_string_equal(name_at(text, 0x2001, NEVER), "prefixed");
	assert_string_equal(name_at(text, 0xabde, NEVER), "upper case");
	assert_string_equal(name_at(text, 0xabdf, NEVER), "-");
	assert_string_equal(name_at(text, 0x3000, NEVER),
			    "LazyCompile:*foo /path/file.js:12:3");
	assert_string_equal(name_at(text, 0x4000, NEVER), "tabs");
	assert_string_equal(name_at(text, 0x5000, NEVER), "blanks");
	assert_string_equal(name_at(text, UINT64_MAX, NEVER), "to the end");
}

static void lines_that_are_none(void **state)
{
	static const char text[] = "\n"
				   " 1000 10 blank before\n"
				   "1000\n"
				   "1000 10\n"
				   "1000 10 \n"
				   "1000 10 \r\n"
				   "1000 0 no size\n"
				   "1000 g no number\n"
				   "x000 10 no number\n"
				   "-1000 10 no number\n"
				   "0x 10 no digits\n"
				   "100010 glued\n"
				   "10000000000000000 10 too long\n"
				   "ffffffffffffffff 2 wraps\n"
				   "root:*:19000:0:99999:7:::\n"
				   "1000 10 not complete";

	assert_int_equal(read_text(text), 0);
}

static void the_last_entry_before_counts(void **state)
{
	static const char text[] = "1000 100 one\n" /* ends at 13 */
				   "1080 100 two\n" /* 26 */
				   "1000 10 three\n"; /* 40 */

	read_text(text);
	assert_string_equal(name_at(text, 0x1000, 13), "one");
	assert_string_equal(name_at(text, 0x1000, 39), "one");
	assert_string_equal(name_at(text, 0x1000, 40), "three");
	assert_string_equal(name_at(text, 0x1010, 40), "one");
	assert_string_equal(name_at(text, 0x1080, 25), "one");
	assert_string_equal(name_at(text, 0x1080, 26), "two");
	/* Where none is earlier, the first later one. */
	assert_string_equal(name_at(text, 0x1000, 0), "one");
	assert_string_equal(name_at(text, 0x1170, 0), "two");
}

static void it_grows(void **state)
{
	static const char text[] = "1000 10 one\n2000 10 two\n3000 10 three\n";
	char part[sizeof(text)];

	for (size_t len = 0; len < sizeof(text); len++) {
		snprintf(part, len + 1, "%s", text);
		read_text(part);
	}
	assert_int_equal(table.n, 3);
	assert_string_equal(name_at(text, 0x3000, 0), "three");
	/* It shrank: it is another file now. */
	assert_int_equal(read_text("9000 10 nine\n"), 1);
	assert_string_equal(name_at("9000 10 nine\n", 0x1000, 0), "-");
}

static void the_file_changes_meanwhile(void **state)
{
	static const char text[] = "1000 10 one\n2000 10 two\n";

	read_text(text);
	assert_string_equal(name_at("", 0x1000, 0), "-");
	assert_string_equal(name_at("1000 10 \n", 0x1000, 0), "-");
	assert_string_equal(name_at("\n\n\n\n\n\n\n\n\n\n", 0x1000, 0), "-");
	assert_string_equal(name_at("1000 10 o", 0x1000, 0), "o");
}

/* Appended to or written anew: what is there is compared with what was read. */
static void it_is_written_anew(void **state)
{
	static const char was[] = "1000 10 one\n2000 10 two\n";
	static const char longer[] = "9000 10 nine\n1000 10 one\n2000 8 x\n";
	static const char same[] = "1000 10 six\n2000 10 two\n";
	static const char grown[] = "1000 10 one\n2000 10 two\n1000 8 new\n";

	assert_int_equal(read_text(was), 2);
	assert_int_equal(read_text(longer), 3);
	assert_string_equal(name_at(longer, 0x9000, NEVER), "nine");
	assert_string_equal(name_at(longer, 0x1000, NEVER), "one");
	jit_table_fini(&table);
	assert_int_equal(read_text(was), 2);
	assert_int_equal(read_text(grown), 3);
	assert_string_equal(name_at(grown, 0x1000, NEVER), "new");
	assert_string_equal(name_at(grown, 0x2000, NEVER), "two");
	/* Of equal size it cannot be known here. */
	jit_table_fini(&table);
	assert_int_equal(read_text(was), 2);
	assert_int_equal(read_text(same), 2);
}

static void put(const char *path, const char *how, const char *text)
{
	FILE *out = fopen(path, how);

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

/* The name of 0x1000 in the file as it is now. */
static void assert_named(struct symbolizer_file *f, const char *want)
{
	struct symbolizer_code code = { 0x1000, UINT64_MAX };
	struct symbolizer_answer a = { 0 };

	arena_init(&a.names);
	assert_int_equal(symbolizer_file_code(f, &code, 1, &a), 0);
	assert_int_equal(a.syms[0].nfunctions, 1);
	assert_string_equal(a.syms[0].functions[0].name, want);
	symbolizer_answer_fini(&a);
}

static struct symbolizer_fresh refresh(struct symbolizer_file *f)
{
	struct symbolizer_fresh out;

	usleep(20000); /* times of files are those of a tick */
	symbolizer_refresh(f, &out);
	return out;
}

static void what_became_of_a_file(void **state)
{
	struct symbolizer_file *f = symbolizer_file_new();
	char dir[] = "/tmp/test_perfmap.XXXXXX", path[64], other[64];
	struct symbolizer_fresh now;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/map", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	put(path, "w", "1000 10 one\n");
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	refresh(f);
	assert_named(f, "one");
	put(path, "a", "1000 10 two\n");
	now = refresh(f);
	assert_true(!now.written && !now.moved && !now.unlinked);
	assert_int_equal(now.size, 24);
	assert_named(f, "two");
	put(path, "w", "1000 10 three\n3000 1 x\n");
	assert_int_equal(refresh(f).written, 1); /* shorter */
	assert_named(f, "three");
	put(path, "w", "4000 1 z\n1000 10 four_\n");
	assert_int_equal(refresh(f).written, 2); /* of equal size */
	assert_named(f, "four_");
	put(path, "w", "4000 1 z\n1000 10 five\n");
	assert_int_equal(refresh(f).written, 3);
	assert_named(f, "five");
	assert_int_equal(rename(path, other), 0);
	now = refresh(f);
	assert_true(now.moved == 1 && !now.unlinked && now.written == 3);
	put(path, "w", "1000 10 six\n");
	assert_int_equal(rename(path, other), 0);
	assert_true(refresh(f).unlinked);
	assert_int_equal(f->written, 3);
	assert_named(f, "five");
	symbolizer_file_free(f);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void long_lines(void **state)
{
	static char text[300000];
	const char *name;

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "1000 10 ", 8); /* longer than a name, but a line */
	text[40000] = '\n';
	memcpy(text + 40001, "2000 10 ", 8); /* longer than a chunk */
	text[250000] = '\n';
	memcpy(text + 250001, "3000 10 after\n", 14);
	assert_int_equal(read_text(text), 2);
	assert_string_equal(name_at(text, 0x2000, 0), "-");
	assert_string_equal(name_at(text, 0x3000, 0), "after");
	name = name_at(text, 0x1000, 0);
	assert_int_equal(strlen(name), JIT_NAME_MAX - 1);
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Two GiB of holes, then of two million lines. */
static void too_large_a_file_costs_little(void **state)
{
	int fd = memfd_create("map", 0);
	struct symbolizer_src src;
	double begin = cpu_s();
	char line[32];
	FILE *f;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2LL << 30), 0);
	symbolizer_src_fd(&src, fd, 2ULL << 30);
	assert_int_equal(perfmap_read(&table, &src), 0);
	assert_int_equal(table.n, 0);
	assert_true(table.cut);
	assert_true(table.end <= JIT_FILE_MAX);
	jit_table_fini(&table);
	f = fdopen(fd, "w");
	assert_non_null(f);
	for (unsigned int i = 0; i < 2 * JIT_ENTRIES_MAX; i++) {
		snprintf(line, sizeof(line), "%x 1 f\n", i);
		fputs(line, f);
	}
	fflush(f);
	symbolizer_src_fd(&src, fd, 2ULL << 30);
	assert_int_equal(perfmap_read(&table, &src), 0);
	assert_int_equal(table.n, JIT_ENTRIES_MAX);
	assert_true(table.cut);
	fclose(f);
	assert_true(cpu_s() - begin < 10);
}

/* Each of a million entries covers each of a thousand addresses. */
static void overlap_without_end_is_refused(void **state)
{
	const struct jit_entry e = { .start = 0, .size = UINT32_MAX };
	static struct jit_query q[1024];

	for (size_t i = 0; i < JIT_ENTRIES_MAX; i++)
		assert_int_equal(jit_table_add(&table, &e), 0);
	assert_int_equal(jit_table_find(&table, q, 1), 0);
	assert_ptr_equal(q[0].found, &table.v[JIT_ENTRIES_MAX - 1]);
	assert_int_equal(jit_table_find(&table, q, 1024), -E2BIG);
}

/* Random entries and addresses against a search that is plain. */
static void random_entries(void **state)
{
	struct jit_query q[64];
	const struct jit_entry *e, *want;

	srandom(7);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 50; i++)
			jit_table_add(&table, &(struct jit_entry){
						      .start = random() % 100,
						      .from = (uint64_t)i,
						      .size = random() % 30 });
		for (size_t i = 0; i < 64; i++)
			q[i] = (struct jit_query){ .addr = 2 * i,
						   .at = random() % 60 };
		assert_int_equal(jit_table_find(&table, q, 64), 0);
		for (size_t i = 0; i < 64; i++) {
			want = NULL;
			for (e = table.v; e < table.v + table.n; e++)
				if (q[i].addr >= e->start &&
				    q[i].addr < e->start + e->size &&
				    (!want || e->from <= q[i].at))
					want = e;
			assert_ptr_equal(q[i].found, want);
		}
		jit_table_fini(&table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(lines_that_are_entries, teardown),
		cmocka_unit_test_teardown(lines_that_are_none, teardown),
		cmocka_unit_test_teardown(the_last_entry_before_counts,
					  teardown),
		cmocka_unit_test_teardown(it_grows, teardown),
		cmocka_unit_test_teardown(it_is_written_anew, teardown),
		cmocka_unit_test_teardown(the_file_changes_meanwhile, teardown),
		cmocka_unit_test(what_became_of_a_file),
		cmocka_unit_test_teardown(long_lines, teardown),
		cmocka_unit_test_teardown(too_large_a_file_costs_little,
					  teardown),
		cmocka_unit_test_teardown(overlap_without_end_is_refused,
					  teardown),
		cmocka_unit_test_teardown(random_entries, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
