// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf: debug information, in the file or in its debug file, as a source of names.
 * libdw parses it (DWARF 5, and 2 to 4); the sections are in a debugimage.
 *
 * Which compile unit has an address is in a table of our own, made of the ranges of
 * all units: .debug_aranges, which libdw uses, is optional, and clang does not
 * write it.
 *
 * A unit is read once: a dwarf_table is made of it, which is a tenth as large. Where
 * sections had to be unpacked, and in small files, all units are read with the first
 * question, and the sections are dropped. Otherwise units are read when one of their
 * addresses is asked for, and the tables used longest ago are put out. libdw keeps what
 * it ever read: when that is much, and after each request, its handle is closed, and
 * opened again when it is needed.
 */
#include <dwarf.h>
#include <elfutils/libdwelf.h>
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
/*
 * Bytes of line programs: of one unit, and of those that libdw may have read until
 * it is reopened. A byte can be a row, and a row takes some 100 bytes; usually it has
 * three.
 */
#define DWARF_LINES_MAX (3U << 20)
#define DWARF_LINES_KEPT (128U << 10)

/* Memory for tables of units. */
#define DWARF_TABLES_MAX (12U << 20)

/* Files that are not packed, whose units are all read at once: bytes of DWARF. */
#define DWARF_SMALL_MAX (64U << 20)

/* What libdw holds of a unit, and of a byte of a line program, as a rule. */
#define DWARF_UNIT_BYTES 1200
#define DWARF_LINE_BYTES 32

/* A compile unit. */
struct unit {
	uint64_t die; /* offset in .debug_info */
	struct dwarf_table *table; /* or NULL */
	TAILQ_ENTRY(unit) lru; /* if it has a table */
	bool bare; /* without ranges of its own */
	bool listed; /* its lines may be read, and count in 'lines' */
	bool split; /* a skeleton: its entries are in another file */
};

struct range {
	uint32_t start, end; /* from bounds.start */
	uint32_t unit;
};

struct names_dwarf {
	struct debugimage image, alt_image;
	struct debugimage_part line; /* .debug_line */
	struct dwarf_splits splits;
	Elf *elf, *alt_elf;
	Dwarf *dw, *alt;
	struct dwarf_bounds bounds;
	struct unit *units;
	struct range *ranges; /* ascending */
	uint32_t n_units, cap_units, n_ranges, cap_ranges;
	TAILQ_HEAD(lru_head, unit) lru; /* last used first */
	struct dwarf_text texts;
	bool tried; /* to read all units */
	bool complete; /* all units have been read; the images are closed */
	size_t table_bytes, lines;
};

/* --- handles of libdw ------------------------------------------------------- */

static int handle_open(struct debugimage *im, Elf **elf, Dwarf **dw)
{
	*elf = elf_memory((char *)im->base, im->size);
	*dw = *elf ? dwarf_begin_elf(*elf, DWARF_C_READ, NULL) : NULL;
	return *dw ? 0 : -EINVAL;
}

static void handles_close(struct names_dwarf *d)
{
	dwarf_end(d->dw);
	dwarf_end(d->alt);
	elf_end(d->elf);
	elf_end(d->alt_elf);
	d->dw = d->alt = NULL;
	d->elf = d->alt_elf = NULL;
	d->lines = 0;
	for (uint32_t i = 0; i < d->n_units; i++)
		d->units[i].listed = false;
}

static int handles_open(struct names_dwarf *d)
{
	int err;

	elf_version(EV_CURRENT);
	err = handle_open(&d->image, &d->elf, &d->dw);
	if (!err && d->alt_image.base) {
		err = handle_open(&d->alt_image, &d->alt_elf, &d->alt);
		if (!err)
			dwarf_setalt(d->dw, d->alt);
	}
	return err;
}

/* --- units and ranges ------------------------------------------------------- */

static int range_add(struct names_dwarf *d, Dwarf_Addr start, Dwarf_Addr end,
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

static int unit_add(struct names_dwarf *d, Dwarf_Die *die, bool split)
{
	Dwarf_Addr base, start, end;
	uint32_t before = d->n_ranges;
	ptrdiff_t at = 0;
	int err = 0;

	if (VECTOR_ROOM(d->units, d->n_units, d->cap_units))
		return -ENOMEM;
	do {
		at = dwarf_ranges(die, at, &base, &start, &end);
		if (at > 0)
			err = range_add(d, start, end, d->n_units);
	} while (at > 0 && !err && d->n_ranges < DWARF_RANGES_MAX);
	d->units[d->n_units++] = (struct unit){
		.die = dwarf_dieoffset(die),
		.bare = d->n_ranges == before,
		.split = split,
	};
	return err;
}

static int units_read(struct names_dwarf *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int err = 0;

	while (!err && d->n_units < DWARF_UNITS_MAX &&
	       dwarf_get_units(d->dw, cu, &cu, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			err = unit_add(d, &die, type == DW_UT_skeleton);
	return err;
}

/* Some assemblers write ranges of units only to .debug_aranges. */
static int units_aranges(struct names_dwarf *d)
{
	Dwarf_Aranges *all;
	Dwarf_Arange *one;
	Dwarf_Addr start;
	Dwarf_Word len;
	Dwarf_Off off;
	size_t n;
	uint32_t at;
	int err = 0;

	if (dwarf_getaranges(d->dw, &all, &n))
		return 0;
	for (size_t i = 0; i < n && !err; i++) {
		one = dwarf_onearange(all, i);
		if (dwarf_getarangeinfo(one, &start, &len, &off))
			continue;
		VECTOR_SEARCH(at, d->n_units, d->units[at].die < off);
		if (at < d->n_units && d->units[at].die == off &&
		    d->units[at].bare && len <= UINT64_MAX - start)
			err = range_add(d, start, start + len, at);
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
static int bounds_read(struct dwarf_bounds *b, const struct symbolizer_elf *e)
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

/* --- the source ------------------------------------------------------------- */

static void dwarf_close(void *state)
{
	struct names_dwarf *d = state;

	for (uint32_t i = 0; i < d->n_units; i++)
		dwarf_table_free(d->units[i].table);
	handles_close(d);
	dwarf_text_fini(&d->texts);
	dwarf_splits_fini(&d->splits);
	debugimage_fini(&d->image);
	debugimage_fini(&d->alt_image);
	free(d->units);
	free(d->ranges);
	free(d);
}

/* The file that dwz(1) moved shared parts to, found by its build id. */
static void alt_open(struct names_dwarf *d, const struct symbolizer_ask *ask)
{
	const char *name;
	const void *id;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(d->dw, &name, &id);
	off_t size;
	int fd;

	if (len <= 0 || !ask)
		return;
	fd = ask->file(ask->arg, NULL, id, (size_t)len, 0, false);
	if (fd < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	symbolizer_src_fd(&src, fd, size < 0 ? 0 : (uint64_t)size);
	if (symbolizer_elf_init_object(&e, &src) == 0 ||
	    symbolizer_elf_init(&e, &src) == 0) {
		debugimage_init(&d->alt_image, &e, DEBUGIMAGE_PLAIN);
		symbolizer_elf_fini(&e);
	}
	close(fd);
}

/* With .gnu_debugaltlink only if its file is there: libdw would open it. */
static int image_open(struct names_dwarf *d, struct symbolizer_elf *e,
		      const struct symbolizer_ask *ask)
{
	int err = debugimage_init(&d->image, e, DEBUGIMAGE_ALT);

	if (err || !d->image.altlink)
		return err;
	err = handles_open(d);
	if (!err)
		alt_open(d, ask);
	handles_close(d);
	if (err || d->alt_image.base)
		return err;
	debugimage_fini(&d->image);
	return debugimage_init(&d->image, e, DEBUGIMAGE_PLAIN);
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
	err = bounds_read(&d->bounds, c->elf);
	if (!err)
		err = image_find(d, c);
	if (!err)
		err = handles_open(d);
	if (!err) {
		d->line = debugimage_part(&d->image, ".debug_line");
		err = units_read(d);
	}
	if (!err)
		err = units_aranges(d);
	if (!err && d->n_ranges == 0)
		err = -ENODATA;
	if (err) {
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
	       dwarf_splits_bytes(&d->splits) +
	       d->cap_units * sizeof(*d->units) +
	       (d->dw ? (size_t)d->n_units * DWARF_UNIT_BYTES : 0) +
	       d->cap_ranges * sizeof(*d->ranges) + d->table_bytes +
	       dwarf_text_bytes(&d->texts) + d->lines * DWARF_LINE_BYTES;
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

static int table_read(struct names_dwarf *d, struct unit *u, Dwarf_Die *tree,
		      Dwarf_Die *lined, const struct dwarf_skeleton *sk)
{
	struct dwarf_unit *read;
	int err = dwarf_unit_new(&read, tree, sk, &d->bounds);

	if (err)
		return err;
	err = dwarf_table_new(&u->table, &d->texts, read, tree, lined);
	dwarf_unit_free(read);
	if (err)
		return err == -EFBIG ? -ENOENT : err;
	d->table_bytes += dwarf_table_bytes(u->table);
	TAILQ_INSERT_HEAD(&d->lru, u, lru);
	return 0;
}

/* Bytes of the line program of a unit; 0: it has none, or one that is too large. */
static uint32_t unit_lines(const struct names_dwarf *d, Dwarf_Die *die)
{
	uint32_t len; /* DWARF 5 section 6.2.4; 64-bit DWARF has UINT32_MAX */
	Dwarf_Attribute a;
	Dwarf_Word at;

	if (!dwarf_attr(die, DW_AT_stmt_list, &a) || dwarf_formudata(&a, &at) ||
	    d->line.len < sizeof(len) || at > d->line.len - sizeof(len))
		return 0;
	memcpy(&len, d->line.p + at, sizeof(len));
	return len <= DWARF_LINES_MAX ? len : 0;
}

/* Makes room for the lines of a unit. -ENOENT: the file cannot be read any more. */
static int unit_ready(struct names_dwarf *d, struct unit *u, Dwarf_Die *die)
{
	uint32_t len;

	if (!d->dw && handles_open(d))
		return -ENOENT;
	if (!dwarf_offdie(d->dw, u->die, die))
		return -ENOENT;
	len = unit_lines(d, die);
	if (u->listed || !len)
		return 0;
	if (d->lines && d->lines + len > DWARF_LINES_KEPT) {
		handles_close(d);
		if (handles_open(d) || !dwarf_offdie(d->dw, u->die, die))
			return -ENOENT;
	}
	d->lines += len;
	u->listed = true;
	return 0;
}

/*
 * Makes the table of a unit. Of one whose split file is not there only the lines are
 * known.
 */
static int unit_read(struct names_dwarf *d, struct unit *u,
		     struct names_context *c)
{
	struct dwarf_skeleton sk;
	Dwarf_Die die, other, *tree = &die;
	int err = unit_ready(d, u, &die);

	if (err)
		return err;
	if (u->split) {
		err = dwarf_skeleton_read(&sk, &d->image, &die);
		if (!err)
			err = dwarf_splits_unit(&d->splits, &sk, c->ask,
						&other);
		if (err == -ENOMEM)
			return err;
		u->split = !err;
		tree = err ? &die : &other;
	}
	return table_read(d, u, tree, u->listed ? &die : NULL,
			  u->split ? &sk : NULL);
}

/* Whether all units can be read, and nothing else is needed then. */
static bool dwarf_is_small(const struct names_dwarf *d)
{
	for (uint32_t i = 0; i < d->n_units; i++)
		if (d->units[i].split)
			return false;
	return d->image.held + d->alt_image.held ||
	       d->image.size + d->alt_image.size < DWARF_SMALL_MAX;
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
	handles_close(d);
	if (err) {
		tables_cut(d, 0);
		return err == -ENOMEM ? err : 0;
	}
	d->complete = true;
	debugimage_fini(&d->image);
	debugimage_fini(&d->alt_image);
	d->line = (struct debugimage_part){ 0 };
	return 0;
}

static int dwarf_find(void *state, struct names_context *c, uint64_t vaddr,
		      struct names_found *out)
{
	struct names_dwarf *d = state;
	struct unit *u;
	int err = 0;

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
	}
	if (!d->complete)
		tables_cut(d, DWARF_TABLES_MAX);
	return err;
}

static void dwarf_idle(void *state)
{
	struct names_dwarf *d = state;

	handles_close(d);
	dwarf_splits_idle(&d->splits);
}

const struct names_source names_dwarf = {
	.open = dwarf_open,
	.close = dwarf_close,
	.bytes = dwarf_bytes,
	.find = dwarf_find,
	.idle = dwarf_idle,
};
