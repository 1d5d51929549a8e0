// SPDX-License-Identifier: Apache-2.0
/* dwarf_ranges: see symbolize/dwarf/dwarf_ranges.h. */
#include <dwarf.h>
#include <string.h>

#include "symbolize/dwarf/dwarf_ranges.h"

/* Entries of a list that are read for 'max' ranges: each may have a base address. */
#define RANGES_ENTRIES(max) (2 * (max) + 16)

/* DWARF 4 section 2.17.3. */
static size_t ranges_old(const struct dwarf_cu *cu, uint64_t off,
			 struct dwarf_span *out, size_t max)
{
	struct cursor c = dwarf_cursor(cu->ranges, off);
	uint64_t last = cu->addr_size == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t base = cu->low, start, end;
	size_t n = 0;

	for (size_t i = 0; i < RANGES_ENTRIES(max) && n < max; i++) {
		start = cursor_fixed(&c, cu->addr_size);
		end = cursor_fixed(&c, cu->addr_size);
		if (c.bad || (!start && !end))
			break;
		if (start == last)
			base = end;
		else if (start < end)
			out[n++] =
				(struct dwarf_span){ base + start, base + end };
	}
	return n;
}

/* An entry of a range list, DWARF 5 section 7.25. False: the list ends. */
static bool list_entry(const struct dwarf_cu *cu, struct cursor *c,
		       uint64_t *base, struct dwarf_span *s)
{
	bool ok = true;

	*s = (struct dwarf_span){ 0 };
	switch (cursor_fixed(c, 1)) {
	case DW_RLE_base_addressx:
		ok = dwarf_address_at(cu, cursor_uleb(c), base);
		break;
	case DW_RLE_startx_endx:
		ok = dwarf_address_at(cu, cursor_uleb(c), &s->start) &&
		     dwarf_address_at(cu, cursor_uleb(c), &s->end);
		break;
	case DW_RLE_startx_length:
		ok = dwarf_address_at(cu, cursor_uleb(c), &s->start);
		s->end = s->start + cursor_uleb(c);
		break;
	case DW_RLE_offset_pair:
		s->start = *base + cursor_uleb(c);
		s->end = *base + cursor_uleb(c);
		break;
	case DW_RLE_base_address:
		*base = cursor_fixed(c, cu->addr_size);
		break;
	case DW_RLE_start_end:
		s->start = cursor_fixed(c, cu->addr_size);
		s->end = cursor_fixed(c, cu->addr_size);
		break;
	case DW_RLE_start_length:
		s->start = cursor_fixed(c, cu->addr_size);
		s->end = s->start + cursor_uleb(c);
		break;
	default: /* DW_RLE_end_of_list */
		ok = false;
	}
	return ok && !c->bad;
}

static size_t ranges_list(const struct dwarf_cu *cu, struct cursor c,
			  struct dwarf_span *out, size_t max)
{
	uint64_t base = cu->low;
	size_t n = 0;

	for (size_t i = 0; i < RANGES_ENTRIES(max) && n < max; i++) {
		if (!list_entry(cu, &c, &base, &out[n]))
			break;
		n += out[n].start < out[n].end;
	}
	return n;
}

/* DW_AT_ranges. */
static size_t ranges_of(const struct dwarf_cu *cu, const struct dwarf_value *v,
			struct dwarf_span *out, size_t max)
{
	const struct debugimage_part *lists = &cu->lists;
	uint64_t off = v->n;

	if (v->form != DW_FORM_rnglistx) {
		if (!dwarf_value_number(v, &off))
			return 0;
		if (cu->version < 5)
			return ranges_old(cu, off, out, max);
		lists = &cu->file->s[DWARF_RNGLISTS];
	} else if (off < lists->len / cu->offset_size) {
		const uint8_t *at = lists->p + off * cu->offset_size;

		off = 0;
		memcpy(&off, at, cu->offset_size);
	} else {
		return 0;
	}
	return ranges_list(cu, dwarf_cursor(*lists, off), out, max);
}

size_t dwarf_ranges_read(const struct dwarf_cu *cu, const struct dwarf_entry *e,
			 struct dwarf_span *out, size_t max)
{
	const struct dwarf_value *high = dwarf_entry_value(e, DWARF_HIGH_PC);
	const struct dwarf_value *list = dwarf_entry_value(e, DWARF_RANGE_LIST);
	uint64_t len;

	if (max && high &&
	    dwarf_value_address(cu, dwarf_entry_value(e, DWARF_LOW_PC),
				&out->start)) {
		if (dwarf_value_address(cu, high, &out->end))
			return 1;
		if (dwarf_value_number(high, &len)) {
			out->end = out->start + len;
			return 1;
		}
	}
	return list ? ranges_of(cu, list, out, max) : 0;
}
