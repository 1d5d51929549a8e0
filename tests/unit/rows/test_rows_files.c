// SPDX-License-Identifier: Apache-2.0
/*
 * Where a file keeps its call frame information, what of a broken one is used,
 * and how a table is asked for.
 */
#include <link.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/rows/test_rows.h"

/* --- where it is ------------------------------------------------------------- */

static struct symbolizer_rows *rows_of_file(const struct section *s, size_t n,
					    bool hdr)
{
	struct symbolizer_rows *rows;
	struct bytes f = { 0 };

	make_file(&f, s, n, hdr);
	assert_int_equal(read_file(&f, &rows), 0);
	free(f.b);
	return rows;
}

static void put_debug(struct bytes *o)
{
	size_t cie = put_cie(o, false, "", NULL, 0, C(USUAL));

	put_debug_fde(o, cie, 0x100, 0x10, C("\x0e\x10"));
	put_debug_fde(o, cie, 0x200, 0x10, C("\x0e\x20"));
}

static void debug_frame_fills_the_gaps(void **state)
{
	struct bytes eh = { 0 }, debug = { 0 };
	struct section s[] = { { ".eh_frame", EH, SHF_ALLOC, &eh },
			       { ".debug_frame", 0, 0, &debug } };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, 0x1f0, 0x14, C("\x0e\x30"));
	put_debug(&debug);
	rows = rows_of_file(s, 2, false);
	assert_string_equal(rule_at(rows, 0x100), "r7+16");
	assert_string_equal(rule_at(rows, 0x200), "r7+48");
	/* Of a function that .eh_frame has a part of, nothing else. */
	assert_string_equal(rule_at(rows, 0x20f), "gap");
	symbolizer_rows_free(rows);
	free(eh.b);
	free(debug.b);
}

static void only_debug_frame_will_do(void **state)
{
	struct bytes debug = { 0 };
	struct section s = { ".debug_frame", 0, 0, &debug };
	struct symbolizer_rows *rows;

	put_debug(&debug);
	rows = rows_of_file(&s, 1, false);
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0x20f), "r7+32");
	symbolizer_rows_free(rows);
	free(debug.b);
}

static void entries_may_be_of_64_bits(void **state)
{
	struct bytes debug = { 0 };
	struct section s = { ".debug_frame", 0, 0, &debug };
	struct symbolizer_rows *rows;
	uint64_t len;

	put4(&debug, UINT32_MAX);
	put8(&debug, 0);
	put8(&debug, UINT64_MAX);
	/* Version 4: address and segment size; alignments; rip. */
	put(&debug, C("\x04\0\x08\0\x01\x78\x10" USUAL));
	len = debug.n - 12;
	memcpy(debug.b + 4, &len, 8);
	put4(&debug, UINT32_MAX);
	put8(&debug, 8 + 8 + 8 + 2);
	put8(&debug, 0);
	put8(&debug, TEXT + 0x300);
	put8(&debug, 0x10);
	put(&debug, C("\x0e\x40"));
	rows = rows_of_file(&s, 1, false);
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0x300), "r7+64");
	symbolizer_rows_free(rows);
	free(debug.b);
}

static void pack(struct bytes *out, const struct bytes *in, uint32_t type)
{
	uint8_t buf[4096];
	uLongf len = sizeof(buf);

	put4(out, type);
	put4(out, 0);
	put8(out, in->n);
	put8(out, 1);
	if (type == 1)
		assert_int_equal(compress(buf, &len, in->b, in->n), Z_OK);
	else
		len = ZSTD_compress(buf, sizeof(buf), in->b, in->n, 3);
	put(out, buf, len);
}

static void sections_may_be_compressed(void **state)
{
	for (uint32_t type = 1; type <= 3; type++) {
		struct bytes debug = { 0 }, packed = { 0 };
		struct section s = { ".debug_frame", 0, SHF_COMPRESSED,
				     &packed };
		struct symbolizer_rows *rows;

		put_debug(&debug);
		pack(&packed, &debug, type);
		rows = rows_of_file(&s, 1, false);
		if (type == 3) { /* there is no such */
			assert_non_null(info_of(rows).damage);
			assert_int_equal(info_of(rows).rows, 0);
		} else {
			assert_null(info_of(rows).damage);
			assert_string_equal(rule_at(rows, 0x200), "r7+32");
		}
		symbolizer_rows_free(rows);
		free(debug.b);
		free(packed.b);
	}
}

static void compressed_contents_are_not_trusted(void **state)
{
	for (uint32_t type = 1; type <= 2; type++) {
		for (int how = 0; how < 4; how++) {
			struct bytes debug = { 0 }, packed = { 0 };
			struct section s = { ".debug_frame", 0, SHF_COMPRESSED,
					     &packed };
			struct symbolizer_rows *rows;

			put_debug(&debug);
			pack(&packed, &debug, type);
			if (how == 0)
				packed.n -= 5; /* cut off */
			else if (how == 1)
				packed.b[8]++; /* not as long as it says */
			else if (how == 2)
				packed.b[8]--;
			else
				packed.b[13] = 0xff; /* beyond all sense */
			rows = rows_of_file(&s, 1, false);
			assert_non_null(info_of(rows).damage);
			assert_string_equal(info_of(rows).section,
					    ".debug_frame");
			assert_int_equal(info_of(rows).rows, 0);
			symbolizer_rows_free(rows);
			free(debug.b);
			free(packed.b);
		}
	}
}

static void section_headers_may_be_gone(void **state)
{
	struct bytes eh = { 0 }, hdr = { 0 };
	struct section s[] = { { ".eh_frame", EH, SHF_ALLOC, &eh },
			       { ".eh_frame_hdr", 0, SHF_ALLOC, &hdr } };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, 0x100, 0x10, C(""));
	put4(&eh, 0); /* an end in the middle */
	put_fde(&eh, cie, 0x200, 0x10, C(""));
	put4(&eh, 0x7fffffff); /* something else */
	put(&hdr, C("\x01\x1b\x03\x3b"));
	put4(&hdr, (uint32_t) - (eh.n + 4));
	put4(&hdr, 2); /* functions */
	rows = rows_of_file(s, 2, true);
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0x100), "r7+8");
	assert_string_equal(rule_at(rows, 0x200), "r7+8");
	symbolizer_rows_free(rows);

	hdr.b[8] = 3; /* one more than there are */
	rows = rows_of_file(s, 2, true);
	assert_non_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0x200), "r7+8");
	symbolizer_rows_free(rows);

	hdr.b[7] = 0x7f; /* leads nowhere */
	rows = rows_of_file(s, 2, true);
	assert_string_equal(info_of(rows).section, ".eh_frame_hdr");
	assert_int_equal(info_of(rows).rows, 0);
	symbolizer_rows_free(rows);
	free(eh.b);
	free(hdr.b);
}

static void files_without_are_told_apart(void **state)
{
	struct bytes none = { 0 }, f = { 0 };
	struct section s = { ".data", EH, SHF_ALLOC, &none };
	struct symbolizer_rows *rows;

	put4(&none, 0);
	make_file(&f, &s, 1, false);
	assert_int_equal(read_file(&f, &rows), -ENODATA);
	f.b[offsetof(Elf64_Ehdr, e_machine)] = EM_AARCH64;
	assert_int_equal(read_file(&f, &rows), -ENOTSUP);
	f.b[0] = 0;
	assert_int_equal(read_file(&f, &rows), -ENOEXEC);
	free(none.b);
	free(f.b);
}

/* --- damage ------------------------------------------------------------------- */

/* Of three functions the second is made by 'breaks'; what the table says. */
static struct symbolizer_rows *
broken(void (*breaks)(struct bytes *eh, size_t cie, size_t at), size_t *at)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);

	put_fde(&eh, cie, 0x100, 0x10, C(""));
	*at = put_fde(&eh, cie, 0x110, 0x10,
		      C("\x44\x0e\x10\x44\x0e\x18\x44\x0e\x20"));
	put_fde(&eh, cie, 0x120, 0x10, C(""));
	breaks(&eh, cie, *at);
	return rows_of(&eh);
}

static void instruction(struct bytes *eh, size_t cie, size_t at)
{
	eh->b[at + 17 + 3] = 0x3f; /* there is none such */
}

static void augmentation(struct bytes *eh, size_t cie, size_t at)
{
	eh->b[at + 16] = 0x7f; /* longer than the entry */
}

static void common_entry(struct bytes *eh, size_t cie, size_t at)
{
	eh->b[at + 4] -= 4; /* inside of it */
}

static void before_all(struct bytes *eh, size_t cie, size_t at)
{
	eh->b[at + 6] = 1;
}

static void too_short(struct bytes *eh, size_t cie, size_t at)
{
	size_t end = at + 4 + eh->b[at];

	/* Cut in two: the first has no room for its addresses. */
	eh->b[at] = 6;
	eh->b[at + 10] = (uint8_t)(end - at - 14);
	memset(eh->b + at + 11, 0, 3);
	memset(eh->b + at + 14, 0, 4); /* the other is a common entry */
}

static void no_mark(struct bytes *eh, size_t cie, size_t at)
{
	size_t end = at + 4 + eh->b[at];

	/* Likewise: the first has no room for saying what it is. */
	eh->b[at] = 2;
	eh->b[at + 6] = (uint8_t)(end - at - 10);
	memset(eh->b + at + 7, 0, 7);
}

static void beyond(struct bytes *eh, size_t cie, size_t at)
{
	eh->b[at + 2] = 0x40;
}

static void expect_broken(void (*breaks)(struct bytes *, size_t, size_t),
			  bool at_cie, const char *second, const char *third)
{
	struct symbolizer_rows_info info;
	struct symbolizer_rows *rows;
	size_t at;

	rows = broken(breaks, &at);
	info = info_of(rows);
	assert_non_null(info.damage);
	assert_string_equal(info.section, ".eh_frame");
	if (!at_cie) {
		assert_int_equal(info.section_offset, at);
		/* As make_file() lays it out. */
		assert_int_equal(info.file_offset,
				 at + sizeof(Elf64_Ehdr) +
					 3 * sizeof(Elf64_Phdr));
	}
	assert_string_equal(rule_at(rows, 0x100), "r7+8");
	assert_string_equal(rule_at(rows, 0x10f), "r7+8");
	assert_string_equal(rule_at(rows, 0x110), second);
	assert_string_equal(rule_at(rows, 0x114), "gap");
	assert_string_equal(rule_at(rows, 0x120), third);
	symbolizer_rows_free(rows);
}

static void what_is_whole_of_a_broken_file_is_used(void **state)
{
	/* Up to the damage, of the function that has it. */
	expect_broken(instruction, false, "r7+8", "r7+8");
	/* Nothing of it, but the others. */
	expect_broken(augmentation, false, "gap", "r7+8");
	expect_broken(common_entry, true, "gap", "r7+8");
	expect_broken(before_all, false, "gap", "r7+8");
	expect_broken(too_short, false, "gap", "r7+8");
	expect_broken(no_mark, false, "gap", "gap");
	/* Nobody knows where the next begins. */
	expect_broken(beyond, false, "gap", "gap");
}

static void expect_damage(const char *code, size_t len)
{
	struct bytes eh = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, 0, 0x10, code, len);
	rows = rows_of(&eh);
	assert_non_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, 0), "gap");
	symbolizer_rows_free(rows);
}

static void programs_that_make_no_sense_are_damage(void **state)
{
	char deep[33], *p = memset(deep, 0x0a, sizeof(deep));

	expect_damage(C("\x0e")); /* cut off */
	expect_damage(C("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	expect_damage(C("\x0e\xff\xff\xff\xff\x7f")); /* beyond 31 bits */
	expect_damage(C("\x83\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
	expect_damage(C("\x0d\x11")); /* by a vector register */
	expect_damage(C("\x0b")); /* nothing was remembered */
	expect_damage(p, sizeof(deep)); /* too much was */
	expect_damage(C("\x0f\x00")); /* an empty expression */
	expect_damage(C("\x0f\x03\x76\x78")); /* half of one */
	expect_damage(C("\x01\x00\x00\xe1\xff")); /* backwards */
	expect_damage(C("\x2d")); /* of SPARC */
}

static void common_entries_that_make_no_sense_are_damage(void **state)
{
	static const struct {
		const char *aug, *data;
		size_t len;
	} entries[] = {
		{ "zR", C("\x9b") }, /* indirect */
		{ "zR", C("\x3b") }, /* relative to some data */
		{ "zR", C("\x50") }, /* aligned */
		{ "zR", C("") },     { "zX", C("\x1b") },
		{ "R", C("") },	     { "zPR", C("\x07\x1b") },
	};

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		struct bytes eh = { 0 };
		struct symbolizer_rows *rows;
		size_t cie;

		cie = put_cie(&eh, true, entries[i].aug, entries[i].data,
			      entries[i].len, C(USUAL));
		put_fde(&eh, cie, 0, 0x10, C(""));
		cie = usual_cie(&eh);
		put_fde(&eh, cie, 0x10, 0x10, C(""));
		rows = rows_of(&eh);
		assert_non_null(info_of(rows).damage);
		assert_string_equal(rule_at(rows, 0), "gap");
		assert_string_equal(rule_at(rows, 0x10), "r7+8");
		symbolizer_rows_free(rows);
	}
}

/* Of a place in a function nobody says where its frame is. */
static void no_rule_for_the_frame_is_damage(void **state)
{
	struct bytes eh = { 0 };
	size_t cie = put_cie(&eh, true, "zR", C("\x1b"), C(""));
	struct symbolizer_rows *rows;

	put_fde(&eh, cie, 0, 0x10, C("\x44\x0c\x07\x08"));
	put_fde(&eh, cie, 0x10, 0x10, C("\x0c\x07\x08"));
	put_fde(&eh, cie, 0x20, 0x10, C("\x0e\x08")); /* half of it */
	rows = rows_of(&eh);
	assert_non_null(info_of(rows).damage);
	assert_int_equal(info_of(rows).rows, 2);
	assert_string_equal(rule_at(rows, 0), "gap");
	assert_string_equal(rule_at(rows, 0x10), "r7+8 16=none");
	assert_string_equal(rule_at(rows, 0x20), "gap");
	symbolizer_rows_free(rows);
}

/* 65,535 rules have a number; a file with more gets no wrong ones. */
static void more_rules_than_numbers(void **state)
{
	struct bytes eh = { 0 }, code = { 0 };
	size_t cie = usual_cie(&eh);
	struct symbolizer_rows *rows;
	uint32_t i, n = 0;

	for (i = 0; i < 70000; i++) {
		put1(&code, 0x41);
		put1(&code, 0x0e);
		put1(&code, (uint8_t)(0x80 | (i & 0x7f)));
		put1(&code, (uint8_t)(0x80 | (i >> 7 & 0x7f)));
		put1(&code, (uint8_t)(i >> 14));
	}
	put_fde(&eh, cie, 0, 0x20000, code.b, code.n);
	put_fde(&eh, cie, 0x20000, 0x10, C("\x0e\x05"));
	put_fde(&eh, cie, 0x20010, 0x10, C("\x0c\x03\x05"));
	rows = rows_of(&eh);
	assert_non_null(info_of(rows).damage);
	assert_int_equal(info_of(rows).rules, 65535);
	for (i = 0; i < 0x20000; i++)
		n += symbolizer_rows_find(rows, TEXT + i) != 0;
	/* One of them twice: the first of the function is its ninth, too. */
	assert_int_equal(n, 65536);
	assert_string_equal(rule_at(rows, 65535), "r7+65534");
	assert_string_equal(rule_at(rows, 65536), "gap");
	assert_string_equal(rule_at(rows, 0x20000), "r7+5"); /* known */
	assert_string_equal(rule_at(rows, 0x20010), "gap");
	symbolizer_rows_free(rows);
	free(code.b);
}

/* --- asking for it -------------------------------------------------------------- */

struct asked {
	uv_loop_t loop;
	struct symbolizer *s;
	struct symbolizer_file *file;
	struct symbolizer_rows *rows;
	int n, err;
};

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct asked *a = arg;

	assert_true((err == 0) == (rows != NULL));
	a->n++;
	a->err = err;
	a->rows = rows;
}

static void on_open(void *arg, int err, struct symbolizer_file *file)
{
	struct asked *a = arg;

	assert_int_equal(err, 0);
	a->file = file;
}

static void asked_init(struct asked *a)
{
	struct symbolizer_open_req req = { .path = "/proc/self/exe" };
	struct symbolizer_opts opts = { .loop = &a->loop };
	static char self[4096]; /* under valgrind another than /proc says */

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	opts.worker = self;
	memset(a, 0, sizeof(*a));
	assert_int_equal(uv_loop_init(&a->loop), 0);
	assert_int_equal(symbolizer_new(&a->s, &opts), 0);
	assert_int_equal(symbolizer_open(a->s, &req, on_open, a), 0);
	while (!a->file)
		uv_run(&a->loop, UV_RUN_ONCE);
}

static void asked_fini(struct asked *a)
{
	symbolizer_free(a->s);
	uv_run(&a->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&a->loop), 0);
}

static int ask(struct asked *a, struct symbolizer_file *file)
{
	a->n = 0;
	assert_int_equal(symbolizer_rows(a->s, file, on_rows, a), 0);
	assert_int_equal(a->n, 0); /* never from inside */
	while (!a->n)
		uv_run(&a->loop, UV_RUN_ONCE);
	return a->err;
}

static void a_table_outlives_its_file(void **state)
{
	struct symbolizer_rows_info info;
	struct asked a;

	asked_init(&a);
	assert_int_equal(ask(&a, a.file), 0);
	symbolizer_close(a.s, a.file);
	asked_fini(&a);
	symbolizer_rows_info(a.rows, &info);
	assert_null(info.damage);
	assert_true(info.rows > 100 && info.bytes < 40 * info.rows);
	symbolizer_rows_free(a.rows);
}

extern void (*__fini_array_start[])(void) __attribute__((visibility("hidden")));
extern void (*__fini_array_end[])(void) __attribute__((visibility("hidden")));

static int base_of_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* it is the first */
}

/* __do_global_dtors_aux() of this program, by its first instructions; 0: none. */
static uint64_t crtstuff(void)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x80, 0x3d };
	uint64_t base = 0;

	dl_iterate_phdr(base_of_program, &base);
	for (size_t i = 0; __fini_array_start + i < __fini_array_end; i++)
		if (!memcmp((const void *)__fini_array_start[i], code,
			    sizeof(code)))
			return (uintptr_t)__fini_array_start[i] - base;
	return 0;
}

/* GCC's crtstuff has no CFI, and is run by each program and each library. */
static void what_ends_each_program_has_rows(void **state)
{
	uint64_t at = crtstuff();
	struct asked a;

	if (!at)
		skip();
	asked_init(&a);
	assert_int_equal(ask(&a, a.file), 0);
	assert_string_equal(rule_at(a.rows, at - TEXT), "r7+8");
	assert_string_equal(rule_at(a.rows, at + 13 - TEXT), "r7+8");
	assert_string_equal(rule_at(a.rows, at + 14 - TEXT), "r7+16 6=*cfa-16");
	symbolizer_rows_free(a.rows);
	symbolizer_close(a.s, a.file);
	asked_fini(&a);
}

static void the_vdso_has_rows_and_the_kernel_none(void **state)
{
	struct asked a;

	asked_init(&a);
	assert_int_equal(ask(&a, symbolizer_vdso(a.s)), 0);
	assert_true(info_of(a.rows).rows > 1);
	symbolizer_rows_free(a.rows);
	assert_int_equal(ask(&a, symbolizer_kernel(a.s)), -ENODATA);
	symbolizer_close(a.s, a.file);
	asked_fini(&a);
}

static void closing_answers_those_under_way(void **state)
{
	struct asked a;

	asked_init(&a);
	for (int i = 0; i < 3; i++)
		assert_int_equal(symbolizer_rows(a.s, a.file, on_rows, &a), 0);
	symbolizer_close(a.s, a.file);
	assert_int_equal(a.n, 3);
	assert_int_equal(a.err, -ECANCELED);
	for (int i = 0; i < 2; i++)
		assert_int_equal(symbolizer_rows(a.s, symbolizer_vdso(a.s),
						 on_rows, &a),
				 0);
	symbolizer_free(a.s);
	assert_int_equal(a.n, 5);
	assert_int_equal(a.err, -ECANCELED);
	uv_run(&a.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&a.loop), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_frame_fills_the_gaps),
		cmocka_unit_test(only_debug_frame_will_do),
		cmocka_unit_test(entries_may_be_of_64_bits),
		cmocka_unit_test(sections_may_be_compressed),
		cmocka_unit_test(compressed_contents_are_not_trusted),
		cmocka_unit_test(section_headers_may_be_gone),
		cmocka_unit_test(files_without_are_told_apart),
		cmocka_unit_test(what_is_whole_of_a_broken_file_is_used),
		cmocka_unit_test(programs_that_make_no_sense_are_damage),
		cmocka_unit_test(common_entries_that_make_no_sense_are_damage),
		cmocka_unit_test(no_rule_for_the_frame_is_damage),
		cmocka_unit_test(more_rules_than_numbers),
		cmocka_unit_test(a_table_outlives_its_file),
		cmocka_unit_test(what_ends_each_program_has_rows),
		cmocka_unit_test(the_vdso_has_rows_and_the_kernel_none),
		cmocka_unit_test(closing_answers_those_under_way),
	};

	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
