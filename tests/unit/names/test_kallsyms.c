// SPDX-License-Identifier: Apache-2.0
/*
 * kallsyms: the packing and its rules on small texts, then every function of
 * the running kernel against a reading that packs nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/kallsyms.h"

static struct kallsyms *parse(const char *text)
{
	struct kallsyms *k = NULL;

	assert_int_equal(kallsyms_parse(&k, text, strlen(text)), 0);
	return k;
}

/* "NAME MODULE START SIZE" of an address, or "-". */
static const char *at(const struct kallsyms *k, uint64_t addr)
{
	static char out[1024];
	struct kallsyms_symbol s;

	if (!kallsyms_find(k, addr, &s))
		return "-";
	snprintf(out, sizeof(out), "%s %s %llx %llx", s.name, s.module,
		 (unsigned long long)s.start, (unsigned long long)s.size);
	return out;
}

static void a_function_reaches_to_the_next(void **state)
{
	struct kallsyms *k = parse("ffffffff81000000 T first\n"
				   "ffffffff81000040 t second\n"
				   "ffffffff81000050 D not_a_function\n"
				   "ffffffff81000080 W third\n"
				   "ffffffff81000100 T _etext\n"
				   "ffffffff83000000 T _sinittext\n");

	assert_string_equal(at(k, 0xffffffff80ffffff), "-");
	assert_string_equal(at(k, 0xffffffff81000000),
			    "first vmlinux ffffffff81000000 40");
	assert_string_equal(at(k, 0xffffffff8100003f),
			    "first vmlinux ffffffff81000000 40");
	assert_string_equal(at(k, 0xffffffff81000060),
			    "second vmlinux ffffffff81000040 40");
	assert_string_equal(at(k, 0xffffffff810000ff),
			    "third vmlinux ffffffff81000080 80");
	/* Behind the text there is data up to the text of the start. */
	assert_string_equal(at(k, 0xffffffff81000100), "-");
	assert_string_equal(at(k, 0xffffffff82000000), "-");
	assert_true(kallsyms_is_core(k, 0xffffffff82000000));
	assert_false(kallsyms_is_core(k, 0xffffffff83000000));
	kallsyms_free(k);
}

static void modules_and_programs_are_told_apart(void **state)
{
	struct kallsyms *k = parse("ffffffffc0000000 t m_one\t[mod_a]\n"
				   "ffffffffc0000100 t m_two\t[mod_a]\n"
				   "ffffffffc0100000 t b_one\t[mod_b]\n"
				   "ffffffffc0200000 t bpf_prog_1_x\t[bpf]\n"
				   "ffffffffc0200040 t bpf_prog_2_y\t[bpf]\n"
				   "ffffffffc0900000 t bpf_prog_3_z\t[bpf]\n"
				   "ffffffff81000000 T core\n");

	assert_string_equal(at(k, 0xffffffffc0000001),
			    "m_one mod_a ffffffffc0000000 100");
	/* The last of a module does not extend to the next symbol. */
	assert_string_equal(at(k, 0xffffffffc000ffff),
			    "m_two mod_a ffffffffc0000100 10000");
	assert_string_equal(at(k, 0xffffffffc0010100), "-");
	assert_string_equal(at(k, 0xffffffffc0100000),
			    "b_one mod_b ffffffffc0100000 10000");
	assert_string_equal(at(k, 0xffffffffc020003f),
			    "bpf_prog_1_x bpf ffffffffc0200000 40");
	assert_string_equal(at(k, 0xffffffffc0200041),
			    "bpf_prog_2_y bpf ffffffffc0200040 10000");
	assert_string_equal(at(k, 0xffffffff81000001),
			    "core vmlinux ffffffff81000000 10000");
	assert_string_equal(at(k, UINT64_MAX), "-");
	kallsyms_free(k);
}

static void of_aliases_the_rules_choose(void **state)
{
	struct kallsyms *k = parse("ffffffff81000000 t a_local\n"
				   "ffffffff81000000 W weak\n"
				   "ffffffff81000000 T __global\n"
				   "ffffffff81000000 T global_longer\n"
				   "ffffffff81000000 T global\n"
				   "ffffffff81000010 T __two\n"
				   "ffffffff81000010 W two\n"
				   "ffffffff81000020 T end\n");

	assert_string_equal(at(k, 0xffffffff81000000),
			    "weak vmlinux ffffffff81000000 10");
	assert_string_equal(at(k, 0xffffffff81000010),
			    "two vmlinux ffffffff81000010 10");
	kallsyms_free(k);
}

/* Prefixes are packed without a name, also across blocks. */
static void padding_has_the_name_of_what_it_pads(void **state)
{
	struct strbuf text = { 0 };
	char want[128];
	struct kallsyms *k;

	for (unsigned int i = 0; i < 50; i++)
		strbuf_printf(&text,
			      "ffffffff8100%03x0 T __pfx_f%u\n"
			      "ffffffff8100%03x0 T f%u\n",
			      4 * i, i, 4 * i + 1, i);
	strbuf_puts(&text, "ffffffff81010000 T __pfx___pfx_g\n"
			   "ffffffff81010010 T __pfx_g\n"
			   "ffffffff81010020 T g\n"
			   "ffffffff81010030 T __pfx_lonely\n"
			   "ffffffff81010040 T other\n");
	k = parse(text.data);
	for (unsigned int i = 0; i < 50; i++) {
		uint64_t a = 0xffffffff81000000 + 64 * i;

		snprintf(want, sizeof(want), "__pfx_f%u vmlinux %llx 10", i,
			 (unsigned long long)a);
		assert_string_equal(at(k, a + 15), want);
		snprintf(want, sizeof(want), "f%u vmlinux %llx", i,
			 (unsigned long long)a + 16);
		assert_memory_equal(at(k, a + 16), want, strlen(want));
	}
	assert_string_equal(at(k, 0xffffffff81010000),
			    "__pfx___pfx_g vmlinux ffffffff81010000 10");
	assert_string_equal(at(k, 0xffffffff81010010),
			    "__pfx_g vmlinux ffffffff81010010 10");
	assert_string_equal(at(k, 0xffffffff81010020),
			    "g vmlinux ffffffff81010020 10");
	assert_string_equal(at(k, 0xffffffff81010030),
			    "__pfx_lonely vmlinux ffffffff81010030 10");
	kallsyms_free(k);
	strbuf_fini(&text);
}

static void hidden_addresses_are_no_symbols(void **state)
{
	static const char zeros[] = "0000000000000000 T schedule\n"
				    "0000000000000000 t other\n";
	static const char junk[] = "no\n\nffffffff81000000\n"
				   "ffffffff81000000 T\nffffffff81000000 T \n"
				   "zzzz T x\nffffffff81000000 D data\n";
	struct kallsyms *k = NULL;

	assert_int_equal(kallsyms_parse(&k, zeros, strlen(zeros)), -EPERM);
	assert_int_equal(kallsyms_parse(&k, junk, strlen(junk)), -ENODATA);
	assert_int_equal(kallsyms_parse(&k, "", 0), -ENODATA);
	assert_int_equal(kallsyms_read(&k, "/nonexistent"), -ENOENT);
	assert_null(k);
	/* A last line without its end counts. */
	assert_int_equal(kallsyms_parse(&k, "ffffffff81000000 T x", 20), 0);
	kallsyms_free(k);
}

static void zeroed_files_and_long_lines_are_read_over(void **state)
{
	char path[] = "/tmp/test_kallsyms.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct kallsyms *k = NULL;

	assert_non_null(f);
	for (int i = 0; i < 200000; i++)
		fputc('x', f);
	fputs("\nffffffff81000000 T a\nffffffff81000010 T b\n", f);
	fclose(f);
	assert_int_equal(kallsyms_read(&k, path), 0);
	assert_string_equal(at(k, 0xffffffff81000001),
			    "a vmlinux ffffffff81000000 10");
	kallsyms_free(k);
	unlink(path);
}

/* --- the running kernel --------------------------------------------------- */

struct line {
	uint64_t addr;
	char *name, *module;
};

static int cmp_line(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct line *read_lines(const char *path, size_t *np)
{
	FILE *f = fopen(path, "r");
	char name[1024], module[256], type, line[2048];
	struct line *v = NULL;
	unsigned long long addr;
	int n;

	assert_non_null(f);
	for (*np = 0; fgets(line, sizeof(line), f);) {
		n = sscanf(line, "%llx %c %1023s [%255[^]]]", &addr, &type,
			   name, module);
		if (n < 3 || !strchr("tTwW", type) || addr == 0)
			continue;
		if (!(*np & (*np - 1))) /* a power of two: full */
			v = realloc(v, MAX(2 * *np, 1) * sizeof(*v));
		assert_non_null(v);
		v[*np].addr = addr;
		v[*np].name = strdup(name);
		v[(*np)++].module = strdup(n == 4 ? module : "vmlinux");
	}
	fclose(f);
	if (*np)
		qsort(v, *np, sizeof(*v), cmp_line);
	return v;
}

static void check_line(const struct kallsyms *k, const struct line *v, size_t i,
		       size_t n)
{
	struct kallsyms_symbol s;
	bool known = false, end = false;

	for (size_t j = i; j < n && v[j].addr == v[i].addr; j++)
		end |= !strcmp(v[j].name, "_etext") ||
		       !strcmp(v[j].name, "_einittext");
	if (!kallsyms_find(k, v[i].addr, &s)) {
		assert_true(end);
		return;
	}
	for (size_t j = i; j < n && v[j].addr == v[i].addr; j++)
		known |= !strcmp(v[j].name, s.name) &&
			 !strcmp(v[j].module, s.module);
	if (!known || s.start != v[i].addr)
		fail_msg("%llx is %s [%s], not %s",
			 (unsigned long long)v[i].addr, v[i].name, v[i].module,
			 s.name);
}

static void every_function_of_this_kernel_has_its_name(void **state)
{
	/* One reading for both: BPF programs come and go. */
	char path[] = "/tmp/test_kallsyms.XXXXXX", line[128];
	struct kallsyms *k;
	struct line *v;
	size_t n;

	close(mkstemp(path));
	snprintf(line, sizeof(line), "cat /proc/kallsyms > %s", path);
	assert_int_equal(system(line), 0);
	v = read_lines(path, &n);
	if (n == 0) {
		unlink(path);
		free(v);
		puts("# this place forbids the kernel's addresses");
		skip();
	}
	assert_int_equal(kallsyms_read(&k, path), 0);
	unlink(path);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || v[i].addr != v[i - 1].addr)
			check_line(k, v, i, n);
	print_message("# %zu functions in %zu bytes\n", n, kallsyms_bytes(k));
	assert_true(kallsyms_bytes(k) < n * 27); /* 4 MB for 150,000 */
	kallsyms_free(k);
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].module);
	}
	free(v);
}

/* --- modules that are gone -------------------------------------------------------- */

#define CORE "ffffffff81000000 T first\nffffffff81000040 t second\n"
#define A                                 \
	"ffffffffc0000000 t a_one\t[a]\n" \
	"ffffffffc0000010 t a_two\t[a]\n"
#define BPF "ffffffffc0009000 t bpf_prog_1\t[bpf]\n"

static struct kallsyms_past past;

/* "NAME MODULE" of an address at a time, if it is gone since; or "-". */
static const char *past_at(uint64_t addr, uint64_t time)
{
	static char out[1024];
	struct kallsyms_symbol s;

	if (!kallsyms_past_find(&past, addr, time, &s))
		return "-";
	snprintf(out, sizeof(out), "%s %s", s.name, s.module);
	return out;
}

/* One reading after the other. */
static void readings(const char *was, const char *now, uint64_t time)
{
	struct kallsyms *a = parse(was), *b = parse(now);

	assert_int_equal(kallsyms_past_add(&past, a, b, time), 0);
	kallsyms_free(a);
	kallsyms_free(b);
}

static void a_module_that_is_gone(void **state)
{
	readings(CORE A BPF, CORE A BPF, 50);
	readings(CORE A BPF, CORE A, 60);
	assert_int_equal(past.n, 0);
	readings(CORE A BPF, CORE "ffffffffc0000000 t b_one\t[b]\n", 100);
	assert_string_equal(past_at(0xffffffffc0000004, 99), "a_one a");
	assert_string_equal(past_at(0xffffffffc0000010, 99), "a_two a");
	assert_string_equal(past_at(0xffffffffc0000004, 100), "-");
	assert_string_equal(past_at(0xffffffffc0009000, 99), "-");
	assert_string_equal(past_at(0xffffffff81000000, 99), "-");
	/* Another one there goes, too. */
	readings(CORE "ffffffffc0000000 t b_one\t[b]\n", CORE, 200);
	assert_string_equal(past_at(0xffffffffc0000004, 99), "a_one a");
	assert_string_equal(past_at(0xffffffffc0000004, 199), "b_one b");
	assert_string_equal(past_at(0xffffffffc0000004, 200), "-");
	/* With padding before its functions. */
	readings(CORE "ffffffffc0200000 t __pfx_p\t[p]\n"
		      "ffffffffc0200010 t p\t[p]\n",
		 CORE, 220);
	assert_string_equal(past_at(0xffffffffc0200010, 210), "p p");
	/* It came back, elsewhere. */
	readings(CORE A, CORE "ffffffffc0100000 t a_one\t[a]\n", 300);
	assert_string_equal(past_at(0xffffffffc0000010, 250), "a_two a");
	kallsyms_past_fini(&past);
	assert_int_equal(past.n + past.bytes, 0);
}

static void modules_that_are_gone_are_bounded(void **state)
{
	static char text[1 << 20];
	size_t len = 0;

	for (uint64_t i = 0; i < 2 * KALLSYMS_PAST; i++)
		readings(CORE A, CORE, 100 + i);
	assert_int_equal(past.n, KALLSYMS_PAST);
	assert_string_equal(past_at(0xffffffffc0000000, 100), "a_one a");
	assert_int_equal(past.v[0].until, 100 + KALLSYMS_PAST);
	/* Large ones take their room. */
	for (uint64_t i = 0; len < sizeof(text) - 64; i++)
		len += (size_t)sprintf(text + len,
				       "%llx t a_function_%llu\t[a]\n",
				       0xffffffffc0000000ULL + 16 * i,
				       (unsigned long long)i);
	for (uint64_t i = 0; i < 8; i++)
		readings(text, CORE, 1000 + i);
	assert_true(past.n < KALLSYMS_PAST);
	assert_true(past.bytes <= KALLSYMS_PAST_BYTES);
	kallsyms_past_fini(&past);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_reaches_to_the_next),
		cmocka_unit_test(modules_and_programs_are_told_apart),
		cmocka_unit_test(of_aliases_the_rules_choose),
		cmocka_unit_test(padding_has_the_name_of_what_it_pads),
		cmocka_unit_test(hidden_addresses_are_no_symbols),
		cmocka_unit_test(zeroed_files_and_long_lines_are_read_over),
		cmocka_unit_test(every_function_of_this_kernel_has_its_name),
		cmocka_unit_test(a_module_that_is_gone),
		cmocka_unit_test(modules_that_are_gone_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
