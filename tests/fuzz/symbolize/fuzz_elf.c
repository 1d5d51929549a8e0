// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: an ELF file from memory, through everything that is read of
 * one: headers, build id, tables, index, names, demangled; the slot of a tracer; and
 * what it says of its separate debug file.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/debugfile.h"
#include "symbolize/elf/slot.h"
#include "symbolize/demangle.h"
#include "symbolize/names/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is found for an address holds it. */
static void walk(struct symbolizer_index *x, struct symbolizer_elf *e)
{
	struct strbuf text = { 0 };
	struct symbolizer_range range;
	uint64_t at;
	char name[512];
	int names = 0;

	/* After the last one is the code of a file without contents of it. */
	for (size_t i = 0; i <= e->n_loads; i++) {
		const struct symbolizer_elf_load *l =
			i < e->n_loads ? &e->loads[i] : &e->absent;
		uint64_t len = MIN(l->size, (uint64_t)65536);

		for (uint64_t off = 0; off < len && names < 256; off++) {
			at = l->vaddr + off;
			if (!symbolizer_index_find(x, at, &range)) {
				off += 15;
				continue;
			}
			if (at < range.start || at - range.start >= range.size)
				abort();
			if (symbolizer_index_name(x, e->src, &range, name,
						  sizeof(name)) >= 0)
				symbolizer_demangle(name, &text, NULL);
			strbuf_reset(&text);
			names++;
			off += range.size - (at - range.start) - 1;
		}
	}
	strbuf_fini(&text);
}

/* A file asks for what is a name in a directory, or a build id; nothing else. */
static int on_ask(void *arg, const char *basename, const uint8_t *build_id,
		  size_t len, uint32_t crc, bool has_crc)
{
	if (basename ? len || !has_crc || !*basename || strchr(basename, '/') ||
			       !strcmp(basename, ".") || !strcmp(basename, "..")
		     : !len || !build_id || len > 64 || has_crc)
		abort();
	return -ENOENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct symbolizer_ask ask = { .file = on_ask };
	struct symbolizer_debugfile *d;
	struct symbolizer_index *x;
	static bool started;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct symbolizer_slot slot;
	uint8_t id[20];

	if (!started && symbolizer_demangle_start())
		abort();
	started = true;
	symbolizer_src_mem(&src, data, size);
	if (symbolizer_elf_init_any(&e, &src))
		return 0;
	symbolizer_elf_build_id(&e, id, sizeof(id));
	if (symbolizer_debugfile_open(&d, &e, &ask) != -ENOENT)
		abort();
	if (!symbolizer_slot_find(&e, &slot) && !symbolizer_slot_valid(&slot))
		abort();
	symbolizer_elf_fini(&e);
	if (symbolizer_elf_init_any(&e, &src))
		abort();
	if (symbolizer_elf_tables(&e))
		goto out;
	if (symbolizer_index_new(&x, &e, &ask) == 0) {
		walk(x, &e);
		symbolizer_index_free(x);
	}
out:
	symbolizer_elf_fini(&e);
	return 0;
}
