// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: offsets of members, out of types made here, where every answer is
 * known, and out of the running kernel's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/btf.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/quark.h"

/*
 *	struct inner { int a; int b; };
 *	typedef struct inner inner_t;
 *	struct outer {
 *		int first;				0
 *		const inner_t in;			4
 *		union {					12
 *			int u;
 *			struct { int v; int w; };
 *		};
 *		struct inner list[2];			20
 *		struct inner *ptr;			40
 *		int flag : 1;				48
 *		int last;				52
 *	};
 *	struct deep { struct { ... { int x; } } };	twenty levels
 *	union both { int one; inner_t in; };
 *	typedef loop loop; struct looped { loop l; };	not valid
 *	struct wide { struct { struct { ... } * 64 } * 64 } * 64
 */
static void add_types(struct btf *btf)
{
	int i32, inner, typ, cst, uni, anon, list, ptr, i, j, id;

	i32 = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	inner = btf__add_struct(btf, "inner", 8);
	btf__add_field(btf, "a", i32, 0, 0);
	btf__add_field(btf, "b", i32, 32, 0);
	typ = btf__add_typedef(btf, "inner_t", inner);
	cst = btf__add_const(btf, typ);
	anon = btf__add_struct(btf, NULL, 8);
	btf__add_field(btf, "v", i32, 0, 0);
	btf__add_field(btf, "w", i32, 32, 0);
	uni = btf__add_union(btf, NULL, 8);
	btf__add_field(btf, "u", i32, 0, 0);
	btf__add_field(btf, NULL, anon, 0, 0);
	list = btf__add_array(btf, i32, inner, 2);
	ptr = btf__add_ptr(btf, inner);
	assert_true(btf__add_struct(btf, "outer", 56) > 0);
	btf__add_field(btf, "first", i32, 0, 0);
	btf__add_field(btf, "in", cst, 32, 0);
	btf__add_field(btf, NULL, uni, 96, 0);
	btf__add_field(btf, "list", list, 160, 0);
	btf__add_field(btf, "ptr", ptr, 320, 0);
	btf__add_field(btf, "flag", i32, 384, 1);
	btf__add_field(btf, "last", i32, 416, 0);
	id = btf__add_struct(btf, NULL, 4);
	btf__add_field(btf, "x", i32, 0, 0);
	for (i = 0; i < 20; i++) {
		inner = id;
		id = btf__add_struct(btf, i == 19 ? "deep" : NULL, 4);
		btf__add_field(btf, NULL, inner, 0, 0);
	}
	/* As in a malicious file: an endless chain ... */
	id = btf__type_cnt(btf);
	assert_int_equal(btf__add_typedef(btf, "loop", id), id);
	btf__add_struct(btf, "looped", 4);
	btf__add_field(btf, NULL, id, 0, 0);
	/* ... and 64 to the power of 15 paths. */
	id = anon;
	for (i = 0; i < 15; i++) {
		inner = id;
		id = btf__add_struct(btf, i == 14 ? "wide" : NULL, 8);
		for (j = 0; j < 64; j++)
			btf__add_field(btf, NULL, inner, 0, 0);
	}
	assert_true(btf__add_union(btf, "both", 8) > 0);
	btf__add_field(btf, "one", i32, 0, 0);
	btf__add_field(btf, "in", typ, 0, 0);
}

static char path[] = "/tmp/test_quark_btf.XXXXXX";
static struct quark_btf *made;

static int setup(void **state)
{
	struct btf *btf = btf__new_empty();
	const void *data;
	uint32_t size;
	int fd;

	assert_non_null(btf);
	add_types(btf);
	data = btf__raw_data(btf, &size);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
	btf__free(btf);
	made = quark_btf_open2(path, "made");
	assert_non_null(made);
	return 0;
}

static int teardown(void **state)
{
	quark_btf_close(made);
	return unlink(path);
}

static void test_offsets(void **state)
{
	static const struct {
		const char *name;
		long offset;
	} cases[] = {
		{ "outer.first", 0 },
		{ "outer.in", 4 },
		{ "outer.in.a", 4 },
		{ "outer.in.b", 8 },
		{ "outer.u", 12 },
		{ "outer.v", 12 },
		{ "outer.w", 16 },
		{ "outer.(anon).w", 16 },
		{ "outer.(anon).(anon).w", 16 },
		{ "outer.list", 20 },
		{ "outer.ptr", 40 },
		{ "outer.last", 52 },
		{ "both.one", 0 },
		{ "both.in.b", 4 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (quark_btf_offset(made, cases[i].name) != cases[i].offset)
			fail_msg("%s: %ld", cases[i].name,
				 (long)quark_btf_offset(made, cases[i].name));
}

static void test_refused(void **state)
{
	static const struct {
		const char *name;
		int err;
	} cases[] = {
		{ "", ENOENT },
		{ ".", ENOENT },
		{ "outer", ENOENT },
		{ "outer.", ENOENT },
		{ ".first", ENOENT },
		{ "nothing.first", ENOENT },
		{ "outer.firs", ENOENT },
		{ "outer.firstly", ENOENT },
		{ "outer.first.a", ENOENT },
		{ "outer.in.", ENOENT },
		{ "outer.in.c", ENOENT },
		{ "outer.(anon)", ENOENT },
		{ "outer.(anon).", ENOENT },
		{ "inner_t.a", ENOENT },
		{ "int.x", ENOENT },
		/* Pointers' targets and elements of arrays are other objects. */
		{ "outer.ptr.a", ENOENT },
		{ "outer.list.a", ENOENT },
		{ "outer.flag", EINVAL },
		/* Deeper than any real type: refused, not recursed. */
		{ "deep.x", ENOENT },
		{ "looped.x", ENOENT },
		{ "wide.x", ENOENT },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		errno = 0;
		if (quark_btf_offset(made, cases[i].name) != -1 ||
		    errno != cases[i].err)
			fail_msg("\"%s\": errno %d", cases[i].name, errno);
	}
}

static void test_files(void **state)
{
	char empty[] = "/tmp/test_quark_btf.XXXXXX";
	int fd = mkstemp(empty);

	assert_null(quark_btf_open2("/nowhere/btf", NULL));
	assert_int_equal(errno, ENOENT);
	assert_true(fd >= 0);
	assert_null(quark_btf_open2(empty, NULL));
	assert_int_not_equal(errno, 0);
	assert_int_equal(write(fd, "neither ELF nor BTF, but long enough", 36),
			 36);
	assert_null(quark_btf_open2(empty, NULL));
	assert_int_not_equal(errno, 0);
	close(fd);
	unlink(empty);
	quark_btf_close(NULL);
}

static void test_running_kernel(void **state)
{
	struct quark_btf *btf = quark_btf_open();
	struct quark_btf *same;

	assert_non_null(btf);
	same = quark_btf_open2("/sys/kernel/btf/vmlinux", "this one");
	assert_non_null(same);
	assert_true(quark_btf_offset(btf, "task_struct.comm") > 0);
	assert_int_equal(quark_btf_offset(btf, "task_struct.comm"),
			 quark_btf_offset(same, "task_struct.comm"));
	/* The kernel lays pid and tgid side by side. */
	assert_int_equal(quark_btf_offset(btf, "task_struct.tgid"),
			 quark_btf_offset(btf, "task_struct.pid") + 4);
	/* Members of an anonymous member, by both names. */
	assert_true(quark_btf_offset(btf, "mm_struct.arg_start") > 0);
	assert_int_equal(quark_btf_offset(btf, "mm_struct.(anon).arg_start"),
			 quark_btf_offset(btf, "mm_struct.arg_start"));
	quark_btf_close(same);
	quark_btf_close(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_running_kernel),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
