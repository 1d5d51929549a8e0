// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: Go's own unwind table. The first byte says which version's mark
 * it begins with; the rest is what follows mark and sizes, in a file without
 * section headers whose code has both kinds of prologues, and that of
 * runtime.systemstack.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/gopclntab.h"
#include "tests/fuzz/symbolize/rows.h"

#define TEXT 0x10000
#define TEXT_SIZE 0x1000
#define TABLE 0x200000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_code(uint8_t *code)
{
	memset(code, 0x90, TEXT_SIZE);
	for (size_t i = 0; i < TEXT_SIZE; i += 0x40) {
		code[i] = 0x55;
		memcpy(code + i + 0x14, "\x48\x89\x6c\x24\x20", 5);
		memcpy(code + i + 0x24, "\x48\x89\xac\x24\x80\0\0\0", 8);
		memcpy(code + i + 0x2c, "\x64\x48\x8b\4\x25\xf8\xff\xff\xff",
		       9);
		memcpy(code + i + 0x35, "\x48\x3b\x83\xb8\0\0\0", 7);
	}
}

static int read_table(uint8_t *file, size_t size, struct symbolizer_rows **rows)
{
	struct symbolizer_elf_load loads[] = {
		{ TEXT, 0, TEXT_SIZE, true, false },
		{ TABLE, TEXT_SIZE, size - TEXT_SIZE, false, true },
	};
	struct symbolizer_rows_build b = {
		.base = TEXT, .exec[0] = { TEXT, TEXT + TEXT_SIZE }, .n_exec = 1
	};
	struct symbolizer_rows_info info = { 0 };
	struct symbolizer_src src;
	struct symbolizer_elf e = { .src = &src,
				    .is64 = true,
				    .machine = ARCH_MACHINE,
				    .entry = TEXT,
				    .loads = loads,
				    .n_loads = 2 };
	bool any = false;
	int err;

	symbolizer_src_mem(&src, file, size);
	err = symbolizer_gopclntab_read(&e, &b, &info, &any);
	must(err == 0 || err == -ENOMEM);
	must(any || !info.damage);
	if (!err)
		err = symbolizer_rows_end(&b, &info, rows);
	symbolizer_rows_build_fini(&b);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t last[] = { 0xfb, 0xfa, 0xf0, 0xf1 };
	uint8_t head[8] = { 0, 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	struct symbolizer_rows *rows;
	size_t len;
	uint8_t *file;

	if (size == 0)
		return 0;
	head[0] = last[data[0] & 3];
	len = TEXT_SIZE + sizeof(head) + size - 1;
	file = malloc(len);
	if (!file)
		return 0;
	put_code(file);
	memcpy(file + TEXT_SIZE, head, sizeof(head));
	memcpy(file + TEXT_SIZE + sizeof(head), data + 1, size - 1);
	if (read_table(file, len, &rows) == 0) {
		check_rows(rows);
		check_adopted(rows);
		symbolizer_rows_free(rows);
	}
	free(file);
	return 0;
}
