// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: an ELF file, perhaps a relocatable one, from memory through all sources
 * of names, DWARF and split DWARF among them: functions, inlined calls and lines of its
 * code.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/names/names.h"

#define ADDRESSES 64 /* of each segment */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

/* The file has its split units itself: as .dwo, and as .dwp with an index of units. */
static int on_ask(void *arg, const char *name, const uint8_t *build_id,
		  size_t len, uint32_t crc, bool has_crc)
{
	const struct input *in = arg;
	int fd;

	if (!name || has_crc)
		return -ENOENT;
	fd = memfd_create("split", MFD_CLOEXEC);
	if (fd < 0 || write(fd, in->data, in->size) != (ssize_t)in->size)
		abort();
	return fd;
}

/* What is found for an address holds it, and has a name but for one that none has. */
static void check(const struct names_found *f, uint64_t at)
{
	if (f->size == 0 || at < f->start || at - f->start >= f->size)
		abort();
	for (size_t i = 0; i < f->n; i++) {
		const struct symbolizer_function *fn = &f->functions[i];
		const char *name = fn->name ? fn->name : fn->system_name;

		if (!name || !*name || !fn->file ||
		    strlen(fn->file) > SOURCE_TEXT_MAX)
			abort();
	}
}

static void walk(struct symbolizer_names *n, struct names_context *c,
		 uint64_t start, uint64_t size)
{
	uint64_t step = size / ADDRESSES + 1;
	struct names_found found;

	/* Counted: the offset may wrap in a segment of nearly 2^64 bytes. */
	for (uint64_t i = 0, off = 0; i < ADDRESSES && off < size;
	     i++, off += step) {
		int err = symbolizer_names_find(n, c, start + off, &found);

		if (!err)
			check(&found, start + off);
		else if (err != -ENOENT && err != -ENOMEM)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	const struct symbolizer_ask ask = { .file = on_ask, .arg = &in };
	struct symbolizer_names *n;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct arena arena;
	struct names_context c = { .src = &src, .ask = &ask, .arena = &arena };

	symbolizer_src_mem(&src, data, size);
	if (symbolizer_elf_init_any(&e, &src))
		return 0;
	arena_init(&arena);
	if (symbolizer_names_open(&n, &c) == 0) {
		for (size_t i = 0; i < e.n_loads; i++)
			if (e.loads[i].exec)
				walk(n, &c, e.loads[i].vaddr, e.loads[i].size);
		if (e.type == ET_REL)
			walk(n, &c, 0, e.absent.size);
		if (symbolizer_names_bytes(n) == 0)
			abort();
		symbolizer_names_close(n);
	}
	arena_fini(&arena);
	symbolizer_elf_fini(&e);
	return 0;
}
