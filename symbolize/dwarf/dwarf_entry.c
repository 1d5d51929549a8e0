// SPDX-License-Identifier: Apache-2.0
/* dwarf_entry: see symbolize/dwarf/dwarf_entry.h. */
#include <dwarf.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_entry.h"
#include "symbolize/names/source.h"

/* --- forms ------------------------------------------------------------------- */

/* cursor_uleb(), with a short way for one byte. */
static inline uint64_t entry_uleb(struct cursor *c)
{
	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	return cursor_uleb(c);
}

int dwarf_form_size(const struct dwarf_cu *cu, uint64_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return cu->addr_size;
	case DW_FORM_ref_addr:
		return cu->version <= 2 ? cu->addr_size : cu->offset_size;
	case DW_FORM_sec_offset:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return cu->offset_size;
	default:
		return -1;
	}
}

static bool value_varying(const struct dwarf_cu *cu, struct cursor *c,
			  struct dwarf_value *v)
{
	const uint8_t *end;
	uint64_t form;

	switch (v->form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		v->n = entry_uleb(c);
		break;
	case DW_FORM_sdata:
		v->n = (uint64_t)cursor_sleb(c);
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		cursor_bytes(c, entry_uleb(c));
		break;
	case DW_FORM_block1:
	case DW_FORM_block2:
		cursor_bytes(c, cursor_fixed(c, v->form == DW_FORM_block1 ? 1
									  : 2));
		break;
	case DW_FORM_block4:
		cursor_bytes(c, cursor_fixed(c, 4));
		break;
	case DW_FORM_string:
		v->text = c->p;
		end = c->p < c->end ? memchr(c->p, 0, (size_t)(c->end - c->p))
				    : NULL;
		if (!end)
			return false;
		c->p = end + 1;
		break;
	case DW_FORM_indirect:
		form = cursor_uleb(c);
		return form != DW_FORM_indirect &&
		       form != DW_FORM_implicit_const &&
		       dwarf_value_read(cu, c, form, 0, v);
	default:
		return false;
	}
	return !c->bad;
}

/* cursor_fixed() without a call: entries are mostly such numbers. */
static inline uint64_t value_fixed(const uint8_t *p, int size)
{
	uint64_t v = 0;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v, p, 2);
		return v;
	case 3:
		memcpy(&v, p, 3);
		return v;
	case 4:
		memcpy(&v, p, 4);
		return v;
	case 8:
		memcpy(&v, p, 8);
		return v;
	default: /* DW_FORM_data16 */
		return 0;
	}
}

static inline bool value_take(const struct dwarf_cu *cu, struct cursor *c,
			      const struct dwarf_attr *a, struct dwarf_value *v)
{
	v->form = a->form;
	v->text = NULL;
	v->n = 0;
	if (a->size < 0)
		return value_varying(cu, c, v);
	if (a->size > c->end - c->p)
		return false;
	if (a->size)
		v->n = value_fixed(c->p, a->size);
	else
		v->n = a->form == DW_FORM_flag_present ? 1
						       : (uint64_t)a->implicit;
	c->p += a->size;
	return true;
}

bool dwarf_value_read(const struct dwarf_cu *cu, struct cursor *c,
		      uint64_t form, int64_t implicit, struct dwarf_value *v)
{
	const struct dwarf_attr a = {
		.implicit = implicit,
		.form = (uint16_t)form,
		.size = (int16_t)dwarf_form_size(cu, form),
	};

	return form <= UINT16_MAX && value_take(cu, c, &a, v);
}

/* --- values ------------------------------------------------------------------ */

static const char *part_text(struct debugimage_part p, uint64_t off)
{
	size_t left;

	if (off >= p.len)
		return NULL;
	left = p.len - off;
	if (!memchr(p.p + off, 0, MIN(left, (size_t)SOURCE_TEXT_MAX)) &&
	    left < SOURCE_TEXT_MAX)
		return NULL;
	return (const char *)p.p + off;
}

static const char *part_text_index(const struct dwarf_cu *cu, uint64_t i)
{
	uint64_t off = 0;

	if (i >= cu->str_offsets.len / cu->offset_size)
		return NULL;
	memcpy(&off, cu->str_offsets.p + i * cu->offset_size, cu->offset_size);
	return part_text(cu->file->s[DWARF_STR], off);
}

const char *dwarf_value_text(const struct dwarf_cu *cu,
			     const struct dwarf_value *v)
{
	const struct dwarf_file *f = cu->file;

	switch (v ? v->form : 0) {
	case DW_FORM_string:
		return (const char *)v->text;
	case DW_FORM_strp:
		return part_text(f->s[DWARF_STR], v->n);
	case DW_FORM_line_strp:
		return part_text(f->s[DWARF_LINE_STR], v->n);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return f->alt ? part_text(f->alt->s[DWARF_STR], v->n) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return part_text_index(cu, v->n);
	default:
		return NULL;
	}
}

bool dwarf_value_number(const struct dwarf_value *v, uint64_t *out)
{
	switch (v ? v->form : 0) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_sec_offset:
		*out = v->n;
		return true;
	default:
		return false;
	}
}

uint32_t dwarf_value_word(const struct dwarf_value *v)
{
	uint64_t n;

	return dwarf_value_number(v, &n) && n <= UINT32_MAX ? (uint32_t)n : 0;
}

bool dwarf_address_at(const struct dwarf_cu *cu, uint64_t i, uint64_t *out)
{
	if (i >= cu->addr.len / cu->addr_size)
		return false;
	*out = 0;
	memcpy(out, cu->addr.p + i * cu->addr_size, cu->addr_size);
	return true;
}

bool dwarf_value_address(const struct dwarf_cu *cu, const struct dwarf_value *v,
			 uint64_t *out)
{
	switch (v ? v->form : 0) {
	case DW_FORM_addr:
		*out = v->n;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return dwarf_address_at(cu, v->n, out);
	default:
		return false;
	}
}

bool dwarf_value_entry(const struct dwarf_cu *cu, const struct dwarf_value *v,
		       struct dwarf_file **f, uint64_t *off)
{
	*f = cu->file;
	switch (v ? v->form : 0) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*off = cu->off + v->n;
		return v->n < cu->end - cu->off;
	case DW_FORM_ref_addr:
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*f = cu->file->alt;
		break;
	default:
		return false;
	}
	*off = v->n;
	return *f != NULL;
}

/* --- entries ----------------------------------------------------------------- */

/* The attributes that are read; DWARF_N_AT: another. */
enum dwarf_at dwarf_entry_at_index(uint64_t name)
{
	/* DW_AT_*, index plus one. */
	static const uint8_t known[DW_AT_loclists_base + 1] = {
		[DW_AT_sibling] = 1 + DWARF_SIBLING,
		[DW_AT_name] = 1 + DWARF_NAME,
		[DW_AT_linkage_name] = 1 + DWARF_LINKAGE_NAME,
		[DW_AT_low_pc] = 1 + DWARF_LOW_PC,
		[DW_AT_high_pc] = 1 + DWARF_HIGH_PC,
		[DW_AT_ranges] = 1 + DWARF_RANGE_LIST,
		[DW_AT_abstract_origin] = 1 + DWARF_ORIGIN,
		[DW_AT_specification] = 1 + DWARF_SPECIFICATION,
		[DW_AT_decl_line] = 1 + DWARF_DECL_LINE,
		[DW_AT_call_file] = 1 + DWARF_CALL_FILE,
		[DW_AT_call_line] = 1 + DWARF_CALL_LINE,
		[DW_AT_stmt_list] = 1 + DWARF_STMT_LIST,
		[DW_AT_comp_dir] = 1 + DWARF_COMP_DIR,
		[DW_AT_str_offsets_base] = 1 + DWARF_STR_OFFSETS_BASE,
		[DW_AT_addr_base] = 1 + DWARF_ADDR_BASE,
		[DW_AT_rnglists_base] = 1 + DWARF_RNGLISTS_BASE,
		[DW_AT_dwo_name] = 1 + DWARF_DWO_NAME,
	};

	if (name < ARRAY_SIZE(known))
		return known[name] ? known[name] - 1 : DWARF_N_AT;
	switch (name) {
	case DW_AT_MIPS_linkage_name:
		return DWARF_MIPS_LINKAGE_NAME;
	case DW_AT_GNU_addr_base:
		return DWARF_ADDR_BASE;
	case DW_AT_GNU_ranges_base:
		return DWARF_RANGES_BASE;
	case DW_AT_GNU_dwo_name:
		return DWARF_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DWARF_DWO_ID;
	default:
		return DWARF_N_AT;
	}
}

bool dwarf_entry_begin(const struct dwarf_cu *cu, struct cursor *c,
		       struct dwarf_entry *e)
{
	uint64_t code;

	if (c->p >= c->end)
		return false;
	e->off = (uint64_t)(c->p - cu->file->s[DWARF_INFO].p);
	e->abbrev = NULL;
	e->has = 0;
	code = entry_uleb(c);
	if (code == 0)
		return !c->bad;
	if (code > cu->n_abbrevs || !cu->abbrevs[code - 1].tag)
		return false;
	e->abbrev = &cu->abbrevs[code - 1];
	return true;
}

bool dwarf_entry_read(const struct dwarf_cu *cu, struct cursor *c,
		      struct dwarf_entry *e)
{
	const struct dwarf_attr *a, *end;
	struct dwarf_value other;

	if (!e->abbrev->n_attrs)
		return true;
	a = &cu->attrs[e->abbrev->attrs];
	for (end = a + e->abbrev->n_attrs; a < end; a++) {
		if (a->at != DWARF_N_AT) {
			if (!value_take(cu, c, a, &e->at[a->at]))
				return false;
			e->has |= 1U << a->at;
		} else if (a->size < 0) {
			if (!value_take(cu, c, a, &other))
				return false;
		} else if (a->size > c->end - c->p) {
			return false;
		} else {
			c->p += a->size;
		}
	}
	return true;
}

/* Its attributes; *next: behind its children, or NULL if that is not said. */
static bool entry_pass(const struct dwarf_cu *cu, struct cursor *c,
		       struct dwarf_entry *e, const uint8_t **next)
{
	const struct dwarf_abbrev *a = e->abbrev;
	const struct dwarf_value *v;
	struct dwarf_file *f;
	uint64_t off;

	*next = NULL;
	if (a->fixed != DWARF_VARIES && !(a->children && a->sibling))
		return cursor_bytes(c, a->fixed) != NULL;
	if (!dwarf_entry_read(cu, c, e))
		return false;
	v = a->children ? dwarf_entry_value(e, DWARF_SIBLING) : NULL;
	if (dwarf_value_entry(cu, v, &f, &off) && f == cu->file &&
	    off < cu->end && f->s[DWARF_INFO].p + off >= c->p)
		*next = f->s[DWARF_INFO].p + off;
	return true;
}

bool dwarf_entry_skip(const struct dwarf_cu *cu, struct cursor *c,
		      struct dwarf_entry *e)
{
	const uint8_t *next;
	size_t depth = 0;

	do {
		if (!e->abbrev) {
			depth--;
		} else {
			if (!entry_pass(cu, c, e, &next))
				return false;
			if (next)
				c->p = next;
			else
				depth += e->abbrev->children;
		}
	} while (depth && dwarf_entry_begin(cu, c, e));
	return depth == 0;
}

bool dwarf_entry_at(const struct dwarf_cu *cu, uint64_t off,
		    struct dwarf_entry *e)
{
	const uint8_t *info = cu->file->s[DWARF_INFO].p;
	struct cursor c;

	if (off < cu->first || off >= cu->end)
		return false;
	c = (struct cursor){ info + off, info + cu->end, false };
	return dwarf_entry_begin(cu, &c, e) && e->abbrev &&
	       dwarf_entry_read(cu, &c, e);
}
