// SPDX-License-Identifier: Apache-2.0
/*
 * What is read of an ELF file, against what readelf says of the same file:
 * files of this system, and files made here by cc for one property each.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/names/index.h"

static char dir[] = "/tmp/test_elf.XXXXXX";

#include "tests/unit/files.h"

/* --- a file as we see it -------------------------------------------------- */

struct seen {
	int fd;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct symbolizer_index *x;
};

static void see(struct seen *s, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : dir,
		 name[0] == '/' ? "" : "/", name);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(s->fd >= 0);
	assert_int_equal(fstat(s->fd, &st), 0);
	symbolizer_src_fd(&s->src, s->fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_elf_init(&s->e, &s->src), 0);
	assert_int_equal(symbolizer_elf_tables(&s->e), 0);
	assert_int_equal(symbolizer_index_new(&s->x, &s->e, NULL), 0);
}

static void unsee(struct seen *s)
{
	symbolizer_index_free(s->x);
	symbolizer_elf_fini(&s->e);
	close(s->fd);
}

/* The name without a version, "" if there is none, and the range. */
static const char *name_at(struct seen *s, uint64_t vaddr,
			   struct symbolizer_range *range)
{
	static char name[4096];
	char *at;

	if (!symbolizer_index_find(s->x, vaddr, range))
		return "";
	assert_true(symbolizer_index_name(s->x, &s->src, range, name,
					  sizeof(name)) >= 0);
	at = strchr(name, '@');
	if (at && strcmp(at, "@plt") != 0)
		*at = '\0';
	return name;
}

/* --- and as readelf sees it ----------------------------------------------- */

struct truth {
	uint64_t start, size;
	char name[256];
};

struct truths {
	struct truth *v;
	size_t n;
};

static int cmp_truth(const void *a, const void *b)
{
	const struct truth *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void truths_line(struct truths *t, const char *line)
{
	char size[32], type[16], index[16], name[2048];
	unsigned long long start;
	struct truth *p;

	if (sscanf(line, " %*u: %llx %31s %15s %*s %*s %15s %2047s", &start,
		   size, type, index, name) != 5 ||
	    (strcmp(type, "FUNC") != 0 && strcmp(type, "IFUNC") != 0) ||
	    strcmp(index, "UND") == 0 || strcmp(index, "ABS") == 0)
		return;
	if (!(t->n & (t->n - 1))) /* a power of two: full */
		t->v = realloc(t->v, MAX(2 * t->n, 1) * sizeof(*t->v));
	assert_non_null(t->v);
	p = &t->v[t->n++];
	p->start = start;
	p->size = strtoull(size, NULL, 0);
	name[strcspn(name, "@")] = '\0';
	snprintf(p->name, sizeof(p->name), "%.255s", name);
}

/* All functions, by address. */
static void truths_read(struct truths *t, const char *name, bool dynamic)
{
	char line[4096];
	FILE *f;

	memset(t, 0, sizeof(*t));
	snprintf(line, sizeof(line), "cd %s && readelf %s -W '%s'", dir,
		 dynamic ? "--dyn-syms" : "-s", name);
	f = popen(line, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		truths_line(t, line);
	assert_int_equal(pclose(f), 0);
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), cmp_truth);
}

static bool starts_here(const struct truths *t, size_t i, const char *name)
{
	for (size_t k = i; k < t->n && t->v[k].start == t->v[i].start; k++)
		if (strncmp(t->v[k].name, name, 255) == 0)
			return true;
	return false;
}

/* Each function's first address has one of the names readelf gives it. */
static size_t check_starts(const char *file, const char *truth, bool dynamic)
{
	struct symbolizer_range range;
	struct truths t;
	struct seen s;
	const char *name;

	see(&s, file);
	truths_read(&t, truth, dynamic);
	for (size_t i = 0; i < t.n; i++) {
		if (i && t.v[i].start == t.v[i - 1].start)
			continue;
		name = name_at(&s, t.v[i].start, &range);
		if (!starts_here(&t, i, name))
			fail_msg("%s: %llx is %s, not %s", file,
				 (unsigned long long)t.v[i].start, t.v[i].name,
				 name);
		assert_int_equal(range.start, t.v[i].start);
	}
	free(t.v);
	unsee(&s);
	return t.n;
}

static bool covered_by(const struct truths *t, uint64_t addr, const char *name)
{
	bool any = false;

	for (size_t i = 0; i < t->n && t->v[i].start <= addr; i++) {
		/* Of no size: it may reach to anywhere. */
		if (t->v[i].size && addr - t->v[i].start >= t->v[i].size)
			continue;
		any |= t->v[i].size != 0;
		if (strncmp(t->v[i].name, name, 255) == 0)
			return true;
	}
	/* No function of readelf's is there: then neither of ours. */
	return !any && (!*name || strchr(name, '@'));
}

/* So have the last address of each, and what lies behind it. */
static void check_ends(const char *file)
{
	struct symbolizer_range range;
	struct truths t;
	struct seen s;

	see(&s, file);
	truths_read(&t, file, false);
	for (size_t i = 0; i < t.n; i++) {
		for (uint64_t more = 0; t.v[i].size && more < 2; more++) {
			uint64_t addr = t.v[i].start + t.v[i].size - 1 + more;
			const char *name = name_at(&s, addr, &range);

			if (!covered_by(&t, addr, name))
				fail_msg("%s: %llx is not %s", file,
					 (unsigned long long)addr, name);
		}
	}
	free(t.v);
	unsee(&s);
}

static const char *self(void)
{
	static char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	return path;
}

static const char *libc(void)
{
	static char path[512];
	char line[1024];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/libc.so.6") || strstr(line, "/libc-2."))
			sscanf(line, "%*s %*s %*s %*s %*s %511s", path);
	fclose(f);
	assert_true(path[0] == '/');
	return path;
}

static void every_function_of_this_program_has_its_name(void **state)
{
	assert_true(check_starts(self(), self(), false) > 50);
	check_ends(self());
}

static void every_function_of_libc_has_its_name(void **state)
{
	assert_true(check_starts(libc(), libc(), false) > 1000);
	check_ends(libc());
}

static void every_function_of_a_large_cxx_library_has_its_name(void **state)
{
	char path[512] = "";
	FILE *f = popen("cc -print-file-name=libstdc++.so.6", "r");

	assert_non_null(f);
	assert_non_null(fgets(path, sizeof(path), f));
	assert_int_equal(pclose(f), 0);
	path[strcspn(path, "\n")] = '\0';
	assert_true(check_starts(path, path, false) > 3000);
}

/*
 * Random addresses of files of this system: of several functions of readelf's that
 * cover one, or that have no size, we have one.
 */
static void check_random(const char *file, size_t addresses)
{
	struct symbolizer_range range;
	const char *name;
	struct truths t;
	struct seen s;
	uint64_t addr;

	see(&s, file);
	/* With .symtab we use that; without, .dynsym. */
	truths_read(&t, file, !s.e.tabs[SYMBOLIZER_SYMTAB].count);
	for (size_t i = 0; i < addresses && t.n; i++) {
		const struct truth *f = &t.v[(size_t)random() % t.n];

		addr = f->start + (uint64_t)random() % MAX(f->size, 1);
		name = name_at(&s, addr, &range);
		if (*name && !strchr(name, '@') && !covered_by(&t, addr, name))
			fail_msg("%s: %llx is not %s", file,
				 (unsigned long long)addr, name);
		if (!*name && f->size)
			fail_msg("%s: %llx has no name, not %s", file,
				 (unsigned long long)addr, f->name);
	}
	free(t.v);
	unsee(&s);
}

static bool is_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr eh = { 0 };
	ssize_t n = fd < 0 ? -1 : read(fd, &eh, sizeof(eh));

	if (fd >= 0)
		close(fd);
	return n == sizeof(eh) && !memcmp(eh.e_ident, ELFMAG, SELFMAG) &&
	       eh.e_ident[EI_CLASS] == ELFCLASS64 &&
	       (eh.e_type == ET_EXEC || eh.e_type == ET_DYN);
}

/* NAMES_ALL=1: a thousand addresses in each of hundreds of files. */
static void random_addresses_have_the_names_of_readelf(void **state)
{
	bool all = getenv("NAMES_ALL") != NULL;
	char line[512];
	size_t files = 0;
	FILE *f;

	snprintf(line, sizeof(line),
		 "find -L /usr/lib/x86_64-linux-gnu /usr/bin /usr/sbin "
		 "-maxdepth 1 -type f -size -3000k 2>/dev/null | sort -u | "
		 "awk 'NR %% %d == 0'",
		 all ? 3 : 97);
	f = popen(line, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!is_program(line))
			continue;
		check_random(line, all ? 1000 : 50);
		files++;
	}
	assert_int_equal(pclose(f), 0);
	print_message("# %zu files\n", files);
	assert_true(files >= (all ? 200 : 3));
}

static void a_stripped_file_has_the_names_it_exports(void **state)
{
	sh("strip -o stripped %s", libc());
	assert_true(check_starts("stripped", "stripped", false) > 1000);
}

/* Only what is needed to run: the headers of the sections are zeroed. */
static void make_sectionless(const char *from, const char *to)
{
	static const char zeros[8];
	char path[256];
	int fd;

	sh("cp %s %s && chmod +w %s", from, to, to);
	snprintf(path, sizeof(path), "%s/%s", dir, to);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	/* e_shoff; e_shnum and e_shstrndx */
	assert_int_equal(pwrite(fd, zeros, 8, 0x28), 8);
	assert_int_equal(pwrite(fd, zeros, 4, 0x3c), 4);
	close(fd);
}

static void a_file_without_sections_has_the_names_it_exports(void **state)
{
	make_sectionless(libc(), "sectionless");
	assert_true(check_starts("sectionless", libc(), true) > 1000);
	write_file("exp.c", "int a(int x){return x;} int b(int x){return x+1;}"
			    "static int c(int x){return x+2;}"
			    "int d(int x){return c(x);}");
	for (int i = 0; i < 2; i++) {
		sh("cc -shared -fPIC -Wl,--hash-style=%s -o exp.so exp.c",
		   i ? "sysv" : "gnu");
		make_sectionless("exp.so", "exp-bare.so");
		assert_true(check_starts("exp-bare.so", "exp.so", true) >= 3);
	}
}

static void thirty_two_bit_files_are_read(void **state)
{
	write_file("m32.c", "int a(int x){return x;} int b(int x)"
			    "{return a(x)+1;} void _start(void){b(1);}");
	sh("cc -m32 -nostdlib -static -fno-pic -no-pie -fno-stack-protector "
	   "-o m32 m32.c 2>/dev/null");
	assert_int_equal(check_starts("m32", "m32", false), 3);
	check_ends("m32");
}

static void build_ids_are_those_readelf_prints(void **state)
{
	const char *files[] = { self(), libc(), "noid" };
	char line[1024], want[64], have[64] = "";
	uint8_t id[20];
	struct seen s;
	size_t len;
	FILE *f;

	write_file("noid.c", "int main(void){return 0;}");
	sh("cc -Wl,--build-id=none -o noid noid.c");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		want[0] = have[0] = '\0';
		snprintf(line, sizeof(line),
			 "cd %s && readelf -n %s | sed -n 's/.*Build ID: //p'",
			 dir, files[i]);
		f = popen(line, "r");
		assert_non_null(f);
		if (fgets(want, sizeof(want), f))
			want[strcspn(want, "\n")] = '\0';
		pclose(f);
		see(&s, files[i]);
		len = symbolizer_elf_build_id(&s.e, id, sizeof(id));
		for (size_t k = 0; k < len; k++)
			sprintf(have + 2 * k, "%02x", id[k]);
		assert_string_equal(have, want);
		unsee(&s);
	}
	assert_string_equal(want, ""); /* the last has none */
}

/* --- which of several names ----------------------------------------------- */

static void expect(const char *file, const char *symbol, uint64_t more,
		   const char *want)
{
	struct symbolizer_range range;
	char line[512];
	uint64_t addr;
	struct seen s;
	FILE *f;

	snprintf(line, sizeof(line), "cd %s && nm %s | grep ' %s$'", dir, file,
		 symbol);
	f = popen(line, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	pclose(f);
	addr = strtoull(line, NULL, 16) + more;
	see(&s, file);
	assert_string_equal(name_at(&s, addr, &range), want);
	if (*want)
		assert_true(addr - range.start < range.size);
	unsee(&s);
}

static const char names_asm[] =
	".text\n.type loc,@function\n.type wk,@function\n.weak wk\n"
	".type glob,@function\n.globl glob\n.type __glob,@function\n"
	".globl __glob\n.globl label\n"
	"loc:wk:__glob:glob:label:\nnop\nnop\nnop\nnop\n"
	".size loc,4\n.size wk,4\n.size glob,4\n.size __glob,4\n"
	".globl wlabel\n.type wfunc,@function\nwlabel:wfunc:nop\n.size wfunc,1\n"
	/* one within another, and a label within both */
	".type outer,@function\n.type inner,@function\n"
	"outer:nop\nnop\ninner:nop\ninlabel:nop\n.size inner,2\n"
	"nop\nnop\n.size outer,6\n"
	"nop\nnop\n" /* nobody's */
	/* a weak one is as good as a global one, a version is no part of it */
	".type __poll,@function\n.globl __poll\n.type poll,@function\n"
	".weak poll\n__poll:poll:nop\n.size __poll,1\n.size poll,1\n"
	".type sen,@function\n.globl sen\n.type sent,@function\n"
	".globl sent\nsent:sen:nop\n.size sent,1\n.size sen,1\n"
	".type ifun,@gnu_indirect_function\n.globl ifun\nifun:ret\n"
	".size ifun,1\n.type __ifun_avx,@function\n__ifun_avx:ret\n"
	".size __ifun_avx,1\n"
	/* of no size, to the next; and to the section's end */
	".type zero,@function\nzero:nop\nnop\n"
	".type next,@function\nnext:nop\n.size next,1\nnop\n"
	"bare:nop\nnop\n"
	".section .text2,\"ax\",@progbits\n.type two,@function\n"
	"nop\nnop\ntwo:nop\n.size two,1\n"
	".type rest,@function\nrest:nop\nnop\n"
	".section .text3,\"ax\",@progbits\nnop\nnop\n"
	".type three,@function\nthree:nop\n.size three,1\n"
	".data\n.globl datum\ndatum:.long 1\n.globl _start\n.text\n"
	".type _start,@function\n_start:nop\n.size _start,1\n";

static void of_several_symbols_the_rules_choose(void **state)
{
	write_file("names.s", names_asm);
	sh("cc -c -o names.o names.s && "
	   "objcopy --redefine-sym sen=send@@V1 names.o && "
	   "cc -nostdlib -static -o names names.o");
	expect("names", "loc", 0, "wk"); /* exported, typed, no underscore */
	expect("names", "loc", 3, "wk"); /* ... and the shortest */
	expect("names", "__poll", 0, "poll");
	expect("names", "sent", 0, "send");
	expect("names", "ifun", 0, "ifun");
	expect("names", "__ifun_avx", 0, "__ifun_avx");
	expect("names", "wlabel", 0, "wfunc"); /* typed before global */
	expect("names", "outer", 1, "outer");
	expect("names", "outer", 2, "inner");
	expect("names", "inlabel", 0, "inner"); /* no name of its own */
	expect("names", "outer", 4, "outer"); /* what is left of it */
	expect("names", "outer", 5, "outer");
	expect("names", "outer", 6, "");
	expect("names", "zero", 1, "zero");
	expect("names", "zero", 2, "next");
	expect("names", "next", 1, "");
	expect("names", "bare", 1, "bare"); /* an untyped one of its own */
	expect("names", "two", 0, "two");
	expect("names", "rest", 1, "rest");
	expect("names", "rest", 2, ""); /* the next section, as yet unnamed */
	expect("names", "datum", 0, "");
}

static void stubs_are_named_after_what_they_call(void **state)
{
	struct symbolizer_range range;
	char line[512], name[256];
	unsigned long long addr;
	struct seen s;
	int stubs = 0;
	FILE *f;

	write_file("plt.c", "#include <stdio.h>\n#include <stdlib.h>\n"
			    "int main(void){puts(getenv(\"A\"));"
			    "return atoi(\"1\");}");
	for (int i = 0; i < 3; i++) {
		static const char *const how[] = { "-Wl,-z,lazy", "-Wl,-z,now",
						   "-fcf-protection=full "
						   "-Wl,-z,ibtplt" };

		sh("cc -O0 %s -o plt plt.c", how[i]);
		see(&s, "plt");
		snprintf(line, sizeof(line),
			 "cd %s && objdump -d -j .plt -j .plt.sec -j .plt.got "
			 "plt 2>/dev/null",
			 dir);
		f = popen(line, "r");
		assert_non_null(f);
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "%llx <%255[^>]>:", &addr, name) !=
				    2 ||
			    strchr(name, '-') || !strstr(name, "@plt"))
				continue;
			if (addr < 16)
				continue;
			assert_string_equal(name_at(&s, addr, &range), name);
			stubs++;
		}
		pclose(f);
		unsee(&s);
	}
	assert_true(stubs >= 9);
}

/* Of functions that are chosen at run time, as many of libc's. */
static void stubs_of_chosen_functions_are_named(void **state)
{
	struct symbolizer_range range;
	unsigned long long addr;
	struct seen s;
	char line[512];
	FILE *f;

	write_file("ifunc.c",
		   "static int fast(int n){return n;}\n"
		   "static void *choose(void){return (void *)fast;}\n"
		   "int chosen(int n) __attribute__((ifunc(\"choose\")));\n"
		   "extern __typeof(chosen) own __attribute__((alias("
		   "\"chosen\"), visibility(\"hidden\")));\n"
		   "int call(int n){return own(n) + 1;}\n");
	sh("cc -O0 -shared -fPIC -o ifunc.so ifunc.c && strip ifunc.so");
	snprintf(line, sizeof(line),
		 "cd %s && objdump -d ifunc.so | sed -n "
		 "'s/^\\([0-9a-f]*\\) <\\*ABS\\*+0x[0-9a-f]*@plt>:/\\1/p'",
		 dir);
	f = popen(line, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llx", &addr), 1);
	pclose(f);
	see(&s, "ifunc.so");
	assert_string_equal(name_at(&s, addr, &range), "chosen@plt");
	unsee(&s);
}

/* --- damage --------------------------------------------------------------- */

static uint8_t *slurp(const char *name, size_t *len)
{
	uint8_t *data;
	char path[256];
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	*len = (size_t)st.st_size;
	data = malloc(*len);
	assert_int_equal(fread(data, 1, *len, f), *len);
	fclose(f);
	return data;
}

/* 0, or the error; whether it was called damaged. */
static int digest(const uint8_t *data, size_t len, bool *damaged)
{
	/* Of the exact size, for the sanitizer's sake. */
	uint8_t *copy = memcpy(malloc(len + 1), data, len);
	struct symbolizer_index *x = NULL;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	uint8_t id[20];
	int err;

	symbolizer_src_mem(&src, copy, len);
	err = symbolizer_elf_init(&e, &src);
	if (!err) {
		symbolizer_elf_build_id(&e, id, sizeof(id));
		err = symbolizer_elf_tables(&e);
		if (!err)
			err = symbolizer_index_new(&x, &e, NULL);
		symbolizer_index_free(x);
		symbolizer_elf_fini(&e);
	}
	*damaged = e.damaged;
	free(copy);
	return err;
}

static void a_file_cut_anywhere_does_no_harm(void **state)
{
	size_t len, sections;
	uint8_t *data;
	bool damaged;

	write_file("small.c",
		   "int a(int x){return x;} int b(int x){return 1;}");
	sh("cc -shared -fPIC -nostdlib -Wl,-z,max-page-size=512 -o small "
	   "small.c");
	data = slurp("small", &len);
	assert_int_equal(digest(data, len, &damaged), 0);
	assert_false(damaged);
	memcpy(&sections, data + 0x28, 8);
	for (size_t cut = 0; cut < len; cut++) {
		int err = digest(data, cut, &damaged);

		if (cut < 64)
			assert_int_equal(err, -ENOEXEC);
		if (cut >= 16 && cut < sections + 64)
			assert_true(damaged);
	}
	free(data);
}

static void any_byte_may_be_anything(void **state)
{
	size_t len;
	uint8_t *data = slurp("small", &len), was;
	bool damaged;

	for (size_t i = 0; i < len; i++) {
		was = data[i];
		data[i] = 0xff;
		digest(data, len, &damaged);
		data[i] = was ^ 0x80;
		digest(data, len, &damaged);
		data[i] = was;
	}
	free(data);
}

static void what_is_not_elf_is_refused(void **state)
{
	uint8_t text[] = "#!/bin/sh\necho not an executable of this kind, no\n";
	uint8_t big[64] = { 0x7f, 'E', 'L', 'F', 2, 2, 1 };
	bool damaged;

	assert_int_equal(digest(text, sizeof(text), &damaged), -ENOEXEC);
	assert_false(damaged);
	big[16] = 3;
	assert_int_equal(digest(big, sizeof(big), &damaged), -ENOEXEC);
	assert_false(damaged); /* big endian: none of ours, but whole */
	big[5] = 1;
	assert_int_equal(digest(big, sizeof(big), &damaged), -ENOEXEC);
	assert_true(damaged); /* an ELF header without segments */
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char line[64];

	snprintf(line, sizeof(line), "rm -rf %s", dir);
	return system(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_of_this_program_has_its_name),
		cmocka_unit_test(every_function_of_libc_has_its_name),
		cmocka_unit_test(
			every_function_of_a_large_cxx_library_has_its_name),
		cmocka_unit_test(random_addresses_have_the_names_of_readelf),
		cmocka_unit_test(a_stripped_file_has_the_names_it_exports),
		cmocka_unit_test(
			a_file_without_sections_has_the_names_it_exports),
		cmocka_unit_test(thirty_two_bit_files_are_read),
		cmocka_unit_test(build_ids_are_those_readelf_prints),
		cmocka_unit_test(of_several_symbols_the_rules_choose),
		cmocka_unit_test(stubs_are_named_after_what_they_call),
		cmocka_unit_test(stubs_of_chosen_functions_are_named),
		cmocka_unit_test(a_file_cut_anywhere_does_no_harm),
		cmocka_unit_test(any_byte_may_be_anything),
		cmocka_unit_test(what_is_not_elf_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
