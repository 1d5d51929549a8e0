// SPDX-License-Identifier: Apache-2.0
/*
 * dwarf: debug information, in the file or in its debug file, as a source of names.
 * DWARF 2 to 5; the sections are in a debugimage.
 *
 * A unit is read once: a table is made of it, which is a tenth as large. Where
 * sections had to be unpacked, and in small files, all units are read with the first
 * question, and the sections are dropped. Otherwise units are read when one of their
 * addresses is asked for, and the records used longest ago are put out.
 *
 * What was read is kept in a store, see dwarf_store.h: then the sections are opened only
 * for a unit that is not in it. Of a small file it is read whole, of a large one by
 * unit, with a descriptor that each request asks for.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "symbolize/dwarf/debugimage.h"
#include "symbolize/units/dwarf.h"
#include "symbolize/dwarf/dwarf_split.h"
#include "symbolize/units/dwarf_store.h"
#include "symbolize/elf/debugfile.h"

struct dwarf_limits dwarf_limits = {
	.records = DWARF_STORE_RECORD_MAX,
	.small = 64U << 20,
	.news = 3U << 20,
};

/* A compile unit; its table in its record. */
struct unit {
	struct dwarf_record *record; /* or NULL */
	uint32_t at, len;
};

struct names_dwarf {
	struct debugimage image, alt_image;
	struct dwarf_file file, alt;
	struct dwarf_splits splits;
	struct dwarf_index index;
	uint64_t moved; /* how much more than in the file addresses are here */
	struct unit *units;
	TAILQ_HEAD(lru_head, dwarf_record) lru; /* last used first */
	size_t record_bytes;
	size_t news_bytes; /* of these, records to keep */
	bool tried; /* to read all units */
	bool complete; /* all units have been read; the images are closed */
	bool imageless; /* the images cannot be opened */
	/* What was kept of the units of a file that is not complete: */
	struct dwarf_store_place *places; /* by unit; NULL: nothing */
	struct dwarf_store store; /* its descriptor, or -1 */
	bool asked; /* for it, in this request */
	bool untrusted; /* it is damaged */
};

/* --- images ------------------------------------------------------------------ */

static void images_close(struct names_dwarf *d)
{
	dwarf_file_fini(&d->file);
	dwarf_file_fini(&d->alt);
	debugimage_fini(&d->image);
	debugimage_fini(&d->alt_image);
	d->image.held = d->alt_image.held = 0;
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

static int image_find(struct names_dwarf *d, struct symbolizer_elf *e,
		      const struct symbolizer_ask *ask)
{
	struct symbolizer_debugfile *f;
	int err = image_open(d, e, ask);

	if (err != -ENODATA)
		return err;
	err = symbolizer_debugfile_open(&f, e, ask);
	if (err)
		return err == -ENOMEM ? err : -ENODATA;
	err = image_open(d, &f->elf, ask);
	symbolizer_debugfile_close(f);
	return err;
}

/* Of a file of which only what was kept is in memory. -ENOENT: it has none. */
static int image_need(struct names_dwarf *d, struct names_context *c)
{
	struct symbolizer_elf e;
	int err = d->imageless ? -ENOENT : 0;

	if (err || d->image.base)
		return err;
	err = symbolizer_elf_init_any(&e, c->src);
	if (!err) {
		err = image_find(d, &e, c->ask);
		symbolizer_elf_fini(&e);
	}
	if (err == -ENOMEM)
		return err;
	d->imageless = err != 0;
	return err ? -ENOENT : 0;
}

/* --- records ----------------------------------------------------------------- */

static void record_take(struct names_dwarf *d, struct dwarf_record *r)
{
	struct dwarf_record_table t;

	for (uint32_t i = 0; i < dwarf_record_count(r); i++) {
		t = dwarf_record_at(r, i);
		if (!d->units[t.unit].record)
			d->units[t.unit] = (struct unit){ r, t.at, t.len };
	}
	d->record_bytes += sizeof(*r) + r->len;
	d->news_bytes += r->kept ? 0 : r->len;
	TAILQ_INSERT_HEAD(&d->lru, r, lru);
}

static void record_drop(struct names_dwarf *d, struct dwarf_record *r)
{
	uint32_t unit;

	for (uint32_t i = 0; i < dwarf_record_count(r); i++) {
		unit = dwarf_record_at(r, i).unit;
		if (d->units[unit].record == r)
			d->units[unit] = (struct unit){ 0 };
	}
	TAILQ_REMOVE(&d->lru, r, lru);
	d->record_bytes -= sizeof(*r) + r->len;
	d->news_bytes -= r->kept ? 0 : r->len;
	free(r);
}

static void records_cut(struct names_dwarf *d, size_t most)
{
	while (d->record_bytes > most)
		record_drop(d, TAILQ_LAST(&d->lru, lru_head));
}

/* --- what is kept ------------------------------------------------------------ */

static void kept_close(struct names_dwarf *d)
{
	if (d->store.fd >= 0)
		close(d->store.fd);
	d->store.fd = -1;
}

/* It is not used any more. Returns -ENOENT. */
static int store_damaged(struct names_dwarf *d, struct names_context *c)
{
	c->tally.units_damaged = true;
	d->untrusted = true;
	kept_close(d);
	free(d->places);
	d->places = NULL;
	return -ENOENT;
}

/* Asks for it, once in a request. -ENOENT: there is none that can be used. */
static int store_ask(struct names_dwarf *d, struct names_context *c)
{
	uint64_t at;
	int fd;

	if (d->asked || d->untrusted || !c->ask || !c->ask->units)
		return d->store.fd < 0 ? -ENOENT : 0;
	d->asked = true;
	fd = c->ask->units(c->ask->arg, &at);
	if (fd < 0)
		return -ENOENT;
	if (!dwarf_store_open(&d->store, fd, at))
		return 0;
	d->store.fd = fd;
	return store_damaged(d, c);
}

static int store_take(struct names_dwarf *d, struct names_context *c,
		      const struct dwarf_store_place *place)
{
	struct dwarf_record *r;
	int err = dwarf_store_record(&d->store, place, &r);

	if (err)
		return err == -ENOMEM ? err : store_damaged(d, c);
	c->tally.units_kept += dwarf_record_count(r);
	record_take(d, r);
	return 0;
}

/*
 * Instead of reading the file. If one record has all units they are all read now. -ENOENT:
 * nothing is kept.
 */
static int store_restore(struct names_dwarf *d, struct names_context *c)
{
	int err = store_ask(d, c);

	if (err)
		return err;
	err = dwarf_store_read(&d->store, &d->index, &d->places);
	if (!err) {
		d->units = calloc(d->index.n_units, sizeof(*d->units));
		err = d->units ? 0 : -ENOMEM;
	}
	if (!err && d->store.head.n_places == 1) {
		err = store_take(d, c, d->places);
		free(d->places);
		d->places = NULL;
		d->complete = true;
	}
	if (err == -EBADMSG || err == -ESTALE)
		err = store_damaged(d, c);
	if (!err) {
		d->tried = true;
		return 0;
	}
	d->complete = false;
	free(d->units);
	d->units = NULL;
	dwarf_index_fini(&d->index);
	return err;
}

/* What was kept by now: it may be more than by the last request. */
static int store_renew(struct names_dwarf *d, struct names_context *c)
{
	bool before = d->asked;
	int err = store_ask(d, c);

	if (err || before)
		return err;
	if (!d->places)
		d->places = calloc(d->index.n_units, sizeof(*d->places));
	if (!d->places)
		return -ENOMEM;
	err = dwarf_store_places(&d->store, &d->index, d->places);
	return err ? store_damaged(d, c) : 0;
}

static int unit_restore(struct names_dwarf *d, struct names_context *c,
			uint32_t unit)
{
	int err = store_renew(d, c);

	if (!err && (!d->places || !d->places[unit].len))
		err = -ENOENT;
	if (!err)
		err = store_take(d, c, &d->places[unit]);
	/* Its record may be of other units. */
	return err ? err : d->units[unit].record ? 0 : store_damaged(d, c);
}

/* Hands on what is new. What cannot be kept now is not kept. */
static void news_keep(struct names_dwarf *d, struct names_context *c)
{
	struct strbuf out = STRBUF_INIT;
	struct dwarf_store_news n;
	struct dwarf_record *r;
	int err;

	if (!d->news_bytes)
		return;
	err = dwarf_store_news_init(&n, &d->index, d->complete);
	TAILQ_FOREACH(r, &d->lru, lru) {
		if (!r->kept && !err && !d->moved && c->ask && c->ask->keep)
			dwarf_store_news_add(&n, r);
		r->kept = true;
	}
	if (!err && n.records.len && !dwarf_store_news_end(&n, &out))
		c->ask->keep(c->ask->arg, out.data, out.len);
	d->news_bytes = 0;
	dwarf_store_news_fini(&n);
	strbuf_fini(&out);
}

/* --- reading units ----------------------------------------------------------- */

static int table_read(struct names_dwarf *d, struct dwarf_making *m,
		      uint32_t unit, const struct dwarf_cu *tree,
		      const struct dwarf_cu *lined)
{
	struct dwarf_source from = { .tree = tree, .lined = lined };
	struct dwarf_unit *read;
	int err = dwarf_unit_new(&read, tree, &d->index.bounds);

	if (err)
		return err;
	from.unit = read;
	err = dwarf_making_add(m, unit, &from);
	dwarf_unit_free(read);
	return err == -EFBIG ? -ENOENT : err;
}

/*
 * Makes the table of a unit. Of one whose split file is not there only the lines are
 * known, and *whole is false.
 */
static int unit_make(struct names_dwarf *d, struct dwarf_making *m,
		     struct names_context *c, uint32_t unit, bool *whole)
{
	const struct dwarf_index_unit *u = &d->index.units[unit];
	const struct dwarf_cu *tree;
	struct dwarf_cu cu;
	int err = image_need(d, c);

	if (!err)
		err = dwarf_cu_open(&cu, &d->file, u->off, false);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	tree = &cu;
	if (u->flags & DWARF_INDEX_SPLIT)
		err = dwarf_splits_unit(&d->splits, &cu, c->ask, &tree);
	*whole = !err;
	if (err != -ENOMEM)
		err = table_read(d, m, unit, tree, &cu);
	c->tally.units_read += !err;
	dwarf_cu_close(&cu);
	return err;
}

static int unit_read(struct names_dwarf *d, struct names_context *c,
		     uint32_t unit)
{
	struct dwarf_making m = { 0 };
	struct dwarf_record *r;
	bool whole = false;
	int err = unit_make(d, &m, c, unit, &whole);

	if (!err) {
		r = dwarf_making_end(&m);
		err = r ? 0 : -ENOMEM;
	}
	dwarf_making_fini(&m);
	if (err)
		return err;
	r->kept = !whole;
	record_take(d, r);
	if (d->news_bytes > dwarf_limits.news)
		news_keep(d, c);
	return 0;
}

/*
 * Whether all units can be read, and nothing else is needed then. Of sections that are
 * not packed only the first and last page are held.
 */
static bool dwarf_is_small(const struct names_dwarf *d)
{
	size_t size = d->image.size + d->alt_image.size;

	for (uint32_t i = 0; i < d->index.n_units; i++)
		if (d->index.units[i].flags & DWARF_INDEX_SPLIT)
			return false;
	return size < dwarf_limits.small ||
	       d->image.held + d->alt_image.held > size / 2;
}

/* Reads all units; where their tables are too large for that, it is as if not. */
static int dwarf_read_all(struct names_dwarf *d, struct names_context *c)
{
	struct dwarf_making m = { 0 };
	struct dwarf_record *r = NULL;
	bool whole;
	int err = 0;

	for (uint32_t i = 0; i < d->index.n_units && !err; i++) {
		err = unit_make(d, &m, c, i, &whole);
		if (dwarf_making_bytes(&m) > dwarf_limits.records)
			err = -EFBIG;
	}
	if (!err)
		r = dwarf_making_end(&m);
	dwarf_making_fini(&m);
	if (!r)
		return err == -ENOMEM || !err ? -ENOMEM : 0;
	record_take(d, r);
	d->complete = true;
	images_close(d);
	return 0;
}

/* Reads a unit, or what was kept of it. -ENOENT: it cannot be read. */
static int unit_need(struct names_dwarf *d, struct names_context *c,
		     uint32_t unit)
{
	int err = 0;

	if (!d->tried && dwarf_is_small(d))
		err = dwarf_read_all(d, c);
	d->tried = true;
	if (err || d->units[unit].record)
		return err;
	if (d->complete)
		return -ENOENT;
	err = unit_restore(d, c, unit);
	return err == -ENOENT ? unit_read(d, c, unit) : err;
}

/* --- the source -------------------------------------------------------------- */

static void dwarf_close(void *state)
{
	struct names_dwarf *d = state;

	records_cut(d, 0);
	images_close(d);
	dwarf_splits_fini(&d->splits);
	dwarf_index_fini(&d->index);
	kept_close(d);
	free(d->places);
	free(d->units);
	free(d);
}

static int units_find(struct names_dwarf *d, struct names_context *c)
{
	int err = image_find(d, c->elf, c->ask);

	if (!err)
		err = dwarf_index_read(&d->index, &d->file);
	if (err)
		return err;
	d->units = calloc(d->index.n_units + 1ULL, sizeof(*d->units));
	return d->units ? 0 : -ENOMEM;
}

static int dwarf_open(void **state, struct names_context *c)
{
	struct names_dwarf *d = calloc(1, sizeof(*d));
	struct dwarf_bounds bounds;
	int err = -ENOMEM;

	if (!d)
		return err;
	TAILQ_INIT(&d->lru);
	d->store.fd = -1;
	err = dwarf_index_bounds(&bounds, c->elf);
	/* What is kept of a file has its own addresses. */
	if (c->elf->type == ET_REL) {
		d->moved = DEBUGIMAGE_OBJECT;
		d->untrusted = true;
	}
	bounds.start += d->moved;
	bounds.end += d->moved;
	d->index.bounds = bounds;
	if (!err)
		err = store_restore(d, c);
	if (err == -ENOENT) {
		d->index.bounds = bounds;
		err = units_find(d, c);
	}
	if (err) {
		c->relocation = err == -ENOTSUP ? d->image.relocation : 0;
		dwarf_close(d);
		return err;
	}
	*state = d;
	return 0;
}

static size_t dwarf_bytes(const void *state)
{
	const struct names_dwarf *d = state;
	size_t unit = sizeof(*d->units) + (d->places ? sizeof(*d->places) : 0);

	return sizeof(*d) + d->image.held + d->alt_image.held +
	       dwarf_splits_bytes(&d->splits) + dwarf_file_bytes(&d->file) +
	       dwarf_file_bytes(&d->alt) + dwarf_index_bytes(&d->index) +
	       d->index.n_units * unit + d->record_bytes;
}

static int dwarf_find(void *state, struct names_context *c, uint64_t vaddr,
		      struct names_found *out)
{
	struct names_dwarf *d = state;
	struct dwarf_table t;
	struct unit *u;
	uint32_t unit;
	int err;

	vaddr += d->moved;
	if (!dwarf_index_find(&d->index, vaddr, &unit))
		return -ENOENT;
	u = &d->units[unit];
	err = unit_need(d, c, unit);
	if (!err) {
		TAILQ_REMOVE(&d->lru, u->record, lru);
		TAILQ_INSERT_HEAD(&d->lru, u->record, lru);
		t = dwarf_record_table(u->record, u->at, u->len,
				       &d->index.bounds);
		err = dwarf_table_find(&t, c->arena, vaddr, out);
		out->start -= d->moved;
	}
	if (!d->complete)
		records_cut(d, dwarf_limits.records);
	return err;
}

/* What is less than a part of the index is not worth handing on yet. */
static void dwarf_idle(void *state, struct names_context *c)
{
	struct names_dwarf *d = state;

	if (d->complete || d->news_bytes >= dwarf_index_bytes(&d->index) / 4)
		news_keep(d, c);
	dwarf_splits_idle(&d->splits);
	kept_close(d);
	d->asked = false;
}

const struct names_source names_dwarf = {
	.open = dwarf_open,
	.close = dwarf_close,
	.bytes = dwarf_bytes,
	.find = dwarf_find,
	.idle = dwarf_idle,
};
