// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: bytes of a stranger as a table of unwind rows. What is taken has
 * to stand every question. Mark and size, which no mutation would get right,
 * are put in: the input is what follows them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/rows/rows_table.h"
#include "tests/fuzz/symbolize/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_release(void *arg, const void *map, size_t len)
{
	must(*(size_t *)arg == len);
	free((void *)(uintptr_t)map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t head[2] = { ROWS_MAGIC, size + sizeof(head) };
	struct symbolizer_rows *rows;
	size_t len = (size_t)head[1];
	uint8_t *map = malloc(len);

	if (!map)
		return 0;
	memcpy(map, head, sizeof(head));
	if (size)
		memcpy(map + sizeof(head), data, size);
	if (symbolizer_rows_adopt(map, len, on_release, &len, &rows)) {
		free(map);
		return 0;
	}
	check_rows(rows);
	check_adopted(rows);
	symbolizer_rows_free(rows);
	return 0;
}
