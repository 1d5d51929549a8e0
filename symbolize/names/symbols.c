// SPDX-License-Identifier: Apache-2.0
/* symbols: symbol tables as a source of names, see symbolize/names/index.h. */
#include <errno.h>
#include <string.h>

#include "symbolize/names/index.h"
#include "symbolize/names/source.h"

/* Longer names are cut. */
#define SYMBOLS_NAME_MAX 4096

static int symbols_open(void **state, struct names_context *c)
{
	struct symbolizer_index *x;
	int err = symbolizer_index_new(&x, c->elf, c->ask);

	if (!err)
		*state = x;
	return err;
}

static void symbols_close(void *state)
{
	symbolizer_index_free(state);
}

static size_t symbols_bytes(const void *state)
{
	return symbolizer_index_bytes(state);
}

static int symbols_find(void *state, struct names_context *c, uint64_t vaddr,
			struct names_found *out)
{
	struct symbolizer_function *fn;
	struct symbolizer_range range;
	char name[SYMBOLS_NAME_MAX];
	int len;

	if (!symbolizer_index_find(state, vaddr, &range))
		return -ENOENT;
	len = symbolizer_index_name(state, c->src, &range, name, sizeof(name));
	if (len <= 0)
		return -ENOENT; /* the file has changed, or is invalid */
	fn = arena_alloc(c->arena, sizeof(*fn));
	if (!fn)
		return -ENOMEM;
	*fn = (struct symbolizer_function){
		.system_name = arena_memdup(c->arena, name, (size_t)len + 1),
		.file = "",
	};
	*out = (struct names_found){
		.start = range.start,
		.size = range.size,
		.functions = fn,
		.n = 1,
		.source = symbolizer_index_source(&range),
	};
	return fn->system_name ? 0 : -ENOMEM;
}

const struct names_source names_symbols = {
	.open = symbols_open,
	.close = symbols_close,
	.bytes = symbols_bytes,
	.find = symbols_find,
};
