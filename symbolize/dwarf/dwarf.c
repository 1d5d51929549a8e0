// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf: debug information, in the file or in its debug file, as a source of names.
 * DWARF 2 to 5; the sections are in a debugimage.
 *
 * Which compile unit has an address is in a table of our own, made of the ranges of
 * all units: .debug_aranges is optional, and clang does not write it.
 *
 * A unit is read once: a dwarf_table is made of it, which is a tenth as large. Where
 * sections had to be unpacked, and in small files, all units are read with the first
 * question, and the sections are dropped. Otherwise units are read when one of their
 * addresses is asked for, and the tables used longest ago are put out.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "symbolize/elf/debugfile.h"
#include "symbolize/dwarf/debugimage.h"
#include "symbolize/dwarf/dwarf_split.h"
#include "symbolize/dwarf/dwarf_table.h"

/* Limits for untrusted files. */
#define DWARF_UNITS_MAX (1U << 17)
#define DWARF_RANGES_MAX (1U << 22)
#define DWARF_SPANS_MAX (1U << 18) /* ranges of a unit */

/* Memory for tables of units. */
#define DWARF_TABLES_MAX (12U << 20)

/* Files that are not packed, whose units are all read at once: bytes of DWARF. */
#define DWARF_SMALL_MAX (64U << 20)

/* A compile unit. */
struct unit {
	uint64_t off; /* of its header, in .debug_info */
	struct dwarf_table *table; /* or NULL */
	TAILQ_ENTRY(unit) lru; /* if it has a table */
	bool bare; /* without ranges of its own */
	bool split; /* a skeleton: its entries are in another file */
};

struct range {
	uint32_t start, end; /* from bounds.start */
	uint32_t unit;
};

struct names_dwarf {
	struct debugimage image, alt_image;
	struct dwarf_file file, alt;
	struct dwarf_splits splits;
	struct dwarf_bounds bounds;
	uint64_t moved; /* how much more than in the file addresses are here */
	struct unit *units;
	struct range *ranges; /* ascending */
	uint32_t n_units, cap_units, n_ranges, cap_ranges;
	TAILQ_HEAD(lru_head, unit) lru; /* last used first */
	struct dwarf_text texts;
	bool tried; /* to read all units */
	bool complete; /* all units have been read; the images are closed */
	size_t table_bytes;
};

/* --- units and ranges ------------------------------------------------------- */

static int range_add(struct names_dwarf *d, uint64_t start, uint64_t end,
		     uint32_t unit)
{
	if (start < d->bounds.start || end > d->bounds.end || start >= end ||
	    d->n_ranges == DWARF_RANGES_MAX)
		return 0;
	if (VECTOR_ROOM(d->ranges, d->n_ranges, d->cap_ranges))
		return -ENOMEM;
	d->ranges[d->n_ranges++] = (struct range){
		.start = (uint32_t)(start - d->bounds.start),
		.end = (uint32_t)(end - d->bounds.start),
		.unit = unit,
	};
	return 0;
}

static int unit_add(struct names_dwarf *d, const struct dwarf_cu *cu,
		    struct dwarf_span *spans)
{
	size_t n = dwarf_ranges_read(cu, &cu->unit, spans, DWARF_SPANS_MAX);
	uint32_t before = d->n_ranges;
	int err = 0;

	if (VECTOR_ROOM(d->units, d->n_units, d->cap_units))
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = range_add(d, spans[i].start, spans[i].end, d->n_units);
	d->units[d->n_units++] = (struct unit){
		.off = cu->off,
		.bare = d->n_ranges == before,
		.split = cu->type == DW_UT_skeleton,
	};
	return err;
}

static int units_read(struct names_dwarf *d)
{
	struct dwarf_span *spans = malloc(DWARF_SPANS_MAX * sizeof(*spans));
	struct dwarf_cu cu;
	int err = spans ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < d->file.n_units && !err; i++) {
		if (d->n_units == DWARF_UNITS_MAX)
			break;
		err = dwarf_cu_open(&cu, &d->file, d->file.units[i], true);
		if (err == -EINVAL) {
			err = 0;
			continue;
		}
		if (err)
			break;
		if (cu.type == DW_UT_compile || cu.type == DW_UT_skeleton)
			err = unit_add(d, &cu, spans);
		dwarf_cu_close(&cu);
	}
	free(spans);
	return err;
}

/* The ranges of a unit in .debug_aranges, DWARF 5 section 6.1.2. */
static int aranges_add(struct names_dwarf *d, struct cursor *c, uint32_t unit,
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
			err = range_add(d, start, start + len, unit);
	}
	return err;
}

/* Some assemblers write ranges of units only to .debug_aranges. */
static int units_aranges(struct names_dwarf *d)
{
	struct cursor all = dwarf_cursor(d->file.s[DWARF_ARANGES], 0), c;
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
		VECTOR_SEARCH(at, d->n_units, d->units[at].off < off);
		if (at < d->n_units && d->units[at].off == off &&
		    d->units[at].bare)
			err = aranges_add(d, &c, at, size);
	}
	return err;
}

static int cmp_range(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/* The code of the file, if all of it can be 32-bit offsets from its start. */
static int bounds_read(struct names_dwarf *d, const struct symbolizer_elf *e)
{
	struct dwarf_bounds *b = &d->bounds;

	d->moved = e->type == ET_REL ? DEBUGIMAGE_OBJECT : 0;
	*b = (struct dwarf_bounds){ UINT64_MAX, 0 };
	if (e->absent.size)
		*b = (struct dwarf_bounds){ e->absent.vaddr + d->moved,
					    e->absent.vaddr + e->absent.size +
						    d->moved };
	for (size_t i = 0; i < e->n_loads; i++) {
		if (!e->loads[i].exec)
			continue;
		b->start = MIN(b->start, e->loads[i].vaddr);
		b->end = MAX(b->end, e->loads[i].vaddr + e->loads[i].size);
	}
	return b->start < b->end && b->end - b->start < UINT32_MAX ? 0
								   : -ENODATA;
}

/* --- the source ------------------------------------------------------------- */

static void images_close(struct names_dwarf *d)
{
	dwarf_file_fini(&d->file);
	dwarf_file_fini(&d->alt);
	debugimage_fini(&d->image);
	debugimage_fini(&d->alt_image);
	d->image.held = d->alt_image.held = 0;
}

static void dwarf_close(void *state)
{
	struct names_dwarf *d = state;

	for (uint32_t i = 0; i < d->n_units; i++)
		dwarf_table_free(d->units[i].table);
	images_close(d);
	dwarf_text_fini(&d->texts);
	dwarf_splits_fini(&d->splits);
	free(d->units);
	free(d->ranges);
	free(d);
}

/*
 * The file that dwz(1) moved shared parts to, found by the build id that follows its
 * name in .gnu_debugaltlink.
 */
static void alt_open(struct names_dwarf *d, const struct symbolizer_ask *ask)
{
	struct debugimage_part link =
		debugimage_part(&d->image, ".gnu_debugaltlink");
	const uint8_t *id = link.len ? memchr(link.p, 0, link.len) : NULL;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	off_t size;
	size_t len;
	int fd;

	len = id ? (size_t)(link.p + link.len - ++id) : 0;
	if (!len || !ask)
		return;
	fd = ask->file(ask->arg, NULL, id, len, 0, false);
	if (fd < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	symbolizer_src_fd(&src, fd, size < 0 ? 0 : (uint64_t)size);
	if (symbolizer_elf_init_any(&e, &src) == 0) {
		debugimage_init(&d->alt_image, &e, DEBUGIMAGE_PLAIN);
		symbolizer_elf_fini(&e);
	}
	close(fd);
}

static int image_open(struct names_dwarf *d, struct symbolizer_elf *e,
		      const struct symbolizer_ask *ask)
{
	int err = debugimage_init(&d->image, e, DEBUGIMAGE_PLAIN);

	if (err)
		return err;
	dwarf_file_sections(&d->file, &d->image);
	alt_open(d, ask);
	if (!d->alt_image.base)
		return dwarf_file_units(&d->file);
	dwarf_file_sections(&d->alt, &d->alt_image);
	d->file.alt = &d->alt;
	err = dwarf_file_units(&d->alt);
	return err ? err : dwarf_file_units(&d->file);
}

static int image_find(struct names_dwarf *d, struct names_context *c)
{
	struct symbolizer_debugfile *f;
	int err = image_open(d, c->elf, c->ask);

	if (err != -ENODATA)
		return err;
	err = symbolizer_debugfile_open(&f, c->elf, c->ask);
	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	err = image_open(d, &f->elf, c->ask);
	symbolizer_debugfile_close(f);
	return err;
}

static int dwarf_open(void **state, struct names_context *c)
{
	struct names_dwarf *d = calloc(1, sizeof(*d));
	int err = -ENOMEM;

	if (!d)
		return err;
	TAILQ_INIT(&d->lru);
	err = bounds_read(d, c->elf);
	if (!err)
		err = image_find(d, c);
	if (!err)
		err = units_read(d);
	if (!err)
		err = units_aranges(d);
	if (!err && d->n_ranges == 0)
		err = -ENODATA;
	if (err) {
		c->relocation = err == -ENOTSUP ? d->image.relocation : 0;
		dwarf_close(d);
		return err;
	}
	qsort(d->ranges, d->n_ranges, sizeof(*d->ranges), cmp_range);
	*state = d;
	return 0;
}

static size_t dwarf_bytes(const void *state)
{
	const struct names_dwarf *d = state;

	return sizeof(*d) + d->image.held + d->alt_image.held +
	       dwarf_splits_bytes(&d->splits) + dwarf_file_bytes(&d->file) +
	       dwarf_file_bytes(&d->alt) + d->cap_units * sizeof(*d->units) +
	       d->cap_ranges * sizeof(*d->ranges) + d->table_bytes +
	       dwarf_text_bytes(&d->texts);
}

/* The unit with this address: of ranges that overlap the one that starts last. */
static struct unit *unit_at(struct names_dwarf *d, uint64_t vaddr)
{
	uint32_t at = (uint32_t)(vaddr - d->bounds.start), i;

	VECTOR_SEARCH(i, d->n_ranges, d->ranges[i].start <= at);
	for (uint32_t n = 0; i > 0 && n < 8; n++)
		if (at < d->ranges[--i].end)
			return &d->units[d->ranges[i].unit];
	return NULL;
}

static void table_drop(struct names_dwarf *d, struct unit *u)
{
	if (!u->table)
		return;
	TAILQ_REMOVE(&d->lru, u, lru);
	d->table_bytes -= dwarf_table_bytes(u->table);
	dwarf_table_free(u->table);
	u->table = NULL;
}

/* Texts are of all tables: they go with the last one. */
static void tables_cut(struct names_dwarf *d, size_t most)
{
	struct unit *u;

	while (d->table_bytes + dwarf_text_bytes(&d->texts) > most &&
	       (u = TAILQ_LAST(&d->lru, lru_head)))
		table_drop(d, u);
	if (TAILQ_EMPTY(&d->lru))
		dwarf_text_fini(&d->texts);
}

static int table_read(struct names_dwarf *d, struct unit *u,
		      const struct dwarf_cu *tree, const struct dwarf_cu *lined)
{
	struct dwarf_source from = { .tree = tree, .lined = lined };
	struct dwarf_unit *read;
	int err = dwarf_unit_new(&read, tree, &d->bounds);

	if (err)
		return err;
	from.unit = read;
	err = dwarf_table_new(&u->table, &d->texts, &from);
	dwarf_unit_free(read);
	if (err)
		return err == -EFBIG ? -ENOENT : err;
	d->table_bytes += dwarf_table_bytes(u->table);
	TAILQ_INSERT_HEAD(&d->lru, u, lru);
	return 0;
}

/*
 * Makes the table of a unit. Of one whose split file is not there only the lines are
 * known.
 */
static int unit_read(struct names_dwarf *d, struct unit *u,
		     struct names_context *c)
{
	const struct dwarf_cu *tree;
	struct dwarf_cu cu;
	int err = dwarf_cu_open(&cu, &d->file, u->off, false);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	tree = &cu;
	if (u->split) {
		err = dwarf_splits_unit(&d->splits, &cu, c->ask, &tree);
		u->split = !err;
	}
	if (err != -ENOMEM)
		err = table_read(d, u, tree, &cu);
	dwarf_cu_close(&cu);
	return err;
}

/*
 * Whether all units can be read, and nothing else is needed then. Of sections that are
 * not packed only the first and last page are held.
 */
static bool dwarf_is_small(const struct names_dwarf *d)
{
	size_t size = d->image.size + d->alt_image.size;

	for (uint32_t i = 0; i < d->n_units; i++)
		if (d->units[i].split)
			return false;
	return size < DWARF_SMALL_MAX ||
	       d->image.held + d->alt_image.held > size / 2;
}

/* Reads all units; where their tables are too large for that, it is as if not. */
static int dwarf_read_all(struct names_dwarf *d, struct names_context *c)
{
	int err = 0;

	for (uint32_t i = 0; i < d->n_units && !err; i++) {
		if (!d->units[i].table)
			err = unit_read(d, &d->units[i], c);
		if (d->table_bytes + dwarf_text_bytes(&d->texts) >
		    DWARF_TABLES_MAX)
			err = -EFBIG;
	}
	if (err) {
		tables_cut(d, 0);
		return err == -ENOMEM ? err : 0;
	}
	d->complete = true;
	images_close(d);
	return 0;
}

static int dwarf_find(void *state, struct names_context *c, uint64_t vaddr,
		      struct names_found *out)
{
	struct names_dwarf *d = state;
	struct unit *u;
	int err = 0;

	vaddr += d->moved;
	if (vaddr < d->bounds.start || vaddr >= d->bounds.end)
		return -ENOENT;
	u = unit_at(d, vaddr);
	if (!u)
		return -ENOENT;
	if (!d->tried && dwarf_is_small(d))
		err = dwarf_read_all(d, c);
	d->tried = true;
	if (!err && !u->table)
		err = d->complete ? -ENOENT : unit_read(d, u, c);
	if (!err) {
		TAILQ_REMOVE(&d->lru, u, lru);
		TAILQ_INSERT_HEAD(&d->lru, u, lru);
		err = dwarf_table_find(u->table, &d->texts, c->arena, vaddr,
				       out);
		out->start -= d->moved;
	}
	if (!d->complete)
		tables_cut(d, DWARF_TABLES_MAX);
	return err;
}

static void dwarf_idle(void *state)
{
	struct names_dwarf *d = state;

	dwarf_splits_idle(&d->splits);
}

const struct names_source names_dwarf = {
	.open = dwarf_open,
	.close = dwarf_close,
	.bytes = dwarf_bytes,
	.find = dwarf_find,
	.idle = dwarf_idle,
};
