// SPDX-License-Identifier: Apache-2.0
/*
 * Symbol tables that are not in the file itself, read by the sandboxed worker:
 * .symtab of a separate debug file and of MiniDebugInfo. Libraries are made by cc,
 * and taken apart by objcopy and xz as distributions do.
 */
#include "symbolize/elf/debugfile.h"
#include "symbolize/names/index.h"
#include "symbolize/names/minidebug.h"
#include "tests/unit/symbolize/test_symbolize.h"

#define LOCALS 150

/* A library of exported and local functions, as NAME.full; one segment at 0. */
static void make_full(const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.c", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < LOCALS; i++)
		fprintf(f,
			"static __attribute__((noinline,noclone)) int "
			"local_%03d_of_the_library(int x){return x*%d+%d;}"
			"int open_%03d(int x)"
			"{return local_%03d_of_the_library(x)+1;}\n",
			i, i + 3, i, i, i);
	assert_int_equal(fclose(f), 0);
	sh("cc -O1 -fcf-protection=none -shared -fPIC -nostdlib "
	   "-Wl,--build-id -Wl,-z,noseparate-code -o %s.full %s.c && "
	   "nm --defined-only %s.full > %s.nm",
	   name, name, name, name);
}

/* As rpm's find-debuginfo does, into NAME. */
static void make_mini(const char *name)
{
	sh("nm -D %s.full --format=posix --defined-only | "
	   "awk '{print $1}' | sort > dyn && "
	   "nm %s.full --format=posix --defined-only | "
	   "awk '$2==\"T\"||$2==\"t\"||$2==\"D\"{print $1}' | sort > all && "
	   "comm -13 dyn all > keep && "
	   "objcopy -S --keep-symbols=keep %s.full mini && "
	   "strip -o %s %s.full && rm -f mini.xz && xz -k mini && "
	   "objcopy --add-section .gnu_debugdata=mini.xz %s",
	   name, name, name, name, name, name);
}

static uint64_t address_of(const char *name, const char *fn)
{
	unsigned long long addr = 0;
	char path[256], symbol[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.nm", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fscanf(f, "%llx %*s %63s", &addr, symbol) == 2 &&
	       strcmp(symbol, fn) != 0)
		;
	assert_string_equal(symbol, fn);
	fclose(f);
	return addr;
}

/* Names from the worker: of a local function and of an exported one. */
static void expect_sources(struct fixture *fx, const char *name, int local,
			   int exported)
{
	static const int some[] = { 0, 1, 63, 64, 100, LOCALS - 1 };
	char want[64];

	assert_int_equal(open_path(fx, in_dir(name)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		snprintf(want, sizeof(want), "local_%03d_of_the_library",
			 some[i]);
		expect_name(fx, address_of(name, want), local ? want : "");
		/* Without a name: where the unwind entries say it begins. */
		assert_int_equal(fx->syms[0].source,
				 local ? local : SYMBOLIZER_SOURCE_CFI);
		snprintf(want, sizeof(want), "open_%03d", some[i]);
		expect_name(fx, address_of(name, want) + 1, want);
		assert_int_equal(fx->syms[0].source, exported);
		assert_int_equal(fx->syms[0].start, address_of(name, want));
	}
	assert_int_equal(stats(fx).worker_failed, 0);
}

static void of_a_separate_debug_file(void **state)
{
	char debug[300];
	const char *dirs[] = { debug, NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	struct fixture fx;

	snprintf(debug, sizeof(debug), "%s/dbg", dir);
	make_full("d.so");
	sh("mkdir -p dbg && objcopy --only-keep-debug d.so.full dbg/d.debug && "
	   "strip -o d.so d.so.full && "
	   "objcopy --add-gnu-debuglink=dbg/d.debug d.so");
	fixture_init(&fx, &opts);
	expect_sources(&fx, "d.so", SYMBOLIZER_SOURCE_DEBUG_SYMTAB,
		       SYMBOLIZER_SOURCE_DEBUG_SYMTAB);
	assert_int_equal(stats(&fx).index_built, 1);
	assert_int_equal(stats(&fx).broken, 0);
	fixture_fini(&fx);
	/* One with another checksum, or of another build, is not used. */
	sh("printf x >> dbg/d.debug");
	fixture_init(&fx, &opts);
	expect_sources(&fx, "d.so", 0, SYMBOLIZER_SOURCE_DYNSYM);
	fixture_fini(&fx);
}

static void of_minidebuginfo(void **state)
{
	const char *none[] = { NULL };
	struct symbolizer_opts opts = { .debug_dirs = none };
	struct fixture fx;

	make_full("m.so");
	make_mini("m.so");
	fixture_init(&fx, &opts);
	expect_sources(&fx, "m.so", SYMBOLIZER_SOURCE_MINIDEBUG,
		       SYMBOLIZER_SOURCE_DYNSYM);
	assert_int_equal(stats(&fx).broken, 0);
	fixture_fini(&fx);
}

static void the_best_table_is_used(void **state)
{
	char debug[300];
	const char *dirs[] = { debug, NULL };
	struct symbolizer_opts opts = { .debug_dirs = dirs };
	struct fixture fx;

	/* Its debug file is better than MiniDebugInfo ... */
	snprintf(debug, sizeof(debug), "%s/best", dir);
	make_full("b.so");
	make_mini("b.so");
	sh("mkdir best && objcopy --only-keep-debug b.so.full best/b.debug && "
	   "objcopy --add-gnu-debuglink=best/b.debug b.so");
	fixture_init(&fx, &opts);
	expect_sources(&fx, "b.so", SYMBOLIZER_SOURCE_DEBUG_SYMTAB,
		       SYMBOLIZER_SOURCE_DEBUG_SYMTAB);
	fixture_fini(&fx);
	/* ... unless it has no functions; its own .symtab is better than both. */
	sh("strip -g --strip-all best/b.debug && cp b.so.full c.so.full && "
	   "cp b.so.nm c.so.nm && "
	   "objcopy --remove-section .gnu_debuglink b.so && "
	   "objcopy --add-gnu-debuglink=best/b.debug b.so && "
	   "objcopy --add-section .gnu_debugdata=mini.xz "
	   "--add-gnu-debuglink=best/b.debug b.so.full c.so");
	fixture_init(&fx, &opts);
	expect_sources(&fx, "b.so", SYMBOLIZER_SOURCE_MINIDEBUG,
		       SYMBOLIZER_SOURCE_DYNSYM);
	expect_sources(&fx, "c.so", SYMBOLIZER_SOURCE_SYMTAB,
		       SYMBOLIZER_SOURCE_SYMTAB);
	fixture_fini(&fx);
}

/* --- hostile ones ----------------------------------------------------------- */

struct seen {
	uint8_t *data;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct symbolizer_index *x;
};

/* A library in this process. */
static void see_library(struct seen *s, const char *name)
{
	struct stat st;
	FILE *f;

	f = fopen(in_dir(name), "r");
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	s->data = malloc((size_t)st.st_size);
	assert_int_equal(fread(s->data, 1, (size_t)st.st_size, f), st.st_size);
	fclose(f);
	symbolizer_src_mem(&s->src, s->data, (size_t)st.st_size);
	assert_int_equal(symbolizer_elf_init(&s->e, &s->src), 0);
	assert_int_equal(symbolizer_elf_tables(&s->e), 0);
	assert_int_equal(symbolizer_index_new(&s->x, &s->e, NULL), 0);
}

/* The library x.so with 'file' as its .gnu_debugdata. */
static void see(struct seen *s, const char *file)
{
	sh("strip -o x.so x.so.full && "
	   "objcopy --add-section .gnu_debugdata=%s x.so",
	   file);
	see_library(s, "x.so");
}

static void unsee(struct seen *s)
{
	symbolizer_index_free(s->x);
	symbolizer_elf_fini(&s->e);
	free(s->data);
}

/* Its exported functions are there, local ones are not. */
static void expect_damage(const char *file)
{
	struct symbolizer_range range;
	struct seen s;

	see(&s, file);
	assert_true(s.e.damaged);
	assert_true(symbolizer_index_find(s.x, address_of("x.so", "open_007"),
					  &range));
	assert_false(symbolizer_index_find(
		s.x, address_of("x.so", "local_007_of_the_library"), &range));
	unsee(&s);
}

static void cut_anywhere_it_does_no_harm(void **state)
{
	make_full("x.so");
	make_mini("x.so");
	for (int part = 0; part < 5; part++) {
		sh("head -c $(($(stat -c %%s mini.xz)*%d/5)) mini.xz > cut",
		   part);
		/* objcopy makes no section of an empty file. */
		if (part)
			expect_damage("cut");
	}
	sh("head -c 3000 /dev/urandom > noise");
	expect_damage("noise");
	sh("head -c 3000 /dev/urandom > noise && rm -f noise.xz && xz noise");
	expect_damage("noise.xz");
}

/* 80 MB of zeros behind an ELF file; and a dictionary of 256 MiB. */
static void a_bomb_is_not_unpacked(void **state)
{
	sh("(cat mini; head -c 80000000 /dev/zero) | xz -1 > bomb && "
	   "test $(stat -c %%s bomb) -lt 80000");
	expect_damage("bomb");
	sh("xz -c --format=xz --lzma2=preset=0,dict=256MiB mini > large");
	expect_damage("large");
	sh("xz -c -9 mini > nine"); /* the largest of the presets */
	{
		struct seen s;

		see(&s, "nine");
		assert_false(s.e.damaged);
		unsee(&s);
	}
}

/* A section of this kind inside one is not looked at. */
static void within_itself_it_is_read_once(void **state)
{
	struct symbolizer_range range;
	char name[64];
	struct seen s;

	sh("cp mini inner && strip inner && "
	   "objcopy --add-section .gnu_debugdata=mini.xz inner && "
	   "xz -c inner > nested");
	see(&s, "nested");
	assert_false(s.e.damaged);
	assert_false(symbolizer_index_find(
		s.x, address_of("x.so", "local_007_of_the_library"), &range));
	unsee(&s);
	sh("cp mini inner && objcopy --add-section .gnu_debugdata=mini.xz inner"
	   " && xz -c inner > nested");
	see(&s, "nested");
	assert_true(symbolizer_index_find(
		s.x, address_of("x.so", "local_007_of_the_library"), &range));
	assert_true(symbolizer_index_name(s.x, &s.src, &range, name,
					  sizeof(name)) > 0);
	assert_string_equal(name, "local_007_of_the_library");
	unsee(&s);
}

/*
 * Untyped symbols name code where no function is, if they are of a section that is
 * loaded: gcc -flto leaves some in .debug_info.
 */
static void labels_of_debug_sections_are_no_functions(void **state)
{
	struct symbolizer_range range;
	unsigned long long gap;
	struct seen s;

	sh("printf '.text\n.globl before\nbefore: nop\n.type before,@function\n"
	   ".size before,1\n.skip 63,0x90\n.globl after\nafter: nop\n"
	   ".type after,@function\n.size after,1\n"
	   ".section .debug_own,\"\",@progbits\n.skip 8\n' > l.s && "
	   "cc -shared -nostdlib -o l.full l.s && "
	   "nm --defined-only l.full > l.nm");
	gap = address_of("l", "after") - 32;
	sh("objcopy --add-symbol marker=.debug_own:%llu,local l.full l.so",
	   gap);
	see_library(&s, "l.so");
	assert_true(symbolizer_index_find(s.x, gap + 32, &range));
	assert_false(symbolizer_index_find(s.x, gap + 4, &range));
	unsee(&s);
	sh("sed 's/^.skip 63.*/.skip 31\\nmarker: .skip 32/' l.s > label.s && "
	   "cc -shared -nostdlib -o l.so label.s");
	see_library(&s, "l.so");
	assert_true(symbolizer_index_find(s.x, gap + 4, &range));
	assert_int_equal(range.start, gap);
	unsee(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_of_debug_sections_are_no_functions),
		cmocka_unit_test(of_a_separate_debug_file),
		cmocka_unit_test(of_minidebuginfo),
		cmocka_unit_test(the_best_table_is_used),
		cmocka_unit_test(cut_anywhere_it_does_no_harm),
		cmocka_unit_test(a_bomb_is_not_unpacked),
		cmocka_unit_test(within_itself_it_is_read_once),
	};

	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
