// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf_store: what was kept of a program's compile units gives the same answers as its
 * debug information, read whole and by unit; one that is damaged at any byte is not
 * used, and none makes the reader fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/units/dwarf.h"
#include "symbolize/units/dwarf_store.h"
#include "symbolize/names/names.h"

/* In each unit: calls inlined two deep, a static function, several lines. */
static const char source[] =
	"static inline __attribute__((always_inline)) int twice(int x)\n"
	"{\n"
	"	return x * NUMBER +\n"
	"	       x / (NUMBER + 2);\n"
	"}\n"
	"static inline __attribute__((always_inline)) int more(int x)\n"
	"{\n"
	"	for (int i = 0; i < x; i++)\n"
	"		x += twice(i);\n"
	"	return x;\n"
	"}\n"
	"static __attribute__((noinline)) int own(int x)\n"
	"{\n"
	"	return more(x) - twice(x + 1);\n"
	"}\n"
	"int NAME(int x)\n"
	"{\n"
	"	return own(x) + more(x + 3);\n"
	"}\n";

#define UNITS 3 /* and one more */
#define SOME 61 /* bytes from one address that is asked for to the next */

static char dir[] = "/tmp/test_dwarf_store.XXXXXX";
static char program[64];

/* What is kept, as the cache on disk does it. */
struct shelf {
	struct strbuf store;
	int asked, kept;
	bool ignored; /* nothing is kept any more */
};

static int shelf_units(void *arg, uint64_t *at)
{
	static const char before[13] = "of the entry";
	struct shelf *s = arg;
	int fd;

	s->asked++;
	if (!s->store.len)
		return -ENOENT;
	fd = memfd_create("store", MFD_CLOEXEC);
	assert_int_equal(write(fd, before, sizeof(before)), sizeof(before));
	assert_int_equal(write(fd, s->store.data, s->store.len), s->store.len);
	*at = sizeof(before);
	return fd;
}

static void shelf_keep(void *arg, const void *store, size_t len)
{
	struct shelf *s = arg;

	s->kept++;
	if (!s->ignored)
		assert_int_equal(dwarf_store_add(&s->store, store, len), 0);
}

static int shelf_file(void *arg, const char *name, const uint8_t *build_id,
		      size_t len, uint32_t crc, bool has_crc)
{
	return -ENOENT;
}

/* A process that reads the program. */
struct reader {
	struct shelf *shelf;
	struct symbolizer_src src;
	struct symbolizer_names *names;
	struct names_tally tally;
	int fd;
};

static void reader_init(struct reader *r, struct shelf *shelf)
{
	struct names_context c = { .src = &r->src };
	struct stat st;

	memset(r, 0, sizeof(*r));
	r->shelf = shelf;
	r->fd = open(program, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(r->fd, &st), 0);
	symbolizer_src_fd(&r->src, r->fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_names_open(&r->names, &c), 0);
}

static void reader_fini(struct reader *r)
{
	symbolizer_names_close(r->names);
	close(r->fd);
}

/* The answers for some addresses, as text; one request. */
static void reader_ask(struct reader *r, uint64_t start, uint64_t n,
		       struct strbuf *out)
{
	const struct symbolizer_ask ask = {
		.file = shelf_file,
		.units = r->shelf ? shelf_units : NULL,
		.keep = r->shelf ? shelf_keep : NULL,
		.arg = r->shelf,
	};
	struct arena arena;
	struct names_context c = { .src = &r->src,
				   .ask = &ask,
				   .arena = &arena };
	struct names_found f;

	arena_init(&arena);
	for (uint64_t at = start; at < start + n; at++) {
		int err = symbolizer_names_find(r->names, &c, at, &f);

		if (err)
			assert_int_equal(err, -ENOENT);
		else
			assert_true(f.start <= at && at - f.start < f.size);
		for (size_t i = 0; !err && out && i < f.n; i++)
			strbuf_printf(out, "%lx+%lx %s %s %s:%u %u\n",
				      (long)f.start, (long)f.size,
				      f.functions[i].name ?: "-",
				      f.functions[i].system_name ?: "-",
				      f.functions[i].file, f.functions[i].line,
				      f.functions[i].start_line);
	}
	symbolizer_names_idle(r->names, &c);
	r->tally.units_read += c.tally.units_read;
	r->tally.units_kept += c.tally.units_kept;
	r->tally.units_damaged |= c.tally.units_damaged;
	arena_fini(&arena);
}

static uint64_t code_start, code_size;

/* In one request, or in several. */
static char *reader_all(struct reader *r, uint64_t step)
{
	struct strbuf out = STRBUF_INIT;

	for (uint64_t at = 0; at < code_size; at += step)
		reader_ask(r, code_start + at, MIN(step, code_size - at), &out);
	return strbuf_steal(&out);
}

/* All answers of a new process, and what it read. */
static char *process(struct shelf *shelf, uint64_t step,
		     struct names_tally *tally)
{
	struct reader r;
	char *all;

	reader_init(&r, shelf);
	all = reader_all(&r, step);
	*tally = r.tally;
	reader_fini(&r);
	return all;
}

static char *truth;

static void expect_truth(struct shelf *shelf, uint64_t step,
			 struct names_tally *tally)
{
	char *all = process(shelf, step, tally);

	assert_string_equal(all, truth);
	free(all);
}

static void small_files_are_read_whole(void **state)
{
	struct shelf shelf = { 0 };
	struct names_tally t;
	struct reader r;

	reader_init(&r, &shelf);
	reader_ask(&r, code_start, code_size, NULL);
	reader_fini(&r);
	assert_int_equal(r.tally.units_kept, 0);
	assert_true(r.tally.units_read > UNITS);
	assert_int_equal(shelf.kept, 1);
	expect_truth(&shelf, code_size, &t);
	assert_int_equal(t.units_read, 0);
	assert_int_equal(t.units_kept, r.tally.units_read);
	assert_int_equal(shelf.kept, 1);
	assert_int_equal(shelf.asked, 2);
	strbuf_fini(&shelf.store);
}

static const struct dwarf_limits usual = {
	.records = DWARF_STORE_RECORD_MAX,
	.small = 64U << 20,
	.news = 3U << 20,
};

/* Each request has a few addresses; nothing stays in memory, if 'records' is 0. */
static void by_unit(size_t records, uint64_t step)
{
	struct shelf shelf = { 0 };
	struct names_tally t, again;

	dwarf_limits = (struct dwarf_limits){ .records = records };
	expect_truth(&shelf, step, &t);
	assert_true(t.units_read > UNITS);
	assert_true(shelf.kept > 1);
	expect_truth(&shelf, step, &again);
	assert_int_equal(again.units_read, 0);
	assert_true(again.units_kept >= t.units_read);
	dwarf_limits = usual;
	strbuf_fini(&shelf.store);
}

static void large_files_are_read_by_unit(void **state)
{
	by_unit(1 << 20, 64);
	by_unit(0, 64);
	by_unit(0, code_size);
}

/* Units that are not in the store are read from the file, and added to it. */
static void units_are_added(void **state)
{
	struct shelf shelf = { 0 };
	struct names_tally t, rest;
	struct reader r;

	dwarf_limits = (struct dwarf_limits){ .records = 1 << 20 };
	reader_init(&r, &shelf);
	for (uint64_t at = 0; at < code_size / 2; at++)
		reader_ask(&r, code_start + at, 1, NULL);
	reader_fini(&r);
	expect_truth(&shelf, 100, &t);
	assert_int_equal(t.units_kept, r.tally.units_read);
	assert_true(t.units_read > 0);
	expect_truth(&shelf, 100, &rest);
	assert_int_equal(rest.units_read, 0);
	assert_int_equal(rest.units_kept, t.units_read + t.units_kept);
	dwarf_limits = usual;
	strbuf_fini(&shelf.store);
}

/* What another process keeps meanwhile is found when it is needed. */
static void it_grows_while_a_process_lives(void **state)
{
	struct shelf shelf = { 0 };
	struct names_tally t;
	struct reader r;

	dwarf_limits = (struct dwarf_limits){ .records = 1 << 20 };
	reader_init(&r, &shelf);
	reader_ask(&r, code_start + code_size / 2, 1, NULL);
	expect_truth(&shelf, 100, &t);
	r.tally = (struct names_tally){ 0 };
	free(reader_all(&r, 100));
	assert_int_equal(r.tally.units_read, 0);
	assert_true(r.tally.units_kept > 0);
	reader_fini(&r);
	dwarf_limits = usual;
	strbuf_fini(&shelf.store);
}

/* A store of the program, of both kinds. */
static void fill(struct shelf *shelf, bool whole)
{
	struct names_tally t;

	if (!whole)
		dwarf_limits = (struct dwarf_limits){ .records = 1 << 20 };
	expect_truth(shelf, 100, &t);
	shelf->ignored = true;
	assert_true(shelf->store.len > 800);
}

/* The answers of some addresses, each of a request; the caller frees them. */
static char *some(struct shelf *shelf, struct names_tally *t)
{
	struct strbuf out = STRBUF_INIT;
	struct reader r;

	reader_init(&r, shelf);
	for (uint64_t at = 0; at < code_size; at += SOME)
		reader_ask(&r, code_start + at, 1, &out);
	*t = r.tally;
	reader_fini(&r);
	return strbuf_steal(&out);
}

/* Damage that is noticed makes the process read the file. True: it was noticed. */
static bool expect_some(struct shelf *shelf, const char *known)
{
	struct names_tally t;
	char *found = some(shelf, &t);

	assert_string_equal(found, known);
	assert_true(t.units_damaged == (t.units_read > 0));
	free(found);
	return t.units_damaged;
}

static void damaged_at(bool whole)
{
	struct shelf shelf = { 0 };
	size_t len, seen = 0, cut = 0;
	struct names_tally t;
	char *known;

	fill(&shelf, whole);
	known = some(NULL, &t);
	len = shelf.store.len;
	for (size_t i = 0; i < len; i++) {
		shelf.store.data[i] ^= 0x41;
		seen += expect_some(&shelf, known);
		shelf.store.data[i] ^= 0x41;
	}
	for (size_t i = 1; i < len; i++) {
		shelf.store.len = i;
		cut += expect_some(&shelf, known);
	}
	/* Not: zeros for alignment, and units of which nothing was asked for. */
	assert_true(seen > len / 2 && cut > len / 2);
	if (whole)
		assert_true(seen > len - 16 && cut > len - 16);
	free(known);
	dwarf_limits = usual;
	strbuf_fini(&shelf.store);
}

static void damage_is_noticed(void **state)
{
	damaged_at(true);
	damaged_at(false);
}

/* Damage that a checksum does not show: answers are of the address, or none. */
static void lies_are_bounded(void **state)
{
	struct shelf shelf = { 0 };
	struct dwarf_store_front f;
	struct dwarf_store_news n;
	struct dwarf_record *r;
	struct dwarf_index x = { 0 };
	struct reader reader;
	size_t len;

	fill(&shelf, true);
	assert_true(dwarf_store_whole(&f, shelf.store.data, shelf.store.len));
	x.bounds = (struct dwarf_bounds){ f.head->start, f.head->end };
	x.n_units = f.head->n_units;
	x.n_ranges = f.head->n_ranges;
	x.crc = f.head->index_crc;
	len = f.places[0].len;
	r = dwarf_record_new((uint32_t)len);
	assert_non_null(r);
	for (size_t i = 0; i < len; i++) {
		struct strbuf out = STRBUF_INIT;

		assert_true(dwarf_store_whole(&f, shelf.store.data,
					      shelf.store.len));
		x.units = (void *)f.units;
		x.ranges = (void *)f.ranges;
		memcpy(r->bytes, shelf.store.data + f.len, len);
		r->bytes[i] ^= (uint8_t)(i * 7 | 1);
		assert_int_equal(dwarf_store_news_init(&n, &x, true), 0);
		dwarf_store_news_add(&n, r);
		assert_int_equal(dwarf_store_news_end(&n, &out), 0);
		dwarf_store_news_fini(&n);
		r->bytes[i] ^= (uint8_t)(i * 7 | 1);
		strbuf_fini(&shelf.store);
		shelf.store = out;
		reader_init(&reader, &shelf);
		for (uint64_t at = 0; at < code_size; at += 53)
			reader_ask(&reader, code_start + at, 1, NULL);
		reader_fini(&reader);
		/* The next one is made of the first one again. */
		memcpy(shelf.store.data + f.len, r->bytes, len);
	}
	free(r);
	strbuf_fini(&shelf.store);
}

static void stores_of_other_files_do_not_join(void **state)
{
	struct dwarf_store_front a, b;
	struct strbuf out = STRBUF_INIT, more = STRBUF_INIT;
	struct shelf one = { 0 }, two = { 0 };
	size_t len;

	fill(&one, true);
	fill(&two, false);
	assert_true(dwarf_store_whole(&a, one.store.data, one.store.len));
	assert_true(dwarf_store_whole(&b, two.store.data, two.store.len));
	assert_false(
		dwarf_store_join(&out, &more, &a, one.store.len - a.len, &b));
	assert_false(
		dwarf_store_join(&out, &more, &b, two.store.len - b.len, &a));
	assert_int_equal(out.len + more.len, 0);
	/* What is there already is not added again. */
	len = two.store.len;
	assert_int_equal(dwarf_store_add(&two.store, two.store.data, len), 0);
	assert_int_equal(two.store.len, len);
	assert_int_equal(dwarf_store_add(&one.store, two.store.data, 40),
			 -EBADMSG);
	assert_int_equal(
		dwarf_store_add(&one.store, two.store.data, two.store.len), 0);
	assert_int_equal(one.store.len, two.store.len);
	dwarf_limits = usual;
	strbuf_fini(&one.store);
	strbuf_fini(&two.store);
}

static int make_program(void **state)
{
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct names_tally t;
	char command[512];
	struct stat st;
	FILE *f;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "%s/unit.c", dir);
	f = fopen(command, "w");
	assert_non_null(f);
	assert_true(fputs(source, f) >= 0);
	fprintf(f,
		"#if NUMBER == %d\nint main(void) { return NAME(3); }\n"
		"#endif\n",
		UNITS - 1);
	assert_int_equal(fclose(f), 0);
	snprintf(command, sizeof(command),
		 "cd %s && for i in $(seq 0 %d); do cc -O2 -g -c -DNUMBER=$i "
		 "-DNAME=name$i -o $i.o unit.c || exit 1; done; "
		 "cc -o program ?.o",
		 dir, UNITS);
	assert_int_equal(system(command), 0);
	snprintf(program, sizeof(program), "%s/program", dir);
	fd = open(program, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_elf_init(&e, &src), 0);
	for (size_t i = 0; i < e.n_loads; i++) {
		if (!e.loads[i].exec)
			continue;
		code_start = e.loads[i].vaddr;
		code_size = e.loads[i].size;
	}
	symbolizer_elf_fini(&e);
	close(fd);
	truth = process(NULL, code_size, &t);
	assert_true(t.units_read > UNITS);
	assert_non_null(strstr(truth, "twice"));
	return 0;
}

static int remove_program(void **state)
{
	char command[128];

	free(truth);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_files_are_read_whole),
		cmocka_unit_test(large_files_are_read_by_unit),
		cmocka_unit_test(units_are_added),
		cmocka_unit_test(it_grows_while_a_process_lives),
		cmocka_unit_test(damage_is_noticed),
		cmocka_unit_test(lies_are_bounded),
		cmocka_unit_test(stores_of_other_files_do_not_join),
	};

	return cmocka_run_group_tests(tests, make_program, remove_program);
}
