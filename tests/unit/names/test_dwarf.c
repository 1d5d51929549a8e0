// SPDX-License-Identifier: Apache-2.0
/* DWARF of this program itself, by several requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/file.h"

extern const char __executable_start;

static __attribute__((always_inline)) inline int inlined(volatile int *x)
{
	int line = __LINE__;

	*x += line;
	return *x;
}

__attribute__((noinline)) static int outer(volatile int *x)
{
	int line = __LINE__;

	return inlined(x) + line;
}

static struct symbolizer_file *open_self(void)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct symbolizer_src src;
	struct stat st;

	assert_non_null(f);
	f->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(f->fd, &st), 0);
	symbolizer_src_fd(&src, f->fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_file_load(f, &src), 0);
	f->ident.size = (uint64_t)st.st_size;
	return f;
}

static uint64_t offset_of(const struct symbolizer_file *f, const void *code)
{
	uint64_t vaddr = (uint64_t)((const char *)code - &__executable_start);
	const struct symbolizer_segment *s;

	for (size_t i = 0; i < f->n_segments; i++) {
		s = &f->segments[i];
		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->size)
			return s->offset + (vaddr - s->vaddr);
	}
	fail();
	return 0;
}

/* The first bytes of outer(): the number of those in the inlined call. */
static unsigned int expect_outer(struct symbolizer_file *f)
{
	struct symbolizer_answer a = { 0 };
	const struct symbolizer_symbol *s;
	uint64_t at[8], start = offset_of(f, (const void *)outer);
	unsigned int inlines = 0;

	arena_init(&a.names);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		at[i] = start + i;
	assert_int_equal(symbolizer_file_resolve(f, NULL, at, NULL,
						 ARRAY_SIZE(at), &a),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		s = &a.syms[i];
		assert_int_equal(s->source, a.syms[0].source);
		assert_string_equal(s->functions[s->nfunctions - 1].name,
				    "outer");
		assert_non_null(strstr(s->functions[0].file, "test_dwarf.c"));
		assert_true(s->functions[0].line > 0);
		inlines += s->nfunctions == 2 &&
			   !strcmp(s->functions[0].name, "inlined");
	}
	symbolizer_answer_fini(&a);
	return inlines;
}

static void each_request_has_functions_and_lines(void **state)
{
	struct symbolizer_file *f = open_self();
	size_t bytes;

	assert_true(expect_outer(f) > 0);
	bytes = symbolizer_file_index_bytes(f);
	for (int i = 0; i < 3; i++) {
		assert_true(expect_outer(f) > 0);
		/* Nothing is kept twice. */
		assert_int_equal(symbolizer_file_index_bytes(f), bytes);
	}
	close(f->fd);
	f->fd = -1;
	symbolizer_file_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_has_functions_and_lines),
	};
	volatile int x = 1;

	outer(&x);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
