// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: bytes of a file of the cache on disk, of a kind that the first byte
 * selects. Checksum and key, which no mutation would get right, are put in. What
 * is valid has to stand every question, and merging.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/cache/entry.h"
#include "symbolize/known.h"
#include "symbolize/reader/witness.h"

#define must(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_names(const struct entry *e)
{
	const struct entry_range *r = (const void *)e->payload;
	struct symbolizer_symbol sym;
	struct symbolizer_answer a = { 0 };

	arena_init(&a.names);
	for (uint32_t i = 0; i < e->head->n; i++) {
		sym = (struct symbolizer_symbol){ .vaddr = r[i].start };
		must(entry_names_find(e, &a, &sym));
		sym = (struct symbolizer_symbol){ .vaddr = r[i].start +
							   r[i].size - 1 };
		must(entry_names_find(e, &a, &sym));
	}
	symbolizer_answer_fini(&a);
}

/* The old names, and one over the middle of the first. */
static void merge_names(const struct entry *old)
{
	const struct entry_range *r = (const void *)old->payload;
	struct symbolizer_function fn = { "n", "n", "", 1, 0 };
	struct symbolizer_symbol sym = { .functions = &fn, .nfunctions = 1 };
	struct entry_id id = { .kind = ENTRY_NAMES };
	struct strbuf out = STRBUF_INIT;
	struct entry_news news = { 0 };
	struct entry_head head = { 0 };
	struct entry e = { .head = &head };

	if (old->head->n) {
		sym.start = sym.vaddr = r->start + r->size / 2;
		sym.size = 100;
		entry_news_add(&news, &sym);
	}
	must(entry_names_merge(&out, &head.n, old, &news));
	entry_seal(&head, &id, NULL, 0, out.data, out.len);
	e.payload = (const uint8_t *)out.data;
	e.len = out.len;
	must(entry_names_check(&e) == 0);
	ask_names(&e);
	strbuf_fini(&out);
	strbuf_fini(&news.bytes);
}

static void try_names(const uint8_t *data, size_t size)
{
	struct entry_head head = { 0 };
	struct entry e = { .head = &head, .len = size };
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		return;
	if (size)
		memcpy(copy, data, size);
	if (size >= 4)
		memcpy(&head.n, copy + size - 4, 4);
	head.n &= 0xff;
	e.len = size >= 4 ? size - 4 : 0;
	e.payload = copy;
	if (!entry_names_check(&e)) {
		ask_names(&e);
		merge_names(&e);
	}
	free(copy);
}

static void try_known(const uint8_t *data, size_t size)
{
	struct symbolizer_known k = { 0 }, again = { 0 };
	struct strbuf out = STRBUF_INIT;

	must(!symbolizer_known_init(&k) && !symbolizer_known_init(&again));
	if (symbolizer_known_unpack(&k, data, size)) {
		symbolizer_known_pack(&k, &out);
		must(symbolizer_known_unpack(&again, (const uint8_t *)out.data,
					     out.len));
		must(again.n == k.n);
	}
	strbuf_fini(&out);
	symbolizer_known_fini(&k);
	symbolizer_known_fini(&again);
}

static void try_entry(const uint8_t *data, size_t size)
{
	struct entry_id id = { .kind = ENTRY_ROWS };
	uint8_t *copy = malloc(size + 1);
	struct entry e;

	if (!copy)
		return;
	if (size)
		memcpy(copy, data, size);
	must(entry_check(&e, &id, copy, size) == -EBADMSG);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		try_names(data + 1, size - 1);
		break;
	case 1:
		try_known(data + 1, size - 1);
		break;
	case 2:
		witness_check(data + 1, size - 1);
		break;
	default:
		try_entry(data + 1, size - 1);
	}
	return 0;
}
