// SPDX-License-Identifier: Apache-2.0
/* dwarf_split: see symbolize/dwarf/dwarf_split.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/dwarf/dwarf_split.h"

/* Limits for untrusted files. */
#define SPLIT_UNITS_MAX 4096 /* of a .dwo file; usually one */
#define SPLIT_PROBES_MAX 1024 /* of the hash table of a .dwp file */
#define SPLIT_ASKS_MAX 128 /* files in a request */
#define SPLIT_COLUMNS_MAX 16
#define SPLIT_PATH_MAX 1024

/* DWARF 5 section 7.3.5.3, and the wiki page DebugFissionDWP: same numbers but one. */
static const struct {
	enum dwarf_section section;
	uint32_t gnu, number;
} columns[] = {
	{ DWARF_INFO, 1, 1 },	  { DWARF_ABBREV, 3, 3 },
	{ DWARF_LINE, 4, 4 },	  { DWARF_STR_OFFSETS, 6, 6 },
	{ DWARF_RNGLISTS, 0, 8 },
};

struct dwarf_split {
	struct debugimage image;
	struct debugimage_part index; /* of a .dwp file */
	uint64_t id; /* of the unit that 'file' has the sections of */
	struct dwarf_file file;
	struct dwarf_cu cu; /* that unit */
	bool opened, found; /* 'file', 'cu' */
};

/* --- a file ----------------------------------------------------------------- */

static void split_close(struct dwarf_split *s)
{
	if (s->found)
		dwarf_cu_close(&s->cu);
	dwarf_file_fini(&s->file);
	s->opened = s->found = false;
}

static void split_free(struct dwarf_split *s)
{
	if (!s)
		return;
	split_close(s);
	debugimage_fini(&s->image);
	free(s);
}

/* Takes 'fd'. -ENOENT: nothing to read there. */
static int split_new(struct dwarf_split **sp, int fd)
{
	struct dwarf_split *s = calloc(1, sizeof(*s));
	off_t size = lseek(fd, 0, SEEK_END); /* fstat() is not allowed */
	struct symbolizer_src src;
	struct symbolizer_elf e;
	int err = s ? 0 : -ENOMEM;

	symbolizer_src_fd(&src, fd, size < 0 ? 0 : (uint64_t)size);
	if (!err)
		err = symbolizer_elf_init_any(&e, &src);
	if (!err) {
		err = debugimage_init(&s->image, &e, DEBUGIMAGE_SPLIT);
		symbolizer_elf_fini(&e);
	}
	close(fd);
	if (err) {
		split_free(s);
		return err == -ENOMEM ? err : -ENOENT;
	}
	s->index = debugimage_part(&s->image, ".debug_cu_index");
	*sp = s;
	return 0;
}

static uint32_t index_word(struct debugimage_part p, uint64_t at)
{
	uint32_t v;

	if (at > p.len || p.len - at < sizeof(v))
		return 0;
	memcpy(&v, p.p + at, sizeof(v));
	return v;
}

/* The row of a unit in .debug_cu_index (DWARF 5 section 7.3.5.3), from 1; 0: none. */
static uint32_t index_row(struct debugimage_part p, uint64_t id, uint32_t slots)
{
	uint64_t mask = slots - 1, at = id & mask, step = (id >> 32 & mask) | 1;
	uint64_t found;
	uint32_t row;

	if (!slots || slots & mask || 16 + 12 * (uint64_t)slots > p.len)
		return 0;
	for (uint32_t n = 0; n < slots && n < SPLIT_PROBES_MAX; n++) {
		memcpy(&found, p.p + 16 + 8 * at, sizeof(found));
		row = index_word(p, 16 + 8 * (uint64_t)slots + 4 * at);
		if (!row || found == id)
			return row;
		at = (at + step) & mask;
	}
	return 0;
}

static bool part_slice(struct debugimage_part *p, uint64_t off, uint64_t len)
{
	if (off > p->len || len > p->len - off)
		return false;
	if (p->len) /* else it may have no address */
		*p = (struct debugimage_part){ p->p + off, len };
	return true;
}

/* Cuts the sections of a .dwp file to those of this unit. */
static bool index_slice(struct dwarf_split *s, uint64_t id)
{
	struct debugimage_part p = s->index;
	uint32_t version = index_word(p, 0), n = index_word(p, 4);
	uint32_t units = index_word(p, 8), slots = index_word(p, 12);
	uint32_t row = index_row(p, id, slots), column;
	uint64_t at = 16 + 12 * (uint64_t)slots, off, len;

	if (!row || row > units || n > SPLIT_COLUMNS_MAX ||
	    (version != 2 && (version & 0xffff) != 5))
		return false;
	off = at + 4 * (uint64_t)n * row;
	len = off + 4 * (uint64_t)n * units;
	if (len + 4 * (uint64_t)n > p.len)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		size_t k = 0;

		column = index_word(p, at + 4 * i);
		while (k < ARRAY_SIZE(columns) &&
		       column != (version == 2 ? columns[k].gnu
					       : columns[k].number))
			k++;
		if (k < ARRAY_SIZE(columns) &&
		    !part_slice(&s->file.s[columns[k].section],
				index_word(p, off + 4 * i),
				index_word(p, len + 4 * i)))
			return false;
	}
	return true;
}

/* The unit with the id, among those of the file. */
static int split_find(struct dwarf_split *s, const struct dwarf_cu *skeleton)
{
	uint32_t n = MIN(s->file.n_units, (uint32_t)SPLIT_UNITS_MAX);
	int err;

	for (uint32_t i = 0; i < n; i++) {
		err = dwarf_cu_open(&s->cu, &s->file, s->file.units[i], false);
		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		if (s->cu.type == DW_UT_split_compile &&
		    s->cu.id == skeleton->id &&
		    s->cu.version == skeleton->version) {
			s->found = true;
			return 0;
		}
		dwarf_cu_close(&s->cu);
	}
	return -ENOENT;
}

static int split_open(struct dwarf_split *s, const struct dwarf_cu *skeleton)
{
	int err;

	split_close(s);
	s->id = skeleton->id;
	s->file.split = true;
	dwarf_file_sections(&s->file, &s->image);
	if (s->index.len && !index_slice(s, s->id))
		return -ENOENT;
	err = dwarf_file_units(&s->file);
	if (!err)
		err = split_find(s, skeleton);
	s->opened = err != -ENOMEM;
	return err;
}

/* Addresses are in the executable, from the skeleton's bases on. */
static int split_unit(struct dwarf_split *s, const struct dwarf_cu *skeleton,
		      const struct dwarf_cu **unit)
{
	uint64_t base = 0;
	int err = s->opened && s->id == skeleton->id ? s->found ? 0 : -ENOENT
						     : split_open(s, skeleton);

	if (err)
		return err;
	dwarf_value_number(
		dwarf_entry_value(&skeleton->unit, DWARF_RANGES_BASE), &base);
	s->cu.ranges = dwarf_part_from(skeleton->ranges, base);
	s->cu.addr = skeleton->addr;
	s->cu.low = skeleton->low;
	*unit = &s->cu;
	return 0;
}

/* --- the files of an executable --------------------------------------------- */

static int splits_ask(struct dwarf_splits *s, struct dwarf_split **sp,
		      const struct symbolizer_ask *ask, const char *name)
{
	int fd = -ENOENT;

	if (ask && s->asked++ < SPLIT_ASKS_MAX)
		fd = ask->file(ask->arg, name, NULL, 0, 0, false);
	return fd < 0 ? -ENOENT : split_new(sp, fd);
}

/* Where the compiler put the file, else by its name beside the executable. */
static int splits_open(struct dwarf_splits *s, const struct dwarf_cu *skeleton,
		       const struct symbolizer_ask *ask,
		       const struct dwarf_cu **unit)
{
	const char *name = dwarf_value_text(
		skeleton, dwarf_entry_value(&skeleton->unit, DWARF_DWO_NAME));
	const char *dir = dwarf_value_text(
		skeleton, dwarf_entry_value(&skeleton->unit, DWARF_COMP_DIR));
	char path[SPLIT_PATH_MAX];
	struct dwarf_split *f;
	const char *asked;
	int len, err = -ENOENT;

	if (!name)
		return err;
	len = snprintf(path, sizeof(path), "%.*s%s%.*s", SPLIT_PATH_MAX,
		       *name == '/' || !dir ? "" : dir, *name == '/' ? "" : "/",
		       SPLIT_PATH_MAX, name);
	if (len < 0 || (size_t)len >= sizeof(path))
		return err;
	for (int i = 0; i < 2 && err == -ENOENT; i++) {
		asked = i ? strrchr(path, '/') + 1 : path;
		err = splits_ask(s, &f, ask, asked);
		if (err)
			continue;
		err = split_unit(f, skeleton, unit);
		if (err) {
			split_free(f);
			continue;
		}
		split_free(s->files[s->next]);
		s->files[s->next] = f;
		s->next = (s->next + 1) % DWARF_SPLITS_MAX;
	}
	return err;
}

int dwarf_splits_unit(struct dwarf_splits *s, const struct dwarf_cu *skeleton,
		      const struct symbolizer_ask *ask,
		      const struct dwarf_cu **unit)
{
	int err;

	if (!s->looked) {
		err = splits_ask(s, &s->packed, ask, SYMBOLIZER_ASK_DWP);
		if (err == -ENOMEM)
			return err;
		s->looked = true;
	}
	if (s->packed && split_unit(s->packed, skeleton, unit) == 0)
		return 0;
	for (size_t i = 0; i < DWARF_SPLITS_MAX; i++)
		if (s->files[i] && s->files[i]->id == skeleton->id &&
		    split_unit(s->files[i], skeleton, unit) == 0)
			return 0;
	return splits_open(s, skeleton, ask, unit);
}

static size_t split_bytes(const struct dwarf_split *s)
{
	if (!s)
		return 0;
	return sizeof(*s) + s->image.held + dwarf_file_bytes(&s->file) +
	       (s->found ? dwarf_cu_bytes(&s->cu) : 0);
}

size_t dwarf_splits_bytes(const struct dwarf_splits *s)
{
	size_t bytes = split_bytes(s->packed);

	for (size_t i = 0; i < DWARF_SPLITS_MAX; i++)
		bytes += split_bytes(s->files[i]);
	return bytes;
}

void dwarf_splits_idle(struct dwarf_splits *s)
{
	s->asked = 0;
	if (s->packed)
		split_close(s->packed);
	for (size_t i = 0; i < DWARF_SPLITS_MAX; i++)
		if (s->files[i])
			split_close(s->files[i]);
}

void dwarf_splits_fini(struct dwarf_splits *s)
{
	split_free(s->packed);
	for (size_t i = 0; i < DWARF_SPLITS_MAX; i++)
		split_free(s->files[i]);
}
