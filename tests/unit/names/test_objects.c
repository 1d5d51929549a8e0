// SPDX-License-Identifier: Apache-2.0
/*
 * Relocatable files: where their code is, the symbols and lines of it, relocations, and
 * separate debug files. Each file is made here by the assembler or compiler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/demangle.h"
#include "symbolize/elf/relocate.h"
#include "symbolize/file.h"

static char dir[] = "/tmp/test_objects.XXXXXX";

#include "tests/unit/files.h"

static int open_file(const char *name, struct symbolizer_src *src)
{
	char path[256];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	symbolizer_src_fd(src, fd, (uint64_t)st.st_size);
	return fd;
}

/* As the worker has it; err: what it says of the file. */
static struct symbolizer_file *load(const char *name, bool object, int err)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct symbolizer_src src;

	assert_non_null(f);
	f->fd = open_file(name, &src);
	f->object = object;
	f->ident.size = src.size;
	assert_int_equal(symbolizer_file_load(f, &src), err);
	return f;
}

/*
 * The functions at an address, as "inner:line < outer:line", "" if there is none; valid
 * until the next call. 'ask' may be NULL.
 */
static const char *names_at(struct symbolizer_file *f,
			    const struct symbolizer_ask *ask, uint64_t at)
{
	struct symbolizer_answer a = { 0 };
	static char text[1024];
	int len = 0;

	arena_init(&a.names);
	assert_int_equal(symbolizer_file_resolve(f, ask, &at, NULL, 1, &a), 0);
	text[0] = '\0';
	for (size_t i = 0; i < a.syms->nfunctions; i++) {
		const struct symbolizer_function *fn = &a.syms->functions[i];

		len += snprintf(text + len, sizeof(text) - (size_t)len,
				"%s%s:%u", i ? " < " : "", fn->name, fn->line);
	}
	if (a.syms->nfunctions)
		assert_true(at >= a.syms->start &&
			    at - a.syms->start < a.syms->size);
	symbolizer_answer_fini(&a);
	return text;
}

#define expect(f, at, text) assert_string_equal(names_at(f, NULL, at), text)

/* --- places ------------------------------------------------------------------ */

static const char assembly[] =
	".text\n.globl a, end\n.type a, @function\n"
	"a: nop; nop; nop\n.size a, .-a\n"
	".type end, @function\nend:\n"
	".section .init.text, \"ax\"\n.globl start\n"
	".type start, @function\nstart: .skip 5, 0x90\n"
	".size start, .-start\n"
	".section .text.far, \"ax\"\n.balign 64\n"
	".globl far\n.type far, @function\n"
	"far: .skip 7, 0x90\n.size far, 1000\n"
	".section .exit.text, \"ax\"\nleave: ret\n"
	".data\n.globl d\n.type d, @function\nd: .quad a\n"
	".size d, 8\n";

static void sections_follow_each_other_and_init_comes_last(void **state)
{
	struct symbolizer_file *f;

	write_file("places.s", assembly);
	sh("as -o places.o places.s");
	f = load("places.o", true, 0);
	/* .text, .text.far at 64, .exit.text; behind them .init.text. */
	assert_int_equal(f->n_segments, 1);
	assert_int_equal(f->segments[0].vaddr, 0);
	assert_int_equal(f->segments[0].offset, 0);
	assert_int_equal(f->segments[0].size, 64 + 7 + 1 + 5);
	expect(f, 0, "a:0");
	expect(f, 2, "a:0");
	expect(f, 3, ""); /* padding; "end" is behind the section */
	expect(f, 63, "");
	expect(f, 64, "far:0");
	expect(f, 70, "far:0"); /* its size is that of the section at most */
	expect(f, 71, "leave:0");
	expect(f, 72, "start:0");
	expect(f, 76, "start:0");
	expect(f, 77, "");
	symbolizer_file_free(f);
}

static void a_process_cannot_have_it_mapped(void **state)
{
	struct symbolizer_file *f = load("places.o", false, -ENOEXEC);

	assert_int_equal(f->n_segments, 0);
	symbolizer_file_free(f);
}

/* Changes a number of 8 bytes in a copy of places.o. */
static void damage(uint64_t at, uint64_t value)
{
	struct symbolizer_src src;
	int fd;

	sh("cp places.o bad.o");
	fd = open_file("bad.o", &src);
	assert_int_equal(pwrite(fd, &value, sizeof(value), (off_t)at),
			 sizeof(value));
	close(fd);
}

static void sections_that_have_no_place_are_left_out(void **state)
{
	static const size_t members[] = { offsetof(Elf64_Shdr, sh_addralign),
					  offsetof(Elf64_Shdr, sh_size) };
	static const uint64_t values[] = { 3, UINT64_MAX, 1ULL << 63,
					   SYMBOLIZER_OBJECT_MAX + 1 };
	struct symbolizer_src src;
	struct symbolizer_elf e;
	uint64_t text;
	int fd;

	fd = open_file("places.o", &src);
	assert_int_equal(symbolizer_elf_init_any(&e, &src), 0);
	assert_int_equal(e.n_placed, 4);
	text = e.shoff + e.placed[0].section * sizeof(Elf64_Shdr);
	symbolizer_elf_fini(&e);
	close(fd);
	for (size_t m = 0; m < ARRAY_SIZE(members); m++) {
		for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
			if (m == 1 && v == 0)
				continue; /* a size as good as another */
			damage(text + members[m], values[v]);
			fd = open_file("bad.o", &src);
			assert_int_equal(symbolizer_elf_init_any(&e, &src), 0);
			assert_true(e.damaged);
			assert_int_equal(e.n_placed, 3);
			assert_int_equal(e.placed[1].start, 0); /* far */
			symbolizer_elf_fini(&e);
			close(fd);
		}
	}
}

/* --- DWARF ------------------------------------------------------------------- */

static const char program[] =
	"struct pair { int x; } pair; static inline int twice(int x) { return x * x; }\n"
	"#define other __attribute__((noinline))\n"
	"other int near(int x) { return twice(x) + 1; }\n"
	"#define in(name) __attribute__((section(name)))\n"
	"in(\".init.text\") int first(int x) { return near(x) + 2; }\n"
	"in(\".text.b\") int last(int x) { return twice(near(x)) + 3; }\n";

static uint64_t address_of(const char *name, const char *symbol)
{
	struct symbolizer_src src;
	struct symbolizer_elf e;
	uint64_t at = UINT64_MAX;
	Elf64_Sym s;
	char text[64];
	int fd = open_file(name, &src);

	assert_int_equal(symbolizer_elf_init_any(&e, &src), 0);
	assert_int_equal(symbolizer_elf_tables(&e), 0);
	for (uint64_t i = 0; i < e.tabs[SYMBOLIZER_SYMTAB].count; i++) {
		const struct symbolizer_elf_symbols *t =
			&e.tabs[SYMBOLIZER_SYMTAB];

		assert_int_equal(symbolizer_elf_sym(&e, t, i, &s), 0);
		if (s.st_name &&
		    symbolizer_src_string(&src, t->str + s.st_name,
					  t->str + t->str_size, text,
					  sizeof(text)) > 0 &&
		    !strcmp(text, symbol) && symbolizer_elf_sym_place(&e, &s))
			at = s.st_value;
	}
	symbolizer_elf_fini(&e);
	close(fd);
	assert_true(at != UINT64_MAX);
	return at;
}

/* Each function has its lines, and the call that was inlined. */
static void expect_program(const char *name, struct symbolizer_file *f,
			   const struct symbolizer_ask *ask)
{
	static const struct {
		const char *name, *begins, *inlined;
	} functions[] = {
		{ "near", "near:3", "twice:1 < near:3" },
		{ "first", "first:5", NULL },
		{ "last", "last:6", "twice:1 < last:6" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		uint64_t at = address_of(name, functions[i].name);
		bool begins = false, inlined = !functions[i].inlined;

		for (uint64_t off = 0; off < 24; off++) {
			const char *text = names_at(f, ask, at + off);

			begins |= !strcmp(text, functions[i].begins);
			inlined |= functions[i].inlined &&
				   !strcmp(text, functions[i].inlined);
		}
		if (!begins || !inlined)
			fail_msg("%s: %s: %d %d", name, functions[i].name,
				 begins, inlined);
	}
}

static void lines_and_inlined_calls_of_all_sections(void **state)
{
	static const char *const commands[] = {
		"gcc -gdwarf-5",
		"gcc -gdwarf-4",
		"gcc -gdwarf-2",
		"gcc -gdwarf-5 -gz",
		"clang -gdwarf-5",
		"clang -gdwarf-4",
		"clang -gdwarf-4 -gz",
		"clang -gdwarf-5 -gdwarf64",
		"gcc -gdwarf-5 -fdebug-types-section",
	};
	struct symbolizer_file *f;

	write_file("p.c", program);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		sh("%s -O2 -c -o p.o p.c", commands[i]);
		f = load("p.o", true, 0);
		expect_program("p.o", f, NULL);
		assert_int_equal(f->relocation, 0);
		assert_false(symbolizer_names_damaged(f->names));
		symbolizer_file_free(f);
	}
}

/*
 * Two files have the same function, which is not equal: the linker drops one, and its
 * debug information has zeros for addresses.
 */
static void a_function_that_the_linker_dropped_is_not_over_others(void **state)
{
	struct symbolizer_file *f;

	write_file("f.cc",
		   "template <int N> int both(int x) { return x * N; }\n"
		   "template int both<3>(int);\n"
		   "#if __OPTIMIZE__\n"
		   "int one(int x, int y, int z)\n"
		   "{ return x / y + y / z + z / x + x % 7 + y % 9; }\n"
		   "#else\n"
		   "int two(int x) { return x; }\n"
		   "#endif\n");
	sh("g++ -g -O2 -c -o kept.o f.cc && g++ -g -O0 -c -o dropped.o f.cc && "
	   "ld -r -o two.o kept.o dropped.o");
	f = load("two.o", true, 0);
	assert_int_equal(address_of("two.o", "_Z3oneiii"), 0);
	for (uint64_t at = 0; at < 16; at++)
		expect(f, at, "one(int, int, int):5");
	expect(f, address_of("two.o", "_Z3twoi"), "two(int):7");
	expect(f, address_of("two.o", "_Z4bothILi3EEii"), "int both<3>(int):1");
	symbolizer_file_free(f);
}

/* The type of the first relocation of .debug_info becomes this. */
static void set_relocation(const char *name, uint64_t type)
{
	struct symbolizer_src src;
	struct symbolizer_elf e;
	Elf64_Shdr sh;
	int fd = open_file(name, &src);

	assert_int_equal(symbolizer_elf_init_any(&e, &src), 0);
	assert_true(symbolizer_elf_section(&e, ".rela.debug_info", &sh));
	assert_int_equal(
		pwrite(fd, &type, 4,
		       (off_t)(sh.sh_offset + offsetof(Elf64_Rela, r_info))),
		4);
	symbolizer_elf_fini(&e);
	close(fd);
}

static void an_unknown_relocation_is_named_and_symbols_remain(void **state)
{
	struct symbolizer_file *f;

	sh("gcc -g -O2 -c -o p.o p.c");
	set_relocation("p.o", R_X86_64_GOTPCREL);
	f = load("p.o", true, 0);
	expect(f, address_of("p.o", "near"), "near:0");
	assert_int_equal(f->relocation, R_X86_64_GOTPCREL);
	assert_false(symbolizer_names_damaged(f->names));
	symbolizer_file_free(f);
}

/* --- separate debug files ------------------------------------------------------ */

/* 'arg': the name of the file that is there for any question. */
static int ask_one(void *arg, const char *name, const uint8_t *build_id,
		   size_t len, uint32_t crc, bool has_crc)
{
	struct symbolizer_src src;

	return open_file(arg, &src);
}

static void a_debug_file_has_the_places_of_its_module(void **state)
{
	const struct symbolizer_ask ask = { .file = ask_one, .arg = "m.debug" };
	const struct symbolizer_ask other = { .file = ask_one,
					      .arg = "other.debug" };
	struct symbolizer_file *f;

	sh("gcc -g -O2 -c -o p.o p.c && ld -r --build-id -o m.ko p.o && "
	   "objcopy --only-keep-debug m.ko m.debug && "
	   "objcopy --strip-debug --add-gnu-debuglink=m.debug m.ko");
	f = load("m.ko", true, 0);
	assert_true(f->ident.build_id_len > 0);
	expect(f, address_of("m.ko", "last"), "last:0");
	symbolizer_file_free(f);
	f = load("m.ko", true, 0);
	expect_program("m.ko", f, &ask);
	symbolizer_file_free(f);
	/* Alone, it has the same addresses. */
	f = load("m.debug", true, 0);
	expect_program("m.ko", f, NULL);
	symbolizer_file_free(f);
	/* One of other code is not used, whatever its build id. */
	write_file("q.c", "int near(int x, int y) { return x / y + y / 7; }\n");
	sh("gcc -g -O2 -c -o other.ko q.c && "
	   "objcopy --only-keep-debug other.ko other.debug");
	sh("objcopy --remove-section .note.gnu.build-id m.ko n.ko");
	f = load("n.ko", true, 0);
	assert_string_equal(names_at(f, &other, address_of("n.ko", "last")),
			    "last:0");
	symbolizer_file_free(f);
}

/* --- relocations --------------------------------------------------------------- */

#define SECTION 16

/* Applies one to zeros; *out: the section then. */
static int relocate(Elf64_Rela rel, uint8_t out[SECTION], uint32_t *unknown)
{
	static const uint64_t symbols[] = { 0, 0x40000010, 1ULL << 40 };
	struct symbolizer_relocate r = { .buf = out,
					 .len = SECTION,
					 .symbols = symbols,
					 .n_symbols = ARRAY_SIZE(symbols) };
	int err;

	memset(out, 0, SECTION);
	err = symbolizer_relocate(&r, (const uint8_t *)&rel, sizeof(rel));
	*unknown = r.unknown;
	return err;
}

#define INFO(sym, type) ELF64_R_INFO((uint64_t)(sym), (uint64_t)(type))

static void each_relocation_has_its_value(void **state)
{
	static const struct {
		Elf64_Rela rel;
		size_t size;
		uint64_t value;
	} cases[] = {
		{ { 0, INFO(1, R_X86_64_64), 4 }, 8, 0x40000014 },
		{ { 8, INFO(2, R_X86_64_64), -1 }, 8, (1ULL << 40) - 1 },
		{ { 4, INFO(2, R_X86_64_PC64), 0 }, 8, (1ULL << 40) - 4 },
		{ { 12, INFO(1, R_X86_64_32), 0 }, 4, 0x40000010 },
		{ { 4, INFO(0, R_X86_64_32S), -2 }, 4, 0xfffffffe },
		{ { 12, INFO(1, R_X86_64_PC32), 0 }, 4, 0x40000004 },
		{ { 4, INFO(0, R_X86_64_PC32), 0 }, 4, 0xfffffffc },
		{ { 0, INFO(1, R_X86_64_NONE), 9 }, 8, 0 },
		{ { UINT64_MAX, INFO(99, R_X86_64_NONE), 9 }, 0, 0 },
		{ { 0, INFO(1, R_X86_64_DTPOFF64), 9 }, 8, 0 },
	};
	uint8_t out[SECTION], want[SECTION];
	uint32_t unknown;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(want, 0, sizeof(want));
		memcpy(want + (cases[i].size ? cases[i].rel.r_offset : 0),
		       &cases[i].value, cases[i].size);
		assert_int_equal(relocate(cases[i].rel, out, &unknown), 0);
		assert_memory_equal(out, want, sizeof(want));
	}
}

static void a_bad_relocation_changes_nothing(void **state)
{
	static const struct {
		Elf64_Rela rel;
		int err;
	} cases[] = {
		{ { 9, INFO(1, R_X86_64_64), 0 }, -EINVAL },
		{ { 16, INFO(1, R_X86_64_64), 0 }, -EINVAL },
		{ { 13, INFO(1, R_X86_64_32), 0 }, -EINVAL },
		{ { UINT64_MAX - 3, INFO(1, R_X86_64_64), 0 }, -EINVAL },
		{ { 0, INFO(3, R_X86_64_64), 0 }, -EINVAL },
		{ { 0, INFO(UINT32_MAX, R_X86_64_64), 0 }, -EINVAL },
		{ { 0, INFO(2, R_X86_64_32), 0 }, -EINVAL },
		{ { 0, INFO(0, R_X86_64_32), -1 }, -EINVAL },
		{ { 0, INFO(1, R_X86_64_32S), 0x40000000 }, -EINVAL },
		{ { 0, INFO(1, R_X86_64_GOTPCREL), 0 }, -ENOTSUP },
	};
	uint8_t out[SECTION], zero[SECTION] = { 0 };
	uint32_t unknown;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(relocate(cases[i].rel, out, &unknown),
				 cases[i].err);
		assert_memory_equal(out, zero, sizeof(zero));
		if (cases[i].err == -ENOTSUP)
			assert_int_equal(unknown, R_X86_64_GOTPCREL);
	}
}

static int setup(void **state)
{
	return mkdtemp(dir) ? symbolizer_demangle_start() : -1;
}

static int teardown(void **state)
{
	sh("rm -r %s", dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			sections_follow_each_other_and_init_comes_last),
		cmocka_unit_test(a_process_cannot_have_it_mapped),
		cmocka_unit_test(sections_that_have_no_place_are_left_out),
		cmocka_unit_test(lines_and_inlined_calls_of_all_sections),
		cmocka_unit_test(
			a_function_that_the_linker_dropped_is_not_over_others),
		cmocka_unit_test(
			an_unknown_relocation_is_named_and_symbols_remain),
		cmocka_unit_test(a_debug_file_has_the_places_of_its_module),
		cmocka_unit_test(each_relocation_has_its_value),
		cmocka_unit_test(a_bad_relocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
