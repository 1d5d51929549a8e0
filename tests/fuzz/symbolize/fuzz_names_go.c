// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: names from Go's own table, at addresses all over its text. The first
 * byte of the input selects the version; the others follow the first 8 bytes of the
 * header, as the table and all that is behind it: moduledata and inlined calls.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/names/go_table.h"
#include "symbolize/names/source.h"

#define TEXT 0x21000 /* as in test_names_go.c, whose tables are the corpus */
#define TEXT_SIZE 0x400
#define TABLE 0x200000
#define STEP 0x17

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_found(const struct names_found *f, uint64_t at)
{
	must(at >= f->start && at - f->start < f->size);
	must(f->n > 0 && f->n <= 64 && f->source == SYMBOLIZER_SOURCE_GO);
	for (size_t i = 0; i < f->n; i++) {
		must(*f->functions[i].name && f->functions[i].file);
		must(f->functions[i].start_line <= INT32_MAX);
		must(!f->functions[i].line == !*f->functions[i].file);
	}
}

static void look(void *state, struct names_context *c)
{
	struct names_found found;
	struct arena arena;
	int err;

	arena_init(&arena);
	c->arena = &arena;
	for (uint64_t at = TEXT; at <= TEXT + TEXT_SIZE; at += STEP) {
		err = names_go.find(state, c, at, &found);
		must(err == 0 || err == -ENOENT || err == -ENOMEM);
		if (!err)
			check_found(&found, at);
	}
	names_go.find(state, c, UINT64_MAX, &found);
	arena_fini(&arena);
}

static void look_file(const uint8_t *file, size_t size)
{
	struct symbolizer_elf_load loads[] = {
		{ TEXT, 0, TEXT_SIZE, true, false },
		{ TABLE, TEXT_SIZE, size - TEXT_SIZE, false, true },
	};
	struct symbolizer_src src;
	struct symbolizer_elf e = { .src = &src,
				    .is64 = true,
				    .machine = ARCH_MACHINE,
				    .entry = TEXT,
				    .loads = loads,
				    .n_loads = 2 };
	struct names_context c = { .src = &src, .elf = &e };
	void *state;
	int err;

	symbolizer_src_mem(&src, file, size);
	err = names_go.open(&state, &c);
	must(err == 0 || err == -ENODATA || err == -EINVAL || err == -ENOMEM);
	if (err)
		return;
	must(names_go.bytes(state) < 65536);
	c.elf = NULL;
	look(state, &c);
	names_go.close(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t last[] = { 0xfb, 0xfa, 0xf0, 0xf1 };
	uint8_t head[8] = { 0, 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	uint8_t *file;
	size_t len;

	if (size == 0)
		return 0;
	head[0] = last[data[0] & 3];
	len = TEXT_SIZE + sizeof(head) + size - 1;
	file = calloc(1, len);
	if (!file)
		return 0;
	memcpy(file + TEXT_SIZE, head, sizeof(head));
	memcpy(file + TEXT_SIZE + sizeof(head), data + 1, size - 1);
	look_file(file, len);
	free(file);
	return 0;
}
