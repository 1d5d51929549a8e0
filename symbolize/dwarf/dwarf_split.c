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
#define SPLIT_ENTRIES_MAX 65536 /* of a range list */
#define SPLIT_UNIT_BYTES 4096 /* what libdw holds, as a rule */
#define SPLIT_PATH_MAX 1024

struct dwarf_split {
	struct debugimage image;
	struct debugimage_part all[5]; /* see columns */
	Elf *elf;
	Dwarf *dw;
	uint64_t id; /* of the unit that the handle is open for */
};

/* DWARF 5 section 7.3.5.3, and the wiki page DebugFissionDWP: same numbers but one. */
static const struct {
	const char *name;
	uint32_t gnu, number;
} columns[] = {
	{ ".debug_info", 1, 1 },     { ".debug_abbrev", 3, 3 },
	{ ".debug_line", 4, 4 },     { ".debug_str_offsets", 6, 6 },
	{ ".debug_rnglists", 0, 8 },
};

/* --- skeleton --------------------------------------------------------------- */

static bool unit_number(Dwarf_Die *unit, unsigned int name, unsigned int gnu,
			Dwarf_Word *out)
{
	Dwarf_Attribute a;

	return (dwarf_attr(unit, name, &a) || dwarf_attr(unit, gnu, &a)) &&
	       dwarf_formudata(&a, out) == 0;
}

static const char *unit_text(Dwarf_Die *unit, unsigned int name,
			     unsigned int gnu)
{
	Dwarf_Attribute a;

	return dwarf_attr(unit, name, &a) || dwarf_attr(unit, gnu, &a)
		       ? dwarf_formstring(&a)
		       : NULL;
}

static struct debugimage_part part_from(struct debugimage_part p, uint64_t off)
{
	if (off >= p.len)
		return (struct debugimage_part){ 0 };
	return (struct debugimage_part){ p.p + off, p.len - off };
}

int dwarf_skeleton_read(struct dwarf_skeleton *sk, const struct debugimage *im,
			Dwarf_Die *unit)
{
	Dwarf_Word addr = 0, ranges = 0;
	Dwarf_Die die;
	uint8_t type;

	*sk = (struct dwarf_skeleton){ 0 };
	if (dwarf_cu_info(unit->cu, &sk->version, &type, &die, NULL, &sk->id,
			  NULL, NULL) ||
	    type != DW_UT_skeleton)
		return -ENOENT;
	sk->name = unit_text(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	sk->dir = unit_text(unit, DW_AT_comp_dir, DW_AT_comp_dir);
	unit_number(unit, DW_AT_addr_base, DW_AT_GNU_addr_base, &addr);
	if (sk->version < 5)
		unit_number(unit, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base,
			    &ranges);
	if (dwarf_lowpc(unit, &sk->low))
		sk->low = 0;
	sk->addr = part_from(debugimage_part(im, ".debug_addr"), addr);
	sk->ranges = part_from(debugimage_part(im, ".debug_ranges"), ranges);
	return sk->name ? 0 : -ENOENT;
}

/* --- a file ----------------------------------------------------------------- */

static void split_close(struct dwarf_split *s)
{
	dwarf_end(s->dw);
	elf_end(s->elf);
	s->dw = NULL;
	s->elf = NULL;
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
	if (!err && symbolizer_elf_init_object(&e, &src))
		err = symbolizer_elf_init(&e, &src);
	if (!err) {
		err = debugimage_init(&s->image, &e, DEBUGIMAGE_SPLIT);
		symbolizer_elf_fini(&e);
	}
	close(fd);
	if (err) {
		split_free(s);
		return err == -ENOMEM ? err : -ENOENT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		s->all[i] = debugimage_part(&s->image, columns[i].name);
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

/* Makes the image of a .dwp file one of this unit only. */
static bool index_slice(struct dwarf_split *s, struct debugimage_part p,
			uint64_t id)
{
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
		    !debugimage_slice(&s->image, columns[k].name, s->all[k],
				      index_word(p, off + 4 * i),
				      index_word(p, len + 4 * i)))
			return false;
	}
	return true;
}

/* The unit with the id, in the open handle. */
static int split_find(struct dwarf_split *s, const struct dwarf_skeleton *sk,
		      Dwarf_Die *unit)
{
	Dwarf_CU *cu = NULL;
	uint64_t id;
	uint8_t type;
	Dwarf_Half version;
	Dwarf_Die die;

	for (int i = 0; i < SPLIT_UNITS_MAX; i++) {
		if (dwarf_get_units(s->dw, cu, &cu, NULL, &type, unit, NULL))
			break;
		if (type == DW_UT_split_compile &&
		    !dwarf_cu_info(cu, &version, &type, &die, NULL, &id, NULL,
				   NULL) &&
		    id == sk->id && version == sk->version)
			return 0;
	}
	return -ENOENT;
}

static int split_unit(struct dwarf_split *s, struct dwarf_skeleton *sk,
		      Dwarf_Die *unit)
{
	struct debugimage_part index =
		debugimage_part(&s->image, ".debug_cu_index");

	if (!s->dw || s->id != sk->id) {
		split_close(s);
		if (index.len && !index_slice(s, index, sk->id))
			return -ENOENT;
		elf_version(EV_CURRENT);
		s->elf = elf_memory((char *)s->image.base, s->image.size);
		s->dw = s->elf ? dwarf_begin_elf(s->elf, DWARF_C_READ, NULL)
			       : NULL;
		s->id = sk->id;
	}
	sk->lists = debugimage_part(&s->image, ".debug_rnglists");
	sk->file = (struct debugimage_part){ s->image.base, s->image.size };
	return s->dw ? split_find(s, sk, unit) : -ENOENT;
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
static int splits_open(struct dwarf_splits *s, struct dwarf_skeleton *sk,
		       const struct symbolizer_ask *ask, Dwarf_Die *unit)
{
	const char *base = strrchr(sk->name, '/');
	char path[SPLIT_PATH_MAX];
	struct dwarf_split *f;
	int len, err = -ENOENT;

	len = snprintf(path, sizeof(path), "%s%s%s",
		       *sk->name == '/' || !sk->dir ? "" : sk->dir,
		       *sk->name == '/' ? "" : "/", sk->name);
	base = base ? base + 1 : sk->name;
	for (int i = 0; i < 2 && err == -ENOENT; i++) {
		if (i == 0 && (len < 0 || (size_t)len >= sizeof(path)))
			continue;
		err = splits_ask(s, &f, ask, i ? base : path);
		if (err)
			continue;
		err = split_unit(f, sk, unit);
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

int dwarf_splits_unit(struct dwarf_splits *s, struct dwarf_skeleton *sk,
		      const struct symbolizer_ask *ask, Dwarf_Die *unit)
{
	int err;

	if (!s->looked) {
		err = splits_ask(s, &s->packed, ask, SYMBOLIZER_ASK_DWP);
		if (err == -ENOMEM)
			return err;
		s->looked = true;
	}
	if (s->packed && split_unit(s->packed, sk, unit) == 0)
		return 0;
	for (size_t i = 0; i < DWARF_SPLITS_MAX; i++)
		if (s->files[i] && s->files[i]->id == sk->id &&
		    split_unit(s->files[i], sk, unit) == 0)
			return 0;
	return splits_open(s, sk, ask, unit);
}

static size_t split_bytes(const struct dwarf_split *s)
{
	if (!s)
		return 0;
	return sizeof(*s) + s->image.held + (s->dw ? SPLIT_UNIT_BYTES : 0);
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

/* --- ranges ----------------------------------------------------------------- */

/*
 * The number of an attribute that is an index into a table, or an offset in a
 * section: dwarf_formudata() looks for that in the handle, which does not have it.
 */
static bool attr_index(const struct dwarf_skeleton *sk,
		       const Dwarf_Attribute *a, uint64_t *out)
{
	struct cursor c = { a->valp, sk->file.p + sk->file.len, false };

	switch (a->form) {
	case DW_FORM_addrx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
		*out = cursor_uleb(&c);
		break;
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		*out = cursor_fixed(&c, a->form - DW_FORM_addrx1 + 1);
		break;
	case DW_FORM_sec_offset:
		*out = cursor_fixed(&c, 4);
		break;
	default:
		return false;
	}
	return !c.bad;
}

static bool addr_at(const struct dwarf_skeleton *sk, uint64_t i, uint64_t *out)
{
	if (i >= sk->addr.len / sizeof(*out))
		return false;
	memcpy(out, sk->addr.p + i * sizeof(*out), sizeof(*out));
	return true;
}

static bool attr_addr(const struct dwarf_skeleton *sk, Dwarf_Attribute *a,
		      uint64_t *out)
{
	uint64_t i;

	if (a->form == DW_FORM_addr)
		return dwarf_formaddr(a, out) == 0;
	return a->form != DW_FORM_sec_offset && attr_index(sk, a, &i) &&
	       addr_at(sk, i, out);
}

/* DWARF 4 section 2.17.3. */
static size_t ranges_old(const struct dwarf_skeleton *sk, uint64_t off,
			 struct dwarf_span *out, size_t max)
{
	struct debugimage_part p = part_from(sk->ranges, off);
	struct cursor c = { p.p, p.len ? p.p + p.len : p.p, false };
	uint64_t base = sk->low, start, end;
	size_t n = 0;

	for (int i = 0; i < SPLIT_ENTRIES_MAX && n < max; i++) {
		start = cursor_fixed(&c, 8);
		end = cursor_fixed(&c, 8);
		if (c.bad || (!start && !end))
			break;
		if (start == UINT64_MAX)
			base = end;
		else
			out[n++] =
				(struct dwarf_span){ base + start, base + end };
	}
	return n;
}

/* An entry of a range list, DWARF 5 section 7.25. False: the list ends. */
static bool list_entry(const struct dwarf_skeleton *sk, struct cursor *c,
		       uint64_t *base, struct dwarf_span *s)
{
	uint64_t kind = cursor_fixed(c, 1);
	bool ok = true;

	*s = (struct dwarf_span){ 0 };
	switch (kind) {
	case DW_RLE_base_addressx:
		ok = addr_at(sk, cursor_uleb(c), base);
		break;
	case DW_RLE_startx_endx:
		ok = addr_at(sk, cursor_uleb(c), &s->start) &&
		     addr_at(sk, cursor_uleb(c), &s->end);
		break;
	case DW_RLE_startx_length:
		ok = addr_at(sk, cursor_uleb(c), &s->start);
		s->end = s->start + cursor_uleb(c);
		break;
	case DW_RLE_offset_pair:
		s->start = *base + cursor_uleb(c);
		s->end = *base + cursor_uleb(c);
		break;
	case DW_RLE_base_address:
		*base = cursor_fixed(c, 8);
		break;
	case DW_RLE_start_end:
		s->start = cursor_fixed(c, 8);
		s->end = cursor_fixed(c, 8);
		break;
	case DW_RLE_start_length:
		s->start = cursor_fixed(c, 8);
		s->end = s->start + cursor_uleb(c);
		break;
	default: /* DW_RLE_end_of_list */
		ok = false;
	}
	return ok && !c->bad;
}

static size_t ranges_list(const struct dwarf_skeleton *sk, uint64_t off,
			  struct dwarf_span *out, size_t max)
{
	struct debugimage_part p = part_from(sk->lists, off);
	struct cursor c = { p.p, p.len ? p.p + p.len : p.p, false };
	uint64_t base = sk->low;
	size_t n = 0;

	for (int i = 0; i < SPLIT_ENTRIES_MAX && n < max; i++) {
		if (!list_entry(sk, &c, &base, &out[n]))
			break;
		n += out[n].start < out[n].end;
	}
	return n;
}

/* Where a list is: offsets follow the header of 32-bit DWARF, 12 bytes. */
static bool list_offset(const struct dwarf_skeleton *sk, uint64_t i,
			uint64_t *off)
{
	if (sk->lists.len < 16 || i >= (sk->lists.len - 12) / 4)
		return false;
	*off = 12 + (uint64_t)index_word(sk->lists, 12 + 4 * i);
	return true;
}

size_t dwarf_split_ranges(const struct dwarf_skeleton *sk, Dwarf_Die *die,
			  struct dwarf_span *out, size_t max)
{
	Dwarf_Attribute a;
	Dwarf_Word off;
	uint64_t i;

	if (dwarf_attr(die, DW_AT_ranges, &a)) {
		if (!attr_index(sk, &a, &i) ||
		    (a.form == DW_FORM_rnglistx && !list_offset(sk, i, &i)))
			return 0;
		return sk->version < 5 ? ranges_old(sk, i, out, max)
				       : ranges_list(sk, i, out, max);
	}
	if (!dwarf_attr(die, DW_AT_low_pc, &a) ||
	    !attr_addr(sk, &a, &out->start) ||
	    !dwarf_attr(die, DW_AT_high_pc, &a))
		return 0;
	if (attr_addr(sk, &a, &out->end))
		return 1;
	if (dwarf_formudata(&a, &off))
		return 0;
	out->end = out->start + off;
	return 1;
}
