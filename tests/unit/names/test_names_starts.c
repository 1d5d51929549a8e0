// SPDX-License-Identifier: Apache-2.0
/*
 * Functions without a name: where they begin, by the call frame information of their
 * file, if its symbols do not name them.
 */
#include <fcntl.h>
#include <unistd.h>

#include "symbolize/names/names.h"
#include "tests/unit/rows/test_rows.h"

/* The sources of one file. */
struct fixture {
	struct symbolizer_src src;
	struct arena arena;
	struct names_context c;
	struct symbolizer_names *names;
};

static void fixture_open(struct fixture *x)
{
	arena_init(&x->arena);
	x->c = (struct names_context){ .src = &x->src, .arena = &x->arena };
	assert_int_equal(symbolizer_names_open(&x->names, &x->c), 0);
}

static void fixture_close(struct fixture *x)
{
	symbolizer_names_close(x->names);
	arena_fini(&x->arena);
}

static void begin(struct fixture *x, const struct bytes *f)
{
	symbolizer_src_mem(&x->src, f->b, f->n);
	fixture_open(x);
}

/* "START+SIZE" of the function without a name, from TEXT; "none"; or its name. */
static const char *function_at(struct fixture *x, uint64_t vaddr)
{
	struct names_found found = { 0 };
	static char text[64];
	int err = symbolizer_names_find(x->names, &x->c, vaddr, &found);

	if (err == -ENOENT)
		return "none";
	assert_int_equal(err, 0);
	if (found.n)
		return found.functions[0].system_name;
	assert_int_equal(found.source, SYMBOLIZER_SOURCE_CFI);
	assert_true(vaddr >= found.start && vaddr - found.start < found.size);
	snprintf(text, sizeof(text), "%llx+%llx",
		 (unsigned long long)(found.start - TEXT),
		 (unsigned long long)found.size);
	return text;
}

#define expect(x, at, want) \
	assert_string_equal(function_at(x, TEXT + (at)), want)

static void a_function_is_what_an_entry_covers(void **state)
{
	struct bytes eh = { 0 }, f = { 0 };
	struct section s = { ".eh_frame", EH, SHF_ALLOC, &eh };
	size_t cie = usual_cie(&eh), bytes;
	struct fixture x;

	/* In any order. Instructions are not read. */
	put_fde(&eh, cie, 0x300, 0x80, C("\xff\xff"));
	put_fde(&eh, cie, 0x100, 0x40, C(""));
	put_fde(&eh, cie, 0x140, 0x20, C("\x0e\x10"));
	make_file(&f, &s, 1, false);
	begin(&x, &f);
	bytes = symbolizer_names_bytes(x.names);
	expect(&x, 0x100, "100+40");
	expect(&x, 0x13f, "100+40");
	expect(&x, 0x140, "140+20");
	expect(&x, 0x15f, "140+20");
	expect(&x, 0x160, "none");
	expect(&x, 0x2ff, "none");
	expect(&x, 0x300, "300+80");
	expect(&x, 0x37f, "300+80");
	expect(&x, 0x380, "none");
	expect(&x, 0xff, "none");
	expect(&x, -TEXT, "none");
	expect(&x, UINT64_MAX - TEXT, "none");
	/* Eight bytes each, beside what all sources have. */
	assert_in_range(symbolizer_names_bytes(x.names), bytes + 3 * 8,
			bytes + 3 * 8 + 1024);
	fixture_close(&x);
	free(eh.b);
	free(f.b);
}

/* As with unwind rows: the first of one address, and up to the next. */
static void functions_do_not_overlap(void **state)
{
	struct bytes eh = { 0 }, f = { 0 };
	struct section s = { ".eh_frame", EH, SHF_ALLOC, &eh };
	size_t cie = usual_cie(&eh);
	struct fixture x;

	put_fde(&eh, cie, 0x100, 0x100, C(""));
	put_fde(&eh, cie, 0x100, 0x10, C(""));
	put_fde(&eh, cie, 0x180, 0x10, C(""));
	put_fde(&eh, cie, 0x200, 0, C(""));
	put_fde(&eh, cie, 0x210, UINT32_MAX, C(""));
	put_fde(&eh, cie, TEXT_SIZE, 0x10, C("")); /* not in the text */
	make_file(&f, &s, 1, false);
	begin(&x, &f);
	expect(&x, 0x150, "100+80");
	expect(&x, 0x180, "180+10");
	expect(&x, 0x190, "none");
	expect(&x, 0x200, "none");
	expect(&x, TEXT_SIZE - 1, "210+4fdf0");
	expect(&x, TEXT_SIZE, "none");
	fixture_close(&x);
	free(eh.b);
	free(f.b);
}

static void debug_frame_has_functions_too(void **state)
{
	struct bytes eh = { 0 }, debug = { 0 }, f = { 0 };
	struct section s[] = { { ".eh_frame", EH, SHF_ALLOC, &eh },
			       { ".debug_frame", 0, 0, &debug } };
	size_t cie = usual_cie(&eh);
	struct fixture x;

	put_fde(&eh, cie, 0x100, 0x40, C(""));
	cie = put_cie(&debug, false, "", NULL, 0, C(USUAL));
	put_debug_fde(&debug, cie, 0x120, 0x40, C(""));
	put_debug_fde(&debug, cie, 0x200, 0x10, C(""));
	make_file(&f, s, 2, false);
	begin(&x, &f);
	expect(&x, 0x13f, "100+40");
	expect(&x, 0x140, "none");
	expect(&x, 0x20f, "200+10");
	fixture_close(&x);
	free(eh.b);
	free(debug.b);
	free(f.b);
}

static void of_a_damaged_table_the_rest_is_used(void **state)
{
	struct bytes eh = { 0 }, f = { 0 };
	struct section s = { ".eh_frame", EH, SHF_ALLOC, &eh };
	size_t cie = usual_cie(&eh), bad;
	struct fixture x;

	put_fde(&eh, cie, 0x100, 0x40, C(""));
	bad = put_fde(&eh, cie, 0x200, 0x40, C(""));
	put_fde(&eh, cie, 0x300, 0x40, C(""));
	eh.b[bad + 4] ^= 0x7f; /* its common entry */
	bad = put_fde(&eh, cie, 0x400, 0x40, C(""));
	memset(eh.b + bad, 0x7f, 4); /* its length */
	make_file(&f, &s, 1, false);
	begin(&x, &f);
	expect(&x, 0x100, "100+40");
	expect(&x, 0x200, "none");
	expect(&x, 0x300, "300+40");
	expect(&x, 0x400, "none");
	fixture_close(&x);
	free(eh.b);
	free(f.b);
}

static void a_file_without_a_table_has_none(void **state)
{
	struct bytes none = { 0 }, f = { 0 };
	struct section s = { ".comment", 0, 0, &none };
	struct fixture x;

	make_file(&f, &s, 1, false);
	begin(&x, &f);
	expect(&x, 0x100, "none");
	expect(&x, 0x100, "none");
	fixture_close(&x);
	/* Nor has a program of another machine. */
	f.b[offsetof(Elf64_Ehdr, e_machine)] = EM_S390;
	begin(&x, &f);
	expect(&x, 0x100, "none");
	fixture_close(&x);
	free(f.b);
}

/* --- a program, and the same one stripped ----------------------------------- */

static const char program[] =
	"cat >$D/p.c <<'END'\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"static __attribute__((noinline)) int one(int n)"
	" { return n ? puts(\"1\") + n : n; }\n"
	"static __attribute__((noinline)) int two(int n)"
	" { return n ? atoi(\"2\") - n : 2; }\n"
	"int main(int argc, char **argv)"
	" { return one(argc) + two(argc); }\n"
	"END\n"
	"cc -O2 -g -Wl,-z,lazy -o $D/p $D/p.c && strip -o $D/s $D/p &&"
	" nm $D/p | awk '$2 ~ /^[tT]$/ && $3 ~ /^(one|two)$/"
	" { print $1 }' >$D/starts &&"
	" readelf -SW $D/p | awk '/ [.]plt/ { sub(/.*[]]/, \"\");"
	" print $3, $5 }' >$D/plts";

static char dir[] = "/tmp/test_names_starts.XXXXXX";
static char main_dir[] = "/tmp/test_names_starts.XXXXXX";

static FILE *dir_open(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	return f;
}

/* The functions have the addresses that nm has of the program with symbols. */
static void functions_of_a_stripped_program(void **state)
{
	unsigned long long at, size;
	struct names_found found;
	FILE *s, *starts, *plts;
	struct fixture x;
	int n = 0, plt = 0;

	assert_non_null(mkdtemp(dir));
	setenv("D", dir, 1);
	assert_int_equal(system(program), 0);
	s = dir_open("s");
	symbolizer_src_fd(&x.src, fileno(s), (uint64_t)lseek(fileno(s), 0, 2));
	fixture_open(&x);
	starts = dir_open("starts");
	for (; fscanf(starts, "%llx", &at) == 1; n++) {
		for (int i = 0; i < 5; i++) {
			memset(&found, 0, sizeof(found));
			assert_int_equal(symbolizer_names_find(x.names, &x.c,
							       at + i, &found),
					 0);
			assert_int_equal(found.n, 0);
			assert_int_equal(found.start, at);
		}
	}
	assert_int_equal(n, 2);
	plts = dir_open("plts");
	for (; fscanf(plts, "%llx %llx", &at, &size) == 2; plt++)
		for (uint64_t i = 0; i < size; i++)
			assert_null(strchr(function_at(&x, at + i), '+'));
	assert_in_range(plt, 1, 4);
	fclose(starts);
	fclose(plts);
	fixture_close(&x);
	fclose(s);
	assert_int_equal(system("rm -r $D"), 0);
}

/* Bytes of a stripped program that have the name, of the function of that name. */
static void expect_whole(const char *file, const char *name,
			 unsigned long long at, unsigned long long size)
{
	struct fixture x;
	FILE *f = dir_open(file);

	symbolizer_src_fd(&x.src, fileno(f), (uint64_t)lseek(fileno(f), 0, 2));
	fixture_open(&x);
	for (unsigned long long i = 0; i < size; i++)
		assert_string_equal(function_at(&x, at + i), name);
	assert_string_not_equal(function_at(&x, at + size), name);
	assert_string_not_equal(function_at(&x, at - 1), name);
	fixture_close(&x);
	fclose(f);
}

static void a_stripped_program_has_start_and_main(void **state)
{
	unsigned long long at, size;
	char name[16], file[16];
	FILE *known;
	int n = 0;

	assert_non_null(mkdtemp(main_dir));
	setenv("D", main_dir, 1);
	strcpy(dir, main_dir);
	assert_int_equal(
		system("cd $D && echo 'int main(void) { return 0; }' >m.c &&"
		       "for how in -pie -no-pie -static -static-pie; do"
		       " cc -O2 $how -o m m.c || exit 1;"
		       " strip -o s$how m;"
		       " nm -S m | awk -v how=s$how '$4 == \"main\" ||"
		       " $4 == \"_start\" { print $4, how, $1, $2 }';"
		       "done >known"),
		0);
	known = dir_open("known");
	for (;
	     fscanf(known, "%15s %15s %llx %llx", name, file, &at, &size) == 4;
	     n++)
		expect_whole(file, name, at, size);
	fclose(known);
	assert_int_equal(n, 8);
	assert_int_equal(system("rm -r $D"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_what_an_entry_covers),
		cmocka_unit_test(functions_do_not_overlap),
		cmocka_unit_test(debug_frame_has_functions_too),
		cmocka_unit_test(of_a_damaged_table_the_rest_is_used),
		cmocka_unit_test(a_file_without_a_table_has_none),
		cmocka_unit_test(functions_of_a_stripped_program),
		cmocka_unit_test(a_stripped_program_has_start_and_main),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
