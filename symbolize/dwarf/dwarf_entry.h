/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_entry: entries of a unit and the values of their attributes (DWARF 5 sections
 * 7.5.2 to 7.5.5).
 */
#ifndef SYMBOLIZE_DWARF_ENTRY_H
#define SYMBOLIZE_DWARF_ENTRY_H

#include "symbolize/dwarf/dwarf_file.h"

/* Bytes of a form in entries of this unit; -1: they vary, or it is not known. */
int dwarf_form_size(const struct dwarf_cu *cu, uint64_t form);
/* DWARF_N_AT: it is not read. */
enum dwarf_at dwarf_entry_at_index(uint64_t name);
/* 'implicit': the number of DW_FORM_implicit_const. False: damaged. */
bool dwarf_value_read(const struct dwarf_cu *cu, struct cursor *c,
		      uint64_t form, int64_t implicit, struct dwarf_value *v);

/*
 * In a loop over a unit: begin, which reads code and abbreviation, then either read
 * or skip. False: the unit ends, or is damaged.
 */
bool dwarf_entry_begin(const struct dwarf_cu *cu, struct cursor *c,
		       struct dwarf_entry *e);
bool dwarf_entry_read(const struct dwarf_cu *cu, struct cursor *c,
		      struct dwarf_entry *e);
/* With its children. */
bool dwarf_entry_skip(const struct dwarf_cu *cu, struct cursor *c,
		      struct dwarf_entry *e);
/* The entry at an offset in .debug_info. */
bool dwarf_entry_at(const struct dwarf_cu *cu, uint64_t off,
		    struct dwarf_entry *e);

static inline const struct dwarf_value *
dwarf_entry_value(const struct dwarf_entry *e, enum dwarf_at at)
{
	return e->has & 1U << at ? &e->at[at] : NULL;
}

/* In all of these 'v' may be NULL, and the unit is that of the value. */

/*
 * The text, or NULL. It ends in a NUL or has SOURCE_TEXT_MAX bytes at least: no more
 * may be read.
 */
const char *dwarf_value_text(const struct dwarf_cu *cu,
			     const struct dwarf_value *v);
/* A constant, or an offset in a section. */
bool dwarf_value_number(const struct dwarf_value *v, uint64_t *out);
/* A number that fits, else 0. */
uint32_t dwarf_value_word(const struct dwarf_value *v);
bool dwarf_value_address(const struct dwarf_cu *cu, const struct dwarf_value *v,
			 uint64_t *out);
/* An entry referred to: the file that it is in, and its offset there. */
bool dwarf_value_entry(const struct dwarf_cu *cu, const struct dwarf_value *v,
		       struct dwarf_file **f, uint64_t *off);
/* Number 'i' of the unit's part of .debug_addr. */
bool dwarf_address_at(const struct dwarf_cu *cu, uint64_t i, uint64_t *out);

#endif /* SYMBOLIZE_DWARF_ENTRY_H */
