// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: what is kept of a file's compile units (dwarf_store.h). Magic and
 * checksums, which no mutation would get right, are put in, unless the first byte says
 * otherwise. All units are read, some addresses are looked up, and the store is joined
 * with itself.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "symbolize/units/dwarf_store.h"

#define ADDRESSES 32 /* of each table */

#define must(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t sum(const void *p, size_t len)
{
	return (uint32_t)(len ? crc32_z(0, p, len) : 0);
}

static void seal_head(struct dwarf_store_head *h)
{
	memcpy(h->magic, "profdU1\n", sizeof(h->magic));
	h->crc = 0;
	h->crc = sum(h, sizeof(*h));
}

/* Makes it a store, as far as its bytes allow. */
static void seal(uint8_t *p, size_t size, bool whole)
{
	struct dwarf_store_head *h = (void *)p;
	struct dwarf_store_place *places;
	size_t len;

	if (size < sizeof(*h))
		return;
	h->n_places = whole ? 1 : h->n_units;
	seal_head(h);
	len = dwarf_store_front_len(h);
	if (!len || len > size)
		return;
	h->index_crc = dwarf_index_crc(
		(void *)(p + sizeof(*h)), h->n_units,
		(void *)(p + sizeof(*h) +
			 h->n_units * sizeof(struct dwarf_index_unit)),
		h->n_ranges);
	places = (void *)(p + len - h->n_places * sizeof(*places));
	for (uint32_t i = 0; i < h->n_places; i++)
		if (places[i].at <= size - len &&
		    places[i].len <= size - len - places[i].at)
			places[i].crc =
				sum(p + len + places[i].at, places[i].len);
	h->places_crc = sum(places, h->n_places * sizeof(*places));
	seal_head(h);
}

static void look_up(const struct dwarf_table *t)
{
	uint64_t size = t->bounds.end - t->bounds.start;
	struct names_found f;
	struct arena arena;

	arena_init(&arena);
	for (uint64_t i = 0; i < ADDRESSES; i++) {
		uint64_t at = t->bounds.start + size * i / ADDRESSES;
		int err;

		f = (struct names_found){ 0 };
		err = dwarf_table_find(t, &arena, at, &f);

		must(err == 0 || err == -ENOENT || err == -ENOMEM);
		if (err)
			continue;
		must(f.start <= at && at - f.start < f.size);
		must(f.start >= t->bounds.start);
		must(f.size <= t->bounds.end - f.start);
		for (size_t k = 0; k < f.n; k++)
			must(strlen(f.functions[k].file) <= SOURCE_TEXT_MAX);
	}
	arena_fini(&arena);
}

static void read_units(const struct dwarf_store *s, const struct dwarf_index *x,
		       const struct dwarf_store_place *places)
{
	struct dwarf_record_table at;
	struct dwarf_record *r;
	struct dwarf_table t;

	for (uint32_t i = 0; i < s->head.n_places; i++) {
		if (dwarf_store_record(s, &places[i], &r))
			continue;
		for (uint32_t k = 0; k < dwarf_record_count(r); k++) {
			at = dwarf_record_at(r, k);
			must(at.unit < x->n_units);
			t = dwarf_record_table(r, at.at, at.len, &x->bounds);
			look_up(&t);
		}
		free(r);
	}
}

static void read_store(int fd)
{
	struct dwarf_store_place *places = NULL;
	struct dwarf_index x = { 0 };
	struct dwarf_store s;
	uint32_t unit;

	if (dwarf_store_open(&s, fd, 0))
		return;
	x.bounds = (struct dwarf_bounds){ s.head.start, s.head.end };
	if (!dwarf_store_read(&s, &x, &places)) {
		read_units(&s, &x, places);
		for (uint64_t i = 0; i < ADDRESSES; i++)
			if (dwarf_index_find(&x,
					     x.bounds.start + (x.bounds.end -
							       x.bounds.start) *
								      i /
								      ADDRESSES,
					     &unit))
				must(unit < x.n_units);
		if (s.head.n_places == x.n_units)
			must(!dwarf_store_places(&s, &x, places));
	}
	free(places);
	dwarf_index_fini(&x);
}

static void join(const uint8_t *p, size_t size)
{
	struct strbuf store = STRBUF_INIT;
	struct dwarf_store_front f;

	for (int i = 0; i < 2; i++) {
		if (dwarf_store_add(&store, p, size))
			break;
		must(dwarf_store_whole(&f, store.data, store.len));
	}
	strbuf_fini(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	int fd;

	if (!size)
		return 0;
	copy = malloc(size);
	must(copy);
	memcpy(copy, data + 1, size - 1);
	if (!(data[0] & 2))
		seal(copy, size - 1, data[0] & 1);
	fd = memfd_create("units", MFD_CLOEXEC);
	must(fd >= 0 && write(fd, copy, size - 1) == (ssize_t)(size - 1));
	read_store(fd);
	close(fd);
	join(copy, size - 1);
	free(copy);
	return 0;
}
