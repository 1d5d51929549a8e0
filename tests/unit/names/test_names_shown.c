// SPDX-License-Identifier: Apache-2.0
/*
 * What is shown of a name, whatever its source: of copies and parts that compilers
 * make of functions, of long names, of inlined functions without a name, and of names
 * that are no text. cc makes the programs; nm knows where functions are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/demangle.h"
#include "symbolize/file.h"
#include "symbolize/names/shown.h"

static char dir[] = "/tmp/test_names_shown.XXXXXX";

static char *in_dir(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static struct symbolizer_file *file_open(const char *name, bool code)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct symbolizer_src src;
	struct stat st;

	assert_non_null(f);
	f->fd = open(in_dir(name), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(f->fd, &st), 0);
	f->ident.size = (uint64_t)st.st_size;
	symbolizer_src_fd(&src, f->fd, f->ident.size);
	if (!code)
		assert_int_equal(symbolizer_file_load(f, &src), 0);
	return f;
}

static void file_close(struct symbolizer_file *f)
{
	close(f->fd);
	f->fd = -1;
	symbolizer_file_free(f);
}

/* As "name|system name|file:line" of each function, the innermost first. */
static const char *chain(const struct symbolizer_symbol *s)
{
	static char text[16384];
	const struct symbolizer_function *fn = s->functions;
	size_t len = 0;

	text[0] = '\0';
	for (; fn < s->functions + s->nfunctions; fn++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%s|%s|%s:%u", len ? ";" : "",
					fn->name, fn->system_name,
					strrchr(fn->file, '/')
						? strrchr(fn->file, '/') + 1
						: fn->file,
					fn->line);
	return text;
}

/* Of an address of a program whose segments are where they are in the file. */
static const char *at(const char *program, uint64_t vaddr)
{
	struct symbolizer_file *f = file_open(program, false);
	struct symbolizer_answer a = { 0 };
	const char *text;
	uint64_t offset = 0;

	for (size_t i = 0; i < f->n_segments; i++)
		if (vaddr - f->segments[i].vaddr < f->segments[i].size)
			offset = vaddr - f->segments[i].vaddr +
				 f->segments[i].offset;
	assert_int_not_equal(offset, 0);
	arena_init(&a.names);
	assert_int_equal(symbolizer_file_resolve(f, NULL, &offset, NULL, 1, &a),
			 0);
	text = chain(&a.syms[0]);
	symbolizer_answer_fini(&a);
	file_close(f);
	return text;
}

/* The first address in $D/NAME, as a shell command has it. */
static uint64_t address(const char *name)
{
	unsigned long long addr = 0;
	FILE *f = fopen(in_dir(name), "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llx", &addr), 1);
	fclose(f);
	return addr;
}

static void copies_have_the_name_of_their_function(void **state)
{
	static const char *const names[][2] = {
		{ "f.part.0", "f" },
		{ "f.isra.0", "f" },
		{ "f.constprop.12", "f" },
		{ "f.cold", "f" },
		{ "f.cold.3", "f" },
		{ "f.lto_priv.0", "f" },
		{ "f.localalias", "f" },
		{ "_Z1fv.isra.0.constprop.0.part.1.cold", "_Z1fv" },
		{ "f.llvm.1234567890", "f" },
		{ "f", "f" },
		{ "f.0", "f.0" },
		{ "f.scold", "f.scold" },
		{ "f.cold.x", "f.cold.x" },
		{ "cold", "cold" },
		{ ".cold", ".cold" },
		{ ".cold.cold", ".cold" },
		{ "", "" },
		{ "0", "0" },
		{ ".0", ".0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(shown_bare(names[i][0]), strlen(names[i][1]));
}

/* ESC, newline, C1 in UTF-8, a byte that is not UTF-8. */
#define HARMLESS "a\\033[31mb\\012c\\u{9b}d\\377e"

static void names_of_symbols_are_text(void **state)
{
	run("cd $D && cat >s.s <<'END'\n"
	    ".text\n"
	    ".type hostile,@function\nhostile: nop\n.size hostile,1\n"
	    ".type _Z1fi.isra.0.cold,@function\n_Z1fi.isra.0.cold: nop\n"
	    ".size _Z1fi.isra.0.cold,1\n"
	    "END\n"
	    "cc -c -o s.o s.s &&"
	    "printf 'a\\033[31mbXc\\302\\233d\\377e' >raw &&"
	    "objcopy --redefine-sym hostile=\"$(cat raw)\" s.o &&"
	    "cc -shared -nostdlib -o s.so s.o &&"
	    /* A newline fits into no command line of objcopy. */
	    "LC_ALL=C sed -i 's/31mbXc/31mb\\nc/' s.so &&"
	    "nm s.so | awk '/isra/ { print $1 }' >s");
	assert_string_equal(at("s.so", address("s")),
			    "f(int)|_Z1fi.isra.0.cold|:0");
	assert_string_equal(at("s.so", address("s") - 1),
			    HARMLESS "|" HARMLESS "|:0");
}

static void names_of_perf_maps_are_text(void **state)
{
	struct symbolizer_code code = { 0x1000, UINT64_MAX };
	struct symbolizer_answer a = { 0 };
	struct symbolizer_file *f;

	run("printf '1000 10 a\\033[31mb\\rc\\302\\233d\\377e\\n' >$D/map");
	f = file_open("map", true);
	arena_init(&a.names);
	assert_int_equal(symbolizer_file_code(f, &code, 1, &a), 0);
	assert_string_equal(a.syms[0].functions[0].name,
			    "a\\033[31mb\\015c\\u{9b}d\\377e");
	assert_string_equal(a.syms[0].functions[0].system_name,
			    a.syms[0].functions[0].name);
	symbolizer_answer_fini(&a);
	file_close(f);
}

/* Texts are looked through several bytes at a time. */
static void each_byte_is_seen_wherever_it_is(void **state)
{
	char text[20] = "";
	struct symbolizer_function fn = { .name = text, .system_name = text };
	struct arena arena;
	bool same, plain;

	arena_init(&arena);
	for (size_t len = 1; len < sizeof(text); len++)
		for (size_t i = 0; i < len * 255; i++) {
			memset(text, i & 1 ? '~' : ' ', len);
			text[i / 255] = (char)(i % 255 + 1);
			plain = i % 255 + 1 >= ' ' && i % 255 + 1 <= '~';
			fn.name = fn.system_name = text;
			fn.file = "";
			assert_int_equal(shown_escape(&fn, &arena), 0);
			same = fn.name == text;
			assert_int_equal(same, plain);
			assert_ptr_equal(fn.system_name, fn.name);
		}
	arena_fini(&arena);
}

/* A source file of that name, and a function of DWARF. */
static void names_of_sources_are_text(void **state)
{
	run("cd $D && printf '#line 7 \"x\\033]0;y.c\"\\n"
	    "int f(int x) { return x; }' >l.c &&"
	    "cc -g -shared -fPIC -nostdlib -o l.so l.c &&"
	    "nm l.so | awk '$3 == \"f\" { print $1 }' >l");
	assert_string_equal(at("l.so", address("l")), "f|f|x\\033]0;y.c:7");
}

static void long_names_are_whole(void **state)
{
	char want[8192] = "", name[4096] = "_ZN";
	FILE *f = fopen(in_dir("n.s"), "w");

	for (int i = 0; i < 180; i++) {
		sprintf(name + strlen(name), "20a_long_namespace%03d_", i);
		sprintf(want + strlen(want), "a_long_namespace%03d_::", i);
	}
	strcat(name, "1fEv");
	strcat(want, "f()|");
	strcat(want, name);
	strcat(want, "|:0");
	assert_true(strlen(name) > 3600);
	assert_non_null(f);
	fprintf(f, ".text\n.type %s,@function\n%s: nop\n.size %s,1\n", name,
		name, name);
	fclose(f);
	run("cd $D && cc -shared -nostdlib -o n.so n.s &&"
	    "nm n.so | awk '/long/ { print $1 }' >n");
	assert_string_equal(at("n.so", address("n")), want);
}

/* The abbreviation of abstract instances has another attribute than DW_AT_name. */
static void inlined_functions_without_a_name_are_left_out(void **state)
{
	run("cd $D && cat >i.c <<'END'\n"
	    "static inline __attribute__((always_inline)) int in(int *p)\n"
	    "{ return __atomic_fetch_add(p, 1, 0); }\n"
	    "int out(int *p)\n"
	    "{ return\n"
	    "in(p); }\n"
	    "END\n"
	    "cc -g -O2 -dA -S -o i.s i.c && awk '"
	    "/\\.section/ { abbrev = /debug_abbrev/ }"
	    " abbrev && /\\(abbrev code\\)/ { inl = 0; held = \"\" }"
	    " abbrev && /DW_TAG_subprogram/ { sub_ = 1 }"
	    " abbrev { line[++n] = $0; code[n] = c += /\\(abbrev code\\)/;"
	    "	if (/DW_AT_inline/) is[c] = 1; next }"
	    " { line[++n] = $0; code[n] = 0 }"
	    " END { for (i = 1; i <= n; i++) {"
	    "	if (is[code[i]] && line[i] ~ /DW_AT_name/)"
	    "		sub(/0x3/, \"0x2001\", line[i]);"
	    "	print line[i] } }' i.s >j.s &&"
	    "! cmp -s i.s j.s &&"
	    "for x in i j; do cc -shared -nostdlib -o $x.so $x.s;"
	    " objdump -d $x.so |"
	    " awk '/lock/ { sub(/:/, \"\"); print $1 }' >$x; done");
	assert_string_equal(at("i.so", address("i")),
			    "in|in|i.c:2;out|out|i.c:5");
	assert_string_equal(at("j.so", address("j")), "out|out|i.c:5");
}

/* As clang leaves functions that cannot be reached, before the one that follows. */
static void an_empty_function_names_no_other(void **state)
{
	run("cd $D && cat >e.s <<'END'\n"
	    ".text\n"
	    ".globl empty,a_real_one,alias\n"
	    ".type empty,@function\n.type a_real_one,@function\n"
	    "empty: .size empty,0\n"
	    "a_real_one: nop\nnop\n.size a_real_one,2\n"
	    /* Of several without a size one is the name. */
	    ".type other,@function\nother:\nnop\n"
	    "END\n"
	    "cc -shared -nostdlib -o e.so e.s &&"
	    "nm e.so | awk '$3 == \"a_real_one\" { print $1 }' >e");
	assert_string_equal(at("e.so", address("e")),
			    "a_real_one|a_real_one|:0");
	assert_string_equal(at("e.so", address("e") + 1),
			    "a_real_one|a_real_one|:0");
	assert_string_equal(at("e.so", address("e") + 2), "other|other|:0");
}

/* The symbols of a folded one, and of an alias, are at the same address. */
static void names_and_lines_are_of_the_same_function(void **state)
{
	run("cd $D && cat >o.c <<'END'\n"
	    "__attribute__((noinline)) int the_kept_one(int x)\n"
	    "{ return x * 3; }\n"
	    "__attribute__((noinline)) int __used(int x)\n"
	    "{ return x * 5; }\n"
	    "extern __typeof(the_kept_one) gone"
	    " __attribute__((alias(\"the_kept_one\")));\n"
	    "extern __typeof(__used) used"
	    " __attribute__((weak, alias(\"__used\")));\n"
	    "END\n"
	    "cat >o.cc <<'END'\n"
	    "struct kept { int x; __attribute__((noinline)) kept(int);"
	    " __attribute__((noinline)) int fold(); };\n"
	    "kept::kept(int y) : x(y) {}\n"
	    "int kept::fold() { return x * 7; }\n"
	    "extern \"C\" int f() __attribute__((alias(\"_ZN4kept4foldEv\")));\n"
	    "END\n"
	    "cc -g -O2 -shared -fPIC -nostdlib -o o.so o.c &&"
	    "c++ -g -O2 -shared -fPIC -nostdlib -o oo.so o.cc &&"
	    "nm o.so | awk '$3 == \"gone\" { print $1 }' >gone &&"
	    "nm o.so | awk '$3 == \"used\" { print $1 }' >used &&"
	    "nm oo.so | awk '$3 == \"f\" { print $1 }' >f &&"
	    "nm oo.so | awk '/C1/ { print $1 }' >C1");
	assert_string_equal(at("o.so", address("gone")),
			    "the_kept_one|the_kept_one|o.c:2");
	assert_string_equal(at("o.so", address("used")), "used|used|o.c:4");
	assert_string_equal(at("oo.so", address("f")),
			    "kept::fold()|_ZN4kept4foldEv|o.cc:3");
	assert_string_equal(at("oo.so", address("C1")),
			    "kept::kept(int)|_ZN4keptC1Ei|o.cc:2");
}

static int setup(void **state)
{
	if (!mkdtemp(dir) || symbolizer_demangle_start())
		return -1;
	return setenv("D", dir, 1);
}

static int teardown(void **state)
{
	return system("rm -r $D");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_have_the_name_of_their_function),
		cmocka_unit_test(names_of_symbols_are_text),
		cmocka_unit_test(names_of_perf_maps_are_text),
		cmocka_unit_test(each_byte_is_seen_wherever_it_is),
		cmocka_unit_test(names_of_sources_are_text),
		cmocka_unit_test(long_names_are_whole),
		cmocka_unit_test(inlined_functions_without_a_name_are_left_out),
		cmocka_unit_test(an_empty_function_names_no_other),
		cmocka_unit_test(names_and_lines_are_of_the_same_function),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
