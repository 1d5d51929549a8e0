// SPDX-License-Identifier: Apache-2.0
/* dwarf_file: see symbolize/dwarf/dwarf_file.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_entry.h"

/* Limits for untrusted files. */
#define FILE_UNITS_MAX (1U << 18) /* of all types */
#define FILE_CODES_MAX (1U << 16) /* abbreviations of a unit */
#define FILE_ATTRS_MAX (1U << 18) /* of all of them */
#define FILE_SLOT_BYTES (2U << 20) /* for units that others refer to */

static const char *const section_names[] = {
	[DWARF_INFO] = ".debug_info",
	[DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_STR] = ".debug_str",
	[DWARF_LINE_STR] = ".debug_line_str",
	[DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",
	[DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists",
	[DWARF_LINE] = ".debug_line",
	[DWARF_ARANGES] = ".debug_aranges",
};

struct debugimage_part dwarf_part_from(struct debugimage_part p, uint64_t off)
{
	if (off >= p.len)
		return (struct debugimage_part){ 0 };
	return (struct debugimage_part){ p.p + off, p.len - off };
}

struct cursor dwarf_cursor(struct debugimage_part p, uint64_t off)
{
	p = dwarf_part_from(p, off);
	return (struct cursor){ p.p, p.len ? p.p + p.len : p.p, false };
}

/* --- units ------------------------------------------------------------------- */

/* The length that a unit begins with, and the size of its offsets. */
static uint64_t unit_length(struct cursor *c, uint8_t *offset_size)
{
	uint64_t len = cursor_fixed(c, 4);

	*offset_size = 4;
	if (len == 0xffffffff) {
		*offset_size = 8;
		len = cursor_fixed(c, 8);
	}
	return len;
}

int dwarf_file_units(struct dwarf_file *f)
{
	struct cursor c = dwarf_cursor(f->s[DWARF_INFO], 0);
	const uint8_t *begin;
	uint64_t len;
	uint8_t size;

	while (c.p < c.end && f->n_units < FILE_UNITS_MAX) {
		begin = c.p;
		len = unit_length(&c, &size);
		if (!cursor_bytes(&c, len))
			break;
		if (VECTOR_ROOM(f->units, f->n_units, f->cap_units))
			return -ENOMEM;
		f->units[f->n_units++] = (uint64_t)(begin - f->s[DWARF_INFO].p);
	}
	return 0;
}

void dwarf_file_sections(struct dwarf_file *f, const struct debugimage *im)
{
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		f->s[i] = debugimage_part(im, section_names[i]);
}

static void slots_free(struct dwarf_file *f)
{
	for (size_t i = 0; i < DWARF_SLOTS; i++) {
		if (f->slots[i])
			dwarf_cu_close(f->slots[i]);
		free(f->slots[i]);
		f->slots[i] = NULL;
	}
	f->slot_bytes = 0;
}

void dwarf_file_fini(struct dwarf_file *f)
{
	slots_free(f);
	free(f->units);
	*f = (struct dwarf_file){ 0 };
}

size_t dwarf_file_bytes(const struct dwarf_file *f)
{
	return f->cap_units * sizeof(*f->units) + f->slot_bytes;
}

size_t dwarf_cu_bytes(const struct dwarf_cu *cu)
{
	return cu->cap_abbrevs * sizeof(*cu->abbrevs) +
	       cu->cap_attrs * sizeof(*cu->attrs);
}

static size_t slot_bytes(const struct dwarf_cu *cu)
{
	return sizeof(*cu) + dwarf_cu_bytes(cu);
}

static struct dwarf_cu *slot_open(struct dwarf_file *f, uint32_t unit)
{
	struct dwarf_cu **slot = &f->slots[unit % DWARF_SLOTS];

	if (*slot && (*slot)->off == f->units[unit])
		return *slot;
	if (*slot) {
		f->slot_bytes -= slot_bytes(*slot);
		dwarf_cu_close(*slot);
	} else {
		*slot = malloc(sizeof(**slot));
	}
	if (*slot && dwarf_cu_open(*slot, f, f->units[unit], false)) {
		free(*slot);
		*slot = NULL;
	}
	if (*slot)
		f->slot_bytes += slot_bytes(*slot);
	return *slot;
}

struct dwarf_cu *dwarf_file_at(struct dwarf_file *f, uint64_t off)
{
	struct dwarf_cu *cu;
	uint32_t i;

	if (f->slot_bytes > FILE_SLOT_BYTES)
		slots_free(f);
	VECTOR_SEARCH(i, f->n_units, f->units[i] <= off);
	cu = i ? slot_open(f, i - 1) : NULL;
	return cu && off < cu->end ? cu : NULL;
}

/* --- abbreviations ------------------------------------------------------------ */

static int abbrev_attr(struct dwarf_cu *cu, struct dwarf_abbrev *a,
		       const struct dwarf_attr *attr)
{
	struct dwarf_attr *last =
		a->n_attrs ? &cu->attrs[cu->n_attrs - 1] : NULL;

	if (last && last->at == DWARF_N_AT && attr->at == DWARF_N_AT &&
	    last->size >= 0 && attr->size >= 0 &&
	    last->size <= INT16_MAX - attr->size) {
		last->size = (int16_t)(last->size + attr->size);
		return 0;
	}
	if (cu->n_attrs == FILE_ATTRS_MAX)
		return -EINVAL;
	if (VECTOR_ROOM(cu->attrs, cu->n_attrs, cu->cap_attrs))
		return -ENOMEM;
	cu->attrs[cu->n_attrs++] = *attr;
	a->n_attrs++;
	return 0;
}

/* The attributes of one, and how large they are in an entry. -EINVAL: damaged. */
static int abbrev_attrs(struct dwarf_cu *cu, struct cursor *c,
			struct dwarf_abbrev *a)
{
	uint64_t name, form, sum = 0;
	struct dwarf_attr attr;
	bool varies = false;
	int err = 0;

	a->attrs = cu->n_attrs;
	while (!err) {
		name = cursor_uleb(c);
		form = cursor_uleb(c);
		if (c->bad)
			return -EINVAL;
		if (!name && !form)
			break;
		attr = (struct dwarf_attr){
			/* No form has that number: it is as if unknown. */
			.form = (uint16_t)MIN(form, (uint64_t)UINT16_MAX),
			.size = (int16_t)dwarf_form_size(cu, form),
			.at = (uint8_t)dwarf_entry_at_index(name),
		};
		if (form == DW_FORM_implicit_const)
			attr.implicit = cursor_sleb(c);
		varies |= attr.size < 0;
		sum += attr.size < 0 ? 0 : (uint64_t)attr.size;
		a->sibling |= attr.at == DWARF_SIBLING;
		err = abbrev_attr(cu, a, &attr);
	}
	a->fixed = varies || sum >= DWARF_VARIES ? DWARF_VARIES : (uint16_t)sum;
	return err;
}

/* Room for this code, without gaps. */
static int abbrevs_room(struct dwarf_cu *cu, uint64_t code)
{
	while (cu->n_abbrevs < code) {
		if (VECTOR_ROOM(cu->abbrevs, cu->n_abbrevs, cu->cap_abbrevs))
			return -ENOMEM;
		cu->abbrevs[cu->n_abbrevs++] = (struct dwarf_abbrev){ 0 };
	}
	return 0;
}

/* Up to code 'last'. Entries with a code that is not read end the unit there. */
static int abbrevs_read(struct dwarf_cu *cu, uint64_t last)
{
	struct cursor c = dwarf_cursor(cu->table, 0);
	struct dwarf_abbrev a;
	uint64_t code, tag;
	int err;

	for (uint32_t n = 0; n < FILE_CODES_MAX; n++) {
		code = cursor_uleb(&c);
		if (c.bad || !code || code > FILE_CODES_MAX)
			break;
		tag = cursor_uleb(&c);
		a = (struct dwarf_abbrev){ .tag = (uint16_t)MIN(
						   tag, (uint64_t)UINT16_MAX) };
		a.children = cursor_fixed(&c, 1) == DW_CHILDREN_yes;
		err = abbrev_attrs(cu, &c, &a);
		if (!err)
			err = abbrevs_room(cu, code);
		if (err == -EINVAL)
			break;
		if (err)
			return err;
		cu->abbrevs[code - 1] = a;
		if (code == last)
			break;
	}
	return 0;
}

/* --- a unit ------------------------------------------------------------------- */

static bool cu_header(struct dwarf_cu *cu)
{
	struct debugimage_part info = cu->file->s[DWARF_INFO];
	struct cursor c = dwarf_cursor(info, cu->off);
	uint64_t len = unit_length(&c, &cu->offset_size), abbrev, version;

	if (c.bad || len > (size_t)(c.end - c.p))
		return false;
	c.end = c.p + len;
	cu->end = (uint64_t)(c.end - info.p);
	version = cursor_fixed(&c, 2);
	if (version < 2 || version > 5)
		return false;
	cu->version = (uint8_t)version;
	cu->type = DW_UT_compile;
	if (cu->version >= 5) {
		cu->type = (uint8_t)cursor_fixed(&c, 1);
		cu->addr_size = (uint8_t)cursor_fixed(&c, 1);
	}
	abbrev = cursor_fixed(&c, cu->offset_size);
	if (cu->version < 5)
		cu->addr_size = (uint8_t)cursor_fixed(&c, 1);
	else if (cu->type == DW_UT_skeleton || cu->type == DW_UT_split_compile)
		cu->id = cursor_fixed(&c, 8);
	else if (cu->type == DW_UT_type || cu->type == DW_UT_split_type)
		cursor_bytes(&c, 8 + cu->offset_size);
	cu->first = (uint64_t)(c.p - info.p);
	cu->table = dwarf_part_from(cu->file->s[DWARF_ABBREV], abbrev);
	return !c.bad && (cu->addr_size == 4 || cu->addr_size == 8);
}

/* Before DWARF 5 the type is in the entry. */
static void cu_type(struct dwarf_cu *cu)
{
	const struct dwarf_value *id =
		dwarf_entry_value(&cu->unit, DWARF_DWO_ID);

	if (cu->version >= 5)
		return;
	if (cu->unit.abbrev->tag == DW_TAG_partial_unit)
		cu->type = DW_UT_partial;
	else if (cu->unit.abbrev->tag == DW_TAG_type_unit)
		cu->type = DW_UT_type;
	else if (dwarf_value_number(id, &cu->id))
		cu->type =
			cu->file->split ? DW_UT_split_compile : DW_UT_skeleton;
}

/* A section from the base that the entry has, or else from its first header on. */
static struct debugimage_part cu_base(const struct dwarf_cu *cu,
				      enum dwarf_section section,
				      enum dwarf_at at, uint64_t header)
{
	uint64_t off = cu->version >= 5 ? header : 0;

	dwarf_value_number(dwarf_entry_value(&cu->unit, at), &off);
	return dwarf_part_from(cu->file->s[section], off);
}

static void cu_bases(struct dwarf_cu *cu)
{
	uint64_t length = cu->offset_size == 8 ? 12 : 4;
	const struct dwarf_value *low =
		dwarf_entry_value(&cu->unit, DWARF_LOW_PC);

	cu->str_offsets = cu_base(cu, DWARF_STR_OFFSETS, DWARF_STR_OFFSETS_BASE,
				  length + 4);
	cu->addr = cu_base(cu, DWARF_ADDR, DWARF_ADDR_BASE, length + 4);
	cu->lists =
		cu_base(cu, DWARF_RNGLISTS, DWARF_RNGLISTS_BASE, length + 8);
	/* The skeleton's own ranges are not from this base. */
	cu->ranges = cu->file->s[DWARF_RANGES];
	if (!dwarf_value_address(cu, low, &cu->low))
		cu->low = 0;
}

/* The code of the unit's entry. */
static uint64_t cu_code(const struct dwarf_cu *cu)
{
	struct cursor c = dwarf_cursor(cu->file->s[DWARF_INFO], cu->first);

	return cursor_uleb(&c);
}

int dwarf_cu_open(struct dwarf_cu *cu, struct dwarf_file *f, uint64_t off,
		  bool head)
{
	int err;

	memset(cu, 0, sizeof(*cu));
	cu->file = f;
	cu->off = off;
	if (!cu_header(cu))
		return -EINVAL;
	err = abbrevs_read(cu, head ? cu_code(cu) : 0);
	if (!err && !dwarf_entry_at(cu, cu->first, &cu->unit))
		err = -EINVAL;
	if (err) {
		dwarf_cu_close(cu);
		return err;
	}
	cu_type(cu);
	cu_bases(cu);
	return 0;
}

void dwarf_cu_close(struct dwarf_cu *cu)
{
	free(cu->abbrevs);
	free(cu->attrs);
	cu->abbrevs = NULL;
	cu->attrs = NULL;
}
