// SPDX-License-Identifier: Apache-2.0
/* dwarf_index: see symbolize/units/dwarf_index.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "symbolize/units/dwarf_index.h"

/* Limits for untrusted files. */
#define INDEX_UNITS_MAX (1U << 17)
#define INDEX_RANGES_MAX (1U << 22)
#define INDEX_SPANS_MAX (1U << 18) /* ranges of a unit */
#define INDEX_OVERLAPS_MAX \
	8 /* ranges that are searched for one that ends later */

/* All of it can be 32-bit offsets from its start. */
int dwarf_index_bounds(struct dwarf_bounds *b, const struct symbolizer_elf *e)
{
	*b = (struct dwarf_bounds){ UINT64_MAX, 0 };
	if (e->absent.size)
		*b = (struct dwarf_bounds){ e->absent.vaddr,
					    e->absent.vaddr + e->absent.size };
	for (size_t i = 0; i < e->n_loads; i++) {
		if (!e->loads[i].exec)
			continue;
		b->start = MIN(b->start, e->loads[i].vaddr);
		b->end = MAX(b->end, e->loads[i].vaddr + e->loads[i].size);
	}
	return b->start < b->end && b->end - b->start < UINT32_MAX ? 0
								   : -ENODATA;
}

static int index_add(struct dwarf_index *x, uint64_t start, uint64_t end,
		     uint32_t unit)
{
	if (start < x->bounds.start || end > x->bounds.end || start >= end ||
	    x->n_ranges == INDEX_RANGES_MAX)
		return 0;
	if (VECTOR_ROOM(x->ranges, x->n_ranges, x->cap_ranges))
		return -ENOMEM;
	x->ranges[x->n_ranges++] = (struct dwarf_index_range){
		.start = (uint32_t)(start - x->bounds.start),
		.end = (uint32_t)(end - x->bounds.start),
		.unit = unit,
	};
	return 0;
}

static int unit_add(struct dwarf_index *x, const struct dwarf_cu *cu,
		    struct dwarf_span *spans)
{
	size_t n = dwarf_ranges_read(cu, &cu->unit, spans, INDEX_SPANS_MAX);
	uint32_t before = x->n_ranges;
	int err = 0;

	if (VECTOR_ROOM(x->units, x->n_units, x->cap_units))
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = index_add(x, spans[i].start, spans[i].end, x->n_units);
	x->units[x->n_units++] = (struct dwarf_index_unit){
		.off = cu->off,
		.flags = (x->n_ranges == before ? DWARF_INDEX_BARE : 0) |
			 (cu->type == DW_UT_skeleton ? DWARF_INDEX_SPLIT : 0),
	};
	return err;
}

static int units_read(struct dwarf_index *x, struct dwarf_file *f)
{
	struct dwarf_span *spans = malloc(INDEX_SPANS_MAX * sizeof(*spans));
	struct dwarf_cu cu;
	int err = spans ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < f->n_units && !err; i++) {
		if (x->n_units == INDEX_UNITS_MAX)
			break;
		err = dwarf_cu_open(&cu, f, f->units[i], true);
		if (err == -EINVAL) {
			err = 0;
			continue;
		}
		if (err)
			break;
		if (cu.type == DW_UT_compile || cu.type == DW_UT_skeleton)
			err = unit_add(x, &cu, spans);
		dwarf_cu_close(&cu);
	}
	free(spans);
	return err;
}

/* The ranges of a unit in .debug_aranges, DWARF 5 section 6.1.2. */
static int aranges_add(struct dwarf_index *x, struct cursor *c, uint32_t unit,
		       size_t size)
{
	uint64_t start, len;
	int err = 0;

	while (!err) {
		start = cursor_fixed(c, size);
		len = cursor_fixed(c, size);
		if (c->bad || (!start && !len))
			break;
		if (len <= UINT64_MAX - start)
			err = index_add(x, start, start + len, unit);
	}
	return err;
}

/* Some assemblers write ranges of units only to .debug_aranges. */
static int units_aranges(struct dwarf_index *x, const struct dwarf_file *f)
{
	struct cursor all = dwarf_cursor(f->s[DWARF_ARANGES], 0), c;
	uint64_t len, off, size, head;
	const uint8_t *begin;
	uint32_t at;
	int err = 0;

	while (all.p < all.end && !err) {
		begin = all.p;
		len = cursor_fixed(&all, 4);
		size = len == 0xffffffff ? 8 : 4;
		if (size == 8)
			len = cursor_fixed(&all, 8);
		c = all;
		if (!cursor_bytes(&all, len))
			break;
		c.end = all.p;
		cursor_fixed(&c, 2); /* version */
		off = cursor_fixed(&c, size);
		size = cursor_fixed(&c, 1);
		cursor_fixed(&c, 1); /* segment selectors are not used */
		if (size != 4 && size != 8)
			continue;
		head = (uint64_t)(c.p - begin) % (2 * size);
		cursor_bytes(&c, head ? 2 * size - head : 0);
		VECTOR_SEARCH(at, x->n_units, x->units[at].off < off);
		if (at < x->n_units && x->units[at].off == off &&
		    x->units[at].flags & DWARF_INDEX_BARE)
			err = aranges_add(x, &c, at, size);
	}
	return err;
}

static int index_compare(const void *a, const void *b)
{
	const struct dwarf_index_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

uint32_t dwarf_index_crc(const struct dwarf_index_unit *units, uint32_t n_units,
			 const struct dwarf_index_range *ranges,
			 uint32_t n_ranges)
{
	uLong crc = crc32(0, NULL, 0);

	if (n_units)
		crc = crc32_z(crc, (const void *)units,
			      n_units * sizeof(*units));
	if (n_ranges)
		crc = crc32_z(crc, (const void *)ranges,
			      n_ranges * sizeof(*ranges));
	return (uint32_t)crc;
}

int dwarf_index_read(struct dwarf_index *x, struct dwarf_file *f)
{
	int err = units_read(x, f);

	if (!err)
		err = units_aranges(x, f);
	if (err)
		return err;
	if (!x->n_ranges)
		return -ENODATA;
	qsort(x->ranges, x->n_ranges, sizeof(*x->ranges), index_compare);
	x->crc = dwarf_index_crc(x->units, x->n_units, x->ranges, x->n_ranges);
	return 0;
}

bool dwarf_index_ok(const struct dwarf_index *x)
{
	uint64_t size = x->bounds.end - x->bounds.start;

	if (x->bounds.start >= x->bounds.end || size >= UINT32_MAX ||
	    x->n_units > INDEX_UNITS_MAX || !x->n_ranges ||
	    x->n_ranges > INDEX_RANGES_MAX)
		return false;
	for (uint32_t i = 1; i < x->n_units; i++)
		if (x->units[i].off <= x->units[i - 1].off)
			return false;
	for (uint32_t i = 0; i < x->n_ranges; i++)
		if (x->ranges[i].start >= x->ranges[i].end ||
		    x->ranges[i].end > size ||
		    x->ranges[i].unit >= x->n_units ||
		    (i && x->ranges[i].start < x->ranges[i - 1].start))
			return false;
	return true;
}

void dwarf_index_fini(struct dwarf_index *x)
{
	free(x->units);
	free(x->ranges);
	*x = (struct dwarf_index){ 0 };
}

size_t dwarf_index_bytes(const struct dwarf_index *x)
{
	return x->cap_units * sizeof(*x->units) +
	       x->cap_ranges * sizeof(*x->ranges);
}

/* Of ranges that overlap the one that starts last. */
bool dwarf_index_find(const struct dwarf_index *x, uint64_t vaddr,
		      uint32_t *unit)
{
	uint32_t at = (uint32_t)(vaddr - x->bounds.start), i;

	if (vaddr < x->bounds.start || vaddr >= x->bounds.end)
		return false;
	VECTOR_SEARCH(i, x->n_ranges, x->ranges[i].start <= at);
	for (uint32_t n = 0; i > 0 && n < INDEX_OVERLAPS_MAX; n++) {
		if (at >= x->ranges[--i].end)
			continue;
		*unit = x->ranges[i].unit;
		return true;
	}
	return false;
}
