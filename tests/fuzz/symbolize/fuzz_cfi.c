// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: call frame information into unwind rows, and every question a
 * table can be asked; and the functions alone. The first byte says what the rest is:
 * an ELF file, or the bare contents of .eh_frame or .debug_frame.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/cfi.h"
#include "tests/fuzz/symbolize/rows.h"

#define TEXT 0x10000
#define TEXT_SIZE 0x40000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_section(const uint8_t *data, size_t size, bool eh,
			struct symbolizer_rows **rows)
{
	struct symbolizer_rows_build b = {
		.base = TEXT, .exec[0] = { TEXT, TEXT + TEXT_SIZE }, .n_exec = 1
	};
	struct symbolizer_rows_info info = { 0 };
	struct symbolizer_src src;
	struct cfi_section s = { .src = &src,
				 .name = "fuzz",
				 .size = size,
				 .vaddr = TEXT + TEXT_SIZE,
				 .eh = eh };
	int err;

	symbolizer_src_mem(&src, data, size);
	err = symbolizer_cfi_read(&s, &b, &info);
	if (!err)
		err = symbolizer_rows_end(&b, &info, rows);
	symbolizer_rows_build_fini(&b);
	return err;
}

/* Each is not empty, and behind the one before. */
static int check_function(void *arg, uint64_t start, uint64_t end)
{
	uint64_t *last = arg;

	if (start < *last || end <= start)
		abort();
	*last = end;
	return 0;
}

static void check_functions(const uint8_t *data, size_t size)
{
	struct symbolizer_src src;
	uint64_t last = 0;

	symbolizer_src_mem(&src, data, size);
	symbolizer_rows_functions(&src, check_function, &last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_rows *rows;
	struct symbolizer_src src;
	int err;

	if (size == 0)
		return 0;
	if (data[0] & 2) {
		check_functions(data + 1, size - 1);
		symbolizer_src_mem(&src, data + 1, size - 1);
		err = symbolizer_rows_read(&rows, &src, NULL);
	} else {
		err = read_section(data + 1, size - 1, data[0] & 1, &rows);
	}
	if (err)
		return 0;
	check_rows(rows);
	check_adopted(rows);
	symbolizer_rows_free(rows);
	return 0;
}
